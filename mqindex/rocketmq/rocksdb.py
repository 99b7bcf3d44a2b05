"""What brokers of 5.2 and later may keep in RocksDB, which is not read: consume queues, and topics and groups."""

from __future__ import annotations

import os

from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.rocketmq import store
from mqindex.rocketmq.options import StoreOptions

__all__ = [
    "config_in_rocksdb",
    "is_rocksdb",
    "queues_in_rocksdb",
    "refuse_config_in_rocksdb",
    "refuse_queues_in_rocksdb",
]

_HINT = "mqindex neither reads nor writes them"


def is_rocksdb(directory: str) -> bool:
    """Whether RocksDB keeps its files there: CURRENT names the MANIFEST that counts."""
    return disk.is_file(os.path.join(directory, "CURRENT"))


def queues_in_rocksdb(options: StoreOptions) -> str | None:
    """Where RocksDB holds the queues. A broker that writes them twice has directories of topics beside its files.

    Source: RocketMQ 5.5.0 `RocksDBConsumeQueueStore`, `CombineConsumeQueueStore`, `StorePathConfigHelper`.
    """
    homes = [os.path.join(options.root, "consumequeue_rocksdb"), options.consume_queue]
    found = next((home for home in homes if is_rocksdb(home)), None)
    if options.queues_in_rocksdb:
        return found or options.consume_queue
    return found if found is not None and not _has_directories(options.consume_queue) else None


def config_in_rocksdb(options: StoreOptions) -> str | None:
    """Where RocksDB holds topics and groups: `config/*.json` then say nothing of them, or what was true once.

    Source: RocketMQ 5.5.0 `BrokerController`, `RocksDBTopicConfigManager`, `v2/ConfigStorage`.
    """
    config = os.path.join(options.root, "config")
    if options.may_have_rocksdb and options.setting("configManagerVersion", "").strip().lower() == "v2":
        return os.path.join(config, "rdb")
    if options.queues_in_rocksdb:
        return os.path.join(config, "topics")
    if options.broker_conf is not None:
        return None
    homes = (os.path.join(config, name) for name in store.names_in(config))
    return next((home for home in homes if is_rocksdb(home)), None)


def refuse_config_in_rocksdb(options: StoreOptions) -> None:
    """`FileStateError` where the broker keeps its topics and groups there: it would seem to have none."""
    home = config_in_rocksdb(options)
    if home is not None:
        raise FileStateError("the topics and groups of this store are in RocksDB", path=home, hint=_HINT)


def refuse_queues_in_rocksdb(home: str | None) -> None:
    """`FileStateError` where `queues_in_rocksdb` found any: as files, they would all be empty."""
    if home is not None:
        raise FileStateError("the consume queues of this store are in RocksDB", path=home, hint=_HINT)


def _has_directories(directory: str) -> bool:
    return any(disk.is_directory(os.path.join(directory, name)) for name in store.names_in(directory))
