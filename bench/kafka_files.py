"""What the Kafka cases read: full indexes and what is looked up in them, a partition of one large segment, one of many.

Made once in the work directory of a run, each when it is first asked for.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from bench.scale import GIB
from bench.workshop import LOOK_UPS, Workshop
from tests.support.big_segments import write_big_segment
from tests.support.kafka_writer import FIRST_TIME

__all__ = ["NAME", "columns", "indexed_partition", "indexes", "large_segment", "log_files", "segments"]

MAX_INDEX_SIZE = 10_485_760
SEGMENTS, SEGMENT_BYTES = 1000, 8 << 20
NAME = f"{0:020d}"
OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
TIME_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


def max_index_size(shop: Workshop) -> int:
    """The default at full size."""
    return shop.scale.count(MAX_INDEX_SIZE)


def columns(shop: Workshop) -> dict[str, str]:
    """Files of int64, as many as fill an index of each kind: what is appended."""
    size, random = max_index_size(shop), np.random.default_rng(11)
    offset_entries, time_entries = size // OFFSET_ENTRY.itemsize, size // TIME_ENTRY.itemsize - 1
    steps = {
        "offsets": (0, 30, offset_entries),
        "positions": (0, 1600, offset_entries),
        "times": (FIRST_TIME, 20, time_entries),
        "time_offsets": (0, 40, time_entries),
    }
    return {
        name: _numbers(shop, name, start + np.cumsum(random.integers(1, most, count)))
        for name, (start, most, count) in steps.items()
    }


def indexes(shop: Workshop) -> dict[str, str]:
    """Both indexes, full, and files of int64 with as many random targets for each."""
    columns_of, paths = columns(shop), {}
    random, count = np.random.default_rng(12), shop.scale.count(LOOK_UPS)
    kinds = (
        ("index", OFFSET_ENTRY, ("offset", "position"), ("offsets", "positions")),
        ("timeindex", TIME_ENTRY, ("timestamp", "offset"), ("times", "time_offsets")),
    )
    for suffix, entry, fields, names in kinds:
        values = [np.fromfile(columns_of[name], np.int64) for name in names]
        rows = np.empty(len(values[0]), entry)
        for field, column in zip(fields, values, strict=True):
            rows[field] = column
        paths[suffix] = shop.path(f"{NAME}.{suffix}")
        rows.tofile(paths[suffix])
        targets = random.integers(values[0][0], values[0][-1] + 1, count)
        paths[f"{suffix}_targets"] = _numbers(shop, f"{suffix}-targets", targets)
    return paths


def large_segment(shop: Workshop) -> str:
    """A partition of one segment of 1 GiB, without indexes."""
    directory = shop.path("large-0")
    if not os.path.isdir(directory):
        write_big_segment(directory, 0, shop.scale.count(GIB))
        os.sync()
    return directory


def indexed_partition(shop: Workshop) -> str:
    """The same segment with its indexes."""
    from mqindex.kafka import rebuild

    directory, source = shop.path("indexed-0"), large_segment(shop)
    if not os.path.isdir(directory):
        rebuild(source, directory)
        os.link(os.path.join(source, f"{NAME}.log"), os.path.join(directory, f"{NAME}.log"))
    return directory


def segments(shop: Workshop) -> str:
    """A partition of 1000 segments of 8 MiB, without indexes; in a check fewer and smaller ones."""
    directory = shop.path("many-0")
    if not os.path.isdir(directory):
        at = 0
        for _ in range(max(shop.scale.count(SEGMENTS), 4)):
            at = write_big_segment(directory, at, SEGMENT_BYTES if shop.scale.timed else 1 << 16).next_offset
        os.sync()
    return directory


def log_files(directory: str) -> list[str]:
    """The logs of a partition's segments."""
    return sorted(os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".log"))


def _numbers(shop: Workshop, name: str, values: npt.NDArray[np.int64]) -> str:
    path = shop.path(f"kafka-{name}")
    values.astype("<i8").tofile(path)
    return path
