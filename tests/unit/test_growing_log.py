"""`GrowingLog`: a log read while it grows, tears, rolls, is cut and written anew."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mqindex.errors import TruncatedFileError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log import growing_log
from mqindex.rocketmq.log.growing_log import GrowingLog, LogChangedError
from mqindex.rocketmq.log.log_files import data_end
from mqindex.rocketmq.queue.queue_rules import QueueRules
from tests.reference.commit_log import index_strings, scan_log
from tests.reference.java import key_hash
from tests.reference.rebuild import log_files
from tests.support.log_writer import LogMessage, LogWriter, frame
from tests.support.small_store import small_messages


@pytest.fixture
def writer(tmp_path: Path) -> LogWriter:
    return LogWriter(tmp_path / "commitlog", mapped_file_size=2048)


@pytest.fixture
def log(writer: LogWriter) -> Iterator[GrowingLog]:
    with GrowingLog(writer.directories, 0, queues=QueueRules().table()) as opened:
        yield opened


class Seen:
    """What a log gave so far."""

    def __init__(self, log: GrowingLog) -> None:
        self.log = log
        self.entries: list[tuple[int, int]] = []
        self.units: list[int] = []

    def look(self, stop: int | None = None) -> int:
        """Read until nothing comes at once; how many units came."""
        before = len(self.units)
        self.log.more = True
        while self.log.more:
            for entries, units in self.log.read(stop):
                self.entries += zip(entries["key_hash"].tolist(), entries["phy_offset"].tolist(), strict=True)
                self.units += units["phy_offset"].tolist()
        return len(self.units) - before

    def settle(self) -> int:
        """Look until the last frame counts."""
        before = len(self.units)
        self.look()
        while self.log.waiting:
            time.sleep(0.001)
            self.look()
        return len(self.units) - before


@pytest.fixture
def seen(log: GrowingLog) -> Seen:
    return Seen(log)


def expected(writer: LogWriter) -> tuple[list[tuple[int, int]], list[int]]:
    """Entries and units of the whole log by the twin."""
    messages, _, _ = scan_log(log_files(*writer.directories))
    entries = [
        (key_hash(string), message.phy_offset)
        for message in messages
        for string in index_strings(message, tags=False) or ()
    ]
    return entries, [message.phy_offset for message in messages]


def test_everything_is_given_once_and_in_order(writer: LogWriter, seen: Seen) -> None:
    for message in small_messages():
        writer.write(message)
        assert seen.settle() == 1
    assert (seen.entries, seen.units) == expected(writer)
    assert (seen.log.messages, seen.log.phy_offset, seen.log.lag()) == (44, writer.position, 0)
    assert seen.log.last_message == seen.units[-1]


def test_the_last_frame_counts_at_the_second_look_or_when_another_follows(
    writer: LogWriter, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1.0
    monkeypatch.setattr(growing_log, "time", SimpleNamespace(monotonic=lambda: now))
    writer.write(LogMessage(keys="a"))
    assert seen.look() == 0
    assert seen.log.waiting
    second, third = writer.write(LogMessage(keys="b"), LogMessage(keys="c"))
    assert seen.look() == 2
    assert seen.log.last_message == second
    now += 0.001
    assert seen.look() == 1
    assert seen.log.last_message == third
    assert not seen.log.waiting


def test_a_blank_lets_the_frame_before_it_count(writer: LogWriter, seen: Seen) -> None:
    writer.write(LogMessage(keys="a"))
    writer.write_blank()
    assert seen.look() == 1
    assert seen.log.phy_offset == 2048


def test_a_frame_that_appears_piecewise_is_given_when_it_is_whole(
    writer: LogWriter, seen: Seen, rng: random.Random
) -> None:
    for number, message in enumerate(small_messages()):
        whole = LogWriter(writer.directories[0].parent / f"aside{number}", mapped_file_size=2048)
        whole.position = writer.position
        (at,) = whole.write(message)
        data, place = frame(message, at), writer.create_file(at)
        if at != writer.position:
            writer.write_blank()
        cuts = sorted(rng.sample(range(1, len(data)), 3))
        with place.open("r+b", buffering=0) as file:
            for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
                assert seen.look() == 0
                time.sleep(0.0006)
                assert seen.look() == 0, "what is torn does not count, however often it is looked at"
                os.pwrite(file.fileno(), data[start:stop], at % 2048 + start)
        writer.position = at + len(data)
        assert seen.settle() == 1
    assert (seen.entries, seen.units) == expected(writer)


def test_a_frame_that_was_torn_when_it_was_read_does_not_count_by_what_came_since(
    writer: LogWriter, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a look at the bytes and a look at what stands behind them, the writer may have gone on."""
    first, second = LogMessage(keys="first-key"), LogMessage(keys="second-key")
    data = frame(first, 0)
    writer.write_bytes(data[:-5])

    class Extractor:
        """Extracts, and lets the writer finish before anything is concluded from that."""

        def __init__(self, *place: Any, **options: Any) -> None:
            self.walk = real(*place, **{**options, "reuse": None})

        def __iter__(self) -> Iterator[Any]:
            for chunk in self.walk:
                if writer.position < len(data):
                    writer.write_bytes(data[-5:])
                    writer.write(second)
                yield chunk

        def __getattr__(self, name: str) -> Any:
            return getattr(self.walk, name)

    real = growing_log.Extractor
    monkeypatch.setattr(growing_log, "Extractor", Extractor)
    seen.settle()
    assert (seen.entries, seen.units) == expected(writer)
    assert len(seen.units) == 2


