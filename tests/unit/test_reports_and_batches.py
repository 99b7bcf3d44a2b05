"""What people do with answers: ask a report whether it is fine, make a data frame of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from mqindex.columns.columns import BinaryColumn, Columns, HeadersColumn, StringColumn
from mqindex.report import Finding, RebuildReport, RepairReport, Report

pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")


@pytest.mark.parametrize("kind", [Report, RebuildReport, RepairReport])
def test_a_report_with_errors_is_not_true(kind):
    """`if verify(store):` took every store for a good one."""
    assert kind("store")
    assert kind("store", [Finding("warning", "stray-file"), Finding("info", "stale-tail")])
    assert not kind("store", [Finding("error", "bad-slot")])


def batch() -> Columns:
    text = StringColumn(np.frombuffer(b"onetwo", np.uint8), np.array([0, 3, 3, 6]), np.array([True, False, True]))
    data = BinaryColumn(np.frombuffer(b"\x00\xff", np.uint8), np.array([0, 1, 1, 2]))
    return Columns({"offset": np.array([1, 2, 3]), "key": text, "value": data})


def headers() -> HeadersColumn:
    names = StringColumn(np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2]))
    values = BinaryColumn(np.frombuffer(b"1", np.uint8), np.array([0, 1, 1]), np.array([True, False]))
    return HeadersColumn(np.array([0, 2, 2, 2]), names, values)


def test_pandas_does_not_take_the_names_of_columns_for_rows():
    """`pd.DataFrame(batch)` was one column that held the names."""
    with pytest.raises(TypeError, match=r"for pandas, batch\.to_pandas\(\)"):
        pd.DataFrame(batch())
    with pytest.raises(TypeError, match=r"take one, batch\[name\]"):
        np.asarray(batch())


def from_arrow(batch):
    if not hasattr(pd.DataFrame, "from_arrow"):
        pytest.skip("it is there from pandas 3 on")
    return pd.DataFrame.from_arrow(batch)


@pytest.mark.parametrize("make", [Columns.to_pandas, lambda batch: pd.DataFrame(dict(batch)), from_arrow])
def test_pandas_takes_a_batch_as_the_error_says(make):
    frame = make(Columns({**batch(), "headers": headers()}))
    assert (frame.shape, list(frame.columns)) == ((3, 4), ["offset", "key", "value", "headers"])
    assert (frame["offset"].tolist(), frame["value"].tolist()) == ([1, 2, 3], [b"\0", b"", b"\xff"])
    assert frame["key"].isna().tolist() == [False, True, False]
    assert [len(some) for some in frame["headers"]] == [2, 0, 0]


ROWS = [(1, "one", b"\0"), (2, None, b""), (3, "two", b"\xff")]


def test_arrow_takes_a_batch_as_it_is():
    assert [tuple(row.values()) for row in pa.table(batch()).to_pylist()] == ROWS


def test_polars_takes_a_batch_as_it_is():
    assert pytest.importorskip("polars").DataFrame(batch()).rows() == ROWS


def test_polars_takes_headers_too():
    """Pairs of text and bytes were refused: "unexpected value while building Series"."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(Columns({"offset": np.array([1, 2, 3]), "headers": headers()}))
    assert frame["headers"].to_list() == [[{"key": "a", "value": b"1"}, {"key": "b", "value": None}], [], []]
