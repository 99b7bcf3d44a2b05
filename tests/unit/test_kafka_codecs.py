"""What compressed batches decompress to, and what does not."""

from __future__ import annotations

import gzip
import sys
import zlib
from types import SimpleNamespace

import cramjam
import pytest

from mqindex.errors import FormatError
from mqindex.kafka.log import codecs
from mqindex.kafka.log.codecs import CODECS, decompress, with_frame_checksum
from tests.support.kafka_writer import compressed

CASES = [(name, magic) for magic in (0, 1, 2) for name in CODECS if magic == 2 or name != "zstd"]


@pytest.mark.parametrize(("name", "magic"), CASES)
@pytest.mark.parametrize("size", [0, 1, 100_000, 3_000_000])
def test_what_a_producer_compressed(name: str, magic: int, size: int) -> None:
    data = (b"records " * (size // 8 + 1))[:size]
    stored = compressed(name, data, magic)
    assert decompress(CODECS.index(name), memoryview(stored), magic=magic) == data


def test_snappy_without_the_frame_of_java() -> None:
    assert decompress(2, bytes(cramjam.snappy.compress_raw(b"records"))) == b"records"


def test_lz4_of_other_writers() -> None:
    assert decompress(3, bytes(cramjam.lz4.compress(b"records"))) == b"records"


def test_a_frame_with_a_content_size_gets_its_checksum() -> None:
    frame = bytes(cramjam.lz4.compress(b"records" * 9))
    at = 14 if frame[4] & 0x08 else 6
    spoilt = frame[:at] + bytes([frame[at] ^ 0x55]) + frame[at + 1 :]
    assert with_frame_checksum(spoilt) == frame
    assert with_frame_checksum(b"short") == b"short"
    with pytest.raises(FormatError, match="does not decompress with lz4"):
        decompress(3, spoilt)
    assert decompress(3, spoilt, magic=0) == b"records" * 9


@pytest.mark.parametrize("name", ["gzip", "snappy", "zstd"])
@pytest.mark.parametrize("between", [b"", b"three " * 10_000])
def test_streams_one_behind_the_other_are_one(name: str, between: bytes) -> None:
    """As the classes of Kafka 4.1.0 read them."""
    parts = [b"one " * 9_000, between, b"two"]
    stored = b"".join(compressed(name, part) for part in parts)
    assert decompress(CODECS.index(name), stored) == b"".join(parts)


@pytest.mark.parametrize("more", [b"", b"x", bytes(40), b"garbage " * 9, b"\x1f\x8b\x08" + bytes(15)])
def test_what_follows_gzip_and_is_none_is_left_out(more: bytes) -> None:
    assert decompress(1, compressed("gzip", b"records") + more) == b"records"


def test_a_second_gzip_member_that_is_spoilt() -> None:
    first, second = compressed("gzip", b"one"), compressed("gzip", b"two" * 9)
    for spoilt in (second[:-1], second[:19], second[:10] + b"\xff" * 40, second[:-8] + bytes(8)):
        with pytest.raises(FormatError, match="does not decompress with gzip"):
            decompress(1, first + spoilt)


def test_small_gzip_members_cost_no_more_than_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = 0

    class Counted:
        def __init__(self, wbits: int) -> None:
            self.stream = zlib.decompressobj(wbits)

        def decompress(self, data: bytes, most: int) -> bytes:
            nonlocal fed
            fed += len(data)
            return self.stream.decompress(data, most)

        eof = property(lambda self: self.stream.eof)
        unused_data = property(lambda self: self.stream.unused_data)

    monkeypatch.setattr(codecs, "zlib", SimpleNamespace(decompressobj=Counted, error=zlib.error))
    assert decompress(1, compressed("gzip", b"x") * 4000) == b"x" * 4000
    assert fed < 4000 * 10_000


@pytest.mark.parametrize("more", [b"x", bytes(40), compressed("lz4", b"more")])
@pytest.mark.parametrize("magic", [0, 2])
def test_a_broker_reads_the_first_lz4_frame_only(more: bytes, magic: int) -> None:
    data = b"records " * 40_000
    assert decompress(3, compressed("lz4", data, magic) + more, magic=magic) == data
    assert decompress(3, bytes(cramjam.lz4.compress(data)) + more) == data


@pytest.mark.parametrize("name", CODECS[1:])
def test_bytes_that_do_not_decompress(name: str) -> None:
    stored = compressed(name, b"records " * 1000)
    for broken in (b"", stored[: len(stored) // 2], b"\0" * 50, stored[:20] + b"\xff" * 30):
        try:
            assert decompress(CODECS.index(name), broken) != b"records " * 1000
        except FormatError as error:
            assert f"does not decompress with {name}" in str(error)
        else:
            assert name in ("snappy", "zstd") and len(broken) < 51  # some bytes are a frame of nothing


@pytest.mark.parametrize("name", CODECS[1:])
def test_no_batch_asks_for_all_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "MAX_RECORDS_SIZE", 1 << 17)
    number = CODECS.index(name)
    assert len(decompress(number, compressed(name, bytes(1 << 17)))) == 1 << 17
    with pytest.raises(FormatError, match=f"does not decompress with {name}"):
        decompress(number, compressed(name, bytes((1 << 17) + 1)))
    if name != "lz4":
        with pytest.raises(FormatError, match=f"does not decompress with {name}"):
            decompress(number, compressed(name, bytes(1 << 16)) * 2 + compressed(name, b"x"))


def test_a_snappy_block_that_claims_too_much() -> None:
    with pytest.raises(FormatError, match="with a length field of"):
        decompress(2, b"\xff\xff\xff\x7f" + b"\0" * 5)
    with pytest.raises(FormatError, match="has no length"):
        decompress(2, b"\xff" * 9)
    with pytest.raises(FormatError, match="cut short"):
        decompress(2, compressed("snappy", b"records")[:-1])


@pytest.mark.parametrize(("number", "magic"), [(5, 2), (7, 2), (-1, 2), (4, 1), (4, 0)])
def test_codecs_that_no_broker_knows(number: int, magic: int) -> None:
    with pytest.raises(FormatError, match="no such codec of a batch"):
        decompress(number, gzip.compress(b""), magic=magic)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    assert decompress(1, compressed("gzip", b"records")) == b"records"
    with pytest.raises(ImportError, match=r"compressed with zstd need cramjam: pip install 'mqindex\[codecs\]'"):
        decompress(4, b"x")
