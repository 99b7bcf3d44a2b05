"""The files of both brokers as tables: what a path has, one as a `pyarrow.dataset.Dataset`, SQL over them.

pyarrow and DuckDB are loaded where they are used.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mqindex._needs import needing
from mqindex.files import disk
from mqindex.files.places.place import given_path
from mqindex.tables.kinds import kind_of

if TYPE_CHECKING:
    from mqindex.tables.table import Table
    from mqindex.tables.table_dataset import TableDataset

_INSTALL = "pip install 'mqindex[sql]'"
_WITH_TABLES = (
    "RocketMQ's store, commit log, consume queues or index, or Kafka's log dir, partition or file of a segment"
)


def tables(path: str | os.PathLike[str], **options: Any) -> list[str]:
    """The tables that a path has, the one that `dataset` takes by itself first.

    Parameters
    ----------
    path, options : as of `dataset`

    Raises
    ------
    FileNotFoundError, BadMagicError : as of `dataset`

    Examples
    --------
    >>> import mqindex
    >>> mqindex.tables("store")
    ['messages', 'units', 'index_entries', 'consumer_offsets', 'files']
    >>> mqindex.tables("orders-0")
    ['records', 'batches', 'offset_index', 'time_index', 'transactions', 'producers', 'segments', 'markers']

    Raises
    ------
    ValueError : the path has no table
    """
    return list(_found(path, options)[2])


def dataset(path: str | os.PathLike[str], table: str | None = None, **options: Any) -> TableDataset:
    """A table of a path, as a `pyarrow.dataset.Dataset`: DuckDB and DataFusion take it as it is, polars by `lazy`, and
    pandas by `to_table(columns, filter).to_pandas()`.

    The columns and the filter of a query reach the reader: what cannot hold a row that passes is not read, as far as
    the files prove it (topic, queue and partition, times, offsets, keys). A filter that is not understood costs time
    and never a row. Its method `lazy` gives a `polars.LazyFrame`, which takes more from polars than
    `polars.scan_pyarrow_dataset` does. What reads batches, as `pyarrow.dataset.write_dataset`, takes
    `dataset.scanner(columns, filter).to_reader()`. Needs pyarrow.

    All queries of one dataset of messages or records answer of the same: the log as it was when the first of them came
    to its end. A new dataset sees what a broker has appended since. The other tables are read anew each time.

    Parameters
    ----------
    path : path or URL of a store, a commit log, a file of it, consume queues, an index, an index file, the offsets of
        consumers; of Kafka a log dir, a partition, a file of a segment
    table : str; None: messages or records, of a path without them its only table
    options : store options (`config`, `commitlog`, `hash_slot_num`, ...) or partition options, `storage_options`; of
        messages also `decompress` and `cache`, of records `isolation_level` and `cache`

    Tables
    ------
    messages : as `rocketmq.scan`. units : queue_offset, topic, queue_id, phy_offset, size, tags_code.
    index_entries : number in its file, file, key_hash, phy_offset, time, prev_index.
    consumer_offsets : queue_offset that is consumed next, consumer_group, topic, queue_id.
    files : number in its name, path, kind, size, modified.
    records : as `kafka.scan`. batches : as `LogSegment.batches`, with topic, partition and segment, its base offset;
    so have offset_index, time_index, transactions (aborted ones), producers (of snapshots) and segments.
    markers : what control records say; of a log dir and the topics of these names also commits (__consumer_offsets),
    transaction_states (__transaction_state) and metadata (__cluster_metadata), decoded.
    Times are timestamps in ms and UTC.

    Raises
    ------
    ValueError : the path has no table, or none of this name
    ImportError : pyarrow is not installed

    Examples
    --------
    >>> import mqindex, pyarrow.compute as pc
    >>> messages = mqindex.dataset("store")
    >>> wanted = (pc.field("topic") == "LostTopic") & (pc.field("queue_id") == 0)
    >>> found = messages.to_table(columns=["queue_offset", "tags"], filter=wanted)
    >>> len(found), found.slice(12, 1).to_pylist()
    (160, [{'queue_offset': 12, 'tags': 'TagA'}])
    >>> mqindex.dataset("orders-0", "segments").to_table(columns=["segment", "log_size"]).to_pylist()
    [{'segment': 0, 'log_size': 59969}, {'segment': 483, 'log_size': 59647}, {'segment': 971, 'log_size': 9592}]
    """
    where, kind, found = _found(path, options)
    name = next(iter(found)) if table is None else table
    if name not in found:
        raise ValueError(f"table: expected {_either(found)} of {where}, got {name!r}")
    with needing(f"mqindex.dataset needs pyarrow: {_INSTALL}", "pyarrow"):
        from mqindex.tables.table_dataset import TableDataset
    return TableDataset(where, name, options, found[name](where, kind, dict(options)))


def sql(query: str, **paths: Any) -> Any:
    """The answer of a query in DuckDB's SQL over tables of paths, as a `duckdb.DuckDBPyRelation`.

    Nothing is read before the rows are fetched, and then what `dataset` says: however often a query names the messages
    or records of a path, they are those of one moment. Needs pyarrow and duckdb. A time beyond what DuckDB has (years
    -290307 to 294246) is null there, and a UserWarning says so.

    Parameters
    ----------
    query : str
    paths : by the name that the query gives them: a path or URL, whose messages or records have that name, and each
        other table of it `name.table`; or a dataset, or what else DuckDB takes as a table

    Raises
    ------
    ValueError : a path without tables
    ImportError : duckdb or pyarrow is not installed

    Examples
    --------
    >>> import mqindex
    >>> query = "SELECT tags, count(*) FROM lost WHERE queue_id = 0 GROUP BY tags ORDER BY tags LIMIT 2"
    >>> mqindex.sql(query, lost="store").fetchall()
    [('Aa', 9), ('BB', 18)]
    >>> query = "SELECT count(*) FROM lost ANTI JOIN lost.units USING (phy_offset)"
    >>> mqindex.sql(query, lost="store").fetchall()  # messages that no queue has
    [(0,)]
    """
    with needing(f"mqindex.sql needs duckdb and pyarrow: {_INSTALL}", "duckdb", "pyarrow"):
        from mqindex.tables.duckdb_query import relation_of
    return relation_of(query, paths)


def _found(
    path: str | os.PathLike[str], options: Mapping[str, Any]
) -> tuple[str, str, dict[str, Callable[..., Table]]]:
    """A path, its kind, and its tables."""
    where = given_path("path", path, options.get("storage_options"))
    kind = kind_of(where) or (_kind_by_content(where, options))
    for broker in ("rocketmq", "kafka_internal"):
        of_kind = importlib.import_module(f"mqindex.tables.{broker}").tables_of(where, kind)
        if of_kind is not None:
            return where, str(kind), of_kind
    got = "nothing that mqindex knows" if kind is None else f"of the kind {kind}"
    raise ValueError(f"{where} has no tables: expected {_WITH_TABLES}, got {got}")


def _kind_by_content(path: str, options: Mapping[str, Any]) -> str | None:
    """A store with little left of it, or one whose log is elsewhere as the options say."""
    from mqindex.rocketmq.kinds import is_left_of_store

    known = options.get("commitlog") is not None or options.get("config") is not None
    return "store" if disk.is_directory(path) and (known or is_left_of_store(path)) else None


def _either(names: Mapping[str, object]) -> str:
    known = list(names)
    return " or ".join(filter(None, (", ".join(known[:-1]), known[-1])))
