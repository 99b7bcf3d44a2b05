"""Which rows of a column of text are among many texts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mqindex._native.log_columns import texts_among
from mqindex._native.ragged import taken
from mqindex.columns.columns import BinaryColumn, StringColumn
from mqindex.columns.distinct import distinct
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
        self.hashes: npt.NDArray[np.int32] = distinct(text_hashes(text_column(self.texts)))

    def among(self, column: StringColumn) -> npt.NDArray[np.bool_]:
        """Which rows are one of the texts: bool[n]. Null is none, nor is an empty text."""
        return self._among(np.ascontiguousarray(column.data), np.ascontiguousarray(column.offsets))

    def equal(self, column: StringColumn) -> npt.NDArray[np.bool_]:
        """The same, but an empty text is a text like others; null is none.

        >>> column = StringColumn(np.frombuffer(b"b", np.uint8), np.array([0, 0, 1]))
        >>> TextSet([b""]).equal(column).tolist(), TextSet([b""]).among(column).tolist()
        ([True, False], [False, False])
        """
        found = self.among(column)
        if b"" in self.texts:
            empty = column.offsets[1:] == column.offsets[:-1]
            found |= empty if column.valid is None else empty & column.valid
        return found

    def among_words(self, column: StringColumn) -> npt.NDArray[np.bool_]:
        """Which rows have one of the texts among their words, which single spaces separate."""
        words, rows = words_of(column)
        found = np.zeros(len(column), np.bool_)
        found[rows[self.among(words)]] = True
        return found

    def _among(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        if self._few is not None:
            found = texts_among(data, offsets, self._few)
        else:
            found = np.isin(text_hashes(BinaryColumn(data, offsets)), self.hashes)
            text = data.tobytes()
            for row in np.flatnonzero(found).tolist():
                found[row] = text[offsets[row] : offsets[row + 1]] in self.texts
        return found & (offsets[1:] > offsets[:-1])


def words_of(column: StringColumn) -> tuple[BinaryColumn, npt.NDArray[np.int64]]:
    """The words of each row, which single spaces separate, and their rows, which ascend. Empty ones are left out.

    >>> words, rows = words_of(StringColumn(np.frombuffer(b"ab  c d", np.uint8), np.array([0, 5, 5, 7])))
    >>> words.to_pylist(), rows.tolist()
    ([b'ab', b'c', b'd'], [0, 0, 2])
    """
    data, offsets = np.ascontiguousarray(column.data), np.ascontiguousarray(column.offsets)
    bounds = distinct(np.concatenate([offsets, np.flatnonzero(data == _SPACE), np.flatnonzero(data == _SPACE) + 1]))
    starts, stops = bounds[:-1], bounds[1:]
    kept = data[starts] != _SPACE
    starts, stops = starts[kept], stops[kept]
    return pieces_of(data, starts, stops), np.searchsorted(offsets, starts, "right") - 1


def pieces_of(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> BinaryColumn:
    """The pieces of some bytes from each start to its stop, copied."""
    bounds = np.stack([starts, stops], axis=1).reshape(-1)
    return BinaryColumn(*taken(np.ascontiguousarray(data), bounds, np.arange(0, len(bounds), 2)))


def equal_rows(texts: StringColumn, others: StringColumn) -> npt.NDArray[np.bool_]:
    """In which rows two columns of one length have the same bytes: bool[n]. Null is as an empty text."""
    equal: npt.NDArray[np.bool_] = np.diff(texts.offsets) == np.diff(others.offsets)
    rows = np.flatnonzero(equal)
    first, second = texts.take(rows), others.take(rows)
    different = np.zeros(len(first.data) + 1, np.int64)
    np.cumsum(first.data != second.data, out=different[1:])
    equal[rows] = np.diff(different[first.offsets]) == 0
    return equal


def text_column(texts: Iterable[bytes]) -> BinaryColumn:
    """A column of these texts."""
    pieces = list(texts)
    return BinaryColumn(np.frombuffer(b"".join(pieces), np.uint8), np.cumsum([0, *map(len, pieces)]))


def text_hashes(column: StringColumn) -> npt.NDArray[np.int32]:
    """A hash of each text, the same for the same bytes: int32[n]; null is as an empty text."""
    return key_hashes(BinaryColumn(column.data, column.offsets))
