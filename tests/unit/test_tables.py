"""`Columns` as a table: rows taken, parts joined, and what pandas, polars and Arrow make of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mqindex
from mqindex import rocketmq
from mqindex.columns.columns import BinaryColumn, Columns, HeadersColumn, MapColumn, StringColumn


def text(*values: str | None) -> StringColumn:
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)])
    valid = None if None not in values else np.array([value is not None for value in values])
    return StringColumn(np.frombuffer(b"".join(encoded), np.uint8), offsets, valid)


def a_table() -> Columns:
    values = BinaryColumn(np.frombuffer(b"xyz", np.uint8), np.array([0, 1, 1, 3]), np.array([True, False, True]))
    return Columns(
        {
            "number": np.array([1, 2, 3], np.int32),
            "flag": np.array([True, False, True]),
            "time": np.array([0, "NaT", 1500], "M8[ms]"),
            "text": text("a", None, "öü"),
            "bytes": values,
            "headers": HeadersColumn(np.array([0, 1, 1, 3]), text("h", "i", "j"), values),
            "map": MapColumn(np.array([0, 2, 2, 3]), text("k", "l", "k"), text("1", "2", "3")),
        }
    )


def rows(table: Columns) -> list[dict[str, Any]]:
    lists = {
        name: column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
        for name, column in table.items()
    }
    return [{name: column[i] for name, column in lists.items()} for i in range(len(table))]


def test_the_length_is_that_of_the_rows() -> None:
    assert len(a_table()) == a_table().num_rows == 3 and len(dict(a_table())) == 7
    assert not Columns({"n": np.empty(0, np.int64)}) and mqindex.Columns is Columns


@pytest.mark.parametrize("wanted", [[], [2], [2, 0, 0], [1, 1], [0, 1, 2], [True, False, True], [False] * 3])
def test_rows_are_taken_in_the_order_asked(wanted: list[Any]) -> None:
    numbers = np.flatnonzero(wanted) if wanted and isinstance(wanted[0], bool) else wanted
    assert rows(a_table().take(wanted)) == [rows(a_table())[i] for i in numbers]


def test_rows_that_are_not_there_are_refused() -> None:
    for wanted in ([3], [-1]):
        with pytest.raises(IndexError, match="row"):
            Columns({"text": text("a", "b", "c")}).take(wanted)
    with pytest.raises(ValueError, match="rows: expected 3 bools, got 2"):
        a_table().take([True, False])
    with pytest.raises(TypeError):
        a_table().take([0.5])


def test_parts_are_joined() -> None:
    whole = a_table()
    parts = [whole.take([0]), whole.take([]), whole.take([1, 2])]
    assert rows(Columns.concat(parts)) == rows(whole)
    cut = Columns({"text": whole["text"][1:], "headers": whole["headers"][1:], "map": whole["map"][1:]})
    assert rows(Columns.concat([cut, cut])) == 2 * rows(cut)


def test_what_arrow_pandas_and_polars_make_of_it() -> None:
    for package in ("pyarrow", "pandas", "polars"):
        pytest.importorskip(package)
    table = a_table().to_arrow()
    assert str(table.schema.field("time").type) == "timestamp[ms, tz=UTC]"
    assert str(table.schema.field("map").type) == "map<string, string>"
    assert table["time"].null_count == 1 and table["text"].to_pylist() == ["a", None, "öü"]
    assert table["map"].to_pylist() == [[("k", "1"), ("l", "2")], [], [("k", "3")]]
    assert a_table().to_pandas()["time"].isna().tolist() == [False, True, False]
    frame = a_table().to_polars()
    assert frame["bytes"].to_list() == [b"x", None, b"yz"]
    assert str(frame.schema["time"]) == "Datetime(time_unit='ms', time_zone='UTC')"
    assert a_table().take([]).to_polars().schema == frame.schema
    assert a_table().select([]).to_polars().width == 0


def test_hits_too() -> None:
    for package in ("pyarrow", "pandas", "polars"):
        pytest.importorskip(package)
    hits = mqindex.Hits(np.array([7, 8, 9]), np.array([0, 2, 2, 3]))
    assert hits.to_arrow().to_pylist() == hits.to_polars().to_list() == [[7, 8], [], [9]]
    assert [found.tolist() for found in hits.to_pandas()] == [[7, 8], [], [9]]


def test_a_topic_between_two_times_with_bodies_as_json_takes_three_lines(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    start = datetime(2026, 11, 21, 8, tzinfo=UTC)
    config = {"maxHashSlotNum": 100, "maxIndexNum": 400, "mappedFileSizeCommitLog": 1 << 20}
    with rocketmq.MessageStore.open(tmp_path / "store", writable=True, config=config) as store:
        for hour in range(4):
            for topic in ("Orders", "Other"):
                store.put_message(
                    rocketmq.NewMessage(
                        topic, b'{"id": %d}' % hour, store_timestamp=round((start.timestamp() + 3600 * hour) * 1000)
                    )
                )
    begin, end = start + timedelta(hours=1), start + timedelta(hours=3)

    in_time = (pl.col("topic") == "Orders") & pl.col("store_timestamp").is_between(begin, end, closed="left")
    found = mqindex.dataset(tmp_path / "store", cache=False).lazy().filter(in_time).select("store_timestamp", "body")
    frame = found.with_columns(pl.col("body").cast(pl.String).str.json_decode(pl.Struct({"id": pl.Int64}))).collect()

    assert frame["body"].to_list() == [{"id": 1}, {"id": 2}]
    assert frame["store_timestamp"].to_list() == [begin, begin + timedelta(hours=1)]
