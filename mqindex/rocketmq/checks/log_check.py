"""One pass over the log for everything that is compared with it: its own continuity, the queues, the index.

A split is a task, as in `stages.extract`; here nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.commit_log import Scanner
from mqindex._native.guard import check_whole
from mqindex.engines import Engine
from mqindex.errors import MQIndexError
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.report import Finding
from mqindex.rocketmq.checks.entry_check import EntryCheck, EntryRun, EntryStretch
from mqindex.rocketmq.checks.queues.expected_units import ExpectedUnits, needs_again
from mqindex.rocketmq.checks.queues.unit_check import ExtReader, QueueRun, UnitCheck
from mqindex.rocketmq.checks.waiting import Waiting
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.frame_windows import frame_window
from mqindex.rocketmq.log.log_entries import FileWalk, LogSpan
from mqindex.rocketmq.messages.message import fault_error
from mqindex.rocketmq.pipeline.log_end import find_after_end
from mqindex.rocketmq.pipeline.split_walk import SplitRange, SplitWalk, counts, walk_split
from mqindex.rocketmq.pipeline.splits import LogRange, Stitched, cut, damage_finding, stitch
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.queue.consume_queue_ext import ConsumeQueueExt
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import QueueRules
from mqindex.rocketmq.tally.split_tally import SplitCounts, SplitTally
from mqindex.rocketmq.tally.split_zones import SplitZones, UnitZones


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheck(SplitRange):
    """A split of the log, and what to compare with it.

    `queues`: the directory of the consume queues, None: leave them out. `stretches`: of index files.
    `before`: what other splits gave to queues that continue here, where it matters. `every`: count topics and keys too,
    from one message in so many; None: do not. `batch_topics`: whose units are counted, and compared elsewhere.
    `zones`: gather zone maps, where there are units.
    """

    check_crc: bool
    rules: QueueRules
    queues: str | None
    ext: str | None
    stretches: tuple[EntryStretch, ...]
    before: tuple[tuple[QueueName, tuple[int, int]], ...] = ()
    every: int | None = None
    batch_topics: frozenset[str] = frozenset()
    zones: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRun(SplitWalk):
    """A split of the file `path`, compared. `counts`, `zones`: None where they were not asked for."""

    path: str
    max_timestamp: int = 0
    queues: tuple[QueueRun, ...] = ()
    stretches: tuple[EntryRun, ...] = ()
    counts: SplitCounts | None = None
    zones: SplitZones | None = None


@dataclass(slots=True)
class Walked:
    """All runs in the log's order. `survey`: with the log's end fixed; `findings`: of the log itself; `behind`: the
    damage that ends it, where frames are behind it.
    """

    survey: Survey
    runs: list[LogRun] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    behind: Damage | None = None

    @property
    def messages(self) -> int:
        return sum(run.messages for run in self.runs)

    @property
    def max_timestamp(self) -> int:
        """The latest store timestamp of a message that is dispatched anywhere; 0: there is none."""
        return max((run.max_timestamp for run in self.runs), default=0)

    @property
    def end(self) -> int:
        """The phy offset after the last frame."""
        spans = self.survey.spans
        return spans[-1].stop if spans else 0

    def stretches_of(self, wanted: Callable[[QueueRun], bool]) -> Iterator[tuple[LogSpan, int, int]]:
        """The stretches of log files, from a frame on, that have messages of such queues."""
        spans = {span.path: span for span in self.survey.spans}
        for run, later in zip(self.runs, [*self.runs[1:], None], strict=False):
            if run.path in spans and any(map(wanted, run.queues)):
                same = later is not None and later.path == run.path
                yield spans[run.path], run.first, later.first if later is not None and same else spans[run.path].stop


def walk_log(
    engine: Engine,
    found: Survey,
    split_size: int,
    *,
    crc_from: int | None,
    queues: bool = True,
    stretches: Sequence[EntryStretch] = (),
    every: int | None = None,
    zones: bool = False,
) -> Walked:
    """Read the whole log once. Bodies are compared with their checksums in the last file, and from `crc_from` on."""
    walked = Walked(found)
    checks = _checks(found, split_size, crc_from=crc_from, queues=queues, stretches=stretches, every=every, zones=zones)
    runs = engine.map(
        check_split, checks, name="check the log", weights=[one.stop - one.start for one in checks], unit="byte"
    )
    stitched: Stitched[LogRun] = stitch(
        engine, check_split, list(zip(checks, runs, strict=True)), Stitched[LogRun](), spans=found.spans, look=True
    )
    found = walked.survey = replace(found, spans=stitched.spans)
    walked.findings = stitched.gone + [damage_finding(damage) for damage in stitched.damage]
    if stitched.fault is not None:
        after_end = find_after_end(engine, found.spans, stitched.fault)
        walked.findings, walked.behind = [*walked.findings, *after_end.findings], after_end.behind
    if found.spans:
        stop = stitched.fault
        if stop is None:  # somebody is writing the log: a frame that begins before the last file's end may end after it
            stop = max((run.end for run in stitched.runs), default=found.spans[-1].stop)
        walked.survey = replace(found, spans=(*found.spans[:-1], replace(found.spans[-1], stop=stop)))
    dispatched = _once_dispatched(engine, walked, checks, stitched.runs)
    walked.runs, walked.damage = _again(engine, checks, dispatched), stitched.damage
    return walked


def _checks(
    found: Survey,
    split_size: int,
    *,
    crc_from: int | None,
    queues: bool,
    stretches: Sequence[EntryStretch],
    every: int | None,
    zones: bool,
) -> list[LogCheck]:
    whole = LogRange(found.min_phy_offset, found.spans[-1].stop if found.spans else 0)
    rules = found.queues.rules
    return [
        LogCheck(
            span=split.span,
            start=split.start,
            stop=split.stop,
            resync=split.resync,
            tags=found.tags,
            check_crc=crc_from is not None and split.stop > crc_from,
            rules=rules,
            queues=found.options.consume_queue if queues else None,
            ext=found.options.consume_queue_ext_directory if rules.ext_file_size is not None else None,
            stretches=tuple(one for one in stretches if one.reaches(split.start, split.stop)),
            every=every,
            batch_topics=found.queues.batch_topics,
            zones=zones,
        )
        for split in cut(found.spans, whole, split_size, tags=found.tags, out=None)
    ]


def check_split(check: LogCheck) -> LogRun:
    """Walk a split, and compare the units and entries that its frames give."""
    return walk_split(check, partial(_check_split, check), LogRun(path=check.span.path))


def _check_split(check: LogCheck, log: MappedFile, first: int) -> LogRun:
    table = check.rules.table() if check.queues is not None else None
    walk = FileWalk(log, check.span, first, check.stop, tags=check.tags, queues=table, check_crc=check.check_crc)
    tally = SplitTally(check.every, check.start) if check.every is not None else None
    units = zones = None
    if table is not None and check.zones:
        zones = UnitZones(check.span, first, table)
    if table is not None and check.queues is not None:
        before, ext = dict(check.before), _ext_reader(check.ext)
        units = UnitCheck(check.queues, table.names, check.rules.file_size, before, ext, check.batch_topics)
    latest = 0
    with EntryCheck(check.stretches, first, check.stop) as entries:
        for chunk in walk:
            if len(chunk):
                entries.add(chunk)
                if tally is not None:
                    tally.add_entries(chunk)
            if units is not None and len(walk.units):
                latest = max(latest, int(walk.units["store_timestamp"].max()))
                units.add(walk.units)
                if zones is not None:
                    zones.add(walk.units)
                if tally is not None:
                    tally.add_units(walk.units)
        stretches = entries.finish()
    times = None
    if walk.last_message >= 0:  # that message may have neither entries nor units
        times = _stored(log, check, _first_message(walk, first)), _stored(log, check, walk.last_message)
        latest = max(latest, times[1])
    queues = tuple(units.finish()) if units is not None else ()
    names = table.names() if table is not None else []
    return LogRun(
        path=check.span.path,
        max_timestamp=latest,
        queues=queues,
        stretches=tuple(stretches),
        counts=tally.finish(names, times, log.size) if tally is not None else None,
        zones=zones.finish(log, walk, check.stop) if zones is not None else None,
        **counts(walk, first),
    )


def _first_message(walk: FileWalk, first: int) -> int:
    """Where damage at the split's begin ends; `first`: where there is none."""
    for damage in walk.damage:
        if damage.at == first:
            first = damage.stop
    return min(first, walk.last_message)


