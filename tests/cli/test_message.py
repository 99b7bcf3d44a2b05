"""`mqindex message`: by offset and by id, whole, and harmless to a terminal."""

from __future__ import annotations

import shutil
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import MessageStore, NewMessage
from tests.cli.conftest import Shell, Store
from tests.cli.test_terminal import on_a_terminal, plain
from tests.support.golden import case

NAMES = {
    "topic": "topic", "queue_id": "queueId", "queue_offset": "queueOffset", "phy_offset": "phyOffset", "size": "size",
    "keys": "keys", "uniq_key": "uniqKey", "store_timestamp": "storeTimestamp", "born_timestamp": "bornTimestamp",
    "sys_flag": "sysFlag", "flag": "flag", "body_crc": "bodyCRC", "body_size": "bodyLen", "msg_id": "msgId",
    "reconsume_times": "reconsumeTimes", "properties": "properties",
}  # fmt: skip


@pytest.mark.parametrize("name", ["basic-493", "ipv6-batch-ext-493"])
def test_offset_offset_id_and_uniq_key_lead_to_the_message(shell: Shell, tmp_path: Path, name: str) -> None:
    chosen = case(name)
    root = chosen.unpack(tmp_path)
    said = [one for one in chosen.truth["messages"] if not one["sysFlag"] & 1]
    for one in said[:3] + said[-3:]:
        names = [str(one["phyOffset"]), one["msgId"], one["msgId"].lower()]
        names += [one["uniqKey"]] if one["uniqKey"] else []
        done = shell("message", root, *names, "--json")
        assert (done.status, done.err) == (0, "")
        for asked, got in zip(names[:3], done.json, strict=False):
            assert got["id"] == asked
            assert {field: got[field] for field in NAMES} == {field: one[NAMES[field]] for field in NAMES}
        assert one["phyOffset"] in [got["phy_offset"] for got in done.json[3:]] or not one["uniqKey"]


def test_people_see_every_field_and_the_body(shell: Shell, basic: Store) -> None:
    one = next(each for each in basic.case.truth["messages"] if each["keys"])
    done = shell("message", basic.root, one["msgId"])
    shown = [line.split(maxsplit=1) for line in done.lines]
    assert ["phy_offset", str(one["phyOffset"])] in shown
    assert ["KEYS", one["keys"]] in shown
    assert done.lines[-2] == f"body  {one['bodyLen']} bytes"


def test_absent_is_a_no_and_says_what_there_is(shell: Shell, basic: Store) -> None:
    end = basic.case.truth["maxPhyOffset"]
    done = shell("message", basic.root, "0", "1", "9" * 19, "9" * 20, "nobody's id", "0A" * 16)
    assert done.status == 1
    assert f"no message begins at phy offset 1: the log has 0 to {end}\n" in done.err
    assert f"no message was found by the id {'0A' * 16}: the log has 0 to {end}, and the index has none" in done.err
    assert done.err.count("\n") == 5
    assert "msg_id" in done.out, "what is there is shown"
    assert [one["phy_offset"] for one in shell("message", basic.root, "0", "1", "--json").json] == [0, None]


def test_damage_is_trouble_and_hides_no_other_message(shell: Shell, basic: Store) -> None:
    first, second = basic.case.truth["messages"][:2]
    log = bytearray(basic.log_files[0].read_bytes())
    log[first["phyOffset"] + 88] ^= 0xFF  # the first byte of the body
    basic.log_files[0].write_bytes(log)
    done = shell("message", basic.root, str(first["phyOffset"]), str(second["phyOffset"]))
    assert done.status == 2
    assert done.err.startswith("mqindex: 0: the body does not have the checksum of its frame: ")
    assert done.err.count("\n") == 1
    assert second["msgId"] in done.out


def test_an_id_that_only_an_index_finds_is_not_absent_without_one(shell: Shell, basic: Store) -> None:
    shutil.rmtree(basic.root / "index")
    done = shell("message", basic.root, "some id", basic.case.truth["messages"][0]["msgId"])
    assert done.status == 2
    assert done.err == (
        f"mqindex: some id: the store has no index, which finds such an id: {basic.root / 'index'}; "
        "`mqindex repair` builds it, if the log has a message\n"
    )
    assert "phy_offset                   0" in done.out


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    root = tmp_path / "hostile"
    with MessageStore.open(root, writable=True) as store:
        properties = {"a\x1b[2Jb": "c\x07d", "n" * 300: "v\u202e"}
        store.put_message(NewMessage("T", b"\x1b]0;x\x07one\r\ntwo\n", uniq_key="same", properties=properties))
        store.put_message(NewMessage("%RETRY%g", b"\xff\x00\x1b[2J" * 200, uniq_key="same"))
        store.put_message(NewMessage("T", zlib.compress(b"x" * 5000), sys_flag=0x1, uniq_key="zip"))
        store.put_message(NewMessage("T", b"no lz4", sys_flag=0x101, uniq_key="broken"))
        store.put_message(NewMessage("T", b"", uniq_key="empty"))
    return root


