"""A look at a log dir or a partition before any work: which segments there are, and what only names and lengths say.

A survey runs as a stage, in a task, because the driver of a cluster need not see the files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mqindex._words import plural
from mqindex.errors import BadMagicError, MQIndexError
from mqindex.files import disk
from mqindex.files.paths import base_name, join, size_of
from mqindex.files.places.place import require_answer
from mqindex.kafka import catalogue
from mqindex.kafka.directories.log_dir import linked_partitions, log_dir_of, partitions_of, was_clean
from mqindex.kafka.directories.offset_checkpoint import entry_name, log_start_offsets, recovery_points
from mqindex.kafka.directories.partition_files import PartitionFiles, while_files_go
from mqindex.kafka.directories.producer_state import OpenTransactions, loaded_state, open_transactions_at
from mqindex.kafka.index.index_entries import read_entries
from mqindex.kafka.kinds import (
    METADATA_LOG,
    OtherName,
    PartitionDirectory,
    is_brokers,
    is_partition,
    other_name,
    partition_name,
)
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.options import PartitionOptions
from mqindex.report import Finding, Report, Value

if TYPE_CHECKING:
    from mqindex.kafka.directories.topic_settings import TopicSettings

AnyReport = TypeVar("AnyReport", bound=Report)

_NOT_FILES = {"log": catalogue.LOG_NOT_A_FILE, "snapshot": catalogue.SNAPSHOT_NOT_A_FILE}
_PUT_ASIDE = ("delete", "stray")


@dataclass(frozen=True, slots=True)
class Order:
    """The input of the first task: what to survey."""

    directory: str
    options: PartitionOptions


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition's segments with the lengths of their logs, and the transactions that are open before the first.

    `name`: its directory's. `options`: what holds for it of those given. `clean`: the result of `was_cleanly_closed`.
    `next_base`: the base offset of the segment after the last of `segments`; None: there is none. `loaded`: the
    producers' state that the next start loads, as `loaded_state` has it; None: it is made from the log, or unknown.
    `recovery_point`: up to where the log was on the disk, as a checkpoint says. `is_empty`: no segment was there when
    it was listed, nor a snapshot of the metadata log.
    """

    path: str
    name: str
    options: PartitionOptions
    segments: tuple[SegmentFiles, ...]
    sizes: tuple[int, ...]
    begun: OpenTransactions
    snapshots: dict[int, str]
    log_start: int
    clean: bool | None
    next_base: int | None = None
    loaded: tuple[int, OpenTransactions] | None = None
    recovery_point: int = 0
    is_empty: bool = False

    def may_be_open(self, files: SegmentFiles) -> bool:
        """Whether a broker may have left a segment's indexes as it writes them, with zeros behind their entries.

        It opens the last segment of a partition that is put aside too, but a stop closes only what is in use.
        Source: Kafka 3.9.1 `LogManager.shutdown`, `addStrayLog`.
        """
        return self.is_last(files) and (self.clean is not True or _state(self.path) in _PUT_ASIDE)

    def is_last(self, files: SegmentFiles) -> bool:
        """Whether one of `segments` is the partition's last."""
        return self.next_base is None and files.base_offset == self.segments[-1].base_offset

    def is_unflushed(self, files: SegmentFiles) -> bool:
        """Whether a broker that was not stopped cleanly recovers a segment, whatever indexes it has.

        Source: Kafka 4.1.0 `LogLoader.recoverLog`.
        """
        if self.clean is not False:
            return False
        above = bisect_right(self.segments, self.recovery_point, key=lambda each: each.base_offset)
        return files.base_offset >= (self.segments[above - 1].base_offset if above else 0)

    def ends(self, files: SegmentFiles) -> tuple[int, ...]:
        """Where the last segment has ended before, by the snapshots that a broker wrote when it stopped."""
        if not self.is_last(files):
            return ()
        return tuple(sorted(at for at in self.snapshots if at > files.base_offset and at >= self.log_start))

    @property
    def oldest(self) -> int:
        """The offset that its oldest record can have."""
        return self.segments[0].base_offset if self.segments else 0

    @property
    def bytes(self) -> int:
        return sum(self.sizes)


@dataclass(frozen=True, slots=True)
class Survey:
    """What `root`, a partition or a log dir, consists of; or what one `file`, which is `root` then, is checked with."""

    root: str
    log_dir: str
    single: bool
    options: PartitionOptions
    partitions: tuple[Partition, ...]
    findings: tuple[Finding, ...]
    file: str | None = None

    @property
    def bytes(self) -> int:
        return sum(partition.bytes for partition in self.partitions)


