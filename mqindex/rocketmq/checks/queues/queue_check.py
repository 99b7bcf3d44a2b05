"""One queue's files: their names and lengths, and what is at the places that no message of the log has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import check_units, decode_units
from mqindex.errors import MQIndexError
from mqindex.files.paths import size_of
from mqindex.files.places.place import require_answer
from mqindex.files.reading.sparse import SparseFile
from mqindex.report import Finding, Kind
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.queues.checked_queue import CheckedQueue, unit_finding
from mqindex.rocketmq.checks.start.loading import Loaded, Loader
from mqindex.rocketmq.checks.start.start_files import begins_without_unit, listed
from mqindex.rocketmq.layout import QUEUE_UNIT_SIZE
from mqindex.rocketmq.log.expiry import read_again, was_deleted
from mqindex.rocketmq.log.log_files import LogFile, Skipped
from mqindex.rocketmq.queue.queue_files import queue_files
from mqindex.rocketmq.queue.queue_units import are_blank

Array = npt.NDArray[Any]

_BLOCK = 1 << 16  # units checked together


class QueueCheck(NamedTuple):
    """A queue's directory to check. `ranges`: the places that the log's messages have, ascending.

    The log's frames are in the phy offsets [low, high); `damaged`: the stretches that could not be read.
    """

    topic: str
    queue_id: int
    path: str
    ranges: tuple[tuple[int, int], ...]
    low: int
    high: int
    damaged: tuple[tuple[int, int], ...]
    file_size: int
    loader: Loader


def check_queue(check: QueueCheck) -> CheckedQueue:
    """Check one queue's directory, without the files that a broker deletes meanwhile, and without its `good`.

    Its offsets are the places from the first file's begin on, up to after the last unit that is valid.
    """
    return read_again(lambda: _check_queue(check))


def _check_queue(check: QueueCheck) -> CheckedQueue:
    checked = CheckedQueue(check.topic, check.queue_id)
    files, skipped = queue_files(check.path, QUEUE_UNIT_SIZE)
    checked.findings += file_findings(check.path, files, skipped, check.file_size, check.loader)
    checked.files = len(files)
    if files:
        checked.min_offset = files[0].start // QUEUE_UNIT_SIZE
        _Places(check, files, checked).look()
        checked.findings += _blank_end(files, checked.max_offset)
    return checked


def _blank_end(files: Sequence[LogFile], max_offset: int) -> tuple[Finding, ...]:
    """That the last file begins without a unit, although the log has no message for it."""
    last = files[-1]
    if max_offset * QUEUE_UNIT_SIZE > last.start or not begins_without_unit(last.path):
        return ()
    only = last.start and len(files) == 1
    kind = catalogue.ONLY_QUEUE_FILE_BLANK if only else catalogue.QUEUE_FILE_BLANK
    return (kind.finding(last.path, 0, expected="a unit", got="none"),)


def file_findings(
    directory: str, files: Sequence[LogFile], skipped: Sequence[Skipped], file_size: int, loader: Loader
) -> tuple[Finding, ...]:
    """What is wrong with names and lengths in a queue's directory."""
    strays = _strays(skipped, loader.load(listed([directory]), file_size)) if skipped else ()
    lengths = (finding for file in files for finding in _wrong_length(file, file_size))
    return (*strays, *lengths, *_holes(files))


def _strays(skipped: Sequence[Skipped], loaded: Loaded) -> Iterator[Finding]:
    """What is not the queue's, by what a broker does with it."""
    refused = {one.entry.path: one for one in loaded.refused}
    files = {one.path for one in loaded.files}
    for one in skipped:
        if one.path in refused:
            yield refused[one.path].finding(catalogue.STRAY_QUEUE_FILE)
        elif one.path in files:
            yield catalogue.LOADED_AS_QUEUE_FILE.finding(one.path, got=one.reason)
        elif loaded.made is None or one.path != loaded.made.path:
            yield catalogue.IGNORED_QUEUE_FILE.finding(one.path, got=one.reason)


def _wrong_length(file: LogFile, file_size: int) -> Iterator[Finding]:
    size = size_of(file.path)
    if size != file_size:
        yield catalogue.QUEUE_SIZE.finding(file.path, expected=file_size, got=size)
    elif file.start % file_size:
        yield catalogue.QUEUE_NAME.finding(file.path, expected=f"a multiple of {file_size}", got=file.start)


def _holes(files: Sequence[LogFile]) -> list[Finding]:
    return [
        catalogue.QUEUE_FILE_MISSING.finding(
            one.path, expected=f"the next file at byte {one.stop}", got=following.start
        )
        for one, following in itertools.pairwise(files)
        if one.stop < following.start
    ]


