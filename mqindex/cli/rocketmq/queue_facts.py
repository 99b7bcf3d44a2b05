"""What `mqindex info` prints of consume queues and of the consumers' offsets in them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mqindex.cli.rocketmq.queues import batch_queues_in, home_of, is_batch, queue_of
from mqindex.errors import FileStateError
from mqindex.files.paths import base_name

if TYPE_CHECKING:
    from mqindex.rocketmq import BatchConsumeQueue, ConsumeQueueTable
    from mqindex.rocketmq.log.log_files import LogFile, Skipped
    from mqindex.rocketmq.queue.queue_units import QueueBounds

Facts = dict[str, Any]


def queue_facts(path: str) -> Facts:
    """One consume queue."""
    from mqindex.rocketmq import ConsumeQueue

    with ConsumeQueue.open(path) as queue:
        return {**queue_of(path), **_extent(queue.bounds()), **_files(queue.files, queue.skipped)}


def batch_queue_facts(path: str) -> Facts:
    """One batch queue."""
    from mqindex.rocketmq import BatchConsumeQueue

    with BatchConsumeQueue.open(path) as queue:
        return {**queue_of(path), **_batch_extent(queue), **_files(queue.files, queue.skipped)}


def ext_facts(path: str) -> Facts:
    """The extension files of one queue."""
    from mqindex.rocketmq import ConsumeQueueExt

    with ConsumeQueueExt.open(path) as ext:
        return {**queue_of(path), "units": ext.units().num_rows, **_files(ext.files, ext.skipped)}


def queues_facts(path: str) -> Facts:
    """All queues of a store, or those of a topic."""
    from mqindex.rocketmq import ConsumeQueueTable
    from mqindex.rocketmq.queue.consume_queue_table import list_queues

    home, topic = home_of(path)
    names, strays = list_queues(home)
    rows: list[Facts] = []
    if is_batch(home):
        for (name, queue_id), batches in batch_queues_in(home, topic):
            with batches:
                rows.append({"topic": name, "queue_id": queue_id, **_batch_extent(batches)})
    else:
        with ConsumeQueueTable.open(home) as table:
            for (name, queue_id), bounds in table._bounds(name for name in names if topic in (None, name[0])):
                rows.append({"topic": name, "queue_id": queue_id, **_extent(bounds)})
    return {
        "topics": len({row["topic"] for row in rows}),
        "units": sum(row["units"] for row in rows),
        "queues": rows,
        "strays": [skipped.path for skipped in strays],
    }


def consumer_offsets_facts(directory: str, queues: str, batch_queues: str) -> Facts:
    """What each group has consumed, by the files in a store's `config` directory, and its lag.

    `queues`, `batch_queues`: the directories of the store's queues; of one that is in neither the lag is not known.
    """
    from mqindex.rocketmq import ConsumerOffsets
    from mqindex.rocketmq.queue.batch.batch_consume_queue import batch_queue_end

    with _table(queues) as table:
        rows: list[Facts] = []
        for name, offsets in ConsumerOffsets._read(directory, lambda topic, queue_id: 0).items():
            topic, _, group = name.partition("@")
            for queue_id, offset in offsets.items():
                queue = None if table is None else table.get(topic, queue_id)
                end = batch_queue_end(batch_queues, topic, queue_id) if queue is None else queue.max_offset_in_queue
                row = {"group": group, "topic": topic, "queue_id": queue_id, "offset": offset}
                rows.append({**row, "max_offset_in_queue": end, "lag": None if end is None else end - offset})
    return {"offsets": sorted(rows, key=lambda row: (row["group"], row["topic"], row["queue_id"]))}


@contextlib.contextmanager
def _table(directory: str) -> Iterator[ConsumeQueueTable | None]:
    from mqindex.rocketmq import ConsumeQueueTable

    with contextlib.ExitStack() as opened:
        table = None
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, FileStateError):  # or they are in RocksDB
            table = opened.enter_context(ConsumeQueueTable.open(directory))
        yield table


def _extent(bounds: QueueBounds) -> Facts:
    return {
        "min_offset_in_queue": bounds.min_offset,
        "max_offset_in_queue": bounds.max_offset,
        "max_phy_offset": bounds.max_phy_offset,
        "units": bounds.max_offset - bounds.min_offset,
    }


def _batch_extent(queue: BatchConsumeQueue) -> Facts:
    units = queue.units()
    last = units.num_rows - 1
    return {
        "min_offset_in_queue": queue.min_offset_in_queue,
        "max_offset_in_queue": queue.max_offset_in_queue,
        "max_phy_offset": int(units["phy_offset"][last]) + int(units["size"][last]) if units.num_rows else -1,
        "units": units.num_rows,
    }


def _files(files: tuple[LogFile, ...], skipped: tuple[Skipped, ...]) -> Facts:
    return {
        "size": sum(file.size for file in files),
        "files": [{"path": file.path, "start": file.start, "size": file.size} for file in files],
        "strays": [base_name(stray.path) for stray in skipped],
    }
