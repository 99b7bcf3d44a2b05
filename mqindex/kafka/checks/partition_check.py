"""What the segments of one partition say together: offsets and leader epochs go on from one to the next, and a snapshot
says what they leave open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mqindex._words import plural
from mqindex.errors import CorruptIndexError
from mqindex.files import disk
from mqindex.files.paths import base_name, join
from mqindex.kafka import catalogue
from mqindex.kafka.checks.segment_check import CheckedSegment
from mqindex.kafka.checks.transaction_check import Markers
from mqindex.kafka.directories.producer_state import NEVER
from mqindex.kafka.directories.survey import Partition
from mqindex.kafka.kinds import segment_file
from mqindex.kafka.partition.leader_epochs import CHECKPOINT, Epochs, read_epochs
from mqindex.kafka.partition.transactions import Replay
from mqindex.report import Finding


def overlaps(segments: Sequence[CheckedSegment], next_base: int | None) -> list[Finding]:
    """Every offset of a segment is below the next one's base offset. `next_base`: of the segment after the last."""
    segments = [segment for segment in segments if not segment.gone]
    bases = [segment.files.base_offset for segment in segments[1:]] + ([] if next_base is None else [next_base])
    return [
        catalogue.SEGMENT_OVERLAP.finding(one.files.log, None, "last_offset", f"below {base}", one.log.last_offset)
        for one, base in zip(segments, bases, strict=False)
        if one.log.last_offset is not None and one.log.last_offset >= base
    ]


def gaps(segments: Sequence[CheckedSegment], log_start: int, cleaned: int | None, *, own: bool) -> list[Finding]:
    """Offsets from the log's start on that no segment has; the first of them stand for all.

    `cleaned`: up to where this broker's cleaner compacted the log, None: that is not known. `own`: it has compacted
    nothing, and nobody else has by its name. What the end of a damaged segment held is told of itself.
    """
    found = [gap for gap in _gaps(segments, log_start) if cleaned is None or gap[2] > cleaned]
    kind = catalogue.SEGMENT_GAP if own else catalogue.SEGMENT_GAP_OR_COMPACTED
    many = plural(len(found), "gap") if len(found) > 1 else None
    return [
        kind.finding(path, expected=f"the next records at offset {expected}", got=base, many=many)
        for path, expected, base in found[:1]
    ]


def _gaps(segments: Sequence[CheckedSegment], log_start: int) -> Iterator[tuple[str, int, int]]:
    """(the log before the gap, its first offset, the base offset after it)"""
    before: str | None = None  # the log of the last segment whose end is known
    expected = 0
    for one in segments:
        base = one.files.base_offset
        if before is not None and not one.gone and max(expected, log_start) < base:
            yield before, max(expected, log_start), base
            expected = base
        if not one.log.readable or one.gone:
            before = None
        elif one.log.last_offset is not None:
            before, expected = one.files.log, one.log.last_offset + 1


def overlapped(segments: Sequence[CheckedSegment]) -> tuple[str, ...]:
    """The logs of segments that begin before an earlier one ends."""
    found, last = [], -1
    for segment in segments:
        if segment.files.base_offset <= last:
            found.append(segment.files.log)
        last = max(last, -1 if segment.log.last_offset is None else segment.log.last_offset)
    return tuple(found)


def those_gone(logs: Sequence[str]) -> set[str]:
    """A task: logs that are there no more. The cleaner removes those that it merged, then puts the merged one in place.

    Source: Kafka 4.1.0 `LocalLog.replaceSegments`.
    """
    return {path for path in logs if not disk.is_there(path)}


def known_epochs(directories: Sequence[str]) -> list[tuple[Epochs, list[Finding]]]:
    """A task: the checkpoints of partitions, or why they cannot be read.

    They are read after the logs: a broker that is writing puts an epoch there before its first batch.
    """
    return [_known(directory) for directory in directories]


def _known(directory: str) -> tuple[Epochs, list[Finding]]:
    try:
        return read_epochs(directory), []
    except CorruptIndexError as error:
        finding = catalogue.LEADER_EPOCH_CHECKPOINT.finding(error.path, expected=error.expected, got=error.got)
        return (), [finding]


def lost_epochs(partition: Partition, segments: Sequence[CheckedSegment], epochs: Epochs) -> list[Finding]:
    """After a clean stop a checkpoint has what the newest batches say; those of an old format say nothing.

    Source: Kafka 4.1.0 `CheckpointFile.read`, `LeaderEpochFileCache`; until 2.8 a topic of an old format loses it.
    """
    written = [segment for segment in segments if segment.log.last_offset is not None]
    if epochs or not partition.clean or not written or not len(written[-1].log.epochs):
        return []
    log, epoch = base_name(written[-1].files.log), written[-1].log.epochs["leader_epoch"][-1]
    path = join(partition.path, CHECKPOINT)
    expected = f"{epoch} as the last epoch, as in {log}"
    return [catalogue.LEADER_EPOCHS_LOST.finding(path, expected=expected, got="no epoch")]


# ---- the producers' state at the log's end


def check_loaded(partition: Partition, segments: Sequence[CheckedSegment], shown: Mapping[int, int]) -> list[Finding]:
    """Whether a broker that starts takes for open what the log shows: `shown`, producers and first offsets."""
    known = all(segment.log.readable and not segment.log.contradictory and not segment.gone for segment in segments)
    if partition.loaded is None or not segments or not known:
        return []
    start, begun = partition.loaded
    lasts = ((segment.log.last_offset, segment.files.base_offset) for segment in segments)
    end = max(base if last is None else last + 1 for last, base in lasts)
    if end < start < NEVER:  # the broker deletes such a snapshot; that the log ended later is told of the log
        return []
    replay = Replay(begun)
    for segment in segments:
        replay.run(segment.log.events[segment.log.events["offset"] >= start])
    taken, markers = replay.open, Markers([segment.log.events for segment in segments], end)
    oldest = max(partition.log_start, segments[0].files.base_offset)
    wrong = [
        producer
        for producer in sorted(shown.keys() | taken.keys())
        if _contradicts(producer, shown.get(producer, end), taken.get(producer, end), markers, oldest)
    ]
    if not wrong:
        return []
    many = plural(len(wrong), "producer") if len(wrong) > 1 else None
    expected, got = _said(wrong[0], shown), _said(wrong[0], taken)
    path = partition.snapshots.get(start)
    if path is None:
        path = join(partition.path, segment_file(end, "snapshot"))
        return [catalogue.NO_SNAPSHOT_OF_OPEN.finding(path, None, "open transactions", expected, "no file", many=many)]
    return [catalogue.SNAPSHOT_NOT_OPEN.finding(path, None, "open transactions", expected, got, many=many)]


def _contradicts(producer: int, first: int, taken: int, markers: Markers, oldest: int) -> bool:
    """Whether the log shows that a producer's transaction is open from `first` on, not from `taken`.

    It does not show what began before its oldest record: a log start that moved, and retention, took that. But a marker
    shows that it ended.
    """
    unseen = first < oldest or (taken < oldest and not markers.ended_in(producer, taken, markers.end))
    return first != taken and not unseen


def _said(producer: int, opened: Mapping[int, int]) -> str:
    if producer in opened:
        return f"producer {producer} from offset {opened[producer]} on"
    return f"none of producer {producer}"
