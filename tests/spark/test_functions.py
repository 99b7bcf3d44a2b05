"""Column functions and their SQL forms answer as `IndexService` does."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mqindex import rocketmq
from mqindex.errors import FileStateError, GeometryError
from mqindex.rocketmq import IndexService
from mqindex.spark import hash_slot, key_hash, select_partition, select_phy_offset
from mqindex.spark.functions import rocketmq as functions
from mqindex.spark.functions.rocketmq import Lookup
from tests.reference.java import key_hash as reference_hash
from tests.support.golden import case

TRICKY = ["", "Aa", "BB", "polygenelubricants", "TopicTest#😀", "TopicTest#订单-42", "T#Cugcafb", None]


def full_keys() -> list[str]:
    messages = case("basic-493").truth["messages"]
    keys = {f"{said['topic']}#{key}" for said in messages for key in (said["keys"] or "").split(" ") if key}
    return [*sorted(keys)[:300], "AaTopic#nothing"]


def frame(spark: Any, keys: list[str | None]) -> Any:
    return spark.createDataFrame([(key,) for key in keys], "key string").repartition(3)


def test_offsets_of_each_key_are_those_of_the_broker_s_query(spark: Any, golden: Path) -> None:
    keys = full_keys()
    rows = (
        frame(spark, [*keys, None]).select("key", select_phy_offset(golden / "index")("key").alias("found")).collect()
    )
    with IndexService.open(golden / "index") as service:
        expected = dict(zip(keys, service.query_offsets(None, keys).to_pylist(), strict=True))
    assert {row.key: row.found for row in rows} == {**expected, None: None}
    assert sum(map(len, expected.values())) > len(keys)


def test_topic_limits_and_times_are_those_of_the_query(spark: Any, golden: Path) -> None:
    messages = [said for said in case("basic-493").truth["messages"] if said["topic"] == "AaTopic" and said["uniqKey"]]
    keys = [said["uniqKey"] for said in messages] + ["Aa"]
    begin, end = messages[len(messages) // 3]["storeTimestamp"], messages[len(messages) // 2]["storeTimestamp"]
    limits = {"max_num": 2, "begin": begin, "end": end}
    chosen = select_phy_offset(golden / "index", topic="AaTopic", hash_slot_num=100, index_num=400, **limits)
    rows = frame(spark, keys).select("key", chosen("key").alias("found")).collect()
    with IndexService.open(golden / "index") as service:
        expected = service.query_offsets("AaTopic", keys, **limits).to_pylist()
    assert {row.key: row.found for row in rows} == dict(zip(keys, expected, strict=True))
    assert any(expected)


def test_hashes_and_slots_are_java_s(spark: Any) -> None:
    rows = (
        frame(spark, TRICKY).select("key", key_hash("key").alias("hash"), hash_slot("key", 7).alias("slot")).collect()
    )
    assert {row.key: row.hash for row in rows} == {key: None if key is None else reference_hash(key) for key in TRICKY}
    assert all(row.slot == (None if row.hash is None else row.hash % 7) for row in rows)
    for n in (0, 2**31, 2.5, True, "7"):
        with pytest.raises((ValueError, TypeError), match=r"^n: expected a whole number from 1 to 2147483647, got "):
            hash_slot("key", n)  # type: ignore[arg-type]


def test_sql_functions_answer_as_the_column_functions(registered: Any, golden: Path) -> None:
    keys = [key for key in full_keys() if "'" not in key][:50]
    frame(registered, [*keys, None]).createOrReplaceTempView("some_keys")
    rows = registered.sql(
        f"SELECT key, key_hash(key) h, hash_slot(key, 100) s, select_phy_offset('{golden}/index', key) o FROM some_keys"
    ).collect()
    with IndexService.open(golden / "index") as service:
        expected = dict(zip(keys, service.query_offsets(None, keys).to_pylist(), strict=True))
    assert {row.key: row.o for row in rows} == {**expected, None: None}
    assert {row.key: row.h for row in rows} == {**{key: rocketmq.key_hash(key) for key in keys}, None: None}
    assert {row.s for row in rows if row.key} == {rocketmq.key_hash(key) % 100 for key in keys}


def test_sql_arguments_may_differ_from_row_to_row(registered: Any, golden: Path, tmp_path: Path) -> None:
    with IndexService.open(tmp_path, hash_slot_num=5, index_num=9, writable=True) as service:
        service.build_index("T", ["k"], [77], [1000])
        service.flush()
    rows = [(str(golden / "index"), "AaTopic#Aa", 3), (str(tmp_path), "T#k", 5), (None, "T#k", None)]
    registered.createDataFrame(rows, "place string, key string, n int").coalesce(1).createOrReplaceTempView("mixed")
    found = registered.sql("SELECT place, select_phy_offset(place, key) o, hash_slot(key, n) s FROM mixed").collect()
    with IndexService.open(golden / "index") as service:
        expected = service.query_offset("AaTopic", "Aa").phy_offsets.tolist()
    assert [row.o for row in found] == [expected, [77], None]
    assert [row.s for row in found] == [reference_hash("AaTopic#Aa") % 3, reference_hash("T#k") % 5, None]


def test_files_that_come_later_are_seen(spark: Any, tmp_path: Path) -> None:
    keys = frame(spark, ["T#k"])
    look_up = select_phy_offset(tmp_path)
    for number in range(3):
        with IndexService.open(tmp_path, hash_slot_num=5, index_num=2, writable=True) as service:
            service.build_index("T", ["k"], [number], [1000 + number])
            service.flush()
        found = keys.select(look_up("key").alias("found")).collect()[0].found
        assert found == list(range(number, -1, -1))


@pytest.mark.parametrize("function", [select_phy_offset, select_partition])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"topic": 5}, "topic: expected str, got int"),
        ({"max_num": -1}, "max_num: expected 0 or more, got -1"),
        ({"max_num": "5"}, "max_num: expected a whole number, got '5'"),
        ({"begin": 1.5}, "begin: expected ms since the epoch, an aware datetime or a datetime64, got float, 1.5"),
        ({"end": datetime(2023, 11, 14)}, "end: expected a datetime with a time zone, got 2023-11-14 00:00:00"),
        ({"hash_slot_num": 0}, "hash_slot_num: expected a whole number from 1 to 2147483647, got 0"),
    ],
    ids=["topic", "max_num", "text", "begin", "end", "geometry"],
)
def test_arguments_are_refused_at_once(function: Any, arguments: dict[str, Any], said: str, golden: Path) -> None:
    """They were refused in a worker, when the query ran, below a page of Java."""
    with pytest.raises((TypeError, ValueError), match=rf"^{re.escape(said)}"):
        function(golden, **arguments)


def test_a_doubtful_period_is_a_warning_of_this_process(golden: Path) -> None:
    """Only the workers warned, where nobody sees it."""
    with pytest.warns(UserWarning, match="begin 5 is after end 3: nothing is between them"):
        select_phy_offset(golden, begin=5, end=3)


def test_columns_have_the_names_of_their_functions(spark: Any, golden: Path) -> None:
    """They were `select(key)`, `hashes(key)` and `slot(key)`."""
    chosen = select_phy_offset(golden)
    found = frame(spark, ["k"]).select(chosen("key"), key_hash("key"), hash_slot("key", 7))
    assert found.columns == ["select_phy_offset(key)", "key_hash(key)", "hash_slot(key)"]
    with pytest.raises(
        Exception, match=r"TypeError: select_phy_offset\(\) takes 1 positional argument but 2 were given"
    ):
        frame(spark, ["k"]).select(chosen("key", "key")).collect()  # type: ignore[call-arg]


def test_a_column_in_place_of_a_number_is_told(spark: Any, golden: Path) -> None:
    """It was `CANNOT_CONVERT_COLUMN_INTO_BOOL`."""
    column = frame(spark, ["k"])["key"]
    with pytest.raises(TypeError, match=r"^n: expected a whole number from 1 to 2147483647, got Column<'key'>"):
        hash_slot("key", column)
    with pytest.raises(TypeError, match=r"^begin: expected ms since the epoch, .*, got Column$"):
        select_phy_offset(golden, begin=column)


def test_wrong_geometry_is_told(spark: Any, golden: Path) -> None:
    look_up = select_phy_offset(golden / "index", hash_slot_num=3, index_num=400)
    hint = "; the arguments hash_slot_num and index_num are those of the broker: by default 5000000 and 20000000"
    with pytest.raises(Exception, match=GeometryError.__name__ + ".*" + hint):
        frame(spark, ["k"]).select(look_up("key")).collect()


def test_sql_is_told_what_takes_a_geometry(registered: Any, tmp_path: Path) -> None:
    """The hint named options of the shell and of Python."""
    with IndexService.open(tmp_path, hash_slot_num=5, index_num=7, writable=True) as service:
        service.build_index("T", ["k"], [0], [1000])
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:40].ljust(path.stat().st_size, b"\xff"))
    with pytest.raises(
        Exception, match=r"; in SQL it takes none: mqindex\.spark\.select_phy_offset, a column function"
    ):
        registered.sql(f"select select_phy_offset('{tmp_path}', 'T#k')").collect()


def test_a_null_without_a_type_stays_null(registered: Any, golden: Path) -> None:
    """SQL's NULL is of type void."""
    row = registered.sql(
        f"select key_hash(null), hash_slot(null, 100), select_phy_offset('{golden}/index', null)"
    ).collect()[0]
    assert tuple(row) == (None, None, None)


