"""Queues that end in blank units, as an earlier version left them behind a hole in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.rocketmq import ConsumeQueue, MessageStore, NewMessage, repair, verify
from mqindex.rocketmq.queue.queue_units import BLANK

CONFIG = {"maxHashSlotNum": 5, "maxIndexNum": 64, "mappedFileSizeCommitLog": 4096, "mappedFileSizeConsumeQueue": 400}
FILE = 400  # bytes
IN_FILE = FILE // len(BLANK)
UNITS = 3  # of each queue


def store_with_blanks(root: Path, topic: str, first: int, blanks: int) -> None:
    """`blanks` from the place `first` on in queue 0 of the topic."""
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        for n in range(2 * UNITS):
            store.put_message(NewMessage("T", b"x" * 200, queue_id=n % 2, keys=f"k{n}"))
    add_blanks(root / "consumequeue" / topic / "0", first, blanks)


def add_blanks(queue: Path, first: int, blanks: int) -> None:
    queue.mkdir(parents=True, exist_ok=True)
    for place in range(first, first + blanks):
        path = queue / f"{place // IN_FILE * FILE:020d}"
        data = bytearray(path.read_bytes() if path.exists() else bytes(FILE))
        at = place % IN_FILE * len(BLANK)
        data[at : at + len(BLANK)] = BLANK
        path.write_bytes(data)


ENDS = {
    "one": ("T", UNITS, 1),
    "up to the file's end": ("T", UNITS, IN_FILE - UNITS),
    "over files": ("T", UNITS, 2 * IN_FILE),
    "a queue of blanks": ("U", 0, 7),
    "a queue of blanks in two files": ("U", 2 * IN_FILE, IN_FILE + 2),
}
ends = pytest.mark.parametrize("end", ENDS)


def check_sound(root: Path) -> None:
    report = verify(root, deep=True, config=CONFIG)
    assert not report.findings
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        ends = [store.consume_queue("T", n).max_offset_in_queue for n in (0, 1)]
        assert ends == [UNITS, UNITS]
        assert store.put_message(NewMessage("T", b"new", queue_id=0)).queue_offset == UNITS
        assert store.put_message(NewMessage("U", b"new", queue_id=0)).queue_offset == 0
    with MessageStore.open(root, config=CONFIG) as store:
        bodies = [store.get_message(*name, 0, max_msg_nums=99).messages for name in (("T", 0), ("U", 0))]
        assert [[one.body[:3] for one in part] for part in bodies] == [[b"xxx"] * UNITS + [b"new"], [b"new"]]
    assert not verify(root, deep=True, config=CONFIG).findings


@ends
def test_verify_says_the_blanks_that_no_message_follows(end: str, tmp_path: Path) -> None:
    topic, first, blanks = ENDS[end]
    store_with_blanks(tmp_path / "store", topic, first, blanks)
    (finding,) = verify(tmp_path / "store", config=CONFIG).findings
    assert (finding.kind, finding.severity) == ("foreign-unit", "error")
    assert finding.path == str(tmp_path / "store/consumequeue" / topic / f"0/{first // IN_FILE * FILE:020d}")
    assert finding.at == first % IN_FILE * len(BLANK)
    assert finding.hint is not None and f"ends in {blanks} " in finding.hint and "2147483647" in finding.hint


@ends
def test_a_repair_removes_them(end: str, tmp_path: Path) -> None:
    store_with_blanks(tmp_path / "store", *ENDS[end])
    assert repair(tmp_path / "store", config=CONFIG).ok
    check_sound(tmp_path / "store")


@ends
def test_so_does_an_opening_for_writing(end: str, tmp_path: Path) -> None:
    store_with_blanks(tmp_path / "store", *ENDS[end])
    MessageStore.open(tmp_path / "store", writable=True, config=CONFIG).close()
    check_sound(tmp_path / "store")


def test_they_are_removed_too_where_the_log_is_longer_than_the_place_they_name(tmp_path: Path) -> None:
    with ConsumeQueue.open(tmp_path, file_size=FILE, writable=True) as queue:
        assert queue.put_message_position_info(3 << 30, 100, 7, 0)
    add_blanks(tmp_path, 1, 2)
    with ConsumeQueue.open(tmp_path, file_size=FILE, writable=True) as queue:
        assert (queue.max_offset_in_queue, queue.max_phy_offset) == (1, (3 << 30) + 100)
        queue.truncate_dirty_logic_files(4 << 30)
    assert (tmp_path / f"{0:020d}").read_bytes()[len(BLANK) :] == bytes(FILE - len(BLANK))


def test_blanks_before_what_is_cut_go_with_it(tmp_path: Path) -> None:
    with ConsumeQueue.open(tmp_path, file_size=FILE, writable=True) as queue:
        assert queue.put_message_position_info(0, 100, 7, 0)
    add_blanks(tmp_path, 1, 4)
    path = tmp_path / f"{0:020d}"
    later = (5000).to_bytes(8, "big") + (100).to_bytes(4, "big") + bytes(8)
    path.write_bytes(path.read_bytes()[: 5 * len(BLANK)] + later + bytes(FILE - 6 * len(BLANK)))
    with ConsumeQueue.open(tmp_path, file_size=FILE, writable=True) as queue:
        queue.truncate_dirty_logic_files(5000)
        assert (queue.max_offset_in_queue, queue.max_phy_offset) == (1, 100)
    assert path.read_bytes()[len(BLANK) :] == bytes(FILE - len(BLANK))
