"""Functions over partitions work on record batches (mapInArrow) and on rows (mapPartitions) alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mqindex.errors import OutputExistsError
from mqindex.rocketmq import IndexService
from mqindex.spark import build_partition, select_partition
from tests.reference.index_service import IndexService as Reference
from tests.spark.conftest import CONNECT
from tests.support.tree import scraps

classic_only = pytest.mark.skipif(CONNECT, reason="Connect has no RDDs")
GEOMETRY = {"hash_slot_num": 7, "index_num": 20}
ENTRIES = [(f"T#key-{i % 37}", i * 100, 1_700_000_000_000 + i * 1500) for i in range(100)]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    with IndexService.open(tmp_path / "index", writable=True, **GEOMETRY) as service:
        for key, phy_offset, time in ENTRIES:
            service.build_index(None, [key], [phy_offset], [time])
        service.flush()
    return tmp_path / "index"


def expected_offsets() -> dict[str, list[int]]:
    service = Reference(7, 20)
    for key, phy_offset, time in ENTRIES:
        service.put(key, phy_offset, time)
    keys = {f"key-{i}" for i in range(40)}
    return {key: service.query_offset("T", key).phy_offsets for key in keys}


def expected_files(entries: list[tuple[str, int, int]]) -> list[bytes]:
    service = Reference(7, 20)
    for entry in entries:
        service.put(*entry)
    return [file.flush() for file in service.files]


def test_select_over_record_batches(spark: Any, index: Path) -> None:
    frame = spark.createDataFrame([(f"key-{i}", i) for i in range(40)], "key string, n int").repartition(3)
    found = frame.mapInArrow(select_partition(index, topic="T"), "key string, phy_offsets array<bigint>").collect()
    assert {row.key: row.phy_offsets for row in found} == expected_offsets()


@classic_only
@pytest.mark.parametrize("form", ["row", "tuple", "str"])
def test_select_over_rows(spark: Any, index: Path, form: str) -> None:
    from pyspark.sql import Row

    make = {"row": lambda key: Row(n=1, key=key), "tuple": lambda key: (key,), "str": str}[form]
    rdd = spark.sparkContext.parallelize([make(f"key-{i}") for i in range(40)], 3)
    found = rdd.mapPartitions(select_partition(index, topic="T")).collect()
    assert {row.key: row.phy_offsets for row in found} == expected_offsets()


def test_build_over_record_batches(spark: Any, tmp_path: Path) -> None:
    rows = [(key.partition("#")[2], "T", phy_offset, time) for key, phy_offset, time in ENTRIES]
    frame = spark.createDataFrame(rows, "key string, topic string, phy_offset bigint, store_timestamp bigint")
    build = build_partition(tmp_path / "out", **GEOMETRY)
    built = frame.coalesce(1).mapInArrow(build, "path string, entries bigint").collect()
    expected = expected_files(ENTRIES)
    assert [Path(row.path).read_bytes() for row in built] == expected
    assert [row.entries for row in built] == [19] * 5 + [5]
    assert {Path(row.path).parent for row in built} == {tmp_path / "out" / "part-0" / "index"}
    assert scraps(tmp_path) == []


@classic_only
def test_build_over_rows_gives_each_partition_files_of_its_own(spark: Any, tmp_path: Path) -> None:
    rdd = spark.sparkContext.parallelize(ENTRIES, 2).map(
        lambda entry: dict(zip(("key", "phy_offset", "store_timestamp"), entry, strict=True))
    )
    built = rdd.mapPartitions(build_partition(tmp_path / "out", **GEOMETRY)).collect()
    for number, part in enumerate((ENTRIES[:50], ENTRIES[50:])):
        paths = sorted((tmp_path / "out" / f"part-{number}" / "index").iterdir())
        assert [path.read_bytes() for path in paths] == expected_files(part)
    assert sum(row.entries for row in built) == 100
    assert scraps(tmp_path) == []


def test_second_attempt_finds_the_work_done_and_other_content_is_refused(tmp_path: Path) -> None:
    def batches(entries: list[tuple[str, int, int]]) -> Any:
        columns = [pa.array(column) for column in zip(*entries, strict=True)]
        return iter([pa.record_batch(columns, ["key", "phy_offset", "store_timestamp"])])

    build = build_partition(tmp_path, **GEOMETRY)
    (first,) = build(batches(ENTRIES))
    (again,) = build(batches(ENTRIES))
    assert first.equals(again)
    with pytest.raises(OutputExistsError, match="holds something else"):
        list(build(batches(ENTRIES[1:])))
    assert first.column("path").to_pylist() == [str(path) for path in sorted((tmp_path / "part-0" / "index").iterdir())]
    assert scraps(tmp_path) == []


def test_partition_without_rows_gives_nothing(tmp_path: Path) -> None:
    assert list(build_partition(tmp_path / "out", **GEOMETRY)(iter(()))) == []
    assert list(select_partition(tmp_path)(iter(()))) == []


def test_missing_column_and_null_are_named(tmp_path: Path) -> None:
    build = build_partition(tmp_path / "out", **GEOMETRY)
    with pytest.raises(ValueError, match="expected one column phy_offset, got the columns key"):
        list(build(iter([pa.record_batch([pa.array(["k"])], ["key"])])))
    with pytest.raises(ValueError, match="key: null in row 1 of a batch"):
        list(build(iter([("a", 1, 1), (None, 2, 2)])))
    assert scraps(tmp_path) == []
    assert list((tmp_path / "out").iterdir()) == []
