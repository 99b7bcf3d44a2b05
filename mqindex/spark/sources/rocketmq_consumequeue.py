"""Data source `rocketmq_consumequeue`: the units of consume queues."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from mqindex._words import plural
from mqindex.files import disk
from mqindex.files.paths import base_name, join, parent_of
from mqindex.rocketmq.layout import MAX_EXT_ADDRESS, QUEUE_UNIT_SIZE
from mqindex.rocketmq.log.expiry import read_again
from mqindex.rocketmq.log.log_files import holes
from mqindex.rocketmq.queue.batch.batch_consume_queue import BatchConsumeQueue
from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
from mqindex.rocketmq.queue.consume_queue_ext import ConsumeQueueExt
from mqindex.rocketmq.queue.consume_queue_table import list_queues
from mqindex.spark.missing_files import left_out
from mqindex.spark.sources.reading import MAX_OFFSET, FileSource, RangeReader, Ranges, in_tasks
from mqindex.spark.store_paths import BATCH_QUEUES, queue_directories

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

UNIT_COLUMNS = {
    "topic": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "phy_offset": "bigint",
    "size": "int",
    "tags_code": "bigint",
}
MORE_COLUMNS = {"store_timestamp": "bigint", "batch_size": "int"}
Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)
PARTITION_UNITS = 1 << 20


@dataclass(frozen=True)
class _Slice:
    """The queue offsets [start, stop) of one queue below the directory `home`."""

    home: str
    topic: str
    queue_id: int
    start: int
    stop: int

    @property
    def path(self) -> str:
        """The queue's directory."""
        return join(self.home, self.topic, str(self.queue_id))

    @property
    def ext_directory(self) -> str:
        """Where its extension files are, if there are any."""
        return join(parent_of(self.home), "consumequeue_ext", self.topic, str(self.queue_id))


class _QueueReader(RangeReader):
    def __init__(self, options: Mapping[str, str], schema: StructType, columns: Mapping[str, str]) -> None:
        super().__init__(options, schema, columns)
        self.topics = self.options.texts("topic")
        self.queue_ids = self.options.integers("queueId")
        self.start = self.options.integer("startOffset", 0)
        self.stop = self.options.integer("endOffset", MAX_OFFSET)

    def plan(self) -> Iterator[Ranges]:
        return in_tasks(self.once(self._slices()), PARTITION_UNITS)

    def tables(self, partition: Ranges) -> Iterator[pa.Table]:
        for one in partition.ranges:
            units = _unless_gone(partial(_batch_units if _is_batch(one.home) else _units, one), one.path, one.home)
            if units is not None:
                if not len(units["phy_offset"]):
                    left_out(join(one.path, ""), one.home)
                elif len(units["phy_offset"]) < one.stop - one.start and not _is_batch(one.home):
                    said = "%s: of the queue offsets %s to %s only %s units are left since the read was planned"
                    _LOG.warning(said, one.path, one.start, one.stop, len(units["phy_offset"]))
                yield _table(one, units, self.schema.names)

    def _slices(self) -> Iterator[_Slice]:
        """The requested units, file by file."""
        for home in (home for path in self.paths for home in queue_directories(path)):
            look = _batch_extents if _is_batch(home) else _extents
            names, skipped = list_queues(home)
            for one in skipped:
                shown = os.fsencode(one.path).decode(errors="backslashreplace")  # it may be no UTF-8
                _LOG.warning("%s: %s; it is left out", shown, one.reason)
            for topic, queue_id in names:
                if self.topics is not None and topic not in self.topics:
                    continue
                if self.queue_ids is not None and queue_id not in self.queue_ids:
                    continue
                place = join(home, topic, str(queue_id))
                extents = _unless_gone(partial(look, place), place, home) or []
                if extents:
                    low, high = max(self.start, extents[0].start), min(self.stop, extents[-1].stop)
                    _tell_holes(place, extents, low, high)
                for extent in extents:
                    low, high = max(extent.start, self.start), min(extent.stop, self.stop)
                    if low < high:
                        yield _Slice(home, topic, queue_id, low, high)