def survey(order: Order) -> Survey:
    """Survey a directory; one that is neither a partition nor a log dir is an error."""
    root = order.directory
    single = is_partition(root)
    found = [one for one in partitions_at(root) if single or one.state != "delete"]
    log_dir = log_dir_of(root)
    clean, starts, points = was_clean(log_dir), log_start_offsets(log_dir), recovery_points(log_dir)
    topics = told_topics(log_dir, order.options)
    partitions, findings = [], [catalogue.LINKED_DIRECTORY.finding(path) for path in linked_partitions(root)]
    for one in found:
        start = starts.get(entry_name(one.path), 0)
        closed = was_cleanly_closed(one.path, clean)
        try:
            partition, more = while_files_go(
                one.path, partial(_surveyed, one.path, order.options, closed, start, topics)
            )
        except FileNotFoundError:
            if one.path == root:
                raise
            findings.append(catalogue.PARTITION_GONE.finding(one.path))
        else:
            partitions.append(replace(partition, recovery_point=points.get(entry_name(one.path), 0)))
            findings += more
    return Survey(root, log_dir, single, order.options, tuple(partitions), tuple(findings))


def start_report(report: AnyReport, found: Survey) -> AnyReport:
    """Fill in what every report says of the directory that was surveyed."""
    own = [one.options for one in found.partitions if not one.options.is_of_metadata] or [found.options]
    report.settings = own[0].settings()
    if len({one.index_interval_bytes for one in own}) > 1:
        report.settings["index_interval_bytes"] = Value("several", _sources(own))
    report.findings += found.findings
    report.bytes = found.bytes
    report.segments = sum(len(partition.segments) for partition in found.partitions)
    return report


def _sources(used: Sequence[PartitionOptions]) -> str:
    """Where several intervals came from: how many partitions have theirs of each source."""
    counts = Counter("estimated" if each.other_intervals else each.interval_source for each in used)
    return "; ".join(f"{plural(count, 'partition')}: {source}" for source, count in sorted(counts.items()))


def told_topics(log_dir: str, options: PartitionOptions) -> TopicSettings | None:
    """What is known of the topics' settings, where it matters: nothing of them was given."""
    if options.interval_source != "default" or not disk.is_directory(join(log_dir, METADATA_LOG)):
        return None
    from mqindex.kafka.directories.topic_settings import topic_settings  # here: most partitions lie beside no such log

    return topic_settings(log_dir)


def _surveyed(
    path: str,
    options: PartitionOptions,
    clean: bool | None,
    start: int,
    topics: TopicSettings | None,
    files: PartitionFiles,
) -> tuple[Partition, list[Finding]]:
    return surveyed_partition(path, files, options, clean, start, topics), _findings(files)


def partitions_at(root: str) -> tuple[PartitionDirectory, ...]:
    """The partition that a directory is, or those in it; one that is neither of the two is an error."""
    found = partitions_of(root)
    holds_files = any(is_partition(one.path) for one in found)  # topics of RocketMQ's queues may have such names
    if not holds_files and not is_brokers(root):
        raise BadMagicError(
            "neither a partition nor a log dir", path=root, expected="segments, or directories named <topic>-<number>"
        )
    return found


def was_cleanly_closed(partition: str, clean: bool | None) -> bool | None:
    """Whether a broker that starts takes a partition's log as it is; `clean`: the result of `was_clean` of its log dir.

    The metadata log it recovers at every start, from the first segment on, and none that is being deleted; nor was that
    closed. Source: Kafka 4.1.0 `KafkaMetadataLog`, `LogLoader.load`.
    """
    if base_name(partition) == METADATA_LOG:
        return False
    return None if _state(partition) == "delete" else clean


def _state(partition: str) -> str | None:
    named = partition_name(partition)
    return None if named is None else named.state


def surveyed_partition(
    path: str,
    files: PartitionFiles,
    options: PartitionOptions,
    clean: bool | None,
    start: int,
    topics: TopicSettings | None,
) -> Partition:
    """One partition with the segments that are listed. `start`: where its log starts."""
    begun: OpenTransactions = ()
    bases = [segment.base_offset for segment in files.segments]
    if bases:
        begun = open_transactions_at(files.snapshots, bases[0], start)
    return Partition(
        path=path,
        name=base_name(path),
        options=_own_options(path, files.segments, options, topics),
        segments=files.segments,
        sizes=tuple(size_of(segment.log) for segment in files.segments),
        begun=begun,
        snapshots=files.snapshots,
        log_start=start,
        clean=clean,
        loaded=loaded_state(files.snapshots, bases, start) if clean else None,
        is_empty=not (files.segments or files.metadata_snapshots),
    )


