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


# What follows needs no session: the functions are called as a task calls them.


def built(out: Path, rows: Any) -> Any:
    return list(build_partition(out, **GEOMETRY)(iter(rows)))


def entry_batch(**columns: Any) -> Any:
    made = {"key": pa.array(["T#a"]), "phy_offset": pa.array([1]), "store_timestamp": pa.array([1_700_000_000_000])}
    made |= columns
    return [pa.record_batch(list(made.values()), list(made))]


def test_a_first_row_that_is_none_is_a_null_key_and_loses_no_others(index: Path, tmp_path: Path) -> None:
    """The whole partition had no rows, in silence."""
    found = list(select_partition(index, topic="T")(iter([None, "key-1", None])))
    assert [tuple(row) for row in found] == [(None, None), ("key-1", expected_offsets()["key-1"]), (None, None)]
    with pytest.raises(ValueError, match=r"expected the columns key, .*, got key in row 0"):
        built(tmp_path / "out", [None, *ENTRIES])


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("store_timestamp", pa.array([1_700_000_000_000_000], pa.timestamp("us", tz="UTC"))),
        ("store_timestamp", pa.array([5], pa.duration("us"))),
        ("store_timestamp", pa.array(["12"])),
        ("phy_offset", pa.array([True])),
        ("phy_offset", pa.array([1.0])),
    ],
)
def test_a_column_that_has_no_integers_is_refused(tmp_path: Path, column: str, values: Any) -> None:
    """Microseconds were written as milliseconds."""
    with pytest.raises(TypeError, match=f"^{column}.*: expected (a )?whole number"):
        built(tmp_path / "out", entry_batch(**{column: values}))
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("wrong", [1.9, True, "12", None])
def test_a_row_s_value_that_is_no_integer_is_refused(tmp_path: Path, wrong: Any) -> None:
    """1.9 was cut to 1."""
    with pytest.raises(TypeError, match=f"^phy_offset, row 1: expected a whole number, got {wrong!r}$"):
        built(tmp_path / "out", [("T#a", 1, 5), ("T#b", wrong, 6)])
    with pytest.raises(OverflowError, match=r"^phy_offset, row 0: expected 64 bits, got 36893488147419103232$"):
        built(tmp_path / "out", [("T#a", 2**65, 5)])


def test_rows_that_differ_in_their_columns_are_refused(index: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """A topic that the first row did not have was left out of all keys."""
    monkeypatch.setattr("mqindex.spark.rows.BATCH_ROWS", 1)
    entry = {"key": "k", "phy_offset": 1, "store_timestamp": 5}
    due = "expected the columns key, phy_offset, store_timestamp in each row of a partition"
    with pytest.raises(ValueError, match=f"^topic: {due}, got key, phy_offset, store_timestamp, topic in row 1$"):
        built(tmp_path / "out", [entry, {**entry, "topic": "T"}])
    with pytest.raises(ValueError, match=r"^topic: expected the columns topic, key, .*, got key, .* in row 2$"):
        built(tmp_path / "out", [{**entry, "topic": "T"}, {**entry, "topic": "T"}, entry])
    with pytest.raises(ValueError, match=f"^store_timestamp: {due}, got key, phy_offset in row 1$"):
        built(tmp_path / "out", [("T#k", 1, 5), ("T#k", 1)])
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(
        ValueError, match=r"^key: expected the columns key in each row of a partition, got kee in row 1$"
    ):
        list(select_partition(index)(iter([{"key": "a", "other": 1}, {"kee": "b"}])))


def test_what_is_no_row_and_no_key_is_told_by_its_place(index: Path) -> None:
    look_up = select_partition(index, topic="T")
    for row, name in ((1, "int"), (["key-1"], "list")):
        with pytest.raises(TypeError, match=f"^row 1: expected a Row, a dict, a tuple or a key, got {name}, "):
            list(look_up(iter(["key-1", row])))
    for key in (5, "\ud800", b"\xff"):
        with pytest.raises(ValueError, match=r"^key, row 1: expected text in UTF-8, got "):
            list(look_up(iter([("key-1",), (key,)])))


def test_keys_of_a_dictionary_are_looked_up(tmp_path: Path) -> None:
    """They were refused, though every other call takes them."""
    (batch,) = built(tmp_path / "out", entry_batch(topic=pa.array(["T"]), key=pa.array(["a"])))
    index = Path(batch.column("path")[0].as_py()).parent
    keys = pa.record_batch([pa.array(["b", "a", None, "a"]).dictionary_encode()], ["key"])
    (found,) = select_partition(index, topic="T")(iter([keys]))
    assert found.column("phy_offsets").to_pylist() == [[], [1], None, [1]]


TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("topic", TEXTS, ids=str)
@pytest.mark.parametrize("key", TEXTS, ids=str)
def test_topic_and_key_may_be_texts_of_two_types(tmp_path: Path, topic: Any, key: Any) -> None:
    """Arrow found no kernel to join a string and a binary."""
    columns = {"topic": pa.array(["T"]).cast(topic), "key": pa.array(["订单"]).cast(key)}
    (batch,) = built(tmp_path / "out", entry_batch(**columns))
    (path,) = batch.column("path").to_pylist()
    assert [Path(path).read_bytes()] == expected_files([("T#订单", 1, 1_700_000_000_000)])


@pytest.mark.parametrize("column", ["topic", "key"])
def test_a_topic_or_key_that_is_no_text_is_told(tmp_path: Path, column: str) -> None:
    with pytest.raises(TypeError, match=f"^{column}: expected text, got int64$"):
        built(tmp_path / "out", entry_batch(**{column: pa.array([1])}))
