"""Functions of Arrow arrays as column functions: `arrow_udf`, and where PySpark 4.0 has none, `pandas_udf`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mqindex.files import disk
from mqindex.files.paths import scan
from mqindex.files.places.place import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def column_function(name: str, function: Callable[..., pa.Array], result: Any) -> Any:
    """`function` of Arrow arrays, of a Spark type `result`, as a function of columns, also to be registered for SQL.

    name : of its columns, and in Python's error about its arguments.
    """
    from pyspark.sql import functions

    function.__name__ = function.__qualname__ = name
    if hasattr(functions, "arrow_udf"):
        return functions.arrow_udf(function, result)
    import pandas as pd  # type: ignore[import-untyped]

    def by_pandas(*columns: pd.Series) -> pd.Series:
        return function(*(_from_pandas(column) for column in columns)).to_pandas(integer_object_nulls=True)

    by_pandas.__name__ = by_pandas.__qualname__ = name
    by_pandas.__annotations__ = {"columns": pd.Series, "return": pd.Series}
    return functions.pandas_udf(by_pandas, result)  # type: ignore[attr-defined]


def register_function(spark: SparkSession, name: str, function: Callable[..., pa.Array], result: Any) -> None:
    """`function` as a function of SQL."""
    spark.udf.register(name, column_function(name, function, result))


def _from_pandas(column: Any) -> pa.Array:
    array = pa.Array.from_pandas(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_floating(array.type) and array.null_count and _is_whole(array):
        return array.cast(pa.int64())  # pandas had made floats of integers with nulls
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def _is_whole(array: pa.Array) -> bool:
    return bool(pc.all(pc.equal(array, pc.round(array))).as_py())


def by_value(
    argument: pa.Array, keys: pa.Array, function: Callable[[Any, pa.Array], pa.Array], kind: pa.DataType
) -> pa.Array:
    """`function(value, keys)` for each distinct value of an argument that SQL gives as a column: mostly one."""
    values = argument.unique().to_pylist()
    if len(values) == 1 and values[0] is not None:
        return function(values[0], keys)
    places, parts = [], []
    for value in values:
        here = pc.is_null(argument) if value is None else pc.equal(argument, value).fill_null(False)
        chosen = keys.filter(here)
        places.append(np.flatnonzero(here.to_numpy(zero_copy_only=False)))
        parts.append(pa.nulls(len(chosen), kind) if value is None else function(value, chosen))
    if not parts:
        return pa.nulls(0, kind)
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(places))))


def files_state(paths: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
    """A value that changes when files are added, removed, replaced or grow: their names, inode numbers and lengths.

    A file that is gone by now, and a link that leads nowhere, are left out.
    """
    found = [(path, disk.status(path)) for path in sorted(paths)]
    return tuple((path, stat.st_ino, stat.st_size) for path, stat in found if stat is not None)


def directory_state(directory: str) -> tuple[tuple[str, int, int], ...]:
    """The same for all files in a directory; of one elsewhere by one request."""
    if not isinstance(directory, Place):
        return files_state(os.path.join(directory, name) for name in os.listdir(directory))
    found = [(entry.path, entry.stat()) for entry in scan(directory)]
    return tuple((path, stat.st_ino, stat.st_size) for path, stat in found)
