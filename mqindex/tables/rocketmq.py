"""The tables of RocketMQ's files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import numpy as np

from mqindex import rocketmq
from mqindex.columns.columns import Columns
from mqindex.files import disk
from mqindex.files.paths import absolute, base_name, join, parent_of, relative, status_of
from mqindex.rocketmq import kinds
from mqindex.rocketmq.directories.rocksdb import queues_in_rocksdb, refuse_config_in_rocksdb, refuse_queues_in_rocksdb
from mqindex.rocketmq.metadata.consumer_offsets import ConsumerOffsets
from mqindex.rocketmq.options import StoreOptions, store_options
from mqindex.rocketmq.scanning.log_end import LogEnd
from mqindex.rocketmq.serving.opening import open_index, open_queues
from mqindex.tables.bounds import Bounds, Interval
from mqindex.tables.table import (
    BLOCK,
    Opened,
    Options,
    Table,
    cheapest_first,
    may_have,
    named,
    no_rows,
    number_range,
    period,
    read_all,
    texts,
)

_UNITS: Final = no_rows({
    "queue_offset": "i8", "topic": "text", "queue_id": "i4", "phy_offset": "i8", "size": "i4", "tags_code": "i8",
})  # fmt: skip
_INDEX_ENTRIES: Final = no_rows({
    "number": "i8", "file": "text", "key_hash": "i4", "phy_offset": "i8", "time": "M8[ms]", "prev_index": "i4",
})  # fmt: skip
_CONSUMER_OFFSETS: Final = no_rows({
    "queue_offset": "i8", "consumer_group": "text", "topic": "text", "queue_id": "i4",
})  # fmt: skip
_FILES: Final = no_rows({"number": "i8", "path": "text", "kind": "text", "size": "i8", "modified": "M8[ms]"})


# ---- messages


def messages(path: str, kind: str, options: Options) -> Table:
    """The messages of a log, as `rocketmq.scan` gives them, each time up to the same end."""
    with rocketmq.scan(path, **options) as scan:
        empty = scan.empty()
    return Table(cheapest_first(empty, "phy_offset"), partial(_messages, path, options, LogEnd()))


def _messages(path: str, options: Options, end: LogEnd, columns: Sequence[str], bounds: Bounds) -> Iterator[Columns]:
    with end.opening:
        scan = rocketmq.scan(path, columns=columns, **_asked(bounds), **options)._until(end)
    return read_all(scan)


def _asked(bounds: Bounds) -> dict[str, Any]:
    """What a filter asks of `rocketmq.scan`: it gives every message that passes the filter, and maybe more."""
    start, stop = number_range(bounds, "phy_offset")
    begin, end = period(bounds, "store_timestamp")
    asked: dict[str, Any] = {
        "topic": _texts(bounds, "topic"),
        "queue_id": _numbers(bounds, "queue_id"),
        "begin": begin,
        "end": end,
        "start_offset": start,
        "end_offset": stop,
        "keys": _texts(bounds, "uniq_key") or _first_words(bounds, "keys"),
        "tags": _tags(bounds),
    }
    return {name: value for name, value in asked.items() if value is not None}


def _texts(bounds: Bounds, name: str) -> list[str] | None:
    """The texts that a column may have; None: not known, or some that are not compared byte by byte."""
    among = bounds.get(name, Interval()).among
    if among is None or not all(
        isinstance(one, str) and one and "\N{REPLACEMENT CHARACTER}" not in one for one in among
    ):
        return None
    return sorted(among)


def _first_words(bounds: Bounds, name: str) -> list[str] | None:
    whole = _texts(bounds, name)
    words = [next(filter(None, one.split(" ")), "") for one in whole or [""]]
    return words if all(words) else None


def _tags(bounds: Bounds) -> str | None:
    tags = _texts(bounds, "tags") or [""]
    return (
        " || ".join(tags)
        if all(one.strip() == one and "|" not in one and one not in ("", "*") for one in tags)
        else None
    )


def _numbers(bounds: Bounds, name: str) -> list[int] | None:
    among = bounds.get(name, Interval()).among
    return None if among is None or not all(type(one) is int for one in among) else sorted(among)


# ---- units


def units(path: str, kind: str, options: Options) -> Table:
    """The units of consume queues."""
    return Table(_UNITS, partial(_units, path, kind, options))


def _units(path: str, kind: str, options: Options, columns: Sequence[str], bounds: Bounds) -> Iterator[Columns]:
    with ExitStack() as opened:
        if kind == "consumequeue":
            place = kinds.queue_place(path) or kinds.QueuePlace(path, None, None)
            queue = opened.enter_context(_queue_at(path, options))
            yield from _units_of(queue, place.topic, -1 if place.queue_id is None else place.queue_id, bounds)
            return
        if kind == "store":
            opened_by = store_options(path, **options)
            refuse_queues_in_rocksdb(queues_in_rocksdb(opened_by))
            table = open_queues(opened_by)
        else:
            table = rocketmq.ConsumeQueueTable.open(_home(path), ext_directory=f"{_home(path)}_ext", **options)
        if table is None:
            return
        opened.enter_context(table)
        topic = None if kind == "store" else (kinds.queue_place(path) or kinds.QueuePlace(path, None, None)).topic
        for name in table.queues():
            if topic in (None, name[0]) and may_have(bounds, topic=name[0], queue_id=name[1]):
                found = table.get(*name)
                if found is not None:  # else it was deleted meanwhile
                    yield from _units_of(found, *name, bounds)


def _units_of(queue: rocketmq.ConsumeQueue, topic: str | None, queue_id: int, bounds: Bounds) -> Iterator[Columns]:
    start, stop = number_range(bounds, "queue_offset")
    first = max(queue.min_offset_in_queue, start or 0)
    last = queue.max_offset_in_queue if stop is None else min(stop, queue.max_offset_in_queue)
    for at in range(first, last, BLOCK):
        found = queue.units(at, min(at + BLOCK, last))
        yield Columns({**named(len(found), topic=topic, queue_id=queue_id), **found}, len(found))


def _queue_at(path: str, options: Options) -> rocketmq.ConsumeQueue:
    above, number = parent_of(absolute(path)), base_name(absolute(path))
    beside = join(f"{parent_of(above)}_ext", base_name(above), number)
    ext = rocketmq.ConsumeQueueExt.open(beside) if disk.is_directory(beside) else None
    return rocketmq.ConsumeQueue.open(path, ext=ext, **options)


def _home(path: str) -> str:
    place = kinds.queue_place(path)
    return path if place is None else place.home


# ---- index entries


def index_entries(path: str, kind: str, options: Options) -> Table:
    """The entries of index files, in their order."""
    return Table(_INDEX_ENTRIES, partial(_index_entries, path, kind, options))


def _index_entries(path: str, kind: str, options: Options, columns: Sequence[str], bounds: Bounds) -> Iterator[Columns]:
    with ExitStack() as opened:
        if kind == "index-file":
            yield from _entries_of(opened.enter_context(rocketmq.IndexFile.open(path, **options)), bounds)
            return
        service = (
            open_index(store_options(path, **options))
            if kind == "store"
            else rocketmq.IndexService.open(path, **options)
        )
        if service is not None:
            for file in opened.enter_context(service).files:
                yield from _entries_of(file, bounds)


def _entries_of(file: rocketmq.IndexFile, bounds: Bounds) -> Iterator[Columns]:
    header, name = file.header, base_name(file.path)
    if not may_have(bounds, file=name):
        return
    start, stop = number_range(bounds, "number")
    for at in range(max(start or 1, 1), min(stop or header.index_count, header.index_count), BLOCK):
        found = dict(file.entries(at, min(at + BLOCK, header.index_count)))
        rows = len(found["key_hash"])
        times = header.begin_timestamp + found.pop("time_diff").astype(np.int64) * 1000
        number = np.arange(at, at + rows)
        yield Columns({**named(rows, file=name), "number": number, "time": times.view("M8[ms]"), **found}, rows)


# ---- offsets of consumers


def consumer_offsets(path: str, kind: str, options: Options) -> Table:
    """What each group consumes next, as a broker last saved it."""
    return Table(_CONSUMER_OFFSETS, partial(_consumer_offsets, path, kind, options))


def _consumer_offsets(
    path: str, kind: str, options: Options, columns: Sequence[str], bounds: Bounds
) -> Iterator[Columns]:
    if kind == "store":
        opened = store_options(path, **options)
        refuse_config_in_rocksdb(opened)
        directory = join(opened.root, "config")
    else:
        directory = parent_of(absolute(path))
    offsets = ConsumerOffsets._read(directory, lambda topic, queue_id: 0)
    rows = [(name.partition("@"), queue_id, at) for name in offsets for queue_id, at in sorted(offsets[name].items())]
    yield Columns({
        "queue_offset": np.array([at for _, _, at in rows], np.int64),
        "consumer_group": texts([group if dash else None for (_, dash, group), _, _ in rows]),
        "topic": texts([topic for (topic, _, _), _, _ in rows]),
        "queue_id": np.array([queue_id for _, queue_id, _ in rows], np.int32),
    }, len(rows))  # fmt: skip


# ---- files


def files(path: str, kind: str, options: Options) -> Table:
    """The files of a store that hold messages, or lead to them."""
    return Table(_FILES, partial(_files, path, options))


def _files(path: str, options: Options, columns: Sequence[str], bounds: Bounds) -> Iterator[Columns]:
    store = store_options(path, **options)
    found = [(file, kind, status) for file, kind in _listed(store) if (status := _status(file)) is not None]
    yield Columns({
        "number": np.array([kinds.number_of(file) for file, _, _ in found], np.int64),
        "path": texts([relative(file, store.root) for file, _, _ in found]),
        "kind": texts([kind for _, kind, _ in found]),
        "size": np.array([status.st_size for _, _, status in found], np.int64),
        "modified": np.array([status.st_mtime_ns // 1_000_000 for _, _, status in found], np.int64).view("M8[ms]"),
    }, len(found))  # fmt: skip


def _listed(store: StoreOptions) -> Iterator[tuple[str, str]]:
    for directory in store.commitlog:
        yield from ((file, "commitlog-file") for file in kinds.index_paths(directory))
    for home, kind in (
        (store.consume_queue, "consumequeue-file"),
        (store.consume_queue_ext_directory, "consumequeue-ext-file"),
        (store.batch_consume_queue, "batchconsumequeue-file"),
    ):
        for queue in kinds.queue_paths(home):
            yield from ((file, kind) for file in kinds.index_paths(queue))
    yield from ((file, "index-file") for file in kinds.index_paths(store.index))


def _status(path: str) -> os.stat_result | None:
    try:
        return status_of(path)
    except FileNotFoundError:  # deleted meanwhile
        return None


_TABLES: Final[dict[str, dict[str, Opened]]] = {
    "store": {
        "messages": messages, "units": units, "index_entries": index_entries, "consumer_offsets": consumer_offsets,
        "files": files,
    },
    "commitlog-dir": {"messages": messages},
    "commitlog-file": {"messages": messages},
    "consumequeues": {"units": units},
    "consumequeue": {"units": units},
    "index-dir": {"index_entries": index_entries},
    "index-file": {"index_entries": index_entries},
    "consumer-offsets": {"consumer_offsets": consumer_offsets},
}  # fmt: skip
"""By the kind of a path its tables, the one that is meant where none is named first."""


def tables_of(path: str, kind: str | None) -> Mapping[str, Opened] | None:
    """The tables of a path of RocketMQ's, by their names; None: it has none."""
    return _TABLES.get(kind or "")
