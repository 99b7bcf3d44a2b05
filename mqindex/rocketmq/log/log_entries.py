"""The index entries that a commit log gives, in the broker's order: from one file, or a stretch over many.

This is the only way from frames to entries; rebuild, repair and verify all walk here. What ends a walk is the rule of
"the end of a log": in the last file that holds frames the first bad frame is the end, and bodies are checked there;
in an earlier file a bad frame is damage, and the walk continues where the next frame is found.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from mqindex._native.log_extract import Extractor, QueueTable
from mqindex.files.closable import Closable
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.damage import Damage, damage_of
from mqindex.rocketmq.log.frame_windows import FrameWindows
from mqindex.rocketmq.log.log_files import map_log_file

RUN_ENTRY = np.dtype([("key_hash", "=i4"), ("phy_offset", "=i8"), ("store_timestamp", "=i8")])
UNIT = np.dtype(
    [
        *((name, "=i8") for name in ("phy_offset", "queue_offset", "tags_code", "store_timestamp")),
        ("size", "=i4"),
        ("queue", "=i4"),
    ]
)
"""What dispatch writes to a consume queue; `queue`: the queue's number in a `QueueTable`."""


def copy_rows(target: npt.NDArray[Any], rows: npt.NDArray[Any]) -> None:
    """`target[:] = rows` of one type, all bytes at once: NumPy would copy field by field."""
    target.view(np.uint8)[:] = rows.view(np.uint8)


class Tags(NamedTuple):
    """Where TAGS give entries too: a store outlives a broker's version. It changes at these phy offsets, from "no" on.

    >>> ALL_TAGS.at(0), NO_TAGS.at(0), Tags((100, 200)).at(99), Tags((100, 200)).at(100)
    (True, False, False, True)
    """

    changes: tuple[int, ...]

    def at(self, phy_offset: int) -> bool:
        """Whether those of a message there do."""
        return bisect_right(self.changes, phy_offset) % 2 == 1

    def next_change(self, phy_offset: int) -> int:
        """Up to where it is as there."""
        return next((change for change in self.changes if change > phy_offset), _NEVER)

    @property
    def newest(self) -> bool:
        """Whether those of messages that are still to come do."""
        return len(self.changes) % 2 == 1

    def flipped(self, stretches: Iterable[tuple[int, int]]) -> Tags:
        """The other rule at the phy offsets [start, stop) of each stretch.

        >>> ALL_TAGS.flipped([(100, 200)]), ALL_TAGS.flipped([(0, 100)])
        (Tags(changes=(0, 100, 200)), Tags(changes=(100,)))
        """
        changes = {*self.changes}
        for stretch in stretches:
            changes ^= {*stretch}
        return Tags(tuple(sorted(changes)))


_NEVER: Final = 2**63 - 1
NO_TAGS: Final = Tags(())
ALL_TAGS: Final = Tags((0,))


@dataclass(frozen=True, slots=True)
class LogSpan:
    """A commit-log file's frames: they begin in the phy offsets [file_start, stop). `last`: the log ends in it."""

    path: str
    file_start: int
    stop: int
    last: bool = False

    def open(self) -> MappedFile:
        """Map the file; `TruncatedFileError`: somebody cut its frames meanwhile."""
        return map_log_file(self.path, self.stop - self.file_start)