def _tell_holes(directory: str, extents: Sequence[range], start: int, stop: int) -> None:
    for low, high in holes(extents, start, stop):
        _LOG.warning("%s: no file holds the queue offsets %s to %s", directory, low, high)


def _is_batch(home: str) -> bool:
    return base_name(home) == BATCH_QUEUES


def _unless_gone(read: Callable[[], Result], directory: str, home: str) -> Result | None:
    """The result of `read` on a queue's files; None, with a log line, where a broker has deleted them or the queue."""
    try:
        return read_again(read)
    except FileNotFoundError:
        left_out(join(directory, ""), home)
        return None


def _extents(directory: str) -> list[range]:
    """The queue offsets that the files of a queue hold, each by itself."""
    with ConsumeQueue.open(directory) as queue:
        low, high = queue.min_offset_in_queue, queue.max_offset_in_queue
        borders = [(file.start // QUEUE_UNIT_SIZE, file.stop // QUEUE_UNIT_SIZE) for file in queue.files]
        return [range(max(low, start), min(high, stop)) for start, stop in borders]


def _batch_extents(directory: str) -> list[range]:
    with BatchConsumeQueue._of(directory) as queue:
        return queue._runs()


def _units(one: _Slice) -> dict[str, Any]:
    with ConsumeQueue.open(one.path) as queue:
        units = dict(queue.units(one.start, one.stop))
    if disk.is_directory(one.ext_directory):
        with ConsumeQueueExt.open(one.ext_directory) as ext:
            units = _followed(units, ext)
    lost = int(np.count_nonzero(units["tags_code"] <= MAX_EXT_ADDRESS))
    if lost:
        said = "%s: the extensions of %s are missing; tags_code is their address there"
        _LOG.warning(said, one.ext_directory, plural(lost, "unit"))
    return units


def _followed(units: dict[str, Any], ext: ConsumeQueueExt) -> dict[str, Any]:
    """Units with the tags codes from the extension units at their addresses."""
    said = ext.get_many(units["tags_code"])
    codes = np.where(said["found"], said["tags_code"], units["tags_code"])
    return {**units, "tags_code": codes, "store_timestamp": pa.array(said["store_timestamp"], mask=~said["found"])}


def _batch_units(one: _Slice) -> dict[str, Any]:
    with BatchConsumeQueue._of(one.path) as queue:
        runs = [run for run in queue._runs() if run.stop > one.start]
        if runs:  # else a broker has deleted all of it
            _tell_holes(one.path, runs, one.start, one.stop)
        units = dict(queue.units(one.start, one.stop))
        return {**units, "queue_offset": units["msg_base_offset"]}


def _table(one: _Slice, units: Mapping[str, Any], names: Sequence[str]) -> pa.Table:
    n = len(units["phy_offset"])
    made = {"topic": pa.repeat(one.topic, n), "queue_id": np.full(n, one.queue_id, np.int32), **units}
    return pa.table({name: made[name] if name in made else pa.nulls(n) for name in names})


class ConsumeQueueSource(FileSource):
    """The units of consume queues; of all topics, or of the options `topic` and `queueId`, each
    one value or a JSON array.

    `startOffset` and `endOffset` limit the queue offsets. A schema may also name `store_timestamp`, which queues with
    extension files and batch queues have, and `batch_size`, which only the latter have. In their rows `queue_offset` is
    that of a batch's first message. Where there are extension files, `tags_code` comes from them.
    """

    NAME = "rocketmq_consumequeue"
    OPTIONS = ("topic", "queueId", "startOffset", "endOffset")
    COLUMNS = UNIT_COLUMNS
    MORE_COLUMNS = MORE_COLUMNS
    READER = _QueueReader
