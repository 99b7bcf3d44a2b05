"""What `mqindex info` prints of each kind of path of RocketMQ, as plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mqindex.cli.rocketmq import kinds
from mqindex.cli.rocketmq.glance import glance
from mqindex.cli.rocketmq.queue_facts import (
    batch_queue_facts,
    consumer_offsets_facts,
    ext_facts,
    queue_facts,
    queues_facts,
)
from mqindex.cli.rocketmq.queues import log_file_extent, queue_of, unit_columns
from mqindex.cli.trouble import Trouble
from mqindex.errors import FormatError, MQIndexError, reason
from mqindex.files import disk, lock
from mqindex.files.paths import absolute, base_name, join, parent_of, size_of

if TYPE_CHECKING:
    from mqindex.rocketmq import IndexFile
    from mqindex.rocketmq.options import StoreArguments, StoreOptions

Facts = dict[str, Any]


def facts_of(kind: str, path: str, options: StoreArguments) -> Facts:
    """The facts of `path`. Parts of a store that cannot be read have an `error` instead of facts."""
    return _FACTS[kind](path, options)


def _index_file(path: str, options: StoreArguments) -> Facts:
    from mqindex.rocketmq.index.opening import open_index_file

    file, source = open_index_file(path, options)
    with file:
        return {
            "size": size_of(path),
            "hash_slot_num": file.hash_slot_num,
            "index_num": file.index_num,
            "geometry_source": source,
            **_header(file),
        }


def _header(file: IndexFile) -> Facts:
    from mqindex.rocketmq.index.compare import next_entry

    return {
        **file.header._asdict(),
        "entries": next_entry(file) - 1,
        "capacity": file.index_num - 1,
        "full": file.is_write_full(),
    }


def _index_directory(path: str, options: StoreArguments) -> Facts:
    from mqindex.rocketmq import IndexFile
    from mqindex.rocketmq.index.opening import geometry_of
    from mqindex.rocketmq.kinds import index_paths, stray_index_names

    slots, entries, source = geometry_of(path, options)
    files: list[Facts] = []
    for name in index_paths(path):
        fact: Facts = {"name": base_name(name), "size": size_of(name)}
        try:
            with IndexFile.open(name, hash_slot_num=slots, index_num=entries) as file:
                fact |= _header(file)
        except (MQIndexError, OSError) as error:
            fact["error"] = reason(error)
        files.append(fact)
    return {
        "hash_slot_num": slots,
        "index_num": entries,
        "geometry_source": source,
        "entries": sum(fact.get("entries", 0) for fact in files),
        "size": sum(fact["size"] for fact in files),
        "files": files,
        "strays": stray_index_names(path),
    }


def _commit_log(directories: list[str]) -> Facts:
    from mqindex.rocketmq import CommitLog

    with CommitLog.open(directories) as log:
        files = [{"path": file.path, "start": file.start, "size": file.size} for file in log.files]
        return {
            "directories": directories,
            "min_phy_offset": log.min_phy_offset,
            "max_phy_offset": log.max_phy_offset,
            "size": sum(file.size for file in log.files),
            "files": files,
        }


def _commit_log_file(path: str, options: StoreArguments) -> Facts:
    from mqindex.rocketmq import CommitLog

    start, stop = log_file_extent(path)
    with CommitLog.open([parent_of(absolute(path))]) as log:
        end = min(max(log.max_phy_offset, start), stop)
    return {"size": stop - start, "min_phy_offset": start, "max_phy_offset": end}


def _checkpoint(path: str, options: StoreArguments) -> Facts:
    from mqindex.rocketmq import Checkpoint

    checkpoint = Checkpoint.read(path)
    if checkpoint is None:
        raise Trouble(f"{path} is no checkpoint: expected 48 bytes or more, got {size_of(path)}")
    return checkpoint._asdict()


def _store(path: str, options: StoreArguments) -> Facts:
    from mqindex.rocketmq.options import store_options

    chosen = store_options(path, **options)
    checkpoint, config = join(path, "checkpoint"), join(path, "config")
    batches = join(path, "batchconsumequeue")
    facts = {
        "abort": disk.is_there(join(path, "abort")),
        "lock": lock.state(join(path, "lock")),
        "checkpoint": _part(checkpoint, lambda: _checkpoint(checkpoint, options)),
        "commitlog": _log(chosen),
        "index": _part(chosen.index, lambda: {"path": chosen.index, **_index_directory(chosen.index, options)}),
        "consumequeue": _queues(chosen),
        "batchconsumequeue": _part(batches, lambda: {"path": batches, **queues_facts(batches)}),
        "consumer_offsets": _part(config, lambda: _groups(config, chosen)),
    }
    if facts["batchconsumequeue"] is None:
        del facts["batchconsumequeue"]
    return {**facts, "glance": glance(path, facts, options)}


def _log(options: StoreOptions) -> Facts | None:
    from mqindex.rocketmq.log.dledger import refuse_dledger

    try:
        refuse_dledger(options)
    except MQIndexError as error:
        return {"directories": list(options.commitlog), "error": reason(error)}
    return _part(options.commitlog[0], lambda: _commit_log(list(options.commitlog)))


def _queues(options: StoreOptions) -> Facts | None:
    from mqindex.rocketmq.directories.rocksdb import queues_in_rocksdb

    home = options.consume_queue
    try:
        rocksdb = queues_in_rocksdb(options)
    except OSError as error:
        return {"path": home, "error": reason(error)}
    if rocksdb is not None:
        return {"path": rocksdb, "rocksdb": True}
    return _part(home, lambda: {"path": home, **queues_facts(home)})


def _groups(config: str, options: StoreOptions) -> Facts:
    from mqindex.rocketmq.directories.rocksdb import config_in_rocksdb

    rocksdb = config_in_rocksdb(options)
    if rocksdb is not None:
        return {"path": rocksdb, "rocksdb": True}
    offsets = consumer_offsets_facts(config, options.consume_queue, options.batch_consume_queue)
    return {"path": join(config, "consumerOffset.json"), **offsets}


def _consumer_offsets(path: str, options: StoreArguments) -> Facts:
    config = parent_of(absolute(path))
    root = parent_of(config)
    return consumer_offsets_facts(config, join(root, "consumequeue"), join(root, "batchconsumequeue"))


def _config_file(path: str, options: StoreArguments) -> Facts:
    from mqindex.rocketmq.metadata.config_json import parse_side_json, saved, table_of

    what, table, items = kinds.CONFIG_TABLES[base_name(path).removesuffix(".bak")]
    try:
        text = saved(path).decode(errors="replace")
        found = parse_side_json(text) if text.strip("\0 \t\r\n") else {}
        return {"what": what, "size": size_of(path), items: len(table_of(found, table))}
    except FormatError as error:
        raise Trouble(f"{path}: {error}") from None


def _queue_file(kind: str) -> Callable[[str, StoreArguments], Facts]:
    return lambda path, options: _file_of_units(path, kind)


def _file_of_units(path: str, kind_of_file: str) -> Facts:
    start, stop = log_file_extent(path)
    units = sum(len(next(iter(columns.values()))) for columns in unit_columns(path, kind_of_file))
    return {"start": start, "size": stop - start, "units": units, **queue_of(parent_of(absolute(path)))}


def _part(path: str, facts: Callable[[], Facts]) -> Facts | None:
    try:
        return facts() if disk.is_there(path) else None
    except (MQIndexError, OSError, Trouble) as error:
        return {"path": path, "error": reason(error)}


_FACTS: Final[dict[str, Callable[[str, StoreArguments], Facts]]] = {
    kinds.INDEX_FILE: _index_file,
    kinds.INDEX_DIR: _index_directory,
    kinds.COMMIT_LOG_FILE: _commit_log_file,
    kinds.COMMIT_LOG_DIR: lambda path, options: _commit_log([path]),
    kinds.CHECKPOINT: _checkpoint,
    kinds.CONSUMER_OFFSETS: _consumer_offsets,
    kinds.CONFIG_FILE: _config_file,
    kinds.STORE: _store,
    kinds.QUEUES: lambda path, options: queues_facts(path),
    kinds.QUEUE: lambda path, options: queue_facts(path),
    kinds.QUEUE_FILE: _queue_file(kinds.QUEUE_FILE),
    kinds.EXT: lambda path, options: ext_facts(path),
    kinds.EXT_FILE: _queue_file(kinds.EXT_FILE),
    kinds.BATCH_QUEUE: lambda path, options: batch_queue_facts(path),
    kinds.BATCH_QUEUE_FILE: _queue_file(kinds.BATCH_QUEUE_FILE),
}
