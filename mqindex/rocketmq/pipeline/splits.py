"""Between the stages: what the driver does with counts and names. It sees no bytes of logs or indexes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from mqindex.engines import Engine
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.expiry import expired_finding, still_there
from mqindex.rocketmq.log.log_entries import LogSpan, Tags
from mqindex.rocketmq.pipeline import stages
from mqindex.rocketmq.pipeline.split_walk import SplitWalk
from mqindex.rocketmq.pipeline.stages import Part, Run, Slice, Split
from mqindex.rocketmq.pipeline.unit_runs import UnitRun
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import QueueRules

SPLIT_SIZE = 128 << 20
_TASKS = 24  # of a long log at least


@dataclass(frozen=True, slots=True)
class LogRange:
    """Frames that begin in [start, stop) of the whole log; `start` is a frame's start or that of a file."""

    start: int
    stop: int


AnyWalk = TypeVar("AnyWalk", bound=SplitWalk)


@dataclass
class Stitched(Generic[AnyWalk]):
    """The results of the tasks of one stretch, in the log's order, and the faults that were found.

    `spans`: the log's files without those that were deleted meanwhile; these are left out, and `gone` reports them.
    """

    runs: list[AnyWalk] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    fault: int | None = None
    spans: tuple[LogSpan, ...] = ()
    gone: list[Finding] = field(default_factory=list)


AnyStitched = TypeVar("AnyStitched", bound=Stitched[Any])


class Extracted(Stitched[Run]):
    """The runs of one stretch."""

    @property
    def entries(self) -> int:
        return sum(run.entries for run in self.runs)

    @property
    def messages(self) -> int:
        return sum(run.messages for run in self.runs)

    @property
    def log_bytes(self) -> int:
        """The bytes of the log's files, up to where the frames end."""
        stop = self.fault if self.fault is not None else 2**63
        return sum(max(min(span.stop, stop) - span.file_start, 0) for span in self.spans)

    @property
    def units(self) -> list[UnitRun]:
        """The runs of units, in the log's order."""
        return [run.units for run in self.runs if run.units is not None]

    @property
    def last_message(self) -> int:
        return max((run.last_message for run in self.runs), default=-1)

    @property
    def last_entry(self) -> int:
        return max((run.last_entry for run in self.runs), default=-1)

    def slices(self, skip: int = 0, drop: int = 0) -> list[Slice]:
        """All entries but the first `skip` and the last `drop`."""
        left = deque(Slice(run.path or "", 0, run.entries) for run in self.runs)
        take(left, skip)
        return list(take(left, self.entries - skip - drop))

    def findings(self) -> list[Finding]:
        """The damage, as findings."""
        return self.gone + [damage_finding(damage) for damage in self.damage]


def damage_finding(damage: Damage) -> Finding:
    """Damage of a log, as a finding: in the words of all readers, and what to do."""
    kind = catalogue.FRAMES_AFTER_LOG_END if damage.behind else catalogue.LOG_DAMAGE[damage.kind]
    said = damage.path, damage.position, damage.field, damage.expected, damage.got
    return kind.finding(*said, stretch=damage.stretch)


def split_size_for(log_bytes: int) -> int:
    """The bytes of log for one task that only reads: it opens files for each, which takes as long as some MiB of log.

    >>> [split_size_for(gib << 30) >> 20 for gib in (1, 8, 16, 1000)]
    [128, 256, 512, 512]
    """
    return next((size for size in (512 << 20, 256 << 20) if log_bytes >= _TASKS * size), SPLIT_SIZE)


def cut(
    spans: Iterable[LogSpan],
    stretch: LogRange,
    split_size: int,
    *,
    tags: Tags,
    out: str | None,
    index: bool = True,
    rules: QueueRules | None = None,
    only: frozenset[QueueName] | None = None,
    zones: bool = False,
) -> list[Split]:
    """Byte ranges of at most `split_size`, never over a file's border; see `Split`."""
    split = partial(Split, tags=tags, out=out, index=index, rules=rules, only=only, zones=zones)
    splits = []
    for span in spans:
        at, stop = max(span.file_start, stretch.start), min(span.stop, stretch.stop)
        resync = False  # the first byte of a file, or of the stretch, is a frame's
        while at < stop:
            border = min(at - (at - span.file_start) % split_size + split_size, stop)
            splits.append(split(span=span, start=at, stop=border, resync=resync))
            at, resync = border, True
    return splits


