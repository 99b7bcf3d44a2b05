"""One message: decoded fields, hosts, properties, compressed bodies, and what is no message."""

from __future__ import annotations

import gzip
import pickle
import zlib
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from mqindex._native.log_message import MessageMaker, parse_properties
from mqindex.errors import BadMagicError, FormatError, MQIndexError, TruncatedFileError
from mqindex.rocketmq import Message
from mqindex.rocketmq.messages import body
from tests.conftest import SeededRandom
from tests.reference.commit_log import parse_properties as slow_parse_properties
from tests.reference.java import decode_utf8
from tests.support.log_writer import LogMessage, frame

EXAMPLE = bytes.fromhex(  # section 5.6 of the format document, made by the broker's own class
    "0000007adaa320a73610a68600000003 00000000000000000000000700000000 00000400000000000000018bcfe56800"
    "c0a800010000d4310000018bcfe56805 0a00000200002a9f0000000000000000 000000000000000568656c6c6f06546f"
    "706963410014 4b455953016b31206b32025441475301 54616741".replace(" ", "")
)


def test_message_of_the_format_document() -> None:
    message = Message.decode(EXAMPLE)
    assert message == Message(
        topic="TopicA",
        queue_id=3,
        queue_offset=7,
        phy_offset=1024,
        size=122,
        stored_body=b"hello",
        body_crc=0x3610A686,
        flag=0,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        born_host="192.168.0.1:54321",
        store_timestamp=1_700_000_000_005,
        store_host="10.0.0.2:10911",
        reconsume_times=0,
        prepared_transaction_offset=0,
        properties={"KEYS": "k1 k2", "TAGS": "TagA"},
        msg_id="0A00000200002A9F0000000000000400",
    )
    assert (message.body, message.keys, message.tags, message.uniq_key) == (b"hello", "k1 k2", "TagA", None)


def test_the_kernel_makes_objects_of_classes_with_slots_only() -> None:
    maker = MessageMaker(Message)
    assert maker.message_at(EXAMPLE, 1024, 1024) == Message.decode(EXAMPLE)
    for other in (object, LogMessage, type("Half", (), {"__slots__": ("topic",)})):
        with pytest.raises(TypeError, match="expected a class with the slot"):
            MessageMaker(other)


def test_ipv6_hosts_and_a_long_topic() -> None:
    data = frame(
        LogMessage("T" * 200, version=2, born_host=("2001:db8::1", 5), store_host=("2001:db8::100", 10911)), 1024
    )
    message = Message.decode(data)
    assert message.topic == "T" * 200
    assert (message.born_host, message.store_host) == ("[2001:db8:0:0:0:0:0:1]:5", "[2001:db8:0:0:0:0:0:100]:10911")
    assert message.msg_id == "20010DB800000000000000000000010000002A9F0000000000000400"


@pytest.mark.parametrize("length", range(len(EXAMPLE)))
def test_frame_cut_short_is_an_error(length: int) -> None:
    with pytest.raises(FormatError):
        Message.decode(EXAMPLE[:length])


@pytest.mark.parametrize(
    ("place", "error", "words"),
    [
        (4, BadMagicError, "no frame begins here"),
        (8, FormatError, "checksum"),
        (3, FormatError, "size"),
        (0, TruncatedFileError, "cut short"),
        (84, FormatError, "longer than the frame"),
    ],
)
def test_error_says_what_is_wrong(place: int, error: type[MQIndexError], words: str) -> None:
    data = bytearray(EXAMPLE)
    data[place] ^= 0x40
    with pytest.raises(error, match=words) as caught:
        Message.decode(data)
    assert caught.value.at == 0 and caught.value.expected and caught.value.got
    assert "phy offset 1024" in str(caught.value)


def test_any_single_byte_may_be_wrong() -> None:
    for place in range(len(EXAMPLE)):
        for bit in range(8):
            data = bytearray(EXAMPLE)
            data[place] ^= 1 << bit
            try:
                Message.decode(data).body  # noqa: B018
            except MQIndexError:
                continue


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"KEYS\x01a",
        b"KEYS\x01a\x02",
        b"KEYS\x01\x02TAGS\x01t",
        b"\x01a\x02b\x01c",
        b"KEYS\x01a\x01b\x02KEYS\x01c",
        b"KEYS\x02\x02\x01\x02x\x01y",
        b"user\x01\xe6\xb6\x88\x02",
    ],
)
def test_properties_are_those_of_the_twin(block: bytes) -> None:
    assert parse_properties(block) == slow_parse_properties(block.decode())


