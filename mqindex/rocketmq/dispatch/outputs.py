"""What dispatch writes to, opened for writing: the index and the consume queues of one place."""

from __future__ import annotations

from contextlib import ExitStack

from mqindex.rocketmq.index.index_service import IndexService
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable


def open_outputs(
    opened: ExitStack,
    options: StoreOptions,
    geometry: tuple[int, int],
    *,
    file_size: int,
    ext_directory: str | None = None,
) -> tuple[IndexService | None, ConsumeQueueTable]:
    """Index and queues; `opened` closes them. `file_size`, `ext_directory`: of the queues, as for their table.

    No index where a switch of the configuration turns it off: the broker writes none either.
    """
    index = None
    if options.index_switch is None:
        slots, entries = geometry
        index = opened.enter_context(
            IndexService.open(options.index, hash_slot_num=slots, index_num=entries, writable=True)
        )
    queues = opened.enter_context(
        ConsumeQueueTable.open(options.consume_queue, file_size=file_size, writable=True, ext_directory=ext_directory)
    )
    return index, queues
