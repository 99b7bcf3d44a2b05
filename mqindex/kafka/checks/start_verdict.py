"""The verdict on a broker's next start: what prevents it, and what its recovery would make of the logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.kafka import catalogue
from mqindex.kafka.checks.diagnosis import DiagnosedPartition, Diagnosis
from mqindex.kafka.checks.segment_check import CheckedSegment
from mqindex.kafka.checks.start_check import StartFiles, look_at_start
from mqindex.kafka.checks.transaction_check import refused_version
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.partition.leader_epochs import CHECKPOINT
from mqindex.report import Finding, Obstacle, Start

__all__ = ["verdict"]

_ENDLESS: Final = "a bad length, or zeros, where a batch should be, and after a clean stop no recovery cuts it"


@dataclass(slots=True)
class _Recovery:
    """The results of the recoveries of all partitions. `cuts`: logs that get shorter, or empty."""

    recovers: int = 0
    cuts: list[str] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    obstacles: list[Obstacle] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def verdict(engine: Engine, diagnosis: Diagnosis) -> tuple[Start, list[Finding]]:
    """The verdict on a partition or log dir, and the findings that no other check makes.

    Notes
    -----
    Source: Kafka 4.1.0 `LogLoader.recoverLog`, `loadSegmentFiles`, `deleteSegmentsIfLogStartGreaterThanLogEnd`.
    """
    look: StartFiles = run_one(engine, look_at_start, diagnosis.survey, "look at the start")
    done = _Recovery()
    for one in diagnosis.partitions:
        _load(one, look.points.get(one.partition.name, 0), done)
    obstacles = (*look.obstacles, *done.obstacles)
    start = Start(
        starts=not obstacles,
        obstacles=obstacles,
        deletes=tuple(dict.fromkeys((*look.deletes, *done.deletes))),
        recovers=done.recovers,
        cuts=tuple(done.cuts),
        lock=look.lock.state,
        lock_pid=look.lock.pid,
        lock_holder=look.lock_holder,
    )
    return start, look.findings + done.findings


def _load(one: DiagnosedPartition, point: int, done: _Recovery) -> None:
    """Recover segments without `.index` first; then, after an unclean stop, all from the one of the recovery point on.

    Before that the `.txnindex` of each segment with an `.index` is checked: no recovery mends a wrong version.
    """
    segments = [segment for segment in one.segments if not segment.gone]
    for segment in segments:
        aborted = segment.files.indexes.get(IndexKind.TRANSACTION)
        if IndexKind.OFFSET in segment.files.indexes and aborted is not None:
            version = refused_version(segment.transactions or b"", segment.files.base_offset)
            if version is not None:
                reason = f"an aborted transaction of version {version}, which no broker reads"
                done.obstacles.append(Obstacle(aborted, reason))
    unclean = one.partition.clean is False
    first = max((n for n, each in enumerate(segments) if each.files.base_offset <= point), default=0)
    for segment in segments if not unclean else segments[:first]:
        if IndexKind.OFFSET not in segment.files.indexes:
            done.recovers += 1
            if segment.refusal is not None:
                done.obstacles.append(Obstacle(segment.files.log, f"{segment.refusal}, and its .index is missing"))
            elif segment.cut:
                done.cuts.append(segment.files.log)
    done.obstacles += [Obstacle(each.files.log, _ENDLESS) for each in segments if each.endless]
    for number, segment in enumerate(segments[first:] if unclean else (), first):
        done.recovers += 1
        if segment.refusal is not None and not segment.out_of_order:
            done.obstacles.append(Obstacle(segment.files.log, segment.refusal))
            break
        if segment.cut or segment.refusal is not None:
            done.cuts.append(segment.files.log)
            done.deletes += [later.files.log for later in segments[number + 1 :]]
            break
    _check_start(one, segments, done)


def _check_start(one: DiagnosedPartition, segments: list[CheckedSegment], done: _Recovery) -> None:
    """A log that ends below its start offset in the checkpoint is deleted, segment by segment.

    A start within the log was moved together with the first of the leader epochs, though that may be missing after a
    crash. Source: Kafka 0.11.0 `LeaderEpochFileCache.clearAndFlushEarliest`, 4.1.0 `truncateFromStartAsyncFlush`.
    """
    if not segments or segments[-1].refusal is not None:
        return
    last = segments[-1]
    end = last.files.base_offset if last.last_offset is None else last.last_offset + 1
    start = one.partition.log_start
    field, path = "log_start_offset", one.partition.path
    if end < start:
        logs = [segment.files.log for segment in segments]
        done.deletes += logs
        done.findings.append(catalogue.LOG_START_BEYOND_END.finding(path, None, field, end, start))
    elif one.partition.clean and one.epochs and one.epochs[0][1] < start:
        expected = f"{one.epochs[0][1]} or less, by {CHECKPOINT}"
        done.findings.append(catalogue.LOG_START_BEYOND_EPOCH.finding(path, None, field, expected, start))
