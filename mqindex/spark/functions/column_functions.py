"""Functions of Arrow arrays as column functions: `arrow_udf`, and where PySpark 4.0 has none, `pandas_udf`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["by_value", "column_function", "directory_state"]


def column_function(function: Callable[..., pa.Array], result: Any) -> Any:
    """`function` of Arrow arrays, of a Spark type `result`, as a function of columns, also to be registered for SQL."""
    from pyspark.sql import functions

    if hasattr(functions, "arrow_udf"):
        return functions.arrow_udf(function, result)
    import pandas as pd  # type: ignore[import-untyped]

    def by_pandas(*columns: pd.Series) -> pd.Series:
        return function(*(_from_pandas(column) for column in columns)).to_pandas(integer_object_nulls=True)

    by_pandas.__annotations__ = {"columns": pd.Series, "return": pd.Series}
    return functions.pandas_udf(by_pandas, result)  # type: ignore[attr-defined]


def _from_pandas(column: Any) -> pa.Array:
    array = pa.Array.from_pandas(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


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


def directory_state(directory: str) -> tuple[tuple[str, int, int], ...]:
    """A value that changes when files are added, removed, replaced or grow: their names, inode numbers and lengths."""
    with os.scandir(directory) as entries:
        files = [(entry.name, entry.stat()) for entry in entries]
    return tuple(sorted((name, stat.st_ino, stat.st_size) for name, stat in files))