def extract(
    engine: Engine, stretches: Sequence[Sequence[Split]], *, name: str = "read the log", spans: Sequence[LogSpan] = ()
) -> list[Extracted]:
    """Extract many stretches in one round of tasks, then check that each split starts where the one before it ended.

    `spans`: the files of the whole log, where the stretches are only parts of it.
    """
    splits = [split for stretch in stretches for split in stretch]
    runs = iter(
        engine.map(
            stages.extract, splits, name=name, weights=[split.stop - split.start for split in splits], unit="byte"
        )
    )
    pairs = ([(split, next(runs)) for split in stretch] for stretch in stretches)
    return [stitch(engine, stages.extract, list(each), Extracted(), spans=spans) for each in pairs]


def stitch(
    engine: Engine,
    stage: Callable[[Any], AnyWalk],
    pairs: Sequence[tuple[Any, AnyWalk]],
    done: AnyStitched,
    *,
    spans: Sequence[LogSpan] = (),
    look: bool = False,
) -> AnyStitched:
    """Put the walks of neighbouring splits together in `done`; a split that began at a wrong place is walked again.

    `spans`: the files of the whole log, where these are splits of a part of it. `look`: check that they still exist,
    even if all walks found theirs: other files that were read meanwhile may have been deleted with one.
    """
    given, pairs = pairs, _without_deleted(engine, pairs, done, spans, look)
    at, file = 0, None  # where the next frame begins
    for split, run in pairs:
        if split.span.path != file:
            file, at = split.span.path, split.start
        if at >= split.stop:
            continue  # a frame that began earlier, the blank, or damage covers this split
        if run.first != at:  # a body that imitates a frame, or a bad frame at the border
            again = replace(split, start=at, resync=False)
            run = engine.map(stage, [again], name="walk again")[0]  # noqa: PLW2901
            if run.gone:
                known = [(one, run if one == split else walk) for one, walk in given]
                return stitch(engine, stage, known, type(done)(), spans=spans, look=look)
        done.runs.append(run)
        done.damage += run.damage
        at = run.end
        if run.fault is not None:
            done.fault = run.fault
            break
    return done


def _without_deleted(
    engine: Engine,
    pairs: Sequence[tuple[Any, AnyWalk]],
    done: Stitched[Any],
    spans: Sequence[LogSpan],
    look: bool,
) -> Sequence[tuple[Any, AnyWalk]]:
    """The walks of files that still exist. At the log's old end a broker deletes them; elsewhere one is missing."""
    gone = {split.span.path for split, run in pairs if run.gone}
    known = done.spans = tuple(spans) or tuple(dict.fromkeys(split.span for split, _ in pairs))
    if not gone and not look:
        return pairs
    left = engine.map(still_there, [known], name="look at what is left")[0]
    done.gone = expired_finding(known, left) + [_deleted(span) for span in left if span.path in gone]
    done.spans = tuple(span for span in left if span.path not in gone)
    there = {span.path for span in done.spans}
    return [(split, run) for split, run in pairs if split.span.path in there]


def _deleted(span: LogSpan) -> Finding:
    return catalogue.LOG_FILE_DELETED.finding(span.path, expected="this file of the log", got="none")


def take(left: deque[Slice], count: int) -> tuple[Slice, ...]:
    """Remove the first `count` entries, over the borders of slices, and return them."""
    taken = []
    while left and count > 0:
        piece = left.popleft()
        here = min(piece.count, count)
        if here < piece.count:
            left.appendleft(Slice(piece.path, piece.first + here, piece.count - here))
        if here:
            taken.append(Slice(piece.path, piece.first, here))
        count -= here
    return tuple(taken)


def assign(
    slices: Sequence[Slice],
    *,
    out: str,
    geometry: tuple[int, int],
    seed: tuple[int, int] | None = None,
    base: str | None = None,
    room: int | None = None,
    more: bool = False,
    empty: bool = False,
) -> list[Part]:
    """Cut a sequence of entries into index files as the broker would: index_num - 1 entries each.

    seed : (phy_offset, timestamp) at which the file before ended; None: there is none. room : entries that the file
    before still takes, in a continued copy of `base`. more : a message follows the last entry, so the broker has
    created the file after a full one. empty : without any entry there is still one file.
    """
    hash_slot_num, index_num = geometry
    before: Slice | tuple[int, int] | None = seed
    parts: list[Part] = []
    left = deque(piece for piece in slices if piece.count)
    room = index_num - 1 if room is None else room
    while left or (not parts and empty):
        count = room if base is not None else index_num - 1
        pieces = take(left, count)
        parts.append(Part(out, hash_slot_num, index_num, pieces, None if base is not None else before, base))
        room, base = count - sum(piece.count for piece in pieces), None
        if pieces:
            before = Slice(pieces[-1].path, pieces[-1].first + pieces[-1].count - 1, 1)
    if more and room == 0:
        parts.append(Part(out, hash_slot_num, index_num, (), before))
    return parts