def test_keys_of_another_type_are_told(registered: Any) -> None:
    with pytest.raises(Exception, match="key: expected a string, got int32"):
        registered.sql("select key_hash(5)").collect()


@pytest.mark.parametrize("n", ["5000000000", "0", "2.5", "true", "'a'"])
def test_a_number_of_slots_that_no_broker_has_is_told(registered: Any, n: str) -> None:
    """`true` was 1, and 2.5 a divisor."""
    with pytest.raises(Exception, match="n: expected a whole number from 1 to 2147483647, got "):
        registered.sql(f"select hash_slot('T#k', {n})").collect()


def test_sql_functions_with_other_arguments_are_told_by_their_names(registered: Any) -> None:
    """`register_functions.<locals>.select()` missed an argument `keys`."""
    for call, missing in (
        ("select_phy_offset('T#k')", "key"),
        ("hash_slot('T#k')", "n"),
        ("offset_for_timestamp('/orders-0')", "timestamp"),
    ):
        name = call.partition("(")[0]
        with pytest.raises(Exception, match=rf"TypeError: {name}\(\) missing 1 required .* '{missing}'"):
            registered.sql(f"select {call}").collect()


def test_links_that_lead_nowhere_and_files_that_go_do_not_fail_a_look_up(tmp_path: Path, monkeypatch: Any) -> None:
    """As `IndexService.open`, which skips the one, and opens what a broker has left."""
    keys = pa.array(["T#k"])
    for number in range(2):
        with IndexService.open(tmp_path, hash_slot_num=5, index_num=2, writable=True) as service:
            service.build_index("T", ["k"], [number], [1000 + number])
            service.flush()
    (tmp_path / "notes").symlink_to(tmp_path / "nothing")
    with pytest.warns(UserWarning, match="its name is not a number"):
        assert Lookup(tmp_path)(keys).to_pylist() == [[1, 0]]
    (tmp_path / "notes").unlink()
    look_up, listed, first = Lookup(tmp_path), functions.index_paths, min(tmp_path.iterdir())

    def then_delete(directory: str) -> list[str]:
        paths = listed(directory)
        first.unlink()
        return paths

    monkeypatch.setattr(functions, "index_paths", then_delete)
    assert look_up(keys).to_pylist() == [[1]]
    functions._opened.cache_clear()


def test_a_worker_that_sees_no_index_file_does_not_answer(tmp_path: Path) -> None:
    """An empty directory in place of a volume: each key had no offsets."""
    index = tmp_path / "index"
    with IndexService.open(index, hash_slot_num=5, index_num=2, writable=True) as service:
        service.build_index("T", ["k"], [7], [1000])
        service.flush()
    look_up = Lookup(tmp_path)
    assert look_up(pa.array(["T#k"])).to_pylist() == [[7]]
    for path in index.iterdir():
        path.unlink()
    with pytest.raises(FileStateError, match=f"^the worker on .* does not see it as the others do: {index}; "):
        look_up(pa.array(["T#k"]))
    assert Lookup(tmp_path)(pa.array(["T#k"])).to_pylist() == [[]]
