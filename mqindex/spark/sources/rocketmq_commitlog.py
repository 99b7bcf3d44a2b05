"""Data source `rocketmq_commitlog`: the messages of a commit log, in batch and as a stream."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader

from mqindex.errors import MQIndexError
from mqindex.rocketmq import CommitLog
from mqindex.rocketmq.log.log_files import holes, newest_begun
from mqindex.spark.missing_files import require_seen
from mqindex.spark.options import SourceOptions
from mqindex.spark.sources.commitlog_ranges import (
    BATCH_OPTIONS,
    BULKY_COLUMNS,
    COLUMNS,
    MESSAGE_COLUMNS,
    STREAM_OPTIONS,
    LogRange,
    begin_of,
    goes_on_at,
    holds,
    is_whole,
    lose,
    messages,
    opened_log,
    planned,
)
from mqindex.spark.sources.commitlog_stream import LogStreamReader, RefusedStreamReader
from mqindex.spark.sources.reading import MAX_OFFSET, FileSource, RangeReader
from mqindex.spark.store_paths import log_directories

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_LOG = logging.getLogger(__name__)


class _LogReader(RangeReader):
    def __init__(self, options: Mapping[str, str], schema: StructType, columns: Mapping[str, str]) -> None:
        super().__init__(options, schema, columns)
        self.options.refuse(STREAM_OPTIONS, "a batch read")
        self.start = self.options.integer("startOffset", 0)
        self.stop = self.options.integer("endOffset", MAX_OFFSET)
        self.check_crc = self.options.boolean("checkCrc")
        self.fail = self.options.boolean("failOnDataLoss", True)

    def plan(self) -> Iterator[LogRange]:
        directories = log_directories(self.paths)
        with CommitLog.open(directories) as log:
            if log.files:
                newest = log.files[newest_begun(log.files)].start
                self._require_files(log, begin_of(log.files, log.skipped), newest)
            yield from planned(log.files, directories, self.start, self.stop)

    def tables(self, partition: LogRange) -> Iterator[pa.Table]:
        with opened_log(partition) as log:
            if self.fail and partition.start < log.min_phy_offset:  # it has expired, or one of the volumes is missing
                require_seen(self.paths[0], is_whole(log))
            if partition.start >= log.min_phy_offset and not holds(log, partition):
                what = "a file of the log is gone, or shorter, since the read was planned"
                lose(self.fail, what, self.paths[0], f"phy offsets {partition.start} to {partition.stop}")
            if partition.before_gap:
                self._require_files(log, partition.stop, goes_on_at(log.files, log.max_phy_offset))
            yield from messages(log, partition, self.schema.names, check_crc=self.check_crc, fail=self.fail)
            if log.expired or partition.start < log.min_phy_offset:
                left_out = f"phy offsets {partition.start} to {min(partition.stop, log.min_phy_offset)}"
                _LOG.warning("%s: a broker deleted the log's oldest files; %s are left out", self.paths[0], left_out)

    def _require_files(self, log: CommitLog, first: int, end: int) -> None:
        """Tell the files that are missing between others: a broker deletes its oldest ones only."""
        for start, stop in holes(log.files, max(self.start, first), min(self.stop, end)):
            what, hint = "files are missing, or shorter, inside the log", "is a directory of the log left out? "
            lose(self.fail, what, self.paths[0], f"phy offsets {start} to {stop}", hint=hint)


class _PushDownLogReader(_LogReader):
    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        for item in filters:
            bounds = _bounds(item)
            if bounds is None:
                yield item
            else:
                self.start, self.stop = max(self.start, bounds[0]), min(self.stop, bounds[1])


class CommitLogSource(FileSource):
    """The messages of a commit log; `body` and `properties` only where the schema names them.

    Damage fails the query, and so does a file that is missing between others. With `failOnDataLoss=false` reading goes
    on at the next message, and the worker logs what is left out, in bytes and phy offsets. Complete messages behind the
    log's end, which no broker reads, are logged too. One task reads the newest file, and finds the end. To read a range
    of phy offsets, give `startOffset` and `endOffset`. `filterPushdown=true` takes the range from the query's filters
    on `phy_offset` (4.1 or newer, with `spark.sql.python.filterPushdown.enabled`); use that DataFrame for one query
    only.

    A stream begins at `startOffset` or the log's begin, and follows the log over its files. `maxBytesPerTrigger` (of
    log) and `maxMessagesPerTrigger` limit a micro-batch (4.2 or newer). If the log no longer has what the checkpoint
    requires, that is an error too, unless `failOnDataLoss=false`.
    """

    NAME = "rocketmq_commitlog"
    OPTIONS = ("startOffset", "checkCrc", "failOnDataLoss", *BATCH_OPTIONS, *STREAM_OPTIONS)
    COLUMNS = MESSAGE_COLUMNS
    MORE_COLUMNS = BULKY_COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """See `DataSource.reader`."""
        # A reader with pushFilters fails every query while push-down is off (4.1+), so only its planner gets one. And
        # Spark keeps the pushed plan for all later queries of the same DataFrame, with other filters or none: they
        # would silently read the first one's range. So it is an option, for one query to a load().
        asked = SourceOptions(self.options).boolean("filterPushdown")
        kind = _PushDownLogReader if asked and _in_push_down_planner(sys._getframe(1).f_globals) else _LogReader
        return kind(self.options, schema, COLUMNS)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """See `DataSource.streamReader`."""
        try:
            return LogStreamReader(self.options, schema)
        except (MQIndexError, OSError, TypeError, ValueError) as error:
            return RefusedStreamReader(error)


def _in_push_down_planner(caller: Mapping[str, Any]) -> bool:
    spec = caller.get("__spec__")
    name = getattr(spec, "name", None) or caller.get("__name__", "")
    return str(name).endswith("data_source_pushdown_filters")


def _bounds(item: Any) -> tuple[int, int] | None:
    """The phy offsets [start, stop) that pass a filter; None: Spark must apply it itself."""
    limits = _LIMITS.get(type(item).__name__)
    value = getattr(item, "value", None)
    if limits is None or item.attribute != ("phy_offset",) or not isinstance(value, int):
        return None
    return limits(value)


_LIMITS: dict[str, Callable[[int], tuple[int, int]]] = {  # the classes are not in PySpark 4.0
    "EqualTo": lambda value: (value, value + 1),
    "EqualNullSafe": lambda value: (value, value + 1),
    "GreaterThan": lambda value: (value + 1, MAX_OFFSET),
    "GreaterThanOrEqual": lambda value: (value, MAX_OFFSET),
    "LessThan": lambda value: (0, value),
    "LessThanOrEqual": lambda value: (0, value + 1),
}