def _own_options(
    path: str, segments: Sequence[SegmentFiles], options: PartitionOptions, topics: TopicSettings | None
) -> PartitionOptions:
    if base_name(path) == METADATA_LOG:
        return options.of_metadata_log()
    if options.interval_source != "default":
        return options
    if topics is not None and (said := topics.interval_of(path)) is not None:
        return replace(options, index_interval_bytes=said.value, interval_source=said.source)
    found = interval_bounds(segments[:-1])
    if found is None or found[0] <= options.index_interval_bytes <= found[1]:
        return options
    low, high, files = found
    source = f"estimated from {plural(files, '.index file')}"
    return replace(
        options, index_interval_bytes=roundest(low, high), interval_source=source, other_intervals=(low, high)
    )


def gone(path: str, segments: Sequence[SegmentFiles], missed: Sequence[SegmentFiles]) -> list[Finding]:
    """Segments that were listed, and deleted before they were read, if any: an info of their partition."""
    if not missed:
        return []
    start = min((files.base_offset for files in segments if files not in missed), default=None)
    kind = catalogue.NO_SEGMENT_LEFT if start is None else catalogue.SEGMENTS_GONE
    expected = f"{plural(len(missed), 'segment')}, from offset {missed[0].base_offset} on"
    return [kind.finding(path, expected=expected, got="no files", start=start)]


def _findings(files: PartitionFiles) -> list[Finding]:
    """Files that a starting broker deletes or renames."""
    found = [catalogue.LEFTOVER_FILE.finding(path) for path in files.leftovers]
    found += [catalogue.ORPHAN_INDEX.finding(path) for path in files.orphans]
    found += [
        _NOT_FILES[ending].finding(path, expected="a file", got=disk.kind_of(path))
        for path in files.not_files
        if (ending := path.rpartition(".")[2]) in _NOT_FILES and disk.exists(path)  # else deleted meanwhile
    ]
    found += map(_other_name, filter(None, map(other_name, files.skipped)))
    found += [
        catalogue.SEGMENT_SWAPPING.finding(segment.log)
        for segment in files.segments
        if not segment.log.endswith(".log")
    ]
    return found


def _other_name(found: OtherName) -> Finding:
    if found.path == found.meant:
        kind = catalogue.SEGMENT_BEYOND_OFFSETS
    elif found.ending == "snapshot":
        kind = catalogue.OTHER_NAME_OF_SNAPSHOT
    elif found.ending != "log":
        kind = catalogue.OTHER_NAME_OF_INDEX
    else:
        kind = catalogue.OTHER_NAME_OF_SEGMENT if disk.is_there(found.meant) else catalogue.SEGMENT_NAME
    meant = base_name(found.meant)
    return kind.finding(found.path, expected=meant, got=base_name(found.path), meant=meant)


_FILES, _ENTRIES, _BYTES = 4, 64, 1 << 24  # looked at: closed segments, of each so many entries in so much of its log


def interval_bounds(segments: Sequence[SegmentFiles]) -> tuple[int, int, int] | None:
    """The least and the greatest interval with which these have their entries, and of how many files; None: none."""
    found = [each for each in map(_bounds, segments[:_FILES]) if each is not None]
    low, high = max((each[0] for each in found), default=0), min((each[1] for each in found), default=-1)
    return (low, high, len(found)) if low <= high else None


def roundest(low: int, high: int) -> int:
    """What people set, of [low, high].

    >>> roundest(973, 1046), roundest(500, 530), roundest(2950, 3049), roundest(17, 17)
    (1000, 512, 3000, 17)
    """
    powers: list[int] = [*(10**power for power in range(10)), *(2**power for power in range(31))]
    round_ones = [each for each in powers if low <= each <= high]
    for step in powers[9::-1]:
        round_ones += [] if (each := -(-low // step) * step) > high else [each]
    return round_ones[0]


def _bounds(files: SegmentFiles) -> tuple[int, int] | None:
    path = files.indexes.get(IndexKind.OFFSET)
    if path is None:
        return None
    try:
        return _bounds_in(files, path)
    except (MQIndexError, OSError) as error:
        require_answer(error, path)
        return None


def _bounds_in(files: SegmentFiles, index: str) -> tuple[int, int] | None:
    with LogSegment.open(files.log, base_offset=files.base_offset) as log:
        entries = read_entries(index, IndexKind.OFFSET, _ENTRIES).second
        entries = entries[entries < min(_BYTES, log.size)]
        if len(entries) > 1 and entries[0] > 0 and (np.diff(entries) > 0).all():
            views = log._batch_arrays(0, int(entries[-1]) + 1, check_crc=False)
            batches = np.concatenate([np.zeros(0, np.int64), *(rows["position"].astype(np.int64) for rows in views)])
            at = np.searchsorted(batches, entries)
            if len(batches) > at[-1] and (batches[at] == entries).all():
                before = np.concatenate([[0], entries[:-1]])
                return int((batches[at - 1] - before).max()), int((entries - before).min()) - 1
    return None
