"""Blocks of properties, as the log stores them, as a column of maps."""

from __future__ import annotations

import numpy as np

from mqindex._native.ragged import taken
from mqindex.columns.columns import MapColumn, StringColumn
from mqindex.columns.texts import text_hashes

_NAME_END, _PROPERTY_END = 1, 2


def property_map(blocks: StringColumn) -> MapColumn:
    """The properties of each message, by name: neither name nor value may be empty, and a later duplicate wins.

    Source: RocketMQ 4.9.3 and 5.3.1 `MessageDecoder.string2messageProperties`.

    >>> blocks = StringColumn(np.frombuffer(b"KEYS\\x01a b\\x02TAGS\\x01\\x02X\\x01y", np.uint8), np.array([0, 18, 18]))
    >>> property_map(blocks).to_pylist()
    [{'KEYS': 'a b', 'X': 'y'}, {}]
    """
    data, offsets = np.ascontiguousarray(blocks.data), np.ascontiguousarray(blocks.offsets)
    ends = np.flatnonzero(data == _PROPERTY_END)
    starts = np.unique(np.concatenate([offsets[:-1], ends + 1]))
    starts = starts[starts < len(data)]
    row = np.searchsorted(offsets, starts, "right") - 1
    stops = np.minimum(_next_of(ends, starts, len(data)), offsets[row + 1])
    middles = _next_of(np.flatnonzero(data == _NAME_END), starts, len(data))
    whole = (starts < middles) & (middles + 1 < stops)
    starts, middles, stops, row = starts[whole], middles[whole], stops[whole], row[whole]
    names, values = _pieces(data, starts, middles), _pieces(data, middles + 1, stops)
    kept = _last_of_each(names, row)
    if not kept.all():
        rows = np.flatnonzero(kept)
        names, values, row = names.take(rows), values.take(rows), row[kept]
    return MapColumn(np.searchsorted(row, np.arange(len(blocks) + 1)), names, values)


def _next_of(places: np.ndarray, starts: np.ndarray, none: int) -> np.ndarray:
    """The first of some places that is not before each start."""
    found: np.ndarray = np.append(places, none)[np.searchsorted(places, starts)]
    return found


def _pieces(data: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> StringColumn:
    bounds = np.stack([starts, stops], axis=1).reshape(-1)
    return StringColumn(*taken(data, np.ascontiguousarray(bounds), np.arange(0, len(bounds), 2)))


def _last_of_each(names: StringColumn, row: np.ndarray) -> np.ndarray:
    """Which names no later one of the same row repeats."""
    kept = np.ones(len(row), np.bool_)
    pair = (row.astype(np.int64) << 32) | text_hashes(names)
    order = np.argsort(pair, kind="stable")
    same = np.append(pair[order][1:] == pair[order][:-1], False)
    later: dict[str | None, None] = {}
    for at in range(len(order) - 1, -1, -1) if same.any() else ():
        if not same[at]:
            if at == 0 or not same[at - 1]:
                continue
            later = {}
        name = names[int(order[at])]
        kept[order[at]] = name not in later
        later[name] = None
    return kept
