"""Index files from a DataFrame, and the pipeline of `mqindex.rocketmq` on a Spark session.

A DataFrame is read once. Each task sorts its partition into runs beside the output; the cut into files is exact,
because each build task finds its entries by bisection over all runs. No shuffle, and nothing but counts and names
reaches the driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqindex import rocketmq
from mqindex.columns.keys import key_batch
from mqindex.engines.publishing import publish_all
from mqindex.engines.tasks import require_seen, run_one, scratch_for
from mqindex.engines.visibility import looking
from mqindex.files import disk
from mqindex.files.paths import absolute, parent_of
from mqindex.files.results import output_place, staging
from mqindex.files.results.delivery import workshop
from mqindex.files.results.publication import Publication
from mqindex.report import RebuildReport, RepairReport, Report, Value
from mqindex.rocketmq import layout
from mqindex.rocketmq.layout import HASH_SLOT_NUM, INDEX_NUM
from mqindex.rocketmq.pipeline.builds import index_moves
from mqindex.rocketmq.pipeline.sorted_runs import SortedPart, SortedRun, SortedRunWriter, assign_sorted, build_sorted
from mqindex.rocketmq.pipeline.stages import Built
from mqindex.several import StrPath, listed
from mqindex.spark.engine import SparkEngine
from mqindex.spark.options import given
from mqindex.spark.rows import index_keys, int64_column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def rebuild(spark: SparkSession, store: StrPath | Iterable[StrPath], out: StrPath, **options: Any) -> RebuildReport:
    """`mqindex.rocketmq.rebuild` of `store` to `out` with the stages as Spark tasks, on the session `spark`.

    Several stores go through each stage together. Each path must be visible to all workers, or be a URL. Options,
    result and errors are those of `mqindex.rocketmq.rebuild`; the workers get `storage_options` with each job.

    >>> rebuild(spark, store, "rebuilt").entries
    1466
    """
    storage = options.get("storage_options")
    paths, alone = listed(store)
    stores = [given(path, "store", storage) for path in paths]
    return rocketmq.rebuild(
        stores[0] if alone else stores, given(out, "out", storage), engine=SparkEngine(spark), **options
    )


def repair(spark: SparkSession, store: StrPath, **options: Any) -> RepairReport:
    """`mqindex.rocketmq.repair` of `store` with the stages as Spark tasks, on the session `spark`.

    Every path must be visible to all workers. Options, result and errors are those of `mqindex.rocketmq.repair`.

    >>> repair(spark, store, dry_run=True).ok
    False
    """
    store = given(store, "store", options.get("storage_options"))
    return rocketmq.repair(store, engine=SparkEngine(spark), **options)


def verify(spark: SparkSession, store: StrPath, **options: Any) -> Report:
    """`mqindex.rocketmq.verify` of `store` with the stages as Spark tasks, on the session `spark`.

    The path must be visible to all workers, or be a URL. Options, result and errors are those of
    `mqindex.rocketmq.verify`.

    >>> [finding.kind for finding in verify(spark, store).findings]
    ['missing-entries']
    """
    store = given(store, "store", options.get("storage_options"))
    return rocketmq.verify(store, engine=SparkEngine(spark), **options)


def build_index(
    df: DataFrame,
    out: StrPath,
    *,
    hash_slot_num: int = HASH_SLOT_NUM,
    index_num: int = INDEX_NUM,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> RebuildReport:
    """Write the entries of a DataFrame, ordered by phy_offset, to `out/index/` as the broker would have put them.

    Parameters
    ----------
    df : DataFrame
        Columns `key` (or `topic` and `key`; without a topic each key is the whole `topic#key`), `phy_offset` and
        `store_timestamp` (integers; ms since the epoch), and optionally `seq`, an integer that orders entries of equal
        phy_offset. Without `seq` those keep the order of the partitions. Rows and partitions may come in any order.
    out : path or URL; must not exist or be empty, or `overwrite=True` moves it to `<out>.backup-<UTC>`.
    hash_slot_num, index_num : the geometry of the files
    storage_options : of a URL, as of `mqindex.rocketmq.rebuild`

    Returns
    -------
    RebuildReport
        `messages` counts distinct phy_offsets. `backup`: where the old `out` is now.

    Raises
    ------
    OutputExistsError : `out` holds something, and `overwrite` is False
    GeometryError : no such geometry
    ValueError : a column is missing or of another type; a null key
    FileStateError : a worker does not see the directory of `out` as the others do
    RebuildError : a worker died; nothing was published, or, if it died while `out` got its place, what the message says

    Notes
    -----
    `out` appears by one rename, complete and on the disk, or not at all; in an object store its files are copied to
    their names, and `<out>/mqindex.json`, which lists them, comes last. A DataFrame without rows gives one empty file.
    Source: RocketMQ 4.9.3 `IndexService.buildIndex`, `IndexFile.putKey`.

    Examples
    --------
    >>> messages = spark.read.format("rocketmq_commitlog").load(store).where("uniq_key IS NOT NULL")
    >>> entries = messages.selectExpr("topic", "uniq_key AS key", "phy_offset", "store_timestamp")
    >>> build_index(entries, "by-uniq-key", hash_slot_num=100, index_num=401).files
    2
    """
    started = time.perf_counter()
    hash_slot_num, index_num = layout.whole_geometry(hash_slot_num, index_num)
    if not callable(getattr(df, "mapInArrow", None)):
        raise TypeError(f"df: expected a DataFrame of Spark, got {type(df).__name__}")
    engine, place = SparkEngine(df.sparkSession), absolute(given(out, "out", storage_options))
    entries = _entry_columns(df)
    asked = require_seen(engine, [parent_of(place)])
    run_one(asked, _begin, (place, overwrite), "check the place")
    with scratch_for(asked, place) as (seeing, scratch):
        sort = looking(seeing, _sorter(scratch, with_seq="seq" in entries.columns))
        runs = [run for runs in engine._map_partitions(entries, sort, name="sort the entries") for run in runs]
        parts = assign_sorted(runs, out=scratch, hash_slot_num=hash_slot_num, index_num=index_num)
        run_one(seeing, _check_room, (scratch, _needed(parts)), "check the free space")
        built = seeing.map(
            build_sorted,
            parts,
            name="build the index",
            weights=[1 + part.stop - part.start for part in parts],
            unit="entry",
        )
        files = [file for file, _ in built]
        about = (("hash_slot_num", hash_slot_num), ("index_num", index_num))
        published = publish_all(seeing, _publication(scratch, files, place, overwrite, about))
    report = RebuildReport(place, out_files=published.paths, backup=published.backup, files=len(files))
    report.settings["geometry"] = Value((hash_slot_num, index_num), "given")
    report.entries = sum(file.entries for file in files)
    report.messages = sum(offsets for _, offsets in built)
    report.bytes = report.entries * layout.RUN_ENTRY_SIZE
    report.fsync_seconds = published.fsync_seconds + sum(file.fsync_seconds for file in files)
    report.seconds = time.perf_counter() - started
    return report


def _entry_columns(df: DataFrame) -> DataFrame:
    """The columns that are needed, the integers as bigint; a `ValueError` names what is missing or of another type."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType, IntegralType, StringType

    types = {field.name: field.dataType for field in df.schema.fields}
    chosen = []
    for name in ("topic", "key", "phy_offset", "store_timestamp", "seq"):
        if name not in types:
            if name in ("topic", "seq"):
                continue
            raise ValueError(f"df: expected a column {name}, got {', '.join(types)}")
        text = name in ("topic", "key")
        if not isinstance(types[name], (StringType, BinaryType) if text else IntegralType):
            kind = "string" if text else "an integer type"
            raise ValueError(f"df: expected column {name} to be {kind}, got {types[name].simpleString()}")
        chosen.append(F.col(name) if text else F.col(name).cast("bigint").alias(name))
    return df.select(*chosen)


