"""Keys of any origin give the same batch; what is no text is refused with its position."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest

from mqindex._native.keys import key_hash
from mqindex.columns.keys import key_batch, key_hashes
from tests.reference.java import key_hash as twin_hash

WORDS = ["a", "", "été", "消息", "😀", "polygenelubricants", "x" * 11, "x" * 12, "x" * 13, "y" * 100, "T#Cugcafb"]
EXPECTED = [twin_hash(word) for word in WORDS]


def arrow() -> Any:
    return pytest.importorskip("pyarrow")


def plain_forms() -> dict[str, Any]:
    wide = np.array(WORDS)
    return {
        "list": WORDS,
        "tuple": tuple(WORDS),
        "iterator": iter(WORDS),
        "dict keys": dict.fromkeys(WORDS).keys(),
        "ndarray U": wide,
        "ndarray U, other byte order": wide.astype(wide.dtype.newbyteorder()),
        "ndarray U, every second": np.repeat(wide, 2)[::2],
        "ndarray U, backwards": wide[::-1].copy()[::-1],
        "ndarray U, unaligned": unaligned(wide),
        "ndarray S": np.array([word.encode() for word in WORDS]),
        "ndarray S, every second": np.repeat(np.array([word.encode() for word in WORDS]), 2)[::2],
        "ndarray of object": np.array(WORDS, object),
        "list of numpy str": list(wide),
        "masked, nothing hidden": np.ma.array(wide),
        "str subclass": [type("Word", (str,), {})(word) for word in WORDS],
    }


def unaligned(wide: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    records = np.zeros(len(wide), np.dtype([("odd", "u1"), ("word", wide.dtype)]))
    records["word"] = wide
    return records["word"]


@pytest.mark.parametrize("form", plain_forms())
def test_every_form_of_text_gives_the_same_hashes(form: str) -> None:
    assert key_hashes(plain_forms()[form]).tolist() == EXPECTED


def test_numpy_strings_of_variable_width() -> None:
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("NumPy 1 has no StringDType")
    assert key_hashes(np.array(WORDS, np.dtypes.StringDType())).tolist() == EXPECTED


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"])
def test_arrow_arrays(kind: str) -> None:
    pa = arrow()
    of = getattr(pa, kind)()
    array = pa.array([word.encode() for word in WORDS] if "binary" in kind else WORDS, of)
    assert key_hashes(array).tolist() == EXPECTED
    assert key_hashes(array.slice(3, 4)).tolist() == EXPECTED[3:7]
    assert key_hashes(pa.chunked_array([array, array.slice(2), array.slice(0, 0)])).tolist() == EXPECTED + EXPECTED[2:]
    assert key_hashes(array.slice(2, 0)).tolist() == []


@pytest.mark.parametrize("index", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_arrow_dictionaries(index: str) -> None:
    pa = arrow()
    order = np.random.default_rng(7).integers(0, len(WORDS), 300)
    array = pa.DictionaryArray.from_arrays(pa.array(order, getattr(pa, index)()), pa.array(WORDS))
    expected = [twin_hash(f"T#{WORDS[i]}") for i in order]
    assert key_hashes(array, topic="T").tolist() == expected
    assert key_hashes(array.slice(17, 100), topic="T").tolist() == expected[17:117]


def test_polars_and_pandas() -> None:
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    assert key_hashes(pl.Series(WORDS)).tolist() == EXPECTED
    assert key_hashes(pl.Series(WORDS, dtype=pl.Categorical)).tolist() == EXPECTED
    assert key_hashes(pl.concat([pl.Series(WORDS), pl.Series(WORDS)], rechunk=False)).tolist() == 2 * EXPECTED
    assert key_hashes(pd.Series(WORDS)).tolist() == EXPECTED
    assert key_hashes(pd.Series(WORDS, dtype=object)).tolist() == EXPECTED
    assert key_hashes(pd.Series(WORDS, dtype="category")).tolist() == EXPECTED


def test_pandas_that_cannot_export_is_read_through_numpy() -> None:
    class Series:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ImportError("pyarrow")

        def __array__(self, dtype: object = None, copy: object = None) -> Any:
            return np.array(WORDS, object)

    assert key_hashes(Series()).tolist() == EXPECTED


def test_arrow_objects_without_pyarrow_names() -> None:
    """Any object with the interface will do, and the batch keeps what it points into."""
    pa = arrow()

    class Column:
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return pa.array(WORDS * 1000).__arrow_c_array__(requested_schema)

    batch = key_batch(Column())
    gc.collect()
    assert batch.hashes().tolist() == EXPECTED * 1000


def null_forms() -> dict[str, Any]:
    forms: dict[str, Any] = {
        "list": ["a", "b", None],
        "tuple": ("a", "b", None),
        "not a number": ["a", "b", float("nan")],
        "ndarray": np.array(["a", "b", None]),
        "masked U": np.ma.array(["a", "b", "c"], mask=[0, 0, 1]),
        "masked S": np.ma.array([b"a", b"b", b"c"], mask=[0, 0, 1]),
        "masked object": np.ma.array(np.array(["a", "b", "c"], object), mask=[0, 0, 1]),
    }
    pa = arrow()
    words = pa.array(["x", "a", "b", None])
    forms["arrow"] = words.slice(1)
    forms["arrow chunks"] = pa.chunked_array([["a"], ["b", None]])
    forms["arrow dictionary"] = words.slice(1).dictionary_encode()
    forms["null in the dictionary"] = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array(["a", None]))
    forms["arrow view"] = pa.array(["a", "b", None], pa.string_view())
    return forms


@pytest.mark.parametrize("form", null_forms())
def test_null_is_refused_with_its_position(form: str) -> None:
    with pytest.raises(ValueError, match="position 2"):
        key_batch(null_forms()[form])


def test_unused_null_in_a_dictionary_is_no_null() -> None:
    pa = arrow()
    array = pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), pa.array(["a", None, "b"]))
    assert key_hashes(array).tolist() == [97, 98, 97]


@pytest.mark.parametrize("keys", ["one", b"one", bytearray(b"one"), 7, None, object(), np.arange(3), np.array("one")])
def test_what_is_no_collection_of_text_is_a_type_error(keys: Any) -> None:
    with pytest.raises(TypeError, match="keys"):
        key_batch(keys)


def test_element_that_is_no_text_is_named_with_its_position() -> None:
    with pytest.raises(TypeError, match="got int at position 1"):
        key_batch(["a", 1])
    with pytest.raises(TypeError, match="got bytes at position 0"):
        key_batch([b"a"])


def test_arrow_of_another_type_is_a_type_error() -> None:
    pa, pl = arrow(), pytest.importorskip("polars")
    for keys in (pa.array([1]), pa.table({"a": ["a"]}), pa.array([["a"]]), pl.DataFrame({"a": ["a"]})):
        with pytest.raises(TypeError, match=r"expected strings, got|Arrow"):
            key_batch(keys)


def test_key_of_another_type_is_a_type_error() -> None:
    for key in (None, 1, b"a"):
        with pytest.raises(TypeError, match="key: expected str, got"):
            key_hash(key)  # type: ignore[arg-type]


def test_a_key_may_be_a_string_of_numpy() -> None:
    assert key_hash(np.str_("TopicTest#MessageKey")) == key_hash("TopicTest#MessageKey") == 638347386


def test_lone_surrogates_are_their_own_units() -> None:
    assert key_hashes(["\ud83d"]).tolist() == [0xD83D]
    assert key_hashes(["\ud83d\ude00", "😀"]).tolist() == [1772899, 1772899]


def test_batch_of_a_batch_is_itself() -> None:
    batch = key_batch(["a"])
    assert key_batch(batch) is batch
    assert len(batch) == 1
    assert key_batch(["a"], topic="T").seed == 84 * 31 + 35


def test_generators_and_numpy_arrays_may_be_empty() -> None:
    for keys in ([], (), iter(()), np.array([], "U1"), np.array([], object), np.array([]), arrow().array([])):
        assert key_hashes(keys).tolist() == []
    assert key_hashes(arrow().array([], arrow().string())).tolist() == []


def test_an_arrow_array_of_nulls_has_a_null() -> None:
    with pytest.raises(ValueError, match=r"^keys: null at position 0$"):
        key_hashes(arrow().nulls(2))
    with pytest.raises(ValueError, match=r"^keys: null at position 0$"):
        key_hashes(arrow().chunked_array([[], [None]]))


def test_no_reference_is_lost_or_kept() -> None:
    words = ["".join(["k", str(i)]) for i in range(50)]
    before = [sys.getrefcount(word) for word in words]
    for _ in range(100):
        key_hashes(words)
        key_hashes(tuple(words))
    assert [sys.getrefcount(word) for word in words] == before


def test_list_that_another_thread_changes_is_hashed_or_refused() -> None:
    words, stop = ["a"] * 1000, threading.Event()

    def churn() -> None:
        while not stop.is_set():
            words.append("b")
            del words[500:]
            words.extend(["c"] * 600)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(300):
            try:
                found = key_hashes(words)
            except ValueError as error:
                assert "size" in str(error)
            else:
                assert set(found.tolist()) <= {97, 98, 99}
    finally:
        stop.set()
        thread.join()
