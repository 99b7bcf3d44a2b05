"""Tags codes of the units of a queue, addresses of extension units among them: which a filter by tags lets pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import decode_units, select_tags
from mqindex._native.numbers import whole_number
from mqindex.columns.limits import several
from mqindex.rocketmq.layout import MAX_EXT_ADDRESS
from mqindex.rocketmq.queue.queue_files import FileUnits
from mqindex.rocketmq.queue.queue_units import tag_hash

if TYPE_CHECKING:
    from mqindex.rocketmq.queue.consume_queue_ext import ConsumeQueueExt

_Ints = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.int32]


def wanted_hashes(tags: Iterable[str | int]) -> _Hashes:
    """int32[k] of tags that are strings, or their hashes already."""
    given = several("tags", tags, "several tags or hashes")
    hashes = [tag_hash(tag) if isinstance(tag, str) else whole_number("tags", tag) for tag in given]
    return np.array([(tag & 0xFFFFFFFF ^ 0x80000000) - 0x80000000 for tag in hashes], np.int32)


class TagsCodes:
    """The tags codes of one queue. ext : the extension units that addresses among them name; None: there are none."""

    def __init__(self, ext: ConsumeQueueExt | None) -> None:
        self._ext = ext

    def resolved(self, codes: _Ints) -> _Ints:
        """The codes with those of extension units in place of their addresses; an address without a unit stays."""
        if self._ext is None or not len(codes) or int(codes.min()) > MAX_EXT_ADDRESS:
            return codes
        return self._ext._tags_codes(codes)

    def fitting(self, codes: _Ints, wanted: _Hashes) -> npt.NDArray[np.bool_]:
        """Which of the codes a filter lets pass, once addresses are followed."""
        resolved = self.resolved(codes)
        return np.isin(resolved.astype(np.int32), wanted) | (resolved <= MAX_EXT_ADDRESS)

    def passing(self, part: FileUnits, wanted: _Hashes) -> _Ints:
        """The positions in a stretch of the units that a filter lets pass."""
        positions = select_tags(part.buf, part.start, part.stop, wanted)
        if self._ext is None or not len(positions):
            return positions
        low, high = int(positions[0]), int(positions[-1]) + 1
        return positions[self.fitting(decode_units(part.buf, low, high)[2][positions - low], wanted)]
