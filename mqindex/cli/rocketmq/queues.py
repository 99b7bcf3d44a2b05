"""Consume queues by their place: which topic and queue a path is, and the units in it as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mqindex.cli.printing.formats import Columns
from mqindex.cli.rocketmq import kinds
from mqindex.cli.trouble import Trouble
from mqindex.files import disk
from mqindex.files.paths import absolute, base_name, join, parent_of, size_of, split
from mqindex.rocketmq.kinds import number_of, queue_place, require_finished

if TYPE_CHECKING:
    from mqindex.rocketmq import BatchConsumeQueue, ConsumeQueue

_BLOCK = 1 << 16
_BATCH = "batchconsumequeue"


def queue_of(path: str) -> dict[str, Any]:
    """The topic and the queue id in the path of a queue's directory; none if it is not in its place."""
    place = queue_place(path)
    return {} if place is None or place.queue_id is None else {"topic": place.topic, "queue_id": place.queue_id}


def log_file_extent(path: str) -> tuple[int, int]:
    """[start, stop) of a file in the whole log or queue, by its name and its length."""
    start = number_of(path)
    if start is None:
        raise Trouble(
            f"{path} is no part of a log or queue: expected a name of 20 digits, the offset at which it starts"
        )
    return start, start + size_of(path)


def home_of(path: str) -> tuple[str, str | None]:
    """The directory of all queues, and the topic if `path` is that of one topic."""
    place = queue_place(path)
    return (path, None) if place is None else (place.home, place.topic)


def is_batch(home: str) -> bool:
    """Whether the directory has batch queues."""
    return base_name(home) == _BATCH


def batch_queues_in(home: str, topic: str | None) -> Iterator[tuple[tuple[str, int], BatchConsumeQueue]]:
    """Each batch queue, open, by (topic, queue_id); not one that is deleted meanwhile."""
    from mqindex.rocketmq import BatchConsumeQueue
    from mqindex.rocketmq.queue.consume_queue_table import list_queues

    require_finished(home)
    for name, queue_id in list_queues(home)[0]:
        if topic in (None, name):
            try:
                queue = BatchConsumeQueue._of(join(home, name, str(queue_id)))
            except FileNotFoundError:
                continue
            yield (name, queue_id), queue


def unit_columns(path: str, kind: str) -> Iterator[Columns]:
    """The units of a queue, of one of its files, or of all queues below a directory."""
    if kind == kinds.QUEUES:
        yield from _of_queues(path)
        return
    is_file = kind in (kinds.QUEUE_FILE, kinds.EXT_FILE, kinds.BATCH_QUEUE_FILE)
    extent = log_file_extent(path) if is_file else None
    directory = parent_of(absolute(path)) if is_file else path
    if kind in (kinds.EXT, kinds.EXT_FILE):
        yield _ext_units(directory, extent)
    elif kind in (kinds.BATCH_QUEUE, kinds.BATCH_QUEUE_FILE):
        yield _batch_units(directory, extent)
    else:
        yield from _units(directory, extent)


def _of_queues(path: str) -> Iterator[Columns]:
    from mqindex.rocketmq import ConsumeQueueTable

    home, topic = home_of(path)
    if is_batch(home):
        for name, batches in batch_queues_in(home, topic):
            with batches:
                yield _named(name, batches.units())
        return
    with ConsumeQueueTable.open(home, ext_directory=home + "_ext") as table:
        for name in table.queues():
            queue = table.get(*name) if topic in (None, name[0]) else None
            if queue is not None:  # its topic may be deleted meanwhile
                for block in _blocks(queue, None, None):
                    yield _named(name, block)


def _named(name: tuple[str, int], units: Columns) -> Columns:
    import numpy as np

    from mqindex.columns.columns import StringColumn

    n, topic = len(units["phy_offset"]), np.frombuffer(name[0].encode(), np.uint8)
    topics = StringColumn(np.tile(topic, n), np.arange(n + 1, dtype=np.int64) * len(topic))
    return {"topic": topics, "queue_id": np.full(n, name[1], np.int32), **dict(units)}


def _units(directory: str, extent: tuple[int, int] | None) -> Iterator[Columns]:
    from mqindex.rocketmq import ConsumeQueue, ConsumeQueueExt
    from mqindex.rocketmq.layout import QUEUE_UNIT_SIZE

    above, number = split(absolute(directory))
    home, topic = split(above)
    beside = join(home + "_ext", topic, number)
    ext = ConsumeQueueExt.open(beside) if disk.is_directory(beside) else None
    with ConsumeQueue.open(directory, ext=ext) as queue:
        start, stop = (None, None) if extent is None else (at // QUEUE_UNIT_SIZE for at in extent)
        yield from _blocks(queue, start, stop)


def _blocks(queue: ConsumeQueue, start: int | None, stop: int | None) -> Iterator[Columns]:
    low, high = queue.min_offset_in_queue, queue.max_offset_in_queue
    first, end = max(low, start or 0), high if stop is None else min(stop, high)
    for at in range(first, max(end, first + 1), _BLOCK):
        yield queue.units(at, min(at + _BLOCK, end))


def _batch_units(directory: str, extent: tuple[int, int] | None) -> Columns:
    from mqindex.rocketmq import BatchConsumeQueue
    from mqindex.rocketmq.layout import BATCH_UNIT_SIZE

    with BatchConsumeQueue.open(directory) as queue:
        units, first = queue.units(), queue.files[0].start if queue.files else 0
    if extent is None:
        return units
    start, stop = ((at - first) // BATCH_UNIT_SIZE for at in extent)
    return {name: column[start:stop] for name, column in units.items()}


def _ext_units(directory: str, extent: tuple[int, int] | None) -> Columns:
    import numpy as np

    from mqindex.rocketmq import ConsumeQueueExt
    from mqindex.rocketmq.layout import FIRST_EXT_ADDRESS

    with ConsumeQueueExt.open(directory) as ext:
        units = dict(ext.units())
    units["bitmap_size"] = np.diff(units.pop("bitmap").offsets).astype(np.int16)
    if extent is None:
        return units
    start, stop = (np.searchsorted(units["address"], at + FIRST_EXT_ADDRESS) for at in extent)
    return {name: column[start:stop] for name, column in units.items()}
