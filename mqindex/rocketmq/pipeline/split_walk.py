"""A byte range of one log file, and the result of a task that walked it: the same for every such task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.frame_windows import MARGIN, find_in
from mqindex.rocketmq.log.log_entries import FileWalk, LogSpan, Tags


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRange:
    """Frames that begin in [start, stop) of one log file. `resync`: `start` may be inside a frame, find the first."""

    span: LogSpan
    start: int
    stop: int
    resync: bool
    tags: Tags


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitWalk:
    """What a split holds. `first`: its first frame (-1: none); the other fields as in `FileWalk`.

    `gone`: the file was deleted meanwhile, and nothing was read.
    """

    entries: int = 0
    messages: int = 0
    first: int = -1
    end: int = -1
    fault: int | None = None
    damage: tuple[Damage, ...] = ()
    gone: bool = False


AnyWalk = TypeVar("AnyWalk", bound=SplitWalk)


def walk_split(split: SplitRange, work: Callable[[MappedFile, int], AnyWalk], nothing: AnyWalk) -> AnyWalk:
    """Map the file and find the first frame: `work(log, first)`. `nothing`: where there is no frame, or no file."""
    try:
        with split.span.open() as log:
            begin, stop = split.start - split.span.file_start, split.stop - split.span.file_start
            log.ahead(begin, stop + MARGIN)
            first = split.start
            if split.resync:
                first = find_in(log, split.span.file_start, split.start, split.stop)
            return work(log, first) if first >= 0 else nothing
    except FileNotFoundError as error:
        if error.filename != split.span.path:
            raise
        return replace(nothing, gone=True)  # elsewhere a file may go while it is read


def counts(walk: FileWalk, first: int) -> dict[str, Any]:
    """The fields of `SplitWalk` after a walk from `first`."""
    return {
        "entries": walk.entries,
        "messages": walk.messages,
        "first": first,
        "end": walk.end,
        "fault": walk.fault,
        "damage": tuple(walk.damage),
    }
