"""`rocketmq_commitlog` as a stream: micro-batches are ranges of phy offsets.

Any phy offset can end a micro-batch: a message belongs to the one in which it begins. So a plan by bytes reads nothing
of the log, the offset of a stream is one number, and a batch that is repeated after a crash is the same batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from mqindex.files.places.place import require_here
from mqindex.rocketmq import CommitLog
from mqindex.rocketmq.log.dledger import plain_log_files
from mqindex.rocketmq.log.log_files import LogFile, holes
from mqindex.rocketmq.log.log_tail import LogTail
from mqindex.spark.options import SourceOptions
from mqindex.spark.sources.commitlog_ranges import (
    BATCH_OPTIONS,
    COLUMNS,
    begin_of,
    cut,
    filter_of,
    goes_on_at,
    holds,
    lose,
    messages,
    opened_log,
    tell,
)
from mqindex.spark.sources.reading import arrow_schema, record_batches
from mqindex.spark.sources.sentence_first import sentence_first
from mqindex.spark.store_paths import log_directories

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    class _AvailableNow:
        pass

elif find_spec("pyspark.sql.streaming.datasource"):  # PySpark 4.2
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as _AvailableNow
else:

    class _AvailableNow:
        pass


_Offset = dict[str, int]
_LIMITS = ("maxBytesPerTrigger", "maxMessagesPerTrigger")


class LogStreamReader(DataSourceStreamReader, _AvailableNow):
    """Plans in a process beside the driver, one object for each query; `read` runs in tasks, on copies."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        given = SourceOptions(options)
        _refuse(given)
        paths = given.paths()
        for path in paths:
            require_here(path, "only a log of this machine is followed")
        self.directories = log_directories(paths)
        self.schema = arrow_schema(schema, COLUMNS)
        self.check_crc = given.boolean("checkCrc")
        self.decompress = given.boolean("decompress", True)
        self.wanted = filter_of(given)
        self.start = given.integer("startOffset", 0)
        self.fail_on_data_loss = given.boolean("failOnDataLoss", True)
        self.max_bytes, self.max_messages = (given.integer(name, None, least=1) for name in _LIMITS)
        self.tail = LogTail(self.directories)
        self.available: int | None = None

    @sentence_first()
    def initialOffset(self) -> _Offset:
        """Where a new query begins."""
        with CommitLog.open(self.directories) as log:
            for _ in log.scan(log.max_phy_offset, log.max_phy_offset + 1, columns=["phy_offset"]):
                pass  # what lies behind the end is told
            tell(log, fail=False)
        return _offset(max(self.start, begin_of(*plain_log_files(self.directories))))

    @sentence_first()
    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the log's end: from now on it does not grow."""
        self.available = self._end()

    def getDefaultReadLimit(self) -> Any:
        """Whether there is a limit; Spark passes it back, or requests everything."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

        if self.max_bytes is not None:
            return ReadMaxBytes(self.max_bytes)
        return ReadAllAvailable() if self.max_messages is None else ReadMaxRows(self.max_messages)

    @sentence_first()
    def latestOffset(self, *asked: Any) -> _Offset:
        """Where the next micro-batch ends. Since 4.2 Spark passes where it starts, and whether limits hold."""
        end = self._end() if self.available is None else self.available
        if not asked:
            return _offset(end)
        start, limit = asked[0]["phy_offset"], asked[1]
        if end < start:
            self._lose("the log ends before the stream's offset", f"{start} or more", end)
        if end <= start:
            return _offset(start)
        return _offset(end if type(limit).__name__ == "ReadAllAvailable" else self._limited(start, end))

    def reportLatestOffset(self) -> _Offset:
        """What the query's progress shows as available."""
        return _offset(self._end())

    @sentence_first()
    def partitions(self, start: _Offset, end: _Offset) -> Sequence[InputPartition]:
        """The ranges of a micro-batch."""
        first, stop = start["phy_offset"], end["phy_offset"]
        if stop < first:
            self._lose("the log ends before the stream's offset", f"{first} or more", stop)
        files = self._files()
        for at, next_at in holes(files, first, stop):
            self._lose("messages that the stream has not read are gone", f"phy offset {at}", next_at)
        return list(cut(files, self.directories, first, stop))

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The messages of a range."""
        if type(partition) is InputPartition:  # Spark makes one partition of no partition
            return
        with sentence_first(), opened_log(partition) as log:
            if not holds(log, partition):
                self._lose("a file that the stream reads is gone", f"phy offset {partition.start}", log.min_phy_offset)
            tables = messages(
                log,
                partition,
                self.schema.names,
                self.wanted,
                check_crc=self.check_crc,
                decompress=self.decompress,
                fail=self.fail_on_data_loss,
            )
            yield from record_batches(tables, self.schema)
            if log.expired:
                self._lose(
                    "a file was deleted while the stream read it", f"phy offset {partition.start}", log.min_phy_offset
                )

    def stop(self) -> None:
        """The query has ended."""
        self.tail.close()

    def _files(self) -> list[LogFile]:
        return plain_log_files(self.directories)[0]

    def _end(self) -> int:
        return goes_on_at(self._files(), self.tail.end())

    def _limited(self, start: int, end: int) -> int:
        """Where the limits cut a micro-batch."""
        begin = goes_on_at(self._files(), start)
        if self.max_bytes is not None:
            end = min(end, begin + self.max_bytes)
        if self.max_messages is None:
            return end
        left = self.max_messages
        with CommitLog.open(self.directories) as log:
            for batch in log.scan(begin, end, columns=["phy_offset", "size"]):
                if len(batch["size"]) >= left:
                    return int(batch["phy_offset"][left - 1]) + int(batch["size"][left - 1])
                left -= len(batch["size"])
        return end

    def _lose(self, what: str, expected: str, got: int) -> None:
        lose(self.fail_on_data_loss, what, self.directories[0], expected, got)


class RefusedStreamReader(DataSourceStreamReader):
    """In place of a reader that could not be made: Spark replaces an error of that moment by one of its own."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @sentence_first()
    def initialOffset(self) -> _Offset:
        """Raises the error."""
        raise self.error

    @sentence_first()
    def latestOffset(self, *asked: Any) -> _Offset:
        """Likewise, for a query that goes on from a checkpoint."""
        raise self.error

    @sentence_first()
    def partitions(self, start: _Offset, end: _Offset) -> Sequence[InputPartition]:
        """Likewise."""
        raise self.error

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Likewise."""
        raise self.error


def _offset(phy_offset: int) -> _Offset:
    return {"phy_offset": int(phy_offset)}


def _refuse(given: SourceOptions) -> None:
    given.refuse(BATCH_OPTIONS, "a stream")
    for name in _LIMITS:
        if name in given and not find_spec("pyspark.sql.streaming.datasource"):
            raise ValueError(f"{name}: expected PySpark 4.2 or newer, got {pyspark.__version__}")