class FileWalk:
    """Walks frames from `at`, a frame's start, while they begin before `stop`; iterating yields arrays of `RUN_ENTRY`.

    An array is valid until the next one. With `queues`, `units` are the units of the same frames, an array of `UNIT`.
    `check_crc`: bodies are checked, as they always are in the log's last file; in an earlier file a bad body is damage,
    but its message counts, because dispatch never looks at bodies. Afterwards: `messages`, `entries`, `last_message`
    and `last_entry` (phy offsets, -1: none), `end` (after the last frame, or the damage there), `fault` (last file: the
    phy offset of the first bad frame; None: there is none), `damage`.
    """

    def __init__(
        self,
        log: MappedFile,
        span: LogSpan,
        at: int,
        stop: int,
        *,
        tags: Tags,
        queues: QueueTable | None = None,
        check_crc: bool = False,
    ) -> None:
        self._log, self._span, self._tags, self._queues = log, span, tags, queues
        self._check_crc = check_crc or span.last
        self.units: npt.NDArray[Any] = np.empty(0, UNIT)
        self._at, self._stop = at, stop
        self.messages = self.entries = 0
        self.last_message = self.last_entry = -1
        self.end = at
        self.fault: int | None = None
        self.damage: list[Damage] = []

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        span, at = self._span, self._at
        while True:
            stop = min(self._stop, self._tags.next_change(at))
            frames = self._frames(at, stop, self._check_crc)
            for step in frames:
                yield from self._chunks(step)
            if frames.fault is None:
                if stop == self._stop or frames.end >= self._stop:
                    return
                at = frames.end
                continue
            if span.last:
                self.fault = frames.fault[0]
                return
            one = damage_of(frames.fault, self._log, span.path, span.file_start, span.stop, span.stop)
            if one.kind == "bad-crc":
                for step in self._frames(one.at, one.stop, check_crc=False):
                    yield from self._chunks(step)
            self.damage.append(one)
            at = self.end = one.stop
            if at >= self._stop:
                return

    def _frames(self, at: int, stop: int, check_crc: bool) -> FrameWindows[Extractor]:
        start, tags, queues = self._span.file_start, self._tags.at(at), self._queues
        return FrameWindows(
            self._log, start, at, stop,
            lambda window, at, stop: Extractor(window, start, at, stop, tags=tags, check_crc=check_crc, queues=queues),
        )  # fmt: skip

    def _chunks(self, step: Extractor) -> Iterator[npt.NDArray[Any]]:
        for chunk in step:
            if self._queues is not None:
                self.units = np.frombuffer(step.units, UNIT)
            yield np.frombuffer(chunk, RUN_ENTRY)
        self._count(step)

    def _count(self, step: Extractor) -> None:
        self.messages += step.messages
        self.entries += step.entries
        self.last_message = max(self.last_message, step.last_message)
        self.last_entry = max(self.last_entry, step.last_entry)
        self.end = step.end


def units_of(
    walk: FileWalk, table: QueueTable, wanted: Callable[[tuple[str, int]], bool]
) -> Iterator[tuple[tuple[str, int], npt.NDArray[Any]]]:
    """The units of such queues, (topic, queue_id), run by run: each queue's of a run together, an array of `UNIT`."""
    names: list[tuple[str, int]] = []
    for _ in walk:
        units = walk.units
        if len(units) and int(units["queue"].max()) >= len(names):
            names = table.names()
        for number in np.unique(units["queue"]).tolist():
            if wanted(names[number]):
                yield names[number], units[units["queue"] == number]


AnyWalk = TypeVar("AnyWalk", Extractor, FileWalk)


def drained(walk: AnyWalk) -> AnyWalk:
    """A walk, run to its end: for callers that need its counts and faults, not what it yields."""
    for _ in walk:
        pass
    return walk


def _file_start(span: LogSpan) -> int:
    return span.file_start


