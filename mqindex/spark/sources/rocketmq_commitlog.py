"""Data source `rocketmq_commitlog`: the messages of a commit log, in batch and as a stream."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader

from mqindex.errors import MQIndexError
from mqindex.rocketmq import CommitLog
from mqindex.rocketmq.log.log_files import holes, newest_begun
from mqindex.spark.missing_files import require_seen
from mqindex.spark.options import SourceOptions
from mqindex.spark.sources.commitlog_ranges import (
    BATCH_OPTIONS,
    BULKY_COLUMNS,
    FILTERS,
    MESSAGE_COLUMNS,
    STREAM_OPTIONS,
    LogRange,
    begin_of,
    filter_of,
    goes_on_at,
    holds,
    is_whole,
    lose,
    messages,
    narrowed,
    opened_log,
    planned,
)
from mqindex.spark.sources.commitlog_stream import LogStreamReader, RefusedStreamReader
from mqindex.spark.sources.reading import MAX_OFFSET, FileSource, RangeReader
from mqindex.spark.sources.sentence_first import sentence_first
from mqindex.spark.store_paths import log_directories

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_LOG = logging.getLogger(__name__)
_NO_PUSH_DOWN = (
    "filterPushdown: rocketmq_commitlog has no such option, because PySpark keeps a pushed filter for later queries of "
    "the same DataFrame, which would lack rows: expected startOffset, endOffset, startTime, endTime, topic, queueId, "
    "keys or tags"
)


class _LogReader(RangeReader):
    def __init__(self, options: Mapping[str, str], schema: StructType, columns: Mapping[str, str]) -> None:
        super().__init__(options, schema, columns)
        self.options.refuse(STREAM_OPTIONS, "a batch read")
        self.start = self.options.integer("startOffset", 0)
        self.stop = self.options.integer("endOffset", MAX_OFFSET)
        self.check_crc = self.options.boolean("checkCrc")
        self.decompress = self.options.boolean("decompress", True)
        self.fail = self.options.boolean("failOnDataLoss", True)
        self.wanted, self.cache = filter_of(self.options), self.options.cache()

    def plan(self) -> Iterator[LogRange]:
        directories = log_directories(self.paths)
        with CommitLog.open(directories) as log:
            if log.files:
                newest = log.files[newest_begun(log.files)].start
                self._require_files(log, begin_of(log.files, log.skipped), newest)
            ranges = planned(log.files, directories, self.start, self.stop)
            if self.wanted.has_zones:
                ranges = narrowed(ranges, log.files, self.wanted, self.cache)
            yield from ranges

    def tables(self, partition: LogRange) -> Iterator[pa.Table]:
        with opened_log(partition) as log:
            if self.fail and partition.start < log.min_phy_offset:  # it has expired, or one of the volumes is missing
                require_seen(self.paths[0], is_whole(log))
            if partition.start >= log.min_phy_offset and not holds(log, partition):
                what = "a file of the log is gone, or shorter, since the read was planned"
                lose(self.fail, what, self.paths[0], f"phy offsets {partition.start} to {partition.stop}")
            if partition.before_gap:
                self._require_files(log, partition.stop, goes_on_at(log.files, log.max_phy_offset))
            names = self.schema.names
            yield from messages(
                log, partition, names, self.wanted, check_crc=self.check_crc, decompress=self.decompress, fail=self.fail
            )
            if log.expired or partition.start < log.min_phy_offset:
                left_out = f"phy offsets {partition.start} to {min(partition.stop, log.min_phy_offset)}"
                _LOG.warning("%s: a broker deleted the log's oldest files; %s are left out", self.paths[0], left_out)

    def _require_files(self, log: CommitLog, first: int, end: int) -> None:
        """Tell the files that are missing between others: a broker deletes its oldest ones only."""
        for start, stop in holes(log.files, max(self.start, first), min(self.stop, end)):
            what, hint = "files are missing, or shorter, inside the log", "is a directory of the log left out? "
            lose(self.fail, what, self.paths[0], f"phy offsets {start} to {stop}", hint=hint)


class CommitLogSource(FileSource):
    """The messages of a commit log; `body` and `properties` only where the schema names them.

    Damage fails the query, and so does a file that is missing between others. With `failOnDataLoss=false` reading goes
    on at the next message, and the worker logs what is left out, in bytes and phy offsets. Complete messages behind the
    log's end, which no broker reads, are logged too. One task reads the newest file, and finds the end.

    Options say which messages: `startOffset` <= phy offset < `endOffset`; `startTime` <= store timestamp < `endTime`,
    in ms since the epoch, as 2026-11-21T08:00+08:00 (without a zone: UTC) or as -1h (before now); `topic`, `queueId`
    and `keys` (one of them as unique key or among the KEYS), each one value or a JSON array; `tags` as `TagA || TagB`.
    `columns`, with commas between, takes the place of a schema. Bodies are decompressed, unless `decompress=false`.
    Heads are compared first, and only what matches is decoded. Stretches in which a zone map in the directory `cache`
    (by default the user's, of the driver; `none`: no zone maps) proves that nothing of a period or a topic is are not
    read. Zone maps are made by `mqindex.rocketmq.scan`, `mqindex messages` and the like, not here.

    A filter of a query never makes it read less: PySpark keeps what was pushed into a source for the later queries of
    the same DataFrame, which would silently lack rows. So there is no option `filterPushdown`.

    A stream begins at `startOffset` or the log's begin, and follows the log over its files; it takes no times.
    `maxBytesPerTrigger` (of log) and `maxMessagesPerTrigger` limit a micro-batch, before messages are chosen (4.2 or
    newer). If the log no longer has what the checkpoint requires, that is an error too, unless `failOnDataLoss=false`.
    """

    NAME = "rocketmq_commitlog"
    OPTIONS = ("startOffset", "checkCrc", "decompress", "failOnDataLoss", *FILTERS, *BATCH_OPTIONS, *STREAM_OPTIONS)
    COLUMNS = MESSAGE_COLUMNS
    MORE_COLUMNS = BULKY_COLUMNS
    READER = _LogReader

    def __init__(self, options: dict[str, str]) -> None:
        with sentence_first():
            if "filterPushdown" in SourceOptions(options):
                raise ValueError(_NO_PUSH_DOWN)
        super().__init__(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """See `DataSource.streamReader`."""
        try:
            self.known(schema)
            return LogStreamReader(self.options, schema)
        except (MQIndexError, OSError, TypeError, ValueError) as error:
            return RefusedStreamReader(error)
