"""A column of bodies as their producers sent them, of one as the log stores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import BinaryColumn
from mqindex.errors import FormatError
from mqindex.rocketmq.messages.body import COMPRESSED, decompress


def decompressed_bodies(
    body: BinaryColumn, sys_flag: npt.NDArray[np.integer[Any]], broken: Callable[[int, FormatError], None]
) -> BinaryColumn:
    """The bodies, decompressed where the flags say that they are compressed; the same column where none is.

    A body that does not decompress is null, and `broken(row, error)` is called.
    """
    compressed = np.flatnonzero(sys_flag & COMPRESSED)
    if not len(compressed):
        return body
    stored = body.data.data
    valid = np.ones(len(body), np.bool_) if body.valid is None else body.valid.copy()
    sizes = np.diff(body.offsets)
    pieces: list[memoryview | bytes] = []
    done = 0
    for row in compressed.tolist():
        start, stop = int(body.offsets[row]), int(body.offsets[row + 1])
        pieces.append(stored[int(body.offsets[done]) : start])
        plain = b""
        if valid[row]:
            try:
                plain = decompress(bytes(stored[start:stop]), int(sys_flag[row]))
            except FormatError as error:
                valid[row] = False
                broken(row, error)
        pieces.append(plain)
        sizes[row] = len(plain)
        done = row + 1
    pieces.append(stored[int(body.offsets[done]) : int(body.offsets[-1])])
    offsets = np.zeros(len(body) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return BinaryColumn(np.frombuffer(b"".join(pieces), np.uint8), offsets, None if valid.all() else valid)
