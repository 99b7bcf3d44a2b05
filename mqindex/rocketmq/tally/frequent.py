"""The most frequent values of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Frequent = tuple[int, int, int]
"""(value, how often, phy offset of a message that has it)."""


def most_frequent(values: Array, phy_offsets: Array, most: int) -> tuple[Frequent, ...]:
    """The `most` most frequent of the values that occur twice or more, the most frequent first.

    >>> most_frequent(np.array([7, 5, 7, 9]), np.array([0, 100, 200, 300]), 4)
    ((7, 2, 0),)
    """
    ordered = np.sort(values)
    kinds = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(kinds):
        return ()
    counts = np.searchsorted(ordered, kinds, "right") - np.searchsorted(ordered, kinds)
    if len(kinds) > most:
        chosen = np.sort(np.argpartition(counts, -most)[-most:])
        kinds, counts = kinds[chosen], counts[chosen]
    found = zip(kinds.tolist(), counts.tolist(), first_places(kinds, values, phy_offsets).tolist(), strict=True)
    return tuple(sorted(found, key=lambda one: (-one[1], one[0])))


def first_places(kinds: Array, values: Array, phy_offsets: Array) -> Array:
    """For each of the `kinds`, which are sorted, the phy offset of the first such value."""
    places = np.full(len(kinds), -1, np.int64)
    if not len(kinds):
        return places
    which = np.searchsorted(kinds, values).clip(max=len(kinds) - 1)
    hit = np.flatnonzero(kinds[which] == values)[::-1]  # the first is written last
    places[which[hit]] = phy_offsets[hit]
    return places
