"""What a file of a store is, by its content: for files whose names and places do not show it."""

from __future__ import annotations

import os
import struct
from typing import Final, Literal

from mqindex.errors import MQIndexError
from mqindex.files.reading.regular import reading
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.layout import MAGIC_BLANK, MAGIC_MESSAGE_V1, MAGIC_MESSAGE_V2, QUEUE_UNIT_SIZE

Beginning = Literal["message", "unit", "zeros"]

_FRAME: Final = struct.Struct(">ii")  # total_size, magic_code
_UNIT: Final = struct.Struct(">qi8x")  # phy_offset, size
_MAGICS: Final = {MAGIC_BLANK, MAGIC_MESSAGE_V1, MAGIC_MESSAGE_V2}


def beginning_of(path: str | os.PathLike[str]) -> Beginning | None:
    """What is at the beginning of a file of a commit log or a consume queue, which have the same names.

    "message": a frame or a blank. "unit": two units in order, or one and nothing more. "zeros": nothing yet.
    """
    with reading(path) as file:
        head = file.read(2 * QUEUE_UNIT_SIZE)
    if len(head) >= _FRAME.size and _FRAME.unpack_from(head)[1] in _MAGICS:
        return "message"
    if not any(head[:QUEUE_UNIT_SIZE]):
        return "zeros"
    return "unit" if _are_units(head) else None


def _are_units(head: bytes) -> bool:
    (first, size), (second, next_size) = _UNIT.iter_unpack(head.ljust(2 * QUEUE_UNIT_SIZE, b"\0"))
    nothing_more = (second, next_size) == (0, 0)
    return bool(first >= 0 and size > 0 and (nothing_more or (second >= first and next_size > 0)))


def is_index_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file's length and entries fit a geometry."""
    try:
        return bool(geometry.infer([os.fspath(path)]))
    except (MQIndexError, OSError):
        return False
