"""A batch queue in which a file is missing: what is left is found, from every place."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mqindex.rocketmq import BatchConsumeQueue

UNITS = 5  # a file


def write(directory: Path, count: int) -> list[tuple[int, int]]:
    """The queue offsets [start, stop) of each unit."""
    directory.mkdir(parents=True)
    units, base = [], 7
    for number in range(count):
        units.append((base, base + 1 + number % 3))
        base = units[-1][1]
    for first in range(0, count, UNITS):
        packed = [
            struct.pack(">qiqqqhii", 100 * number, 100, 0, 1000 + number, start, stop - start, 0, 0)
            for number, (start, stop) in enumerate(units[first : first + UNITS], first)
        ]
        (directory / f"{46 * first:020d}").write_bytes(b"".join(packed).ljust(46 * UNITS, b"\0"))
    return units


@pytest.mark.parametrize("missing", [(1,), (4,), (2, 3, 4), (1, 3), (5, 6)])
def test_units_around_a_missing_file_are_found(tmp_path: Path, missing: tuple[int, ...]) -> None:
    """A search that came to a place in the hole went on after it, and left out what is before."""
    units = write(tmp_path / "queue", 38)
    for number in missing:
        (tmp_path / "queue" / f"{46 * UNITS * number:020d}").unlink()
    left = [unit for number, unit in enumerate(units) if number // UNITS not in missing]
    with BatchConsumeQueue.open(tmp_path / "queue") as queue:
        assert (queue.min_offset_in_queue, queue.max_offset_in_queue) == (units[0][0], units[-1][1])
        assert queue.units()["msg_base_offset"].tolist() == [start for start, _ in left]
        for offset in range(units[0][0] - 2, units[-1][1] + 2):
            holding = next((start for start, stop in left if start <= offset < stop), None)
            got = queue.get(offset)
            assert (None if got is None else got.msg_base_offset) == holding
            for stop in (offset + 1, offset + 9, units[-1][1]):
                expected = [begin for begin, end in left if begin < stop and end > offset]
                assert queue.units(offset, stop)["msg_base_offset"].tolist() == expected
        kept = queue.correct_min_offset(100 * 30)
        assert kept == max(end for begin, end in left if begin < units[30][0])
