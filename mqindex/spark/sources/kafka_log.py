"""Data source `kafka_log`: the records, or the batches, of Kafka's segments."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mqindex._words import plural
from mqindex.columns.distinct import distinct
from mqindex.errors import FormatError, MQIndexError
from mqindex.files.paths import as_it_is, parent_of, size_of
from mqindex.files.places.place import require_answer
from mqindex.kafka import LogSegment
from mqindex.kafka.log.batches import batch_columns
from mqindex.kafka.partition.isolation import visible_to
from mqindex.kafka.partition.partition_log import IsolationLevel
from mqindex.kafka.scanning.chosen_segments import chosen_homes
from mqindex.kafka.scanning.matching_records import matching_records
from mqindex.kafka.scanning.record_filter import RecordFilter
from mqindex.spark.missing_files import left_out
from mqindex.spark.options import SourceOptions
from mqindex.spark.sources.kafka_files import PLACE, SegmentOf, SegmentRange, homes_in, segments_in, with_place
from mqindex.spark.sources.kafka_zones import narrowed
from mqindex.spark.sources.reading import MAX_OFFSET, FileSource, RangeReader, Ranges, in_tasks

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_LOG = logging.getLogger(__name__)
_Part = tuple[Any, npt.NDArray[Any]]

RECORD_COLUMNS = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "bigint",
    "timestamp_type": "tinyint",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "is_transactional": "boolean",
    "is_control": "boolean",
}
MORE_RECORD_COLUMNS = {
    "segment": "bigint",
    "position": "bigint",
    "leader_epoch": "int",
    "producer_id": "bigint",
    "producer_epoch": "smallint",
    "sequence": "int",
}
BATCH_COLUMNS = {
    **PLACE,
    "position": "bigint",
    "base_offset": "bigint",
    "last_offset": "bigint",
    "base_timestamp": "bigint",
    "max_timestamp": "bigint",
    "producer_id": "bigint",
    "size": "int",
    "leader_epoch": "int",
    "crc": "bigint",
    "count": "int",
    "base_sequence": "int",
    "attributes": "smallint",
    "producer_epoch": "smallint",
    "magic": "tinyint",
    "delete_horizon": "bigint",
}
TASK_BYTES = 128 << 20

Rows = Literal["records", "batches"]


_OF_RECORDS = ("startTime", "endTime", "keys")


def _filter_of(given: SourceOptions) -> RecordFilter:
    return RecordFilter.of(
        given.time("startTime"), given.time("endTime"), given.integer("startOffset", None),
        given.integer("endOffset", None), given.texts("keys"),
    )  # fmt: skip


def _rows(options: SourceOptions) -> Rows:
    asked: Rows = options.one_of("rows", get_args(Rows), "records")
    return asked


def _warn(error: MQIndexError) -> None:
    _LOG.warning("%s", error)


class _LogReader(RangeReader):
    def __init__(self, options: Mapping[str, str], schema: StructType, columns: Mapping[str, str]) -> None:
        super().__init__(options, schema, columns)
        self.rows = _rows(self.options)
        self.start = self.options.integer("startOffset", 0)
        self.stop = self.options.integer("endOffset", MAX_OFFSET)
        self.isolation: IsolationLevel | None = self.options.one_of("isolationLevel", get_args(IsolationLevel), None)
        self.check_crc = self.options.boolean("checkCrc", True)
        self.fail = self.options.boolean("failOnDataLoss", True)
        self.partitions_asked = self.options.texts("partitions")
        if self.rows == "batches":
            self.options.refuse(_OF_RECORDS, "a read of batches")
        self.wanted, self.cache = _filter_of(self.options), self.options.cache()

    def plan(self) -> Iterator[Ranges]:
        return in_tasks(self.once(self._ranges()), TASK_BYTES)

    def _ranges(self) -> Iterator[SegmentRange]:
        for one in self._all_ranges():
            narrow = narrowed(one, self.wanted, self.cache) if self.rows == "records" else one
            if narrow.stretches != ():
                yield narrow

    def _asked_homes(self) -> Container[str] | None:
        if self.partitions_asked is None:
            return None
        homes = [home for path in self.paths for home in homes_in(path)]
        return {home.path for home in chosen_homes(homes, self.partitions_asked, ", ".join(self.paths))}

    def _all_ranges(self) -> Iterator[SegmentRange]:
        among = self._asked_homes()
        for path in self.paths:
            segments = list(segments_in(path, "log", among))
            for of, next_of in zip_longest(segments, segments[1:]):
                log, end = of.file("log"), _end_offset(of, next_of)
                if log is None or of.base_offset >= self.stop or end <= self.start:
                    continue
                try:
                    log, size = as_it_is(log)
                except FileNotFoundError:
                    left_out(log, of.root, ".log")
                    continue
                borders = [0, *(_borders(of, log, size) if self.fail else ()), size]
                for start, stop in pairwise(borders):
                    last = stop == size
                    yield SegmentRange(
                        of, log, start, stop, open_end=last and end > MAX_OFFSET, border=not last, end_offset=end
                    )

    def tables(self, partition: Ranges) -> Iterator[pa.Table]:
        for one in partition.ranges:
            try:
                size_of(one.path)  # elsewhere opening it asks nothing
                segment = LogSegment.open(one.path, base_offset=one.of.base_offset)
            except FileNotFoundError:
                left_out(one.path, one.of.root, ".log")
                continue
            with segment:
                try:
                    yield from self._records(segment, one) if self.rows == "records" else self._batches(segment, one)
                    if self.fail:
                        _require_whole(segment)
                except FormatError:
                    if self.fail:
                        raise
                for fault in segment.damage:
                    _LOG.warning("%s", fault.words(segment.path))

    def _records(self, segment: LogSegment, one: SegmentRange) -> Iterator[pa.Table]:
        names = tuple(sorted({"offset", *self.schema.names} - PLACE.keys()))
        with self._isolated(segment, one) as parts:
            for log, rows in parts:
                for records in matching_records(
                    segment, log, rows, self.wanted, names,
                    look_first=self.wanted.has_period or self.wanted.keys is not None,
                ):  # fmt: skip
                    yield with_place(one.of, pa.table(records))

    def _batches(self, segment: LogSegment, one: SegmentRange) -> Iterator[pa.Table]:
        with self._isolated(segment, one) as parts:
            for _, rows in parts:
                table = with_place(one.of, pa.table(batch_columns(rows)))
                yield self._within(table, table["base_offset"], table["last_offset"])

    @contextmanager
    def _isolated(self, segment: LogSegment, one: SegmentRange) -> Iterator[Iterator[_Part]]:
        """The batches of a range that a consumer of the isolation level gets, as `LogSegment.batch_parts`."""
        with visible_to(self.isolation, parent_of(one.path), _warn) as visible:
            yield ((log, rows[visible(log, rows)]) for log, rows in self._parts(segment, one))

    def _parts(self, segment: LogSegment, one: SegmentRange) -> Iterator[_Part]:
        """The batches of a range; an error at damage, if `failOnDataLoss` is set."""
        at = end = min(one.start, segment.size)
        segment.next_base_offset = one.end_offset if one.end_offset <= MAX_OFFSET else None
        for start, stop in ((end, one.stop),) if one.stretches is None else one.stretches:
            for log, rows in segment._batch_parts(start, stop, check_crc=self.check_crc):
                if self.fail:
                    _require_whole(segment)
                    _require_offsets(segment, one, rows)
                kept = rows[rows["position"] >= one.start]  # a stretch may begin before
                if len(kept):
                    yield log, kept
                at = int(rows["position"][-1])
                end = int(at + rows["size"][-1])
        if self.fail:
            _require_border(segment, one, at, end)

    def _within(self, table: pa.Table, first: Any, last: Any) -> pa.Table:
        if self.start <= 0 and self.stop == MAX_OFFSET:
            return table
        return table.filter(pc.and_(pc.less(first, self.stop), pc.greater_equal(last, self.start)))


def _end_offset(of: SegmentOf, next_of: SegmentOf | None) -> int:
    """An offset that the segment does not reach."""
    same = next_of is not None and (of.topic, of.partition) == (next_of.topic, next_of.partition)
    return next_of.base_offset if same and next_of is not None else MAX_OFFSET + 1


def _borders(of: SegmentOf, log: str, size: int) -> list[int]:
    """Positions at which a long log is cut, from its offset index, and checked to be those of batches."""
    if size <= TASK_BYTES or of.file("index") is None:
        return []
    try:
        with LogSegment.open(log, base_offset=of.base_offset) as segment:
            index = segment.offset_index
            assert index is not None
            positions = distinct(index.entries()["position"])
            nearest = np.searchsorted(positions, np.arange(TASK_BYTES, size, TASK_BYTES))
            chosen = distinct(positions[nearest[nearest < len(positions)]]).tolist()
            return [border for border in chosen if _is_batch(segment, border)]
    except (MQIndexError, OSError, ValueError) as error:
        require_answer(error, log)
        return []  # the index is damaged: the log is read as one


def _is_batch(segment: LogSegment, position: int) -> bool:
    if not 0 < position < segment.size:
        return False
    batches = segment.batches(position, position + 1, check_crc=True)
    return batches.num_rows == 1 and int(batches["base_offset"][0]) > segment.base_offset


_HINT = "`mqindex verify` shows more; failOnDataLoss=false leaves it out"


def _require_offsets(segment: LogSegment, one: SegmentRange, rows: npt.NDArray[Any]) -> None:
    """Raise for offsets that no batch of this segment can have: no checksum covers a batch's first offset."""
    low, high = segment.base_offset, min(one.end_offset, segment.base_offset + 2**31) - 1
    odd = np.flatnonzero((rows["last_offset"] < low) | (rows["last_offset"] > high))
    if len(odd):
        row = rows[odd[0]]
        raise FormatError(
            "the offsets of a batch are not of this segment", path=segment.path, at=int(row["position"]),
            field="base_offset", expected=f"offsets of {low}..{high}", got=int(row["base_offset"]), hint=_HINT,
        )  # fmt: skip


