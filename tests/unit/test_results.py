"""`Hits`, `StringColumn` and `Columns`, alone and as Arrow."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from mqindex.columns.columns import Columns, StringColumn
from mqindex.columns.hits import Hits
from tests.reference.java import decode_utf8

LISTS = [[7, 8], [], [9], [], []]


def hits() -> Hits:
    return Hits(np.array([7, 8, 9]), np.array([0, 2, 2, 3, 3, 3]))


def strings(texts: list[str | None]) -> StringColumn:
    data = [b"" if text is None else text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)])
    valid = np.array([text is not None for text in texts]) if None in texts else None
    return StringColumn(np.frombuffer(b"".join(data), np.uint8), offsets, valid)


TEXTS: list[str | None] = ["one", None, "", "消息 😀", "é"]


def test_hits_are_a_sequence_of_arrays() -> None:
    found = hits()
    assert len(found) == 5
    assert [part.tolist() for part in found] == LISTS
    assert [found[i].tolist() for i in range(-5, 5)] == LISTS + LISTS
    assert found.to_pylist() == LISTS
    assert found[1:3].to_pylist() == LISTS[1:3]
    assert found[4:2].to_pylist() == []
    for i in (5, -6):
        with pytest.raises(IndexError):
            found[i]
    with pytest.raises(ValueError, match="step"):
        found[::2]


def test_hits_of_no_key() -> None:
    none = Hits(np.empty(0, np.int64), np.zeros(1, np.int64))
    assert len(none) == 0 and none.to_pylist() == [] and list(none) == []


def test_hits_are_an_arrow_list() -> None:
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    array = pa.array(hits())
    array.validate(full=True)
    assert array.type == pa.list_(pa.int64()) and array.to_pylist() == LISTS
    assert pl.Series(hits()).to_list() == LISTS
    assert pa.array(hits()[1:3]).to_pylist() == LISTS[1:3]


def test_arrow_shares_the_values_and_keeps_them() -> None:
    pa = pytest.importorskip("pyarrow")
    found = hits()
    array = pa.array(found)
    assert array.values.buffers()[1].address == found.values.ctypes.data
    gone = weakref.ref(found.values)
    del found
    gc.collect()
    assert array.to_pylist() == LISTS
    del array
    gc.collect()
    assert gone() is None


def test_export_that_nobody_takes_is_released() -> None:
    found = hits()
    capsules = found.__arrow_c_array__()
    gone = weakref.ref(found.values)
    del found
    gc.collect()
    assert gone() is not None
    del capsules
    gc.collect()
    assert gone() is None


def test_strings_are_a_sequence() -> None:
    column = strings(TEXTS)
    assert column.to_pylist() == TEXTS
    assert [column[i] for i in range(-5, 5)] == TEXTS + TEXTS
    assert column[1:4].to_pylist() == TEXTS[1:4]
    assert list(column) == TEXTS
    with pytest.raises(IndexError):
        column[5]


@pytest.mark.parametrize("texts", [TEXTS, ["a", "b"], [], ["消息"], [None, None]])
def test_strings_are_an_arrow_array(texts: list[str | None]) -> None:
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    array = pa.array(strings(texts))
    array.validate(full=True)
    assert array.type == pa.string() and array.to_pylist() == texts
    assert array.null_count == texts.count(None)
    assert pl.Series(strings(texts)).to_list() == texts


@pytest.mark.parametrize("data", [b"a\xff", b"\xe6\xb6\x88", b"\x80", b"a\xed\xa0\x80"])
def test_bytes_that_are_no_utf8_reach_arrow_replaced(data: bytes) -> None:
    """Also where the whole is UTF-8 but a string starts inside a character."""
    pa = pytest.importorskip("pyarrow")
    column = StringColumn(np.frombuffer(data, np.uint8), np.array([0, 1, len(data)]))
    array = pa.array(column)
    array.validate(full=True)
    assert array.to_pylist() == column.to_pylist() == [decode_utf8(part) for part in (data[:1], data[1:])]


def test_columns_are_a_mapping() -> None:
    batch = Columns({"a": np.arange(5), "b": strings(TEXTS)})
    assert dict(batch).keys() == {"a", "b"}
    assert len(batch) == batch.num_rows == 5 and list(batch) == ["a", "b"] and "a" in batch
    assert Columns({}).num_rows == 0 and Columns({}, 7).num_rows == 7
    with pytest.raises(ValueError, match="rows"):
        Columns({"a": np.arange(5), "b": np.arange(4)})
    with pytest.raises(KeyError):
        batch["c"]


@pytest.mark.parametrize("code", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", ">i4", ">i8", "?"])
def test_columns_of_every_type_are_an_arrow_stream(code: str) -> None:
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    values: Any = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1], code)
    batch = Columns({"number": values, "text": strings(["x"] * 9), "strided": np.repeat(values, 2)[::2]})
    table = pa.table(batch)
    table.validate(full=True)
    assert table.column_names == ["number", "text", "strided"]
    assert table["number"].to_pylist() == table["strided"].to_pylist() == values.tolist()
    assert pl.DataFrame(batch)["number"].to_list() == values.tolist()


def test_stream_ends_after_one_batch_and_may_be_dropped_early() -> None:
    pa = pytest.importorskip("pyarrow")
    reader = pa.RecordBatchReader.from_stream(Columns({"a": np.arange(3)}))
    assert [batch.num_rows for batch in reader] == [3]
    values = np.arange(3)
    capsule = Columns({"a": values}).__arrow_c_stream__()
    gone = weakref.ref(values)
    del values, capsule
    gc.collect()
    assert gone() is None


def test_arrow_takes_single_columns_out() -> None:
    """A consumer may move a child away and drop the rest."""
    pa = pytest.importorskip("pyarrow")
    column = pa.table(Columns({"a": np.arange(3), "b": strings(["x", "y", "z"])}))["b"]
    gc.collect()
    assert column.to_pylist() == ["x", "y", "z"]


def test_every_result_says_what_it_is() -> None:
    assert repr(hits()) == "Hits(keys=5, values=3)"
    assert repr(strings(["ab"])) == "StringColumn(1 string, 2 bytes)"
    assert repr(Columns({"a": np.arange(3)})) == "Columns(a; 3 rows)"
