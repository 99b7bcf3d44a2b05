"""Logs with every kind of damage: what is indexed is what the twin says, whatever the splits."""

from __future__ import annotations

import contextlib
import itertools
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import CommitLog, rebuild
from tests.reference.commit_log import scan_log
from tests.reference.rebuild import build_index_bytes, log_files
from tests.support.log_writer import LogMessage, LogWriter, frame
from tests.support.nightly import some
from tests.support.small_store import GEOMETRY, OPTIONS, small_messages
from tests.support.tree import index_bytes

Bound = Callable[[float], None]
FIELDS = {  # of a record with IPv4 hosts: place, form
    "size": (0, ">i"),
    "magic": (4, ">i"),
    "body_crc": (8, ">i"),
    "queue_id": (12, ">i"),
    "flag": (16, ">i"),
    "queue_offset": (20, ">q"),
    "phy_offset": (28, ">q"),
    "sys_flag": (36, ">i"),
    "born_timestamp": (40, ">q"),
    "store_timestamp": (56, ">q"),
    "reconsume_times": (72, ">i"),
    "prepared_transaction_offset": (76, ">q"),
    "body_length": (84, ">i"),
}
VALUES = {
    ">i": [0, 1, 7, 8, -1, 88, 2048, 1 << 20, (1 << 31) - 1, -(1 << 31), -626843481, -626843477, -875286124],
    ">q": [0, -1, 1, 1 << 40, (1 << 63) - 1, -(1 << 63)],
}


def check(root: Path, *, tags: bool = False, split_size: int = 4096, workers: int = 1) -> None:
    """A rebuild of the store gives the twin's files and tells of damage where the twin saw some."""
    files = log_files(root / "commitlog")
    messages, damage, end = scan_log(files)
    expected = build_index_bytes(files, *GEOMETRY, tags=tags)
    options: dict[str, Any] = {**OPTIONS, "broker_version": "5.5.0" if tags else "4.9.3"}
    out = root / "out"
    report = rebuild(root, out, split_size=split_size, engine=LocalEngine(workers), overwrite=out.exists(), **options)
    assert index_bytes(out) == expected
    assert report.messages == len(messages)
    damaged = [one for one in report.findings if one.severity == "error"]
    assert bool(damaged) == bool(damage), report.findings
    for backup in root.glob("out.backup-*"):
        backup.rename(root / f"away{backup.name}{random.getrandbits(64)}")
    with CommitLog.open(root / "commitlog") as log:
        found = [int(offset) for batch in log.scan(columns=["phy_offset"]) for offset in batch["phy_offset"]]
        assert found == [message.phy_offset for message in messages]
        assert log.max_phy_offset == end or not messages