class _Places:
    """What is at the places of a queue that no message of the log has."""

    def __init__(self, check: QueueCheck, files: list[LogFile], checked: CheckedQueue) -> None:
        self._check, self._files, self._checked = check, files, checked
        self._next_place = check.ranges[-1][1] if check.ranges else None  # the place after the log's last unit
        self._unit_end = self._next_place or 0  # the place after the last unit that is no blank
        self._seen: dict[Kind, tuple[int, str, int, int]] = {}  # kind: how many, path, at, phy offset of the first

    def look(self) -> None:
        checked = self._checked
        checked.units = sum(stop - start for start, stop in self._check.ranges)
        checked.max_offset = self._next_place if self._next_place is not None else checked.min_offset
        for file in self._files:
            try:
                with SparseFile(file.path) as opened:
                    self._look_at(file, opened)
            except (MQIndexError, FileNotFoundError) as error:
                if isinstance(error, FileNotFoundError) and was_deleted(error):
                    raise
                require_answer(error, file.path)
                checked.findings += (catalogue.QUEUE_UNREADABLE.finding(file.path, error=error),)
        if (blanks := checked.max_offset - max(self._unit_end, checked.min_offset)) > 0:
            at = (checked.max_offset - blanks) * QUEUE_UNIT_SIZE
            file = next(file for file in reversed(self._files) if file.start <= at)
            self._see(catalogue.QUEUE_ENDS_BLANK, file, at - file.start, 0, blanks)
        checked.findings += tuple(self._finding(kind, *seen) for kind, seen in self._seen.items())

    def _look_at(self, file: LogFile, opened: SparseFile) -> None:
        first, places = file.start // QUEUE_UNIT_SIZE, min(opened.size, file.size) // QUEUE_UNIT_SIZE
        written = first + min(places, -(-opened.data_end() // QUEUE_UNIT_SIZE))  # only zeros follow
        for start, stop in _uncovered(self._check.ranges, first, first + places):
            if self._next_place is None or start >= self._next_place:
                self._look_after_log(file, opened, start, min(stop, written))
                continue
            for at, block in _blocks(file, opened, start, stop):  # before or between the log's units
                self._judge(file, at, *decode_units(block, 0, len(block) // QUEUE_UNIT_SIZE))

    def _look_after_log(self, file: LogFile, opened: SparseFile, start: int, stop: int) -> None:
        """After the log's last unit, or in a queue of which the log holds none.

        Valid units in a row make the queue too long; whatever comes later is stale.
        """
        end, checked = start, self._checked
        if self._next_place is None or start == checked.max_offset:
            end = self._judge_valid(file, opened, start, stop)
            if start == checked.max_offset or file is self._files[0]:
                checked.max_offset = max(checked.max_offset, end)
        for at, block in _blocks(file, opened, end, stop):
            data = np.frombuffer(block, np.uint8)
            if data.any():
                place = at * QUEUE_UNIT_SIZE - file.start + int(data.argmax())
                self._see(catalogue.STALE_QUEUE_BYTES, file, place, 0, 1)
                return

    def _judge_valid(self, file: LogFile, opened: SparseFile, start: int, stop: int) -> int:
        """Where the valid units from `start` on end."""
        for at, block in _blocks(file, opened, start, stop):
            valid = check_units(block, 0, len(block) // QUEUE_UNIT_SIZE)
            if valid:
                self._judge(file, at, *decode_units(block, 0, valid))
            start = at + valid
            if valid < len(block) // QUEUE_UNIT_SIZE:
                break
        return start

    def _judge(self, file: LogFile, start: int, phys: Array, sizes: Array, codes: Array) -> None:
        blank = are_blank(phys, sizes, codes)
        if not blank.all():
            self._unit_end = max(self._unit_end, start + int(np.flatnonzero(~blank)[-1]) + 1)
        invalid = (phys < 0) | (sizes <= 0)
        unit = ~(blank | invalid)
        expired = unit & (phys < self._check.low)
        beyond = unit & (phys >= self._check.high)
        damaged = np.zeros(len(phys), bool)
        for low, high in self._check.damaged:
            damaged |= unit & (phys >= low) & (phys < high)
        if beyond.any():
            self._checked.reach = max(self._checked.reach, int(phys[beyond].max()))
        kinds = {
            catalogue.QUEUE_UNITS_EXPIRED: expired,
            catalogue.QUEUE_BEYOND_LOG: beyond,
            catalogue.QUEUE_UNITS_OF_DAMAGED_LOG: damaged,
            catalogue.FOREIGN_UNIT: unit & ~(expired | beyond | damaged),
            catalogue.INVALID_UNIT: invalid,
        }
        for kind, which in kinds.items():
            if which.any():
                at = int(which.argmax())
                place = (start + at) * QUEUE_UNIT_SIZE - file.start
                self._see(kind, file, place, int(phys[at]), int(np.count_nonzero(which)))

    def _see(self, kind: Kind, file: LogFile, at: int, phy_offset: int, count: int) -> None:
        known = self._seen.get(kind)
        self._seen[kind] = (count, file.path, at, phy_offset) if known is None else (known[0] + count, *known[1:])

    def _finding(self, kind: Kind, count: int, path: str, at: int, phy_offset: int) -> Finding:
        if kind == catalogue.STALE_QUEUE_BYTES:
            return kind.finding(path, at)
        return unit_finding(kind, count, path, at, phy_offset, self._check.low, self._check.high)


def _blocks(file: LogFile, opened: SparseFile, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """What is at the places [start, stop) of a file's queue: a place, and the bytes from there on."""
    for at in range(start, stop, _BLOCK):
        begin, end = (place * QUEUE_UNIT_SIZE - file.start for place in (at, min(at + _BLOCK, stop)))
        yield at, opened.read(begin, end)


def _uncovered(ranges: tuple[tuple[int, int], ...], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The parts of [start, stop) that are in none of the ranges."""
    for low, high in ranges:
        if low >= stop:
            break
        if high > start:
            if low > start:
                yield start, low
            start = high
    if start < stop:
        yield start, stop
