"""The verdict on a broker's next start: what prevents it, and what its recovery would make of the logs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from mqindex._rules import Broker
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.kafka import catalogue
from mqindex.kafka.brokers import ONE_BYTE_OF_VERSION
from mqindex.kafka.checks.diagnosis import DiagnosedPartition, Diagnosis
from mqindex.kafka.checks.partition_check import gaps
from mqindex.kafka.checks.segment_check import CheckedSegment
from mqindex.kafka.checks.start.start_check import (
    HIGH_WATERMARKS,
    NO_INDEX_FILE,
    RECOVERY_POINTS,
    StartFiles,
    look_at_start,
)
from mqindex.kafka.checks.transaction_check import refused_entry
from mqindex.kafka.directories.offset_checkpoint import entry_name
from mqindex.kafka.directories.producer_state import NEVER, kept_snapshots
from mqindex.kafka.index.transaction_index import AbortedTxn, is_refused_version
from mqindex.kafka.kinds import partition_name
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.partition.leader_epochs import CHECKPOINT
from mqindex.report import Finding, Obstacle, Start

_BAD: Final = "a bad length, or zeros, where a batch should be"
_ENDLESS: Final = f"{_BAD}, and after a clean stop no recovery cuts it"
_READ: Final = f"{_BAD}, and a broker reads this log for its producers before any recovery cuts it"
_FULL: Final = "an index is full before the log ends, and a broker recovers the segment"
_LOST_END: Final = "its last entry leads to no batch, and after a clean stop a broker reads the log from there on"


@dataclass(slots=True)
class _Recovery:
    """The results of the recoveries of all partitions. `cuts`: logs that get shorter, or empty. `possible`: what
    prevents a start with the given settings of the topic, which no file holds.
    """

    recovers: int = 0
    cuts: list[str] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    obstacles: list[Obstacle] = field(default_factory=list)
    possible: list[Obstacle] = field(default_factory=list)
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
        name = entry_name(one.partition.path)
        _load(one, look.points.get(name, 0), done)
        done.findings += _lost(one, name, look)
        cleaned = None if look.cleaned is None else look.cleaned.get(name, 0)
        named = partition_name(one.partition.path)
        copies = named is not None and named.state == "future"  # what was compacted in another log dir
        own = cleaned == 0 and not copies
        done.findings += gaps(one.segments, one.partition.log_start, cleaned, own=own)
    certain, possible = (*look.obstacles, *done.obstacles), (*look.possible, *done.possible)
    start = Start(
        starts=False if certain else None if possible else True,
        obstacles=(*certain, *possible),
        deletes=tuple(dict.fromkeys((*look.deletes, *done.deletes))),
        recovers=done.recovers,
        cuts=tuple(done.cuts),
        lock=look.lock.state,
        lock_pid=look.lock.pid,
        lock_holder=look.lock_holder,
    )
    return start, look.findings + done.findings


def _lost(one: DiagnosedPartition, name: str, look: StartFiles) -> list[Finding]:
    """A log that is shorter than a checkpoint says, though all that its files hold is whole; or that has no segment.

    No broker leaves a log without one, but in a new metadata log only a snapshot. A log that was not closed may have
    lost its end by a crash, and while a broker writes, its log and its checkpoints differ.
    Source: Kafka 3.8.0 `LogLoader.recoverLog`, `UnifiedLog.updateHighWatermark`, 4.4.0 `Formatter`.
    """
    partition, named = one.partition, partition_name(one.partition.path)
    known, checkpoint = max(
        (look.points.get(name, 0), RECOVERY_POINTS), (look.replicated.get(name, 0), HIGH_WATERMARKS)
    )
    if named is None or named.state in ("delete", "stray"):
        return []
    end = _whole_end(one)
    if end is None or end >= known:
        lost = partition.is_empty and partition.clean is not None and named.state is None
        return [catalogue.NO_SEGMENT.finding(partition.path, start=partition.log_start)] if lost else []
    got = str(end) if partition.segments else "no segment"
    return [
        catalogue.LOG_LOST.finding(partition.path, None, "log_end_offset", f"{known}, by {checkpoint}", got, end=end)
    ]


def _whole_end(one: DiagnosedPartition) -> int | None:
    """Where a log ends that a broker has closed, or of which nothing is left; None: not known, or told elsewhere."""
    if not one.partition.segments:
        return one.partition.log_start
    last = one.segments[-1]
    log = last.log
    closed = one.partition.clean and log.readable and not last.gone and log.refusal is None and not log.cut
    told = last.found_end == log.end or IndexKind.OFFSET in last.fate.written  # a wrong index leads elsewhere
    return log.end if closed and told else None


def _load(one: DiagnosedPartition, point: int, done: _Recovery) -> None:
    """First each segment is loaded; then, after an unclean stop, all from the one of the recovery point on recovered.

    A segment whose offsets are too far from its base is split, and what it becomes is loaded or recovered again.
    """
    segments = [segment for segment in one.segments if not segment.gone]
    broker = one.partition.options.broker
    loaded = [_is_recovered_when_loaded(segment, broker) for segment in segments]
    done.recovers += sum(loaded)
    for segment, recovered in zip(segments, loaded, strict=True):
        _load_segment(segment, recovered, broker, done)
        _open_indexes(segment, done, last=segment is segments[-1])
    first = max((n for n, each in enumerate(segments) if each.files.base_offset <= point), default=0)
    unflushed = range(first, len(segments)) if one.partition.clean is False else ()
    left = segments
    order = [number for number, each in enumerate(loaded) if each]
    for number in unflushed:
        segment = segments[number]
        order.append(number)
        if loaded[number]:  # nothing is left to cut
            continue
        done.recovers += not one.partition.options.is_of_metadata  # of which every start is a recovery
        if segment.log.refusal is not None and not (segment.log.out_of_order or segment.log.overflows):
            done.obstacles.append(Obstacle(segment.files.log, segment.log.refusal))
            break
        if segment.log.fills_index is not None:
            _stop_full(segment, done)
            break
        if segment.log.cut or segment.log.out_of_order:
            done.cuts.append(segment.files.log)
            done.deletes += [later.files.log for later in segments[number + 1 :]]
            left = segments[: number + 1]
            break
    _read_for_producers(one, segments, order, done)
    _check_start(one, left, done, recovered=bool(unflushed) or loaded[-1:] == [True])


def _stop_full(segment: CheckedSegment, done: _Recovery) -> None:
    """A recovery ends in an error that no broker catches where an index has no place for an entry.

    Source: Kafka 4.1.0 `TimeIndex.maybeAppend`, `LogLoader.recoverLog`.
    """
    found = segment.log.fills_index
    assert found is not None
    settings = f"where segment.index.bytes is {found.got}"
    done.possible.append(Obstacle(segment.files.log, _FULL, settings))
    done.findings.append(found)


def _is_recovered_when_loaded(segment: CheckedSegment, broker: Broker) -> bool:
    """Whatever the stop: it has no `.index`, or its `.txnindex` begins elsewhere.

    A broker that completes an exchange of a log makes an `.index` first, of zeros, and then finds it there.
    Source: Kafka 4.1.0 `LogLoader.load`, which calls `LogSegment.readNextOffset` of each `.log.swap`.
    """
    if segment.lost_offsets():
        return not segment.files.is_swapping
    refused = _refused(segment, broker)
    return refused is not None and not is_refused_version(refused, broker)


def _open_indexes(segment: CheckedSegment, done: _Recovery, *, last: bool) -> None:
    """A broker opens every `.txnindex` that is there, and the others of the last segment, to make them longer."""
    done.obstacles += [
        Obstacle(segment.files.place_of(kind), NO_INDEX_FILE)
        for kind in segment.blocked()
        if last or kind is IndexKind.TRANSACTION
    ]


def _refused(segment: CheckedSegment, broker: Broker) -> AbortedTxn | None:
    return refused_entry(segment.transactions or b"", segment.files.base_offset, broker)


def _load_segment(segment: CheckedSegment, recovered: bool, broker: Broker, done: _Recovery) -> None:
    """What no recovery mends: a wrong version in the `.txnindex`, and offsets that go back."""
    log, refused = segment.files.log, _refused(segment, broker)
    if recovered and segment.log.refusal is not None and not segment.log.overflows:
        lost = "" if IndexKind.OFFSET in segment.files.indexes else ", and its .index is missing"
        done.obstacles.append(Obstacle(log, f"{segment.log.refusal}{lost}"))
    elif recovered and segment.log.fills_index is not None:
        _stop_full(segment, done)
    elif recovered and segment.log.cut:
        done.cuts.append(log)
    elif refused is not None and is_refused_version(refused, broker) and IndexKind.OFFSET in segment.files.indexes:
        passed = broker.does(ONE_BYTE_OF_VERSION) is None and refused.version >> 8 <= 0
        brokers = f"from {ONE_BYTE_OF_VERSION.until} on" if passed else "every"
        reason = f"an aborted transaction of version {refused.version}"
        place = segment.files.place_of(IndexKind.TRANSACTION)
        done.obstacles.append(Obstacle(place, reason, brokers))
        if not segment.log.readable:  # else its entries were compared with the log
            kind = catalogue.VERSION_BESIDE_BAD_LOG
            done.findings.append(kind.finding(place, None, "version", 0, refused.version))
    if segment.found_end is None and (segment.files.is_swapping or not recovered):
        index, bad = segment.files.place_of(IndexKind.OFFSET), segment.log.read_until is not None
        done.obstacles.append(Obstacle(log, _ENDLESS) if bad else Obstacle(index, _LOST_END))


def _read_for_producers(
    one: DiagnosedPartition, segments: list[CheckedSegment], recovered: Sequence[int], done: _Recovery
) -> None:
    """A broker reads the log for its producers, from the newest snapshot on: before it recovers a segment up to that
    one, and after a clean stop to the end. `recovered`: which segments it recovers, in that order.

    A recovery deletes all snapshots above its segment's begin, and leaves one of that and, where a batch is of magic 2,
    one of its end. Without any a broker reads nothing at last.
    Source: Kafka 4.1.0 `LogLoader.recoverSegment`, `UnifiedLog.rebuildProducerState`,
    `ProducerStateManager.truncateAndReload`.
    """
    start, snapshots = one.partition.log_start, list(one.partition.snapshots)
    whole: set[int] = set()
    for number in recovered:
        segment = segments[number]
        snapshots = [at for at in snapshots if start < at <= segment.files.base_offset]
        _read(segments[:number], whole, max(snapshots, default=start), done)
        whole.add(number)
        written = [segment.files.base_offset, *([segment.log.cut_end] if len(segment.log.epochs) else [])]
        snapshots += [at for at in written if at > start]
    if one.partition.loaded is not None:
        kept = kept_snapshots(snapshots, [segment.files.base_offset for segment in segments])
        _read(segments, whole, max(kept, default=NEVER) if recovered else one.partition.loaded[0], done)


def _read(segments: list[CheckedSegment], whole: Collection[int], start: int, done: _Recovery) -> None:
    """What a broker reads from an offset on. `whole`: segments that a recovery has cut where they are bad."""
    for number, segment in enumerate(segments):
        until = segment.log.read_until
        if until is None or segment.found_end is None or number in whole:
            continue
        if max(until - 1, segment.files.base_offset) >= start:
            done.obstacles.append(Obstacle(segment.files.log, _READ))


def _check_start(one: DiagnosedPartition, segments: list[CheckedSegment], done: _Recovery, *, recovered: bool) -> None:
    """A log that ends below its start offset in the checkpoint is deleted, segment by segment. `recovered`: the last of
    them. So are snapshots above the log's end.

    A start within the log was moved together with the first of the leader epochs, though that may be missing after a
    crash. Source: Kafka 0.11.0 `LeaderEpochFileCache.clearAndFlushEarliest`, 4.1.0 `truncateFromStartAsyncFlush`,
    `ProducerStateManager.truncateAndReload`.
    """
    if not segments or segments[-1].log.refusal is not None:
        return
    last, start = segments[-1], one.partition.log_start
    known = last.log.cut_end if recovered else last.log.end
    end = known if recovered else last.found_end
    if end is None:
        return
    field, path = "log_start_offset", one.partition.path
    if end < start:
        logs = [segment.files.log for segment in segments]
        done.deletes += logs
        done.findings.append(catalogue.LOG_START_BEYOND_END.finding(path, None, field, end, start))
        return
    done.deletes += [path for at, path in one.partition.snapshots.items() if at > end]
    if one.partition.clean and one.epochs and one.epochs[0][1] < start:
        expected = f"{one.epochs[0][1]} or less, by {CHECKPOINT}"
        done.findings.append(catalogue.LOG_START_BEYOND_EPOCH.finding(path, None, field, expected, start))