def _sorter(scratch: str, *, with_seq: bool) -> Callable[[int, Iterator[pa.RecordBatch]], list[SortedRun]]:
    def sort(_: int, batches: Iterator[pa.RecordBatch]) -> list[SortedRun]:
        with workshop(scratch) as home:
            writer = SortedRunWriter(home, with_seq=with_seq)
            for batch in batches:
                hashes = key_batch(index_keys(batch)).hashes()
                phys, times = int64_column(batch, "phy_offset"), int64_column(batch, "store_timestamp")
                writer.add(hashes, phys, times, int64_column(batch, "seq") if with_seq else None)
            return [run.delivered(scratch) for run in writer.finish()]

    return sort


def _begin(item: tuple[str, bool]) -> None:
    out, overwrite = item
    output_place.require_new(out, overwrite=overwrite)


def _check_room(item: tuple[str, int]) -> None:
    disk.check_space(*item)


def _needed(parts: Sequence[SortedPart]) -> int:
    """Bytes of the index files and of their merged entries."""
    entries = sum(part.stop - part.start for part in parts)
    files = sum(layout.index_file_size(part.hash_slot_num, part.index_num) for part in parts)
    return files + entries * layout.RUN_ENTRY_SIZE


def _publication(
    scratch: str, files: Sequence[Built], out: str, overwrite: bool, about: tuple[tuple[str, Any], ...]
) -> Publication:
    return Publication(
        scratch=scratch,
        out=out,
        aside=out + f".backup-{staging.backup_name()}" if overwrite else None,
        moves=tuple(index_moves(files)),
        directories=("index",),
        about=about,
    )
