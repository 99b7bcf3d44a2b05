"""Functions over whole partitions, for `df.mapInArrow` (record batches in and out) and `rdd.mapPartitions` (rows)."""

from __future__ import annotations

import errno
import filecmp
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from mqindex.engines.tasks import require_seen, run_one, scratch_in
from mqindex.engines.visibility import looking, nothing
from mqindex.errors import OutputExistsError
from mqindex.files import disk
from mqindex.files.paths import absolute, join, list_names, parent_of
from mqindex.files.places.place import Place
from mqindex.files.results import staging
from mqindex.files.results.delivery import workshop
from mqindex.files.results.elsewhere import publish_once
from mqindex.rocketmq import IndexService, layout
from mqindex.rocketmq.index.names import names_between
from mqindex.rocketmq.layout import MAX_TIMESTAMP
from mqindex.spark.engine import SparkEngine
from mqindex.spark.functions.rocketmq import Lookup
from mqindex.spark.options import given
from mqindex.spark.rows import ENTRY_COLUMNS, OF_KEYS, as_batches, index_keys, int64_column, only_key
from mqindex.spark.session import active_session, is_local

PartitionFunction = Callable[[Iterator[Any]], Iterator[Any]]


def select_partition(
    index_dir: str | os.PathLike[str],
    *,
    topic: str | None = None,
    max_num: int = 64,
    begin: int = 0,
    end: int = MAX_TIMESTAMP,
    hash_slot_num: int | None = None,
    index_num: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> PartitionFunction:
    """A function over the keys of a partition: each key with its physical offsets, newest first.

    It takes record batches or rows with `key` (or nothing but keys) and yields the same kind with `key` and
    `phy_offsets`; the offsets of a null key are null. A row is a Row, a dict, a tuple whose first value is the key, or
    the key itself. The options are those of `select_phy_offset`.

    Raises
    ------
    ValueError, TypeError : at once, of an argument; when it runs, a row has no `key`, or one that is no text: the
        message names the row

    Examples
    --------
    >>> look_up = select_partition(store, topic="LostTopic")
    >>> keys = spark.createDataFrame([("user-3",)], "key string")
    >>> keys.mapInArrow(look_up, "key string, phy_offsets array<bigint>").first()
    Row(key='user-3', phy_offsets=[125657, 125657, 124833, 121465, 114877])
    >>> keys.rdd.mapPartitions(look_up).count()
    1
    """
    lookup = Lookup(index_dir, topic, max_num, begin, end, hash_slot_num, index_num, storage_options)

    def select(elements: Iterator[Any]) -> Iterator[Any]:
        columnar, batches = as_batches(elements, ("key",))
        for batch in batches:
            keys = only_key(batch)
            yield from _as_given(columnar, {"key": keys, "phy_offsets": lookup(keys)})

    return select


def build_partition(
    out: str | os.PathLike[str],
    *,
    hash_slot_num: int,
    index_num: int,
    storage_options: Mapping[str, Any] | None = None,
) -> PartitionFunction:
    """A function over the entries of a partition: they become index files of their own in `out/part-<n>/index/`.

    It takes record batches or rows with `key` (or `topic` and `key`), `phy_offset` and `store_timestamp`, puts them in
    their order as the broker would, and yields one (path, entries) a file; an empty partition yields nothing. A row is
    a Row, a dict, or a tuple (key, phy_offset, store_timestamp); all rows of a partition must have the same of these
    columns. Offsets and times (ms since the epoch) are integers; no other type is converted.

    Parameters
    ----------
    out : path that every worker sees; on a cluster, all of them are asked at once whether they do; or a URL
    hash_slot_num, index_num : int, the geometry of the files
    storage_options : of a URL, as of `mqindex.rocketmq.rebuild`

    Raises
    ------
    GeometryError : no such geometry
    FileStateError : a worker does not see `out` as the others do
    OutputExistsError : when it runs, a `part-<n>` is there and holds something else
    ValueError : a column is missing, in a batch or in a row; a null
    TypeError : a column, or a row's value, is of another type

    Notes
    -----
    `part-<n>` appears by one rename; in an object store the list of its files, `<part>/mqindex.json`, comes last. A
    second attempt that builds the same bytes keeps the first one's files; other content there is an
    `OutputExistsError`. Source: RocketMQ 4.9.3, `IndexService.putKey`.

    Examples
    --------
    >>> build = build_partition(os.path.abspath("parts"), hash_slot_num=1000, index_num=4000)
    >>> rows = [("T#a", 0, 1_700_000_000_000), ("T#b", 100, 1_700_000_000_250)]
    >>> entries = spark.createDataFrame(rows, "key string, phy_offset bigint, store_timestamp bigint").coalesce(1)
    >>> entries.mapInArrow(build, "path string, entries bigint").select("entries").collect()
    [Row(entries=2)]
    """
    slots, entries = layout.whole_geometry(hash_slot_num, index_num)
    where = absolute(given(out, "out", storage_options))
    look = _look_for(where)

    def build(elements: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        look()
        columnar, batches = as_batches(elements, ENTRY_COLUMNS, OF_KEYS)
        context = TaskContext.get()
        target = join(where, f"part-{0 if context is None else context.partitionId()}")
        built = _build(batches, where, target, slots, entries)
        if built:
            paths = [join(target, "index", name) for name in sorted(list_names(join(target, "index")))]
            yield from _as_given(columnar, {"path": pa.array(paths), "entries": pa.array(built, pa.int64())})

    return build


def _look_for(out: str) -> Callable[[], None]:
    """What a task calls first: its machine must see `out`. On a cluster it is made, and each machine asked, now."""
    spark = active_session()
    if isinstance(out, Place) or spark is None or is_local(spark):
        return nothing
    engine = SparkEngine(spark)
    run_one(require_seen(engine, [parent_of(out)]), disk.make_directories, out, "make the output's directory")
    seeing = require_seen(engine, [out])
    with scratch_in(seeing, out):  # a directory of that name may be on each machine
        return looking(seeing, nothing)


def _build(batches: Iterator[pa.RecordBatch], out: str, target: str, hash_slot_num: int, index_num: int) -> list[int]:
    """Build in a scratch and publish as `target`; the entries of each file."""
    if not isinstance(out, Place):
        disk.make_directories(out)
    with workshop(out) if isinstance(out, Place) else staging.scratch(out) as scratch:
        aside = join(scratch, "part")
        index = join(aside, "index")
        with IndexService.open(index, hash_slot_num=hash_slot_num, index_num=index_num, writable=True) as service:
            for batch in batches:
                phys, times = int64_column(batch, "phy_offset"), int64_column(batch, "store_timestamp")
                service.build_index(None, index_keys(batch), phys, times)
            service.flush()
            files = [(file.path, file.header) for file in service.files]
        if files and isinstance(target, Place):
            names = names_between(None, None, [header.begin_timestamp for _, header in files])  # in each attempt alike
            built = {f"index/{name}": path for name, (path, _) in zip(names, files, strict=True)}
            publish_once(built, target, {"hash_slot_num": hash_slot_num, "index_num": index_num})
        elif files:
            disk.sync_tree(aside)
            _appear(aside, target)
    return [header.index_count - 1 for _, header in files]


def _appear(aside: str, target: str) -> None:
    try:
        disk.rename(aside, target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        if not _same_files(join(aside, "index"), join(target, "index")):
            raise OutputExistsError(
                "the output exists and holds something else", path=target, hint="choose another place"
            ) from None
    else:
        disk.sync_directory(parent_of(target))


def _same_files(mine: str, theirs: str) -> bool:
    """The same bytes in the same order; names are times of creation and differ."""
    if not disk.is_directory(theirs):
        return False
    ours, others = sorted(list_names(mine)), sorted(list_names(theirs))
    pairs = zip(ours, others, strict=False)
    return len(ours) == len(others) and all(
        filecmp.cmp(join(mine, a), join(theirs, b), shallow=False) for a, b in pairs
    )


def _as_given(columnar: bool, columns: dict[str, pa.Array]) -> Iterator[Any]:
    """One record batch, or its rows."""
    if columnar:
        yield pa.record_batch(list(columns.values()), names=list(columns))
        return
    from pyspark.sql import Row

    row = Row(*columns)
    for values in zip(*(column.to_pylist() for column in columns.values()), strict=True):
        yield row(*values)