def test_a_last_frame_that_changes_while_it_is_read_is_noticed(
    writer: LogWriter, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_log, "_DOUBT_SECONDS", 0.0)
    (at,) = writer.write(LogMessage(keys="a"))
    seen.look()
    time.sleep(0.001)
    real = GrowingLog._stays

    def stays(log: GrowingLog, start: int, end: int) -> bool:
        answer = real(log, start, end)
        with writer.path(at).open("r+b") as file:
            file.seek(end - 1)
            file.write(b"b")
        return answer

    monkeypatch.setattr(GrowingLog, "_stays", stays)
    with pytest.raises(LogChangedError, match="written while it was read"):
        seen.look()


def test_properties_that_end_in_zeros_wait_longer(
    writer: LogWriter, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_log, "_DOUBT_SECONDS", 0.03)
    writer.write(LogMessage(keys="key-1"))
    writer.tear(writer.frames[-1][1] - 3)  # the end of the keys is not there yet: a whole frame by its lengths
    began = time.monotonic()
    assert seen.settle() == 1
    assert time.monotonic() - began >= 0.03


def test_a_frame_without_properties_does_not_wait_longer(writer: LogWriter, seen: Seen) -> None:
    writer.write(LogMessage(properties=b""))
    assert frame(LogMessage(properties=b""), 0)[-2:] == b"\0\0"
    seen.look()
    time.sleep(0.001)
    assert seen.look() == 1


def test_a_torn_body_never_counts(writer: LogWriter, seen: Seen) -> None:
    writer.write(LogMessage(keys="a", body=b"x" * 50))
    writer.overwrite(100, bytes(20))
    for _ in range(3):
        assert seen.look() == 0
        time.sleep(0.001)


def test_a_known_end_is_believed(writer: LogWriter, seen: Seen) -> None:
    *_, last = writer.write(*small_messages(20))
    assert seen.look(last) == 19
    assert seen.look(writer.position) == 1
    assert seen.log.phy_offset == writer.position
    assert seen.look(writer.position) == 0


def test_a_stretch_begins_where_it_is_told_to(writer: LogWriter) -> None:
    offsets = writer.write(*small_messages())
    with GrowingLog(writer.directories, offsets[30], queues=QueueRules().table()) as log:
        seen = Seen(log)
        seen.settle()
        assert seen.units == offsets[30:]


def test_a_log_that_begins_later_is_read_from_its_beginning(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=2048, start=8192)
    offsets = writer.write(*small_messages(5))
    with GrowingLog(writer.directories, 0, queues=QueueRules().table()) as log:
        seen = Seen(log)
        seen.settle()
        assert seen.units == offsets


