"""Kafka's `OffsetIndex` and `TimeIndex`: look-ups and appends, in bulk and one at a time."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from bench.contenders.result import Result, checksum, repeat
from mqindex.kafka import OffsetIndex, TimeIndex

__all__ = ["append", "lookup", "single_lookup"]

NAME = f"{0:020d}"


def lookup(
    *, index: str, time_index: str, offsets: str, times: str, base_offset: int, scratch: str, **spec: Any
) -> Result:
    """lookup_many of all targets, results as arrays."""
    result = Result()
    kinds: tuple[tuple[str, Any, str, str], ...] = (
        ("offset", OffsetIndex, index, offsets),
        ("time", TimeIndex, time_index, times),
    )
    for measure, kind, path, targets in kinds:
        wanted = np.fromfile(targets, np.int64)
        with kind.open(path, base_offset=base_offset) as opened:
            for keep in repeat(**spec):
                with result.timed(measure, len(wanted), keep=keep):
                    keys, values = opened.lookup_many(wanted)
        result.answers[f"{measure}_keys"] = int(keys.sum(dtype=np.int64))
        result.answers[f"{measure}_values"] = int(values.sum(dtype=np.int64))
    return result


def single_lookup(
    *, index: str, time_index: str, offsets: str, times: str, base_offset: int, scratch: str, **spec: Any
) -> Result:
    """lookup in a Python loop, the targets as Python numbers."""
    result = Result()
    kinds: tuple[tuple[str, Any, str, str], ...] = (
        ("offset", OffsetIndex, index, offsets),
        ("time", TimeIndex, time_index, times),
    )
    for measure, kind, path, targets in kinds:
        wanted = np.fromfile(targets, np.int64).tolist()
        with kind.open(path, base_offset=base_offset) as opened:
            for keep in repeat(**spec):
                with result.timed(measure, len(wanted), keep=keep):
                    _loop(opened, wanted)
            found = [opened.lookup(target) for target in wanted]
        result.answers[f"{measure}_keys"] = sum(key for key, _ in found)
        result.answers[f"{measure}_values"] = sum(value for _, value in found)
    return result


def append(
    *, offsets: str, positions: str, times: str, time_offsets: str, size: int, scratch: str, **spec: Any
) -> Result:
    """append_many of as many entries as an index takes, into pages that were written before."""
    result = Result()
    kinds: tuple[tuple[str, Any, str, str, str], ...] = (
        ("offset", OffsetIndex, "index", offsets, positions),
        ("time", TimeIndex, "timeindex", times, time_offsets),
    )
    for measure, kind, suffix, keys_file, values_file in kinds:
        keys, values = np.fromfile(keys_file, np.int64), np.fromfile(values_file, np.int64)
        if measure == "offset":
            values = values.astype(np.int32)
        with kind.create(os.path.join(scratch, f"{NAME}.{suffix}"), 0, max_index_size=size) as index:
            index.append_many(keys, values)
            for keep in repeat(**spec):
                index.truncate()
                with result.timed(measure, len(keys), keep=keep):
                    index.append_many(keys, values)
            index.trim_to_valid_size()
    result.answer(files=checksum([os.path.join(scratch, f"{NAME}.{suffix}") for suffix in ("index", "timeindex")]))
    return result


def _loop(index: Any, targets: list[int]) -> None:
    lookup = index.lookup
    for target in targets:
        lookup(target)