def written(root: Path, messages: Sequence[LogMessage] = (), **options: Any) -> LogWriter:
    writer = LogWriter(root / "commitlog", mapped_file_size=options.pop("mapped_file_size", 2048), **options)
    writer.write(*(messages or small_messages()))
    return writer


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("last_file", [False, True], ids=["in an earlier file", "in the last file"])
def test_wrong_field_of_a_record_is_damage_or_the_end(
    field: str, last_file: bool, tmp_path: Path, time_bound: Bound
) -> None:
    time_bound(60)
    place, code = FIELDS[field]
    for number, value in enumerate(VALUES[code]):
        root = tmp_path / str(number)
        writer = written(root)
        victims = [offset for offset, _ in writer.frames if (offset >= writer.position // 2048 * 2048) == last_file]
        writer.overwrite(victims[len(victims) // 2] + place, struct.pack(code, value))
        check(root)


def test_last_record_torn_at_every_length(tmp_path: Path, time_bound: Bound) -> None:
    time_bound(120)
    size = len(frame(small_messages()[-1], 0))
    for keep in range(size):
        writer = written(tmp_path / str(keep), small_messages(12))
        writer.write(small_messages()[-1])
        writer.tear(keep)
        check(tmp_path / str(keep))


@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_last_file_cut_off_at_any_length(which: str, tmp_path: Path, time_bound: Bound) -> None:
    """A log copied while its broker wrote: the last file is shorter than the others."""
    time_bound(120)
    for length in range({"first": 1, "middle": 700, "last": 1950}[which], 2048, 97):
        writer = written(tmp_path / str(length), small_messages(25))
        path = writer.path(writer.position)
        path.write_bytes(path.read_bytes()[:length])
        check(tmp_path / str(length))


def test_record_of_another_place_is_damage(tmp_path: Path) -> None:
    writer = written(tmp_path)
    (first, size), (second, other) = writer.frames[2], writer.frames[3]
    content = writer.path(0).read_bytes()
    writer.overwrite(second, content[first : first + min(size, other)])
    check(tmp_path)


def test_missing_file_in_the_middle_is_damage(tmp_path: Path) -> None:
    writer = written(tmp_path)
    writer.path(2048).unlink()
    report = rebuild(tmp_path, tmp_path / "out", engine=LocalEngine(1), **OPTIONS)
    assert not report.ok
    assert index_bytes(tmp_path / "out") == build_index_bytes(log_files(tmp_path / "commitlog"), *GEOMETRY, tags=False)


@pytest.mark.parametrize("split_size", [4096, 5000, 1 << 20])
@pytest.mark.parametrize("workers", [1, 3])
def test_body_that_imitates_records_deceives_no_split(split_size: int, workers: int, tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 16)
    for number in range(8):
        inner = [LogMessage("Evil", keys=f"evil{at}", uniq_key="E" * 32, body=bytes(300)) for at in range(20)]
        writer.write_imitation(LogMessage(keys=f"good{number}", body=b""), inner)
        writer.write(*small_messages(5))
    check(tmp_path, split_size=split_size, workers=workers)
    names = {key for message in scan_log(log_files(tmp_path / "commitlog"))[0] for key in message.property_map.values()}
    assert not any(name.startswith("evil") for name in names)


def test_imitations_that_run_out_of_their_body_deceive_no_split(tmp_path: Path) -> None:
    """The last imitation claims bytes behind the record that holds it."""
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 16)
    for number in range(6):
        inner = [LogMessage("Evil", keys=f"evil{at}", body=bytes(700)) for at in range(10)]
        torn = frame(LogMessage("Evil", keys="torn", body=bytes(5000)), 0)[:200]
        writer.write_imitation(LogMessage(keys=f"good{number}"), inner, after=torn)
        writer.write(*small_messages(3))
    for split_size in (4096, 4500, 7000):
        check(tmp_path, split_size=split_size)


def test_imitation_of_a_blank_ends_no_file(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 14)
    for _ in range(8):
        at = writer.position % (1 << 14) + len(frame(LogMessage(body=b""), 0)) - 12
        blanks = b"".join(struct.pack(">iI", (1 << 14) - at - 8 * i, 0xCBD43194) for i in range(200))
        writer.write(LogMessage(uniq_key="u", keys="k", body=blanks), *small_messages(4))
    check(tmp_path)


def test_stale_records_behind_the_end_are_not_indexed(tmp_path: Path) -> None:
    """An earlier life's records, whole and at their right place, behind a record that did not get to the disk."""
    writer = written(tmp_path, small_messages(33))
    at, size = writer.frames[-3]
    assert at // 2048 == writer.frames[-1][0] // 2048
    writer.overwrite(at, bytes(size))
    check(tmp_path)
    report = rebuild(tmp_path, tmp_path / "again", engine=LocalEngine(1), **OPTIONS)
    assert report.ok


def test_body_with_another_crc_ends_the_last_file_only(tmp_path: Path) -> None:
    writer = written(tmp_path)
    for offset in (writer.frames[2][0], writer.frames[-2][0]):
        content = writer.path(offset).read_bytes()
        at = offset % 2048 + 88
        writer.overwrite(offset + 88, bytes([content[at] ^ 1]))
    check(tmp_path)


@pytest.mark.parametrize("which", some(range(4), lambda which: which < 2))
def test_random_mutations_of_a_log_are_indexed_as_the_twin_does(
    which: int, tmp_path: Path, rng: random.Random, time_bound: Bound
) -> None:
    time_bound(120)
    for number in range(40):
        root = tmp_path / str(number)
        writer = written(root)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(writer.position - 16)
            kind = rng.randrange(4)
            length = min(rng.randrange(1, 300), 2048 - at % 2048)
            if kind == 0:
                byte = writer.path(at).read_bytes()[at % 2048]
                writer.overwrite(at, bytes([byte ^ 1 << rng.randrange(8)]))
            elif kind == 1:
                writer.overwrite(at, rng.randbytes(length))
            elif kind == 2:
                writer.overwrite(at, bytes(length))
            else:
                victim = rng.choice(writer.frames)[0]
                place, code = rng.choice(list(FIELDS.values()))
                writer.overwrite(victim + place, struct.pack(code, rng.choice(VALUES[code])))
        check(root, split_size=rng.choice([4096, 1 << 20]))


@pytest.mark.parametrize("tags", [False, True])
def test_properties_of_any_bytes_are_indexed_as_the_broker_does(
    tags: bool, tmp_path: Path, rng: random.Random, time_bound: Bound
) -> None:
    time_bound(120)
    words = [
        *(b"KEYS", b"TAGS", b"UNIQ_KEY", b"\x01", b"\x02", b" ", b"  ", b"\t", b"a", b"\xff", b"\xed\xa0\x80"),
        *("é😀".encode(), b"\x00", b"KEYS\x01", b"\x02KEYS\x01x y", b"UNIQ_KEY\x01U", b"\x02", b"TAGS\x01T||S"),
        *(
            b"\xe2\x82",
            b"\xe0\x80\x80",
            b"\xf0\x80\x80\x80",
            b"\xf0\x90\x80",
            b"\xf4\x90\x80\x80",
            b"\xc3",
            b"\xc0\x80",
        ),
    ]
    for number in range(10):
        messages = []
        for _ in range(40):
            block = b"".join(rng.choice(words) for _ in range(rng.randrange(14)))
            topic = rng.choice(["T", "Topic", "AaTopic", "主题", "😀"])
            messages.append(LogMessage(topic, properties=block, sys_flag=rng.choice([0, 4, 8, 12, 1, 0x70])))
        written(tmp_path / str(number), messages)
        check(tmp_path / str(number), tags=tags)


@pytest.mark.parametrize("tags", [False, True])
def test_records_of_every_form_are_indexed(tags: bool, tmp_path: Path) -> None:
    forms = itertools.product(
        (1, 2), ("10.0.0.1", "2001:db8::1"), ("10.0.0.2", "fe80::2"), (False, True), (0, 4, 8, 12)
    )
    messages = [
        LogMessage(
            "T" * (130 if version == 2 else 5), keys=f"k{number} shared", uniq_key=f"u{number}", tags="A||B",
            version=version, born_host=(born, 1), store_host=(stored, 2), separator=separator, sys_flag=flag,
        )
        for number, (version, born, stored, separator, flag) in enumerate(forms)
    ]  # fmt: skip
    written(tmp_path, messages, mapped_file_size=4096)
    check(tmp_path, tags=tags)


def test_log_that_does_not_begin_at_0(tmp_path: Path) -> None:
    written(tmp_path, start=2048 * 1000)
    check(tmp_path)


def test_pre_created_file_and_file_of_zero_length_count_for_nothing(tmp_path: Path) -> None:
    writer = written(tmp_path)
    writer.create_next_file()
    writer.path(writer.position + 3 * 2048).touch()
    check(tmp_path)


def test_log_of_one_full_file_and_an_empty_one(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=2048)
    while writer.position < 1600:
        writer.write(*small_messages(1))
    writer.write_blank()
    writer.create_file(writer.position)
    check(tmp_path)


def test_log_without_any_key_gives_one_empty_file(tmp_path: Path) -> None:
    written(tmp_path, [LogMessage(keys=None)] * 3)
    check(tmp_path)
    (data,) = index_bytes(tmp_path / "out")
    assert data == bytes(40 + 4 * GEOMETRY[0] + 20 * GEOMETRY[1])


def test_log_without_any_message_gives_no_file(tmp_path: Path) -> None:
    LogWriter(tmp_path / "commitlog", mapped_file_size=2048).create_next_file()
    check(tmp_path)
    assert index_bytes(tmp_path / "out") == []


@pytest.mark.parametrize("follows", [None, "nothing", "rollback", "key"])
def test_file_behind_an_exactly_full_one_exists_once_a_message_follows(follows: str | None, tmp_path: Path) -> None:
    full = [LogMessage(uniq_key=f"u{number}") for number in range(2 * (GEOMETRY[1] - 1))]
    last = {
        None: [],
        "nothing": [LogMessage()],
        "rollback": [LogMessage(uniq_key="r", sys_flag=12)],
        "key": [LogMessage(uniq_key="one more")],
    }[follows]
    written(tmp_path, full + last)
    check(tmp_path)
    assert len(index_bytes(tmp_path / "out")) == (2 if follows is None else 3)


def test_message_with_more_keys_than_a_file_holds(tmp_path: Path) -> None:
    keys = " ".join(f"k{number % 11}" for number in range(5 * GEOMETRY[1]))
    written(tmp_path, [LogMessage(keys=keys, uniq_key="u")] * 3)
    check(tmp_path)


def test_times_of_any_value_are_indexed_as_the_broker_does(tmp_path: Path) -> None:
    times = [0, -1, 1, 999, (1 << 63) - 1, -(1 << 63), 1 << 41, 5, 1_700_000_000_000]
    written(tmp_path, [LogMessage(uniq_key=f"u{i}", store_timestamp=time) for i, time in enumerate(times * 9)])
    check(tmp_path)


def test_strangers_in_the_log_s_directory_do_no_harm(tmp_path: Path) -> None:
    written(tmp_path)
    log = tmp_path / "commitlog"
    (log / "notes.txt").write_bytes(b"?")
    (log / "00000000000000900000").mkdir()
    (log / "123").write_bytes(b"?" * 2048)
    try:
        rebuild(tmp_path, tmp_path / "out", engine=LocalEngine(1), **OPTIONS)
    except MQIndexError:
        assert not (tmp_path / "out").exists()
    else:
        (log / "123").unlink()
        assert index_bytes(tmp_path / "out") == build_index_bytes(log_files(log), *GEOMETRY, tags=False)


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\0" * 2048, b"\xff" * 2048, "random"])
def test_log_of_no_record_at_all(content: bytes | str, tmp_path: Path, rng: random.Random) -> None:
    (tmp_path / "commitlog").mkdir()
    data = content if isinstance(content, bytes) else rng.randbytes(4096)
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(data)
    check(tmp_path)


def test_message_at_a_place_where_none_stands_is_an_error(tmp_path: Path, time_bound: Bound) -> None:
    time_bound(60)
    writer = written(tmp_path)
    starts = {offset for offset, _ in writer.frames}
    with CommitLog.open(tmp_path / "commitlog") as log:
        for offset in [*range(0, writer.position, 7), -1, writer.position, 1 << 40, (1 << 63) - 1]:
            if offset in starts:
                assert log.get_message(offset).phy_offset == offset
            else:
                with pytest.raises(MQIndexError):
                    log.get_message(offset)


def test_message_with_a_spoilt_record_is_itself_or_an_error(
    tmp_path: Path, rng: random.Random, time_bound: Bound
) -> None:
    time_bound(120)
    compressed = b"\x78\x9c" + bytes(50)
    for number in range(150):
        message = LogMessage(
            keys="a b", tags="t", uniq_key="u", body=rng.choice([b"x" * 40, compressed]),
            sys_flag=rng.choice([0, 1, 0x101, 0x201, 0x301, 0x701]),
        )  # fmt: skip
        writer = written(tmp_path / str(number), [message, replace(message, body=b"")])
        data = bytearray(writer.path(0).read_bytes()[: writer.position])
        for _ in range(rng.randrange(3)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        writer.overwrite(0, bytes(data))
        with CommitLog.open(tmp_path / str(number) / "commitlog") as log, contextlib.suppress(MQIndexError):
            assert log.get_message(0).phy_offset == 0