def test_properties_of_any_bytes_are_those_of_the_twin(rng: SeededRandom) -> None:
    for _ in range(2000):
        block = bytes(
            rng.choice(b"aK\x01\x01\x02\x02\x00\xe6\xb6\x88\xf0\xc3\xff\xed\xa0") for _ in range(rng.randrange(30))
        )
        assert parse_properties(block) == slow_parse_properties(decode_utf8(block))


def test_a_decoded_message_is_like_one_that_was_made() -> None:
    message = Message.decode(frame(LogMessage(topic="T", keys="k", tags="t", uniq_key="U", body=b"hello"), 7000))
    made = Message(**{field.name: getattr(message, field.name) for field in fields(Message)})
    assert (message, repr(message)) == (made, repr(made))
    assert pickle.loads(pickle.dumps(message)) == replace(message) == message
    with pytest.raises(FrozenInstanceError):
        message.topic = "other"  # type: ignore[misc]
    with pytest.raises(TypeError, match="unhashable"):
        hash(message)  # its properties are a dict


# ---- bodies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sys_flag", [0x1, 0x301, 0x5])
def test_zlib_body(sys_flag: int) -> None:
    message = Message.decode(frame(LogMessage(body=zlib.compress(b"hello" * 99), sys_flag=sys_flag), 0))
    assert message.body == b"hello" * 99
    assert message.stored_body == zlib.compress(b"hello" * 99)


@pytest.mark.parametrize(("codec", "sys_flag"), [("lz4", 0x101), ("zstd", 0x201)])
@pytest.mark.parametrize("text", [b"", b"hello", b"0123456789" * 50_000])
def test_lz4_and_zstd_body(codec: str, sys_flag: int, text: bytes) -> None:
    cramjam = pytest.importorskip("cramjam")
    assert body.decompress(bytes(getattr(cramjam, codec).compress(text)), sys_flag) == text


@pytest.mark.parametrize("sys_flag", [0x1, 0x101, 0x201, 0x301])
@pytest.mark.parametrize("stored", [b"", b"hello", zlib.compress(b"x" * 100)[:-3], gzip.compress(b"x", mtime=0)])
def test_body_that_does_not_decompress_is_an_error(stored: bytes, sys_flag: int) -> None:
    if sys_flag in {0x101, 0x201}:
        pytest.importorskip("cramjam")
    with pytest.raises(FormatError, match="does not decompress"):
        body.decompress(stored, sys_flag)


def test_body_of_unknown_compression_is_an_error() -> None:
    with pytest.raises(FormatError, match=r"expected type 0\.\.3, got 7"):
        body.decompress(b"", 0x701)


def test_flag_of_an_uncompressed_body_is_not_looked_at() -> None:
    assert body.decompress(b"plain", 0x700) == b"plain"


@pytest.mark.parametrize("sys_flag", [0x1, 0x101, 0x201])
def test_body_that_grows_without_bound_is_an_error(sys_flag: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_BODY_SIZE", 100_000)
    codec = {0x1: "zlib", 0x101: "lz4", 0x201: "zstd"}[sys_flag]
    module: Any = zlib if codec == "zlib" else getattr(pytest.importorskip("cramjam"), codec)
    with pytest.raises(FormatError, match="does not decompress"):
        body.decompress(bytes(module.compress(bytes(1 << 20))), sys_flag)


def test_absent_codec_is_named_with_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_cramjam(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("importlib.import_module", without_cramjam)
    with pytest.raises(ImportError, match=r"LZ4.*pip install 'mqindex\[codecs\]'"):
        body.decompress(b"", 0x101)


@pytest.mark.parametrize("length", range(1, 26))
def test_one_byte_that_is_not_ascii_is_found_wherever_it_is(length: int) -> None:
    for at in range(length):
        for odd in (b"\x80", b"\xff", "é".encode()):
            value = b"v" * at + odd + b"v" * (length - at - 1)
            block = b"KEYS\x01" + value + b"\x02" + value + b"\x01v"
            assert parse_properties(block) == slow_parse_properties(decode_utf8(block))
            assert parse_properties(b"T\x01" + b"v" * length) == {"T": "v" * length}


@pytest.mark.parametrize("name", ["KEYS", "KEY", "KEYS2", "TAGS", "UNIQ_KEY", "WAIT", "TRACE_ON", "MSG_REGION", "Kéys"])
def test_usual_names_and_names_like_them(name: str) -> None:
    assert parse_properties(f"{name}\x01a\x02K\x01b".encode()) == {name: "a", "K": "b"}
