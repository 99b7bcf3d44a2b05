"""The hits of a batch of keys: ragged, as two NumPy arrays that every Arrow consumer takes without a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
import numpy.typing as npt

from mqindex._native.arrow import export_array
from mqindex.columns.columns import Node

__all__ = ["Hits"]

_INT32_MAX = 2**31 - 1


class Hits(Sequence[npt.NDArray[np.int64]]):
    """The offsets found for each key of a batch, in the order of the keys.

    Attributes
    ----------
    values : ndarray of int64, shape (h,), all hits one after the other.
    offsets : ndarray of int64, shape (n + 1,); the hits of key i are `values[offsets[i]:offsets[i + 1]]`.

    Examples
    --------
    >>> hits = Hits(np.array([7, 8, 9]), np.array([0, 2, 2, 3]))
    >>> len(hits), hits[0].tolist(), hits.to_pylist()
    (3, [7, 8], [[7, 8], [], [9]])
    """

    __slots__ = ("offsets", "values")

    def __init__(self, values: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, i: int) -> npt.NDArray[np.int64]: ...
    @overload
    def __getitem__(self, i: slice) -> Hits: ...
    def __getitem__(self, i: int | slice) -> npt.NDArray[np.int64] | Hits:
        if isinstance(i, slice):
            return self._part(i)
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"key {i} of {n}")
        return self.values[self.offsets[i % n] : self.offsets[i % n + 1]]

    def _part(self, part: slice) -> Hits:
        start, stop, step = part.indices(len(self))
        if step != 1:
            raise ValueError(f"a part of the hits: expected step 1, got {step}")
        bounds = self.offsets[start : max(start, stop) + 1]
        return Hits(self.values[bounds[0] : bounds[-1]], bounds - bounds[0])

    def __iter__(self) -> Iterator[npt.NDArray[np.int64]]:
        bounds = self.offsets.tolist()
        return (self.values[start:stop] for start, stop in pairwise(bounds))

    def to_pylist(self) -> list[list[int]]:
        """The hits of each key as a list of int."""
        values, bounds = self.values.tolist(), self.offsets.tolist()
        return [values[start:stop] for start, stop in pairwise(bounds)]

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """An Arrow `list<int64>`; `large_list<int64>` from 2^31 hits on."""
        if len(self.values) > _INT32_MAX:
            kind, offsets = "+L", self.offsets
        else:
            kind, offsets = "+l", self.offsets.astype(np.int32)
        child: Node = ("l", "item", len(self.values), 0, (None, np.ascontiguousarray(self.values)), ())
        return export_array((kind, "", len(self), 0, (None, offsets), (child,)))

    def __repr__(self) -> str:
        return f"Hits(keys={len(self)}, values={len(self.values)})"
