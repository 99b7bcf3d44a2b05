"""What brokers of 5.2 and later may keep in RocksDB, which is not read: consume queues, and topics and groups."""

from __future__ import annotations

import os
from typing import Final

from mqindex.errors import FileStateError
from mqindex.files.paths import join
from mqindex.files.reading.regular import reading
from mqindex.rocketmq.kinds import is_rocksdb, names_in, subdirectories
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.settings import CONFIG_MANAGER, QUEUES_TWICE, STORE_TYPE

_HINT = "mqindex neither reads nor writes them"
_CONFIG: Final = ("topics", "subscriptionGroups", "consumerOffsets")  # in `config/`, of a broker with its queues there


def manifest_of(directory: str) -> str | None:
    """The MANIFEST that CURRENT names, without which RocksDB does not open a database; None: there is no CURRENT."""
    try:
        with reading(join(directory, "CURRENT"), buffered=False) as file:
            name = file.read(256) or b""
    except FileNotFoundError:
        return None
    return join(directory, os.fsdecode(name.rstrip(b"\n").replace(b"\0", b"?")))


def queues_in_rocksdb(options: StoreOptions) -> str | None:
    """Where RocksDB holds the queues. A broker that writes them twice has directories of topics beside its files.

    Where nothing given says where they are, its files show it, or where there are none its topics or groups there.
    Source: RocketMQ 5.5.0 `RocksDBConsumeQueueStore`, `CombineConsumeQueueStore`, `StorePathConfigHelper`,
    `BrokerController`.
    """
    homes = [join(options.root, "consumequeue_rocksdb"), options.consume_queue]
    found = next((home for home in homes if is_rocksdb(home)), None)
    if options.queues_in_rocksdb:
        return found or options.consume_queue
    said = options.known(STORE_TYPE) is not None or options.known(QUEUES_TWICE) is not None
    if subdirectories(options.consume_queue) and (said or found is None):
        return None  # else they may be what was left when the queues went to RocksDB
    if found is None and not said and options.may_have_rocksdb and any(map(is_rocksdb, _config_homes(options))):
        return options.consume_queue
    return found


def config_in_rocksdb(options: StoreOptions) -> str | None:
    """Where RocksDB holds topics and groups: `config/*.json` then say nothing of them, or what was true once.

    Source: RocketMQ 5.5.0 `BrokerController`, `RocksDBTopicConfigManager`, `v2/ConfigStorage`.
    """
    if _is_v2(options):
        return _rdb(options)
    if options.queues_in_rocksdb:
        return _config_homes(options)[0]
    return next(iter(config_databases(options)), None)


def config_databases(options: StoreOptions) -> list[str]:
    """The databases of topics and groups that are there, of those that the broker opens, as far as that is known."""
    if _is_v2(options):
        homes = [_rdb(options)]
    elif options.queues_in_rocksdb:
        homes = _config_homes(options)
    elif options.broker_conf is not None:
        homes = []
    else:
        config = join(options.root, "config")
        homes = [join(config, name) for name in names_in(config)]
    return list(filter(is_rocksdb, homes))


def refuse_config_in_rocksdb(options: StoreOptions) -> None:
    """`FileStateError` where the broker keeps its topics and groups there: it would seem to have none."""
    home = config_in_rocksdb(options)
    if home is not None:
        raise FileStateError("the topics and groups of this store are in RocksDB", path=home, hint=_HINT)


def refuse_queues_in_rocksdb(home: str | None) -> None:
    """`FileStateError` where `queues_in_rocksdb` found any: as files, they would all be empty."""
    if home is not None:
        raise FileStateError("the consume queues of this store are in RocksDB", path=home, hint=_HINT)


def _is_v2(options: StoreOptions) -> bool:
    return options.may_have_rocksdb and options.value(CONFIG_MANAGER).strip().lower() == "v2"


def _rdb(options: StoreOptions) -> str:
    return join(options.root, "config", "rdb")


def _config_homes(options: StoreOptions) -> list[str]:
    return [join(options.root, "config", name) for name in _CONFIG]