def _stored(log: MappedFile, check: LogCheck, phy_offset: int) -> int:
    """The store timestamp of a message."""
    start = check.span.file_start
    scanner = Scanner(frame_window(log, start, phy_offset), start, phy_offset, phy_offset + 1, max_frames=1)
    frames = next(scanner, None)
    if frames is None:  # others wrote or cut the file meanwhile
        check_whole(log.map)
        fault = scanner.fault or (phy_offset, "bad-magic", "magic_code", "the frame that was here before", "none")
        raise fault_error(fault, start, check.span.path)
    return int(frames["store_timestamp"][0])


def _ext_reader(directory: str | None) -> ExtReader | None:
    if directory is None:
        return None

    def read(name: QueueName, addresses: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        try:
            with ConsumeQueueExt.open(join(directory, name[0], str(name[1]))) as ext:
                units = ext.get_many(addresses)
        except (MQIndexError, OSError) as error:
            require_answer(error, directory)
            return np.zeros(len(addresses), np.int64), np.full(len(addresses), -1)
        return units["tags_code"], np.where(units["found"], units["store_timestamp"], -1)

    return read


def _once_dispatched(
    engine: Engine, walked: Walked, checks: Sequence[LogCheck], runs: Sequence[LogRun]
) -> Sequence[LogRun]:
    """The runs, checked again for units that a broker had in its log but not yet in the queues, if it is writing."""
    done, waiting = list(runs), Waiting(engine, walked.survey)
    while waiting.waits(_absent(done)):
        late = [at for at, run in enumerate(done) if _absent([run])]
        again = [_of_queues(checks, done[at], end=walked.end) for at in late]
        for at, looked in zip(late, engine.map(check_split, again, name="check again"), strict=True):
            if not looked.gone:
                done[at] = replace(done[at], queues=looked.queues)
    return done


def _absent(runs: Sequence[LogRun]) -> int:
    return sum(queue.absent for run in runs for queue in run.queues)


def _of_queues(
    checks: Sequence[LogCheck],
    run: LogRun,
    before: tuple[tuple[QueueName, tuple[int, int]], ...] = (),
    end: int = 2**63,
) -> LogCheck:
    """A check that compares the queues of a run once more, and nothing else. `end`: of the log, where it was fixed."""
    check = next(one for one in checks if one.span.path == run.path and one.start <= run.first < one.stop)
    stop = min(check.stop, end)
    return replace(
        check, start=run.first, stop=stop, resync=False, stretches=(), before=before, every=None, zones=False
    )


def _again(engine: Engine, checks: Sequence[LogCheck], runs: Sequence[LogRun]) -> list[LogRun]:
    """Queues whose places depend on what came before their split: compared once more with that known.

    An uninterrupted broker writes no such queue.
    """
    expected: dict[QueueName, ExpectedUnits] = {}
    done = []
    for run in runs:
        before = needs_again(expected, run.queues)
        if before:
            again = _of_queues(checks, run, before=tuple(before.items()))
            looked = engine.map(check_split, [again], name="check again")[0]
            fresh = run.queues if looked.gone else looked.queues
            kept = tuple(one for one in run.queues if (one.topic, one.queue_id) not in before)
            run = replace(  # noqa: PLW2901
                run, queues=kept + tuple(one for one in fresh if (one.topic, one.queue_id) in before)
            )
        for queue in run.queues:
            expected.setdefault((queue.topic, queue.queue_id), ExpectedUnits()).take(queue)
        done.append(run)
    return done
