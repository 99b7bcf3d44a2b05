"""The shape of one index file: how its entries spread over the slots. Measured where the file is checked.

Slots in use are counted, all of them. Chains are followed from some slots only, evenly spaced, because each step is a
read at a random place.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.files.reading.opening import map_file
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.layout import (
    INDEX_ENTRY_FIELDS,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    INDEX_SLOT_SIZE,
    IndexHeader,
)

LONGEST = 1000
"""A chain is followed no further."""

_CHAINS = 4096
_BINS = 256
_ENTRY = np.dtype(
    {
        "names": ["key_hash", "prev_index"],
        "formats": [">i4", ">i4"],
        "offsets": [INDEX_ENTRY_FIELDS["key_hash"], INDEX_ENTRY_FIELDS["prev_index"]],
        "itemsize": INDEX_ENTRY_SIZE,
    }
)


@dataclass(frozen=True, slots=True)
class IndexShape:
    """`heat`: slots in use in each of 256 stretches of the slots, or of fewer. `chains`: of the slots that were
    followed, how many have a chain of that length. `other_keys`: entries in these chains whose hash is not that of the
    chain's newest entry.
    """

    header: IndexHeader
    slots_used: int
    heat: tuple[int, ...]
    followed: int
    chains: dict[int, int]
    other_keys: int


def index_shape(index: IndexFile) -> IndexShape:
    """Measure a file whose structure was found right; a broker may be filling it."""
    header, slot_num = index.header, index.hash_slot_num
    with map_file(index.path) as file:
        view = memoryview(file.window(0, file.size))
        slots = np.frombuffer(view, "=i4", slot_num, INDEX_HEADER_SIZE)  # 0 is 0 in any byte order
        bounds = np.linspace(0, slot_num, min(_BINS, slot_num) + 1).astype(np.int64)
        heat = tuple(int(np.count_nonzero(slots[low:high])) for low, high in pairwise(bounds))
        heads = np.frombuffer(view, ">i4", slot_num, INDEX_HEADER_SIZE)[:: -(-slot_num // _CHAINS)].astype(np.int64)
        entries = np.frombuffer(view, _ENTRY, index.index_num, INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * slot_num)
        lengths, others = _follow(heads, entries)
    chains = {length: int(count) for length, count in enumerate(np.bincount(lengths)) if count}
    return IndexShape(header, sum(heat), heat, len(heads), chains, others)


def _follow(heads: npt.NDArray[np.int64], entries: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], int]:
    """The lengths of the chains, and their entries of other keys than the newest."""
    lengths, others = np.zeros(len(heads), np.int64), 0
    which, at = np.arange(len(heads)), heads
    newest: npt.NDArray[Any] | None = None
    for _ in range(LONGEST):
        there = (at > 0) & (at < len(entries))
        which, at = which[there], at[there]
        if not len(at):
            break
        lengths[which] += 1
        hashes = entries["key_hash"][at]
        if newest is None:
            newest = np.zeros(len(heads), hashes.dtype)
            newest[which] = hashes
        others += int(np.count_nonzero(hashes != newest[which]))
        at = entries["prev_index"][at].astype(np.int64)
    return lengths, others
