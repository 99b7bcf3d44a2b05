"""The same structure read from many records at once: layouts of numbers and texts, as those of commits are."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import BinaryColumn, StringColumn
from mqindex.kafka.internal.layouts import Layout

_Numbers = npt.NDArray[np.int64]
_WIDTHS: Final = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}
_VARINT_BYTES: Final = 5


class Texts(NamedTuple):
    """Where texts are in the bytes of a column."""

    starts: _Numbers
    sizes: _Numbers


class Cursors:
    """A place in the value of each of some rows. A row whose bytes do not suffice is not `good` from then on.

    What is read of such a row means nothing. Answers as `mqindex.kafka.internal.cursor.Cursor`, one row at a time.
    """

    def __init__(self, column: BinaryColumn, rows: npt.NDArray[np.intp]) -> None:
        self._data = column.data
        self._at = column.offsets[rows]
        self._stops = column.offsets[rows + 1]
        self._flexible = False
        self.good = np.ones(len(rows), np.bool_)

    def read(self, layout: Layout, version: int) -> dict[str, _Numbers | Texts]:
        """The fields of a version, by name. Tagged fields, which come last, are not looked at."""
        self._flexible = version >= layout.flexible
        return {
            field.name: self._text() if field.kind == "string" else self.number(field.kind)
            for field in layout.of(version)
        }

    def number(self, kind: str) -> _Numbers:
        """An integer of each row."""
        width = _WIDTHS[kind]
        octets = self._octets(self._pass(np.full(len(self.good), width)), width)
        return octets.view(f">i{width}")[:, 0].astype(np.int64)

    def _text(self) -> Texts:
        sizes = self._varint() - 1 if self._flexible else self.number("int16")
        return Texts(self._pass(sizes), np.where(self.good, sizes, 0))

    def _varint(self) -> _Numbers:
        value, going = np.zeros(len(self.good), np.int64), self.good.copy()
        for number in range(_VARINT_BYTES):
            octet = self._octets(self._pass(going.astype(np.int64)), 1)[:, 0].astype(np.int64)
            value |= np.where(going, (octet & 0x7F) << 7 * number, 0)
            going &= (octet >= 0x80) & self.good
            if not going.any():
                break
        self.good &= ~going
        return value & 0xFFFFFFFF

    def _pass(self, sizes: _Numbers) -> _Numbers:
        """Where the next bytes of each row begin."""
        starts = self._at
        self.good &= (sizes >= 0) & (sizes <= self._stops - starts)
        self._at = np.where(self.good, starts + sizes, self._stops)
        return starts

    def _octets(self, starts: _Numbers, width: int) -> npt.NDArray[np.uint8]:
        if not len(self._data):
            return np.zeros((len(starts), width), np.uint8)
        places = np.where(self.good, starts, 0)[:, None] + np.arange(width)
        return np.ascontiguousarray(self._data[np.minimum(places, len(self._data) - 1)])


def text_column(column: BinaryColumn, texts: Texts, there: npt.NDArray[np.bool_]) -> StringColumn:
    """The texts as a column of their own; null where they are not there."""
    sizes = np.where(there, texts.sizes, 0)
    data = np.ascontiguousarray(column.data).data
    stops = texts.starts + sizes
    joined = b"".join([data[start:stop] for start, stop in zip(texts.starts.tolist(), stops.tolist(), strict=True)])
    return StringColumn(np.frombuffer(joined, np.uint8), np.concatenate([[0], np.cumsum(sizes)]), there)
