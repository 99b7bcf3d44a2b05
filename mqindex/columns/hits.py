"""The hits of a batch of keys: ragged, as two NumPy arrays that every Arrow consumer takes without a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from mqindex._needs import needed
from mqindex.columns.ragged import Node, Ragged


class Hits(Ragged, Sequence[npt.NDArray[np.int64]]):
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

    __slots__ = ("values",)

    _row = "key"

    def __init__(self, values: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> None:
        super().__init__(offsets)
        self.values = values

    @overload
    def __getitem__(self, i: int) -> npt.NDArray[np.int64]: ...
    @overload
    def __getitem__(self, i: slice) -> Hits: ...
    def __getitem__(self, i: int | slice) -> npt.NDArray[np.int64] | Hits:
        if isinstance(i, slice):
            _, items, offsets = self._rows(i)
            return Hits(self.values[items], offsets)
        i = self._number(i)
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[np.int64]]:
        bounds = self.offsets.tolist()
        return (self.values[start:stop] for start, stop in pairwise(bounds))

    def to_pylist(self) -> list[list[int]]:
        """The hits of each key as a list of int."""
        values, bounds = self.values.tolist(), self.offsets.tolist()
        return [values[start:stop] for start, stop in pairwise(bounds)]

    def to_arrow(self) -> Any:
        """A `pyarrow.Array` of lists; needs pyarrow."""
        return needed("pyarrow").array(self)

    def to_pandas(self) -> Any:
        """A `pandas.Series` of arrays; needs pandas and pyarrow."""
        needed("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A `polars.Series` of lists; needs polars."""
        return needed("polars").Series(self)

    def _node(self, name: str) -> Node:
        large, offsets = self._arrow_offsets(len(self.values))
        child: Node = ("l", "item", len(self.values), 0, (None, np.ascontiguousarray(self.values)), ())
        return ("+L" if large else "+l", name, len(self), 0, (None, offsets), (child,))

    def __repr__(self) -> str:
        return f"Hits(keys={len(self)}, values={len(self.values)})"
