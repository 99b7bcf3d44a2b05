"""Which rows of a column of text are among many texts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mqindex._native.log_columns import texts_among
from mqindex.columns.columns import BinaryColumn, StringColumn
from mqindex.columns.keys import key_hashes

_FEW = 16  # so many are compared one by one, more by their hashes first
_SPACE = 0x20


class TextSet:
    """Texts to look for, compared as bytes.

    >>> column = StringColumn(np.frombuffer(b"ab b", np.uint8), np.array([0, 1, 2, 4]))
    >>> TextSet([b"b"]).among(column).tolist(), TextSet([b"b"]).among_words(column).tolist()
    ([False, True, False], [False, True, True])
    """

    def __init__(self, texts: Iterable[bytes]) -> None:
        self.texts = frozenset(texts)
        self._few = tuple(sorted(self.texts)) if len(self.texts) <= _FEW else None
        self.hashes: npt.NDArray[np.int32] = np.unique(text_hashes(_column(self.texts)))

    def among(self, column: StringColumn) -> npt.NDArray[np.bool_]:
        """Which rows are one of the texts: bool[n]. Null is none, nor is an empty text."""
        return self._among(np.ascontiguousarray(column.data), np.ascontiguousarray(column.offsets))

    def among_words(self, column: StringColumn) -> npt.NDArray[np.bool_]:
        """Which rows have one of the texts among their words, which single spaces separate."""
        data, offsets = np.ascontiguousarray(column.data), np.ascontiguousarray(column.offsets)
        spaces = np.flatnonzero(data == _SPACE)
        bounds = np.unique(np.concatenate([offsets, spaces, spaces + 1]))
        found = bounds[:-1][self._among(data, bounds)] if len(bounds) > 1 else bounds[:0]
        rows = np.zeros(len(column), np.bool_)
        rows[np.searchsorted(offsets, found, "right") - 1] = True
        return rows

    def _among(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        if self._few is not None:
            found = texts_among(data, offsets, self._few)
        else:
            found = np.isin(text_hashes(BinaryColumn(data, offsets)), self.hashes)
            text = data.tobytes()
            for row in np.flatnonzero(found).tolist():
                found[row] = text[offsets[row] : offsets[row + 1]] in self.texts
        return found & (offsets[1:] > offsets[:-1])


def text_hashes(column: StringColumn) -> npt.NDArray[np.int32]:
    """A hash of each text, the same for the same bytes: int32[n]; null is as an empty text."""
    return key_hashes(BinaryColumn(column.data, column.offsets))


def _column(texts: Iterable[bytes]) -> BinaryColumn:
    pieces = list(texts)
    return BinaryColumn(np.frombuffer(b"".join(pieces), np.uint8), np.cumsum([0, *map(len, pieces)]))