def _require_border(segment: LogSegment, one: SegmentRange, at: int, end: int) -> None:
    """Raise where the last batch of a range, at `at`, ends behind the border: its length is wrong, or the border is."""
    if one.border and end > one.stop and not segment.damage:
        raise FormatError(
            "a batch reaches into the next one", path=segment.path, at=at, field="length",
            expected=f"at most {plural(one.stop - at, 'byte')}", got=end - at, hint=_HINT,
        )  # fmt: skip


def _require_whole(segment: LogSegment) -> None:
    """Raise for what was left out."""
    if segment.damage:
        fault = segment.damage[0]
        raise FormatError(
            f"the log is damaged: {fault.kind}", path=segment.path, at=fault.at, field=fault.field,
            expected=fault.expected, got=fault.got, hint=f"{fault.left_out}; {_HINT}",
        )  # fmt: skip


class KafkaLogSource(FileSource):
    """The records of segments, or with the option `rows=batches` their batches, by headers alone.

    A path is a log dir, a partition, or one `.log`. Records are those of the log: markers of transactions
    (`is_control`) and aborted records are among them. `isolationLevel` leaves out what a consumer of that level does
    not get: `read_uncommitted` markers, `read_committed` aborted records, too, and all from the first offset of the
    oldest open transaction on; for that the partition's other files are read. What a `.txnindex` lacks is logged.

    A schema may also name `segment` (its base offset), `position` (of the batch), `leader_epoch`, `producer_id`,
    `producer_epoch` and `sequence`; only what it names is decoded. `columns`, with commas between, takes its place.
    `checkCrc=false` does not compare batches with their checksums.

    Options say which records: `partitions` as orders-0, or a topic for all of its; `startOffset` <= offset <
    `endOffset`; `startTime` <= timestamp < `endTime`, in ms since the epoch, as 2026-11-21T08:00+08:00 (without a
    zone: UTC) or as -1h (before now), where a record without a timestamp is in no period; `keys`, as UTF-8.
    `partitions` and `keys` are one value, or a JSON array. What is compared is decoded first, and values only of
    batches with a match. Stretches in which a zone map in the directory `cache` (by default the user's, of the
    driver; `none`: no zone maps) proves that nothing matches are not read. Zone maps are made by `mqindex.kafka.scan`,
    `mqindex messages` and the like, not here. Batches are chosen by partitions and offsets alone.

    A bad batch fails the query, and so does a part of one; zeros, and a part of a batch, at the partition's end are
    the end of its log: it was preallocated, or a broker is writing. One `.log` by itself counts as a whole partition.
    With `failOnDataLoss=false` reading goes on at the next valid batch, and the worker logs what is left out.
    """

    NAME = "kafka_log"
    OPTIONS = (
        "rows", "isolationLevel", "partitions", "startOffset", "endOffset", *_OF_RECORDS, "cache", "checkCrc",
        "failOnDataLoss",
    )  # fmt: skip
    READER = _LogReader

    def columns(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The columns of records, or of batches."""
        of_records = _rows(SourceOptions(self.options)) == "records"
        return (RECORD_COLUMNS, MORE_RECORD_COLUMNS) if of_records else (BATCH_COLUMNS, {})
