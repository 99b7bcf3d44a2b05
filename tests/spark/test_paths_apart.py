"""Workers that do not see the files of the others: that is said before anything is written, of each kind of work."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mqindex.errors import FileStateError
from mqindex.spark import build_index, build_partition, rebuild, register, repair, verify
from tests.support.golden import case
from tests.support.spark_cluster import WORKERS, IsolatedCluster
from tests.support.tree import index_bytes

GEOMETRY = {"hash_slot_num": 7, "index_num": 20}
ENTRIES = [(f"T#key-{i % 37}", i * 100, 1_700_000_000_000 + i * 1500) for i in range(80)]
PARTS = 8
NOT_SEEN = r"^the worker on w[23] does not see it as the others do: "
NOT_THERE = "does not see it as the others do: "


def entries_of(spark: Any) -> Any:
    schema = "key string, phy_offset bigint, store_timestamp bigint"
    return spark.createDataFrame(ENTRIES, schema).repartitionByRange(PARTS, "phy_offset")


def parts(spark: Any, out: Path) -> list[str]:
    build = build_partition(out, **GEOMETRY)
    built = entries_of(spark).mapInArrow(build, "path string, entries bigint").collect()
    return sorted(str(Path(row.path).relative_to(out)) for row in built)


def index(spark: Any, out: Path) -> None:
    build_index(entries_of(spark), out, **GEOMETRY)


def rebuilt(spark: Any, store: Path, out: Path) -> int:
    return rebuild(spark, store, out).files


def repaired(spark: Any, store: Path) -> bool:
    return repair(spark, store).ok


def verified(spark: Any, store: Path) -> bool:
    return verify(spark, store).ok


def said_of_rows(spark: Any, source: str, path: Path) -> str:
    """What a read says where it fails; else how many rows there are."""
    register(spark)
    try:
        return f"{len(spark.read.format(source).load(str(path)).collect())} rows"
    except Exception as error:  # of Spark, with a traceback of the worker in it
        return str(error)


def tree(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*"))


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that is the same one on all machines."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield Path(path)


@pytest.fixture
def everywhere(isolated_cluster: IsolatedCluster) -> Iterator[Path]:
    """A directory that is on all machines, and another one on each: it is empty at first, and has no file at the end.

    Of what nobody has yet, one machine makes the empty directory, for which the others are asked.
    """
    path = isolated_cluster.data / "apart" / "everywhere"  # a directory is known by names in the one above
    own = [path, *(isolated_cluster.seen_by(name, path) for name in WORKERS)]
    for directory in own:
        directory.mkdir(parents=True)
    yield path
    left = [tree(directory) for directory in own]
    for directory in own:
        shutil.rmtree(directory.parent)
    assert [name for names in left for name in names] in ([], ["out"])


@pytest.mark.parametrize("write", [parts, index])
def test_output_of_each_worker_for_itself_is_refused(
    isolated_cluster: IsolatedCluster, everywhere: Path, tmp_path: Path, write: Any
) -> None:
    with pytest.raises(FileStateError, match=NOT_SEEN + str(tmp_path)):
        isolated_cluster.run(write, tmp_path / "out")
    assert tree(tmp_path) == []
    with pytest.raises(FileStateError, match=NOT_SEEN + str(everywhere)):
        isolated_cluster.run(write, everywhere / "out")


def test_output_directories_that_are_there_already_are_told_apart(
    isolated_cluster: IsolatedCluster, everywhere: Path
) -> None:
    with pytest.raises(FileStateError, match=NOT_SEEN + str(everywhere)):
        isolated_cluster.run(parts, everywhere)


def test_output_that_all_see_is_written(isolated_cluster: IsolatedCluster, shared: Path) -> None:
    written = isolated_cluster.run(parts, shared / "a" / "out")
    assert written == tree_of_parts(shared / "a" / "out")
    assert len(written) == PARTS
    isolated_cluster.run(index, shared / "built")
    assert sorted(path.name for path in shared.iterdir()) == ["a", "built"]


def tree_of_parts(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


def test_stores_that_workers_do_not_see_are_named(
    isolated_cluster: IsolatedCluster, golden: Path, tmp_path: Path
) -> None:
    for work in (verified, repaired):
        with pytest.raises(FileStateError, match=NOT_SEEN + str(golden)):
            isolated_cluster.run(work, golden)
    with pytest.raises(FileStateError, match=NOT_SEEN):
        isolated_cluster.run(rebuilt, golden, tmp_path / "out")
    assert tree(tmp_path) == []


def test_store_that_all_see_is_rebuilt_where_all_see_it_only(
    isolated_cluster: IsolatedCluster, shared: Path, everywhere: Path
) -> None:
    store = case("basic-493").unpack(shared)
    with pytest.raises(FileStateError, match=NOT_SEEN + str(everywhere)):
        isolated_cluster.run(rebuilt, store, everywhere / "out")
    isolated_cluster.run(rebuilt, store, shared / "out")
    assert index_bytes(shared / "out") == index_bytes(store)


@pytest.mark.parametrize("source", ["rocketmq_commitlog", "rocketmq_consumequeue", "rocketmq_index"])
def test_rows_of_files_that_workers_do_not_see_are_missed(
    isolated_cluster: IsolatedCluster, golden: Path, shared: Path, source: str
) -> None:
    """Also where a worker has empty directories there, as below a volume that is not mounted."""
    assert NOT_THERE in isolated_cluster.run(said_of_rows, source, golden)
    for name in WORKERS:
        for part in ("commitlog", "consumequeue", "index"):
            isolated_cluster.seen_by(name, golden / part).mkdir(parents=True)
    assert NOT_THERE in isolated_cluster.run(said_of_rows, source, golden)
    for name in WORKERS:
        shutil.rmtree(isolated_cluster.seen_by(name, golden))
    assert isolated_cluster.run(said_of_rows, source, case("basic-493").unpack(shared)).endswith(" rows")