def test_files_that_expire_meanwhile_are_passed_over(
    writer: LogWriter, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_log, "_LOOK_SECONDS", 0.0)
    writer.write(LogMessage(keys="a"))
    seen.settle()
    offsets = writer.write(*small_messages())
    for start in (0, 2048):
        writer.path(start).unlink()
    seen.settle()
    assert seen.units[-1] == offsets[-1]
    assert [at for at in seen.units[1:] if at >= 4096] == [at for at in offsets if at >= 4096]


def test_damage_in_an_earlier_file_is_passed_over(
    writer: LogWriter, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_log, "_LOOK_SECONDS", 0.0)
    offsets = writer.write(*small_messages())
    writer.overwrite(offsets[2] + 4, b"\1\2\3\4")
    seen.settle()
    assert (seen.entries, seen.units) == expected(writer)
    assert seen.units == offsets[:2] + offsets[3:]
    assert [(damage.at, damage.stop, damage.kind) for damage in seen.log.damage] == [
        (offsets[2], offsets[3], "bad-magic")
    ]


def test_damage_in_the_last_file_waits_until_another_file_begins(
    writer: LogWriter, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_log, "_LOOK_SECONDS", 0.0)
    messages = small_messages()
    offsets = writer.write(*messages[:5])
    writer.overwrite(offsets[3] + 4, b"\1\2\3\4")
    seen.settle()
    assert seen.units == offsets[:3]
    offsets += writer.write(*messages[5:])
    seen.settle()
    assert seen.units == offsets[:3] + offsets[4:]


def test_a_next_file_made_early_is_no_end(writer: LogWriter, seen: Seen) -> None:
    for message in small_messages():
        writer.write(message)
        writer.create_next_file()
        seen.settle()
    assert (seen.entries, seen.units) == expected(writer)


def test_several_directories_take_turns(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "a", tmp_path / "b", mapped_file_size=2048)
    with GrowingLog(writer.directories, 0, queues=QueueRules().table()) as log:
        seen = Seen(log)
        for message in small_messages():
            writer.write(message)
            seen.settle()
        assert (seen.entries, seen.units) == expected(writer)


def test_what_is_written_anew_below_is_noticed(writer: LogWriter, seen: Seen) -> None:
    offsets = writer.write(*small_messages(10))
    seen.settle()
    writer.overwrite(offsets[9], frame(replace(small_messages(10)[9], store_timestamp=1), offsets[9]))
    with pytest.raises(LogChangedError, match="written anew"):
        seen.look()


@pytest.mark.parametrize("how", ["cut", "exchanged", "gone"])
def test_a_file_that_is_not_what_it_was_is_noticed(
    writer: LogWriter, seen: Seen, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_log, "_LOOK_SECONDS", 0.0)
    writer.write(*small_messages(5))
    seen.settle()
    path = writer.path(0)
    if how == "cut":
        os.truncate(path, 100)
    elif how == "exchanged":
        shutil.copy(path, f"{path}.copy")
        os.replace(f"{path}.copy", path)
    else:
        path.unlink()
    with pytest.raises(LogChangedError):
        seen.look()


def test_a_log_that_ends_before_the_position_was_cut(writer: LogWriter) -> None:
    writer.write(*small_messages(5))
    with GrowingLog(writer.directories, 100_000) as log, pytest.raises(LogChangedError, match="cut"):
        list(log.read())


