"""Rows of different lengths in one array: what strings, headers and hits have in common."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex._native.arrow import export_array

Node: TypeAlias = tuple[Any, ...]  # an array as `_native.arrow` exports it

_INT32_MAX = 2**31 - 1


class Ragged:
    """`offsets`: ndarray of int64, shape (n + 1,); row i has the items from `offsets[i]` to `offsets[i + 1]`."""

    __slots__ = ("offsets",)

    _row: ClassVar[str]  # as messages call it

    def __init__(self, offsets: npt.NDArray[np.int64]) -> None:
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """An Arrow array; one with 64-bit offsets from 2^31 items on."""
        return export_array(self._node(""))

    def _node(self, name: str) -> Node:
        raise NotImplementedError

    def _number(self, i: int) -> int:
        """The number of the row with this index, which may be negative."""
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"{self._row} {i} of {n}")
        return i % n

    def _rows(self, part: slice) -> tuple[slice, slice, npt.NDArray[np.int64]]:
        """The rows of a part, their items, and their offsets."""
        start, stop, step = part.indices(len(self))
        if step != 1:
            raise ValueError(f"a part of a column: expected step 1, got {step}")
        bounds = self.offsets[start : max(start, stop) + 1]
        return slice(start, stop), slice(int(bounds[0]), int(bounds[-1])), bounds - bounds[0]

    def _arrow_offsets(self, items: int) -> tuple[bool, npt.NDArray[Any]]:
        """Whether the Arrow type must be the large one, and the offsets in that type."""
        large = items > _INT32_MAX
        return large, np.ascontiguousarray(self.offsets) if large else self.offsets.astype(np.int32)
