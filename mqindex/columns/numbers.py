"""Arrays of whole numbers and of times that callers give, in whatever form they come, as int64 for the kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex._native.numbers import int64, milliseconds, whole_number

Time: TypeAlias = int | datetime | np.datetime64
"""ms since the epoch, an aware datetime (pandas' too), or a datetime64, which counts as UTC."""

Times: TypeAlias = Any
"""int64[n] in ms since the epoch, datetime64[n], a sequence of `Time`, or Arrow, polars or pandas timestamps."""

_MAX: Final = 2**63 - 1


def int64s(name: str, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Whole numbers in one dimension; anything else is refused, never rounded.

    Raises
    ------
    TypeError : floats, bools, text, a set, a single number. ValueError : a null; the message names its position.
    OverflowError : more than 64 bits

    >>> int64s("offsets", [1, 2]).tolist()
    [1, 2]
    """
    return _converted(name, values, "whole numbers", whole_number)


def times(name: str, values: Times) -> npt.NDArray[np.int64]:
    """The same of times, in ms since the epoch, rounded down.

    >>> times("store_timestamps", np.array(["2023-11-14T22:13:20.123456"], "datetime64[us]")).tolist()
    [1700000000123]
    """
    return _converted(name, values, "whole numbers (ms since the epoch) or datetime64", milliseconds)


def _converted(name: str, values: Any, expected: str, one: Callable[[str, Any], int]) -> npt.NDArray[np.int64]:
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty((0, 0))
    if array.ndim != 1:
        got = f"got {type(values).__name__}" if array.ndim == 0 else f"got {array.ndim}"
        raise TypeError(f"{name}: expected {expected} in one dimension, {got}")
    kind = array.dtype.kind
    if not array.size:
        return np.empty(0, np.int64)
    if type(values) is not np.ndarray:
        _refuse_hidden(name, values, array)
    if kind == "M" and one is milliseconds:
        refuse_nulls(name, np.isnat(array))
        return array.astype("datetime64[ms]").astype(np.int64)
    if kind == "O":
        return _one_by_one(name, array, one)
    if kind == "f":
        refuse_nulls(name, np.isnan(array))
    if kind not in "iu":
        raise TypeError(f"{name}: expected {expected}, got {array.dtype}, {array[0]} at position 0")
    if array.dtype == np.uint64 and array.max() > _MAX:
        at = int(np.argmax(array > _MAX))
        raise OverflowError(f"{name}: expected 64-bit signed integers, got {array[at]} at position {at}")
    return np.ascontiguousarray(array, np.int64)


def _one_by_one(name: str, array: npt.NDArray[Any], one: Callable[[str, Any], int]) -> npt.NDArray[np.int64]:
    out = np.empty(len(array), np.int64)
    for at, value in enumerate(array):
        if value is None:
            raise ValueError(f"{name}: null at position {at}")
        place = f"{name}, position {at}"
        out[at] = int64(place, one(place, value))
    return out


def _refuse_hidden(name: str, values: Any, array: npt.NDArray[Any]) -> None:
    """Refuse what NumPy silently takes for a number: a bool among ints, a masked value."""
    refuse_masked(name, values)
    if isinstance(values, (list, tuple)) and array.dtype.kind in "iu":
        for at in np.flatnonzero((array == 0) | (array == 1)).tolist():
            if isinstance(values[at], (bool, np.bool_)):
                raise TypeError(f"{name}: expected a whole number, got {values[at]} at position {at}")


def refuse_nulls(name: str, nulls: npt.NDArray[np.bool_]) -> None:
    """`ValueError`, naming the position: one of them is True."""
    if nulls.any():
        raise ValueError(f"{name}: null at position {int(np.argmax(nulls))}")


def refuse_masked(name: str, values: Any) -> None:
    """The same of a masked array. Where nobody has loaded `numpy.ma` there is none: it is a tenth of NumPy's start."""
    if "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray):
        refuse_nulls(name, np.ma.getmaskarray(values))
