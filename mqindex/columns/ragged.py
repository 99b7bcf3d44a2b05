"""Rows of different lengths in one array: what strings, headers and hits have in common."""

from __future__ import annotations

from collections.abc import Sequence
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

    def _items_of(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The numbers of the items of some rows, and the offsets of these rows."""
        starts, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1]), offsets

    def _arrow_offsets(self, items: int) -> tuple[bool, npt.NDArray[Any]]:
        """Whether the Arrow type must be the large one, and the offsets in that type."""
        large = items > _INT32_MAX
        return large, np.ascontiguousarray(self.offsets) if large else self.offsets.astype(np.int32)


def joined_offsets(parts: Sequence[Ragged]) -> npt.NDArray[np.int64]:
    """The offsets of the rows of several columns, one after the other."""
    starts = np.cumsum([0, *(int(part.offsets[-1] - part.offsets[0]) for part in parts)])
    shifted = (part.offsets[:-1] - part.offsets[0] + start for part, start in zip(parts, starts, strict=False))
    return np.concatenate([*shifted, starts[-1:]])
