"""Many look-ups in one file, by as many threads as there are processors: each waits for memory, not for the others."""

from __future__ import annotations

from itertools import pairwise, starmap
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mqindex.engines.processors import processors
from mqindex.files.few_threads import of_each

if TYPE_CHECKING:
    from mqindex._native.index_file import IndexCore

_PART = 1 << 16  # look-ups that are worth a thread: some milliseconds


def select_in_parts(
    core: IndexCore,
    hashes: npt.NDArray[np.int32],
    max_num: int | npt.NDArray[np.int32],
    begin: int,
    end: int,
    heads: npt.NDArray[np.int32] | None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """`core.select_hashes`."""
    number = min(processors(), len(hashes) // _PART)
    if number < 2:
        return core.select_hashes(hashes, max_num, begin, end, heads)
    bounds = [len(hashes) * part // number for part in range(number + 1)]

    def select(part: slice) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        limits = max_num if isinstance(max_num, int) else max_num[part]
        return core.select_hashes(hashes[part], limits, begin, end, None if heads is None else heads[part])

    found = of_each(select, list(starmap(slice, pairwise(bounds))), number)
    starts = np.cumsum([0, *(len(values) for values, _ in found)])
    offsets = [offsets[:-1] + start for (_, offsets), start in zip(found, starts, strict=False)]
    return np.concatenate([values for values, _ in found]), np.concatenate([*offsets, starts[-1:]])