@pytest.mark.parametrize("form", [[], ["--body", "text"], ["--body", "hex"]])
@pytest.mark.parametrize("columns", [60, 120])
def test_nothing_of_a_message_steers_a_terminal(hostile: Path, form: list[str], columns: int) -> None:
    status, _, shown = on_a_terminal("message", hostile, "same", *form, columns=columns, both=True)
    assert status == 0
    assert not any(bad in shown for bad in ("\x1b[2J", "\x1b]", "\x07", "\u202e", "…"))
    assert "n" * 300 in "".join(plain(shown).split())


def test_an_id_that_several_messages_have_shows_all(shell: Shell, hostile: Path) -> None:
    both = shell("message", hostile, "same", "--json").json
    assert [(one["topic"], one["body_format"]) for one in both] == [("T", "text"), ("%RETRY%g", "hex")]
    assert bytes.fromhex(both[1]["body"]) == b"\xff\x00\x1b[2J" * 200
    (one,) = shell("message", hostile, "same", "--topic", "T", "--json").json
    assert one["body"] == "\x1b]0;x\x07one\r\ntwo\n"


@pytest.mark.parametrize(
    ("properties", "holds"),
    [
        ({"INNER_NUM": "2", "INNER_BASE": "7"}, "an inner batch of 2 messages from queue offset 7 on"),
        ({"INNER_NUM": "-\x1b[2J"}, "an inner batch of an unknown number of messages"),
    ],
)
def test_an_inner_batch_is_shown_as_what_it_is(
    properties: dict[str, str], holds: str, shell: Shell, tmp_path: Path
) -> None:
    """Its many messages were one text of control characters."""
    inner = struct.pack(">iiiii1sh", 23, 0, 0, 0, 1, b"x", 0)
    with MessageStore.open(tmp_path / "store", writable=True) as store:
        store.put_message(NewMessage("T", inner * 2, keys="k", sys_flag=0x80, uniq_key="batch", properties=properties))
    shown = shell("message", tmp_path / "store", "batch")
    assert f"body  46 bytes, {holds}" in shown.lines
    assert shown.lines[-1].startswith("  00000020  ")  # in hex
    (one,) = shell("message", tmp_path / "store", "batch", "--json").json
    assert (one["body_format"], one["body"]) == ("hex", inner.hex() * 2)
    row = shell("query", tmp_path / "store", "--topic", "T", "k", "--messages").lines[-1]
    assert row.endswith(f"({holds})")


def test_a_body_is_shown_whole_only_where_asked(shell: Shell, hostile: Path) -> None:
    brief = shell("message", hostile, "zip")
    assert "x" * 1024 in brief.lines[-2]
    assert "x" * 1025 not in brief.out
    assert brief.lines[-1] == "  ... and 3976 bytes more: --body text prints all"
    assert f"body  5000 bytes, stored as {len(zlib.compress(b'x' * 5000))} bytes of zlib" in brief.lines
    assert shell("message", hostile, "zip", "--body", "text").lines[-1] == "  " + "x" * 5000
    assert shell("message", hostile, "zip", "--body", "hex").lines[-1].startswith("  00001380  78 78")
    assert shell("message", hostile, "empty", "--body", "text").lines[-1] == "body  0 bytes"


def test_a_body_that_does_not_decompress_is_trouble_with_all_its_fields(
    shell: Shell, hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    done = shell("message", hostile, "broken", "--out", tmp_path / "body")
    assert done.status == 2
    assert "body  6 bytes, not readable" in done.lines
    assert done.err == "mqindex: broken: a body compressed with LZ4 needs cramjam: pip install 'mqindex[codecs]'\n"
    assert not (tmp_path / "body").exists()


def test_the_body_goes_to_a_new_file(shell: Shell, hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "body.bin"
    done = shell("message", hostile, "zip", "--out", out)
    assert (done.status, out.read_bytes()) == (0, b"x" * 5000)
    assert done.err == f"mqindex: wrote 5000 bytes to {out}\n"
    assert "xxx" not in done.out
    before: dict[str, Any] = {"mode": out.stat().st_mode}
    refused = shell("message", hostile, "same", "--topic", "T", "--out", out)
    assert (refused.status, refused.out, out.read_bytes()) == (2, "", b"x" * 5000)
    assert "the output exists" in refused.err
    assert "--force" in refused.err
    assert shell("message", hostile, "same", "--topic", "T", "--out", out, "--force").status == 0
    assert (out.read_bytes(), out.stat().st_mode) == (b"\x1b]0;x\x07one\r\ntwo\n", before["mode"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["body.bin", "hostile"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["same", "empty"], "--out takes the body of one message"),
        (["same"], "--out takes the body of one message, got 2: name one by its phy offset: 0, "),
    ],
)
def test_one_file_is_for_one_body(
    shell: Shell, hostile: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    done = shell("message", hostile, *arguments, "--out", tmp_path / "body")
    assert done.status == 2
    assert sentence in done.err
    assert not (tmp_path / "body").exists()


def test_neither_a_directory_nor_a_device_is_overwritten(shell: Shell, hostile: Path, tmp_path: Path) -> None:
    for place in (tmp_path, Path("/dev/null")):
        done = shell("message", hostile, "zip", "--out", place, "--force")
        assert done.status == 2
        assert f"the output is no file: {place}" in done.err
    assert Path("/dev/null").is_char_device()
