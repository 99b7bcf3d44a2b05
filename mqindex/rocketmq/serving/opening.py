"""What a store has, opened for reading."""

from __future__ import annotations

from mqindex.errors import BadMagicError, GeometryError
from mqindex.files import disk
from mqindex.rocketmq.directories import store
from mqindex.rocketmq.directories.rocksdb import queues_in_rocksdb
from mqindex.rocketmq.directories.wrong_place import store_around
from mqindex.rocketmq.index.index_service import IndexService
from mqindex.rocketmq.kinds import require_finished
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
from mqindex.rocketmq.settings import MAX_HASH_SLOT_NUM, MAX_INDEX_NUM, QUEUE_FILE_SIZE


def require_a_part(options: StoreOptions) -> None:
    """Raise a clear error where a path is no store, or has nothing that can be read."""
    store.require_store(options.root)
    require_finished(options.root)
    parts = (*options.commitlog, options.consume_queue, options.index)
    if not any(disk.is_directory(part) for part in parts):
        raise BadMagicError(
            "not a store", path=options.root, expected="commitlog, consumequeue or index in it",
            hint=f"pass {store_around(options.root) or 'the root directory of a broker store (storePathRootDir)'}",
        )  # fmt: skip


def open_log(options: StoreOptions) -> CommitLog:
    """The commit log as it is now."""
    return CommitLog._as_set(options)


def open_queues(options: StoreOptions) -> ConsumeQueueTable | None:
    """The consume queues; None: there are none."""
    if not disk.is_directory(options.consume_queue) or queues_in_rocksdb(options) is not None:
        return None
    return ConsumeQueueTable.open(
        options.consume_queue,
        file_size=options.known(QUEUE_FILE_SIZE),
        ext_directory=options.consume_queue_ext_directory,
    )


def open_index(options: StoreOptions) -> IndexService | None:
    """The index; None: there is none."""
    if not disk.is_directory(options.index):
        return None
    with options.blaming(GeometryError, MAX_HASH_SLOT_NUM, MAX_INDEX_NUM):
        return IndexService.open(options.index, hash_slot_num=options.hash_slot_num, index_num=options.index_num)