class LogEntries(Closable):
    """Entries from any frame of a log on, over file borders. Keeps one file mapped; not for several threads.

    `damage`: what was found by the walks, as far as they were run, by phy offset.
    """

    def __init__(self, spans: Sequence[LogSpan], *, tags: Tags) -> None:
        self.spans = list(spans)
        self.tags = tags
        self.damage: dict[int, Damage] = {}
        self._no_frames: set[int] = set()  # where walks began that an index file led astray
        self._open: tuple[LogSpan, MappedFile] | None = None

    def forward(self, phy_offset: int, stop: int | None = None) -> Iterator[npt.NDArray[Any]]:
        """Arrays of `RUN_ENTRY`, the caller's own, from the frame at `phy_offset` on, up to `stop` or the log's end.

        Damage is skipped, as in a rebuild. Nothing comes where `phy_offset` is not in the log.
        """
        at: int | None = phy_offset
        for span in self.spans:
            if at is not None and not span.file_start <= at < span.stop:
                continue
            if stop is not None and stop <= span.file_start:  # it is in a hole between two files
                return
            limit = span.stop if stop is None else min(span.stop, stop)
            begin = at if at is not None else span.file_start
            walk = FileWalk(self._map(span), span, begin, limit, tags=self.tags)
            for chunk in walk:
                self._note(walk, span, begin)
                if len(chunk):
                    yield chunk.copy()
            self._note(walk, span, begin)
            if walk.fault is not None or (stop is not None and stop <= span.stop):
                return
            at = None  # the next file, from its start

    def _note(self, walk: FileWalk, span: LogSpan, begin: int) -> None:
        for damage in walk.damage:
            if damage.at in self.damage or damage.at in self._no_frames:
                continue
            if damage.at == begin and not self._is_on_line(span, begin):
                self._no_frames.add(begin)
                continue
            self.damage[damage.at] = damage

    def _is_on_line(self, span: LogSpan, phy_offset: int) -> bool:
        """Whether the frames before it lead there, or into damage; else it is in the middle of a frame."""
        walk = drained(FileWalk(self._map(span), span, span.file_start, phy_offset, tags=self.tags))
        return walk.end == phy_offset or any(one.stop > phy_offset for one in walk.damage)

    def has_hole(self, begin: int, end: int) -> bool:
        """Whether one or more files are missing between two that hold the phy offsets from `begin` to `end`."""
        return next(self._holes(begin, end), None) is not None

    def are_in_holes(self, phy_offsets: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which of them are between two files, where one or more are missing."""
        found = np.zeros(len(phy_offsets), np.bool_)
        if len(phy_offsets):
            for start, stop in self._holes(int(phy_offsets.min()), int(phy_offsets.max())):
                found |= (phy_offsets >= start) & (phy_offsets < stop)
        return found

    def _holes(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Of all spans only those around [begin, end]: a store may have thousands, and as many index files."""
        first, last = (bisect_right(self.spans, at, key=_file_start) for at in (begin, end))
        for one, following in itertools.pairwise(self.spans[max(first - 1, 0) : last + 1]):
            if one.stop < following.file_start and begin < following.file_start and one.stop <= end:
                yield one.stop, following.file_start

    def are_unreadable(self, phy_offsets: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which of them are in holes, or in the damage that was found by now: nothing shows what was there."""
        found = self.are_in_holes(phy_offsets)
        for damage in self.damage.values():
            found |= (phy_offsets >= damage.at) & (phy_offsets < damage.stop)
        return found

    def of(self, phy_offset: int) -> npt.NDArray[Any]:
        """The entries of the one message at `phy_offset`; empty where it has none, or where no frame is there."""
        chunks = list(self.forward(phy_offset, phy_offset + 1))
        return np.concatenate(chunks) if chunks else np.empty(0, RUN_ENTRY)

    def first(self, phy_offset: int, count: int, stop: int | None = None) -> npt.NDArray[Any]:
        """At least `count` entries from the frame at `phy_offset` on, fewer where the log or `stop` ends them."""
        chunks, n = [np.empty(0, RUN_ENTRY)], 0
        for chunk in self.forward(phy_offset, stop):
            chunks.append(chunk)
            n += len(chunk)
            if n >= count:
                break
        return np.concatenate(chunks)

    def _map(self, span: LogSpan) -> MappedFile:
        if self._open is None or self._open[0] != span:
            self.close()
            self._open = span, span.open()
        return self._open[1]

    def close(self) -> None:
        """Unmap; a later call maps again. `TruncatedFileError`: the file was cut, and may have been read as zeros."""
        if self._open is not None:
            (_, file), self._open = self._open, None
            with file:
                pass