def test_bytes_that_were_missing_for_a_while_are_not_called_a_cut(
    writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full file system of memory a hole cannot be read, and the log was said to be cut."""

    def missing(*how: object) -> None:
        raise TruncatedFileError("bytes were missing, or the disk is full", path="log")

    writer.write(*small_messages(5))
    monkeypatch.setattr(GrowingLog, "_walk", missing)
    with GrowingLog(writer.directories, 0) as log, pytest.raises(LogChangedError, match="or the disk is full: log"):
        list(log.read())


def test_a_directory_that_vanishes_is_an_error(writer: LogWriter, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_log, "_LOOK_SECONDS", 0.0)
    writer.write(*small_messages(5))
    seen.settle()
    shutil.rmtree(writer.directories[0])
    with pytest.raises(FileNotFoundError):
        seen.look()


def test_the_lag_is_what_was_written_and_not_read(writer: LogWriter, seen: Seen) -> None:
    writer.write(*small_messages())
    writer.create_next_file()
    assert writer.position <= seen.log.lag() <= -(-writer.position // 4096) * 4096
    seen.settle()
    assert seen.log.lag() == 0


def test_nothing_behind_the_end_of_a_growing_log_is_brought_into_memory(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=64 << 20)
    writer.write(*(LogMessage(body=bytes(10_000), keys=f"k{number:02}") for number in range(20)))
    left = -(writer.position + len(frame(LogMessage(body=b""), 0))) % mmap.PAGESIZE
    writer.write(LogMessage(body=bytes(left)))
    assert writer.position % mmap.PAGESIZE == 0, "whether anything follows is seen by a look at the next page"
    with GrowingLog(writer.directories, 0) as log:
        Seen(log).settle()
        assert log.messages == 21
    (path,) = (tmp_path / "commitlog").iterdir()
    assert pages_in_memory(path, start=writer.position) <= 16


def test_much_that_waits_is_read_ahead_and_a_few_messages_ask_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(MappedFile, "will_need", lambda file, start, stop: asked.append((start, stop)))
    monkeypatch.setattr(growing_log, "_FAR", 1 << 20)
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=64 << 20)
    with GrowingLog(writer.directories, 0) as log:
        seen = Seen(log)
        for messages in (5, 20, 20):
            writer.write(*(LogMessage(body=bytes(10_000)) for _ in range(messages)))
            seen.settle()
        assert asked == [], "to ask where a file's data end may take milliseconds"
        at = writer.position
        writer.write(*(LogMessage(body=bytes(10_000)) for _ in range(400)))
        seen.settle()
        assert log.messages == 445
    (path,) = (tmp_path / "commitlog").iterdir()
    assert asked
    assert all(at <= start < stop <= data_end(path) for start, stop in asked)


def pages_in_memory(path: Path, start: int) -> int:
    """Of a file, from that byte on, whoever reads it; a page that nobody has read or written is in none."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        pages = (ctypes.c_ubyte * (len(mapping) // mmap.PAGESIZE))()
        first = ctypes.byref(ctypes.c_char.from_buffer(mapping))
        assert libc.mincore(first, ctypes.c_size_t(len(mapping)), pages) == 0
        del first
        return sum(page & 1 for page in pages[start // mmap.PAGESIZE :])


@pytest.mark.parametrize("near", [256, 1024])
def test_the_reach_makes_no_difference(
    writer: LogWriter, near: int, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    monkeypatch.setattr(growing_log, "_NEAR", near)
    monkeypatch.setattr(growing_log, "_REACH", 2 * near)
    with GrowingLog(writer.directories, 0, queues=QueueRules().table()) as log:
        seen = Seen(log)
        left = small_messages()
        while left:
            count = rng.randint(1, 12)
            writer.write(*left[:count])
            del left[:count]
            seen.settle()
        assert (seen.entries, seen.units) == expected(writer)


def test_nothing_is_given_of_an_empty_directory(writer: LogWriter, seen: Seen) -> None:
    assert seen.settle() == 0
    assert (seen.log.phy_offset, seen.log.last_message, seen.log.lag()) == (0, -1, 0)


def test_any_bytes_end_in_what_can_be_read(writer: LogWriter, rng: random.Random) -> None:
    offsets = writer.write(*small_messages())
    for _ in range(60):
        at = rng.randrange(writer.position)
        writer.overwrite(at, bytes(rng.randrange(256) for _ in range(rng.randint(1, 9))))
        with GrowingLog(writer.directories, 0, queues=QueueRules().table()) as log:
            seen = Seen(log)
            log.more = True
            while log.more:
                for entries, units in log.read(writer.position):
                    seen.units += units["phy_offset"].tolist()
                    assert np.isin(entries["phy_offset"], offsets).all() or log.damage
            assert seen.units == sorted(set(seen.units))
            assert log.phy_offset >= writer.position
