"""Comparing units with the queues' files as they come finds what gathering and grouping them finds, nothing else."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from mqindex._native.consume_queue import UnitLines
from mqindex.rocketmq.checks.queues import unit_check
from mqindex.rocketmq.checks.queues.unit_check import QueueRun, UnitCheck
from mqindex.rocketmq.log.log_entries import UNIT
from tests.reference.consume_queue import BLANK
from tests.reference.consume_queue import UNIT as PACKED

FILE = 200  # bytes: ten places
NAMES = [("A", 0), ("A", 1), ("B", 0)]


def some_units(rng: random.Random) -> Any:
    """Of a few queues, most in line; a log may also repeat, lose and begin again."""
    rows, phy, places = [], rng.choice([0, 500]), [rng.choice([0, 0, 3, 14]) for _ in NAMES]
    for _ in range(rng.randrange(120)):
        queue = rng.choice([0, 0, 1, 2])
        odd = rng.random()
        if odd < 0.02:
            places[queue] = rng.choice([0, -1, places[queue] + 2, max(places[queue] - 3, 0), 2**62])
        rows.append((phy, places[queue], rng.choice([5, -7]), 1000 + phy, 100, queue))
        places[queue] += 1
        phy += 100 if odd > 0.03 else 0
    return np.array(rows, UNIT)


def write_files(root: Path, units: Any, rng: random.Random) -> None:
    """What the units say, with a few places changed, and perhaps a file less or shorter."""
    files: dict[Path, bytearray] = {}
    for unit in units:
        place = int(unit["queue_offset"]) * 20
        if 0 <= place < 4000:
            name, queue_id = NAMES[unit["queue"]]
            path = root / name / str(queue_id) / f"{place - place % FILE:020d}"
            data = files.setdefault(path, bytearray(FILE))
            data[place % FILE : place % FILE + 20] = PACKED.pack(
                *(int(unit[x]) for x in ("phy_offset", "size", "tags_code"))
            )
    for path, data in files.items():
        if rng.random() < 0.3:
            at = 20 * rng.randrange(10)
            data[at : at + 20] = rng.choice([bytes(20), BLANK, PACKED.pack(300, 100, 5), PACKED.pack(-1, 0, 0)])
        if rng.random() < 0.95:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if rng.random() < 0.95 else data[: rng.randrange(FILE)])


def runs_of(root: Path, units: Any, steps: list[int], before: Any, *, at_once: bool) -> list[QueueRun]:
    check = UnitCheck(str(root), lambda: list(NAMES), FILE, before)
    if not at_once:
        check._lines = None
    for some in np.split(units, steps):
        check.add(some)
    return sorted(check.finish(), key=lambda run: (run.topic, run.queue_id))


@pytest.mark.parametrize("number", range(60))
def test_units_compared_as_they_come_give_what_gathered_ones_give(
    number: int, tmp_path: Path, rng: random.Random
) -> None:
    units = some_units(rng)
    write_files(tmp_path, units, rng)
    steps = sorted(rng.randrange(len(units) + 1) for _ in range(rng.randrange(4)))
    before = {("B", 0): (rng.randrange(4), 0)} if rng.random() < 0.2 else {}
    held = rng.choice([1, 1000])  # at once, or at the end: where a batch ends, what is in a row is told in pieces
    with mock.patch.multiple(unit_check, _HELD=held, _AHEAD=rng.choice([1, 4, 100]), _AHEAD_LEAST=1):
        wanted = runs_of(tmp_path, units, steps, before, at_once=False)
        assert runs_of(tmp_path, units, steps, before, at_once=True) == wanted


def test_two_numbers_of_one_name_share_what_is_known_of_the_queue(tmp_path: Path) -> None:
    units = np.array([(100 * n, n, 5, 0, 100, n % 2) for n in range(10)], UNIT)
    (tmp_path / "A" / "0").mkdir(parents=True)
    (tmp_path / "A" / "0" / f"{0:020d}").write_bytes(b"".join(PACKED.pack(100 * n, 100, 5) for n in range(10)))
    with mock.patch.object(unit_check, "_HELD", 1):
        check = UnitCheck(str(tmp_path), lambda: [("A", 0), ("A", 0)], FILE, {})
        check.add(units)
    (run,) = check.finish()
    assert (run.units, run.ranges, run.absent, run.wrong, run.differences) == (10, ((0, 10),), 0, 0, ())


def test_lines_pass_over_what_is_there_and_leave_the_rest_from_the_first_other_unit_on() -> None:
    units = np.array([(100 * n, n, 5, 0, 100, 1) for n in range(4)], UNIT)
    lines, rest = UnitLines(), np.empty(4, UNIT)
    assert lines.match(units, rest, 0) == (0, 0)  # nobody has begun it
    lines.begin(1, 0, -1, 0, PACKED.pack(0, 100, 5) + PACKED.pack(100, 100, 6) + PACKED.pack(200, 100, 5))
    assert lines.match(units, rest, 0) == (4, 3)
    assert rest[:3].tolist() == units[1:].tolist()
    assert lines[1] == (1, 0, 100)
    lines.end(1, True)
    assert lines.match(units[1:], rest, 1) == (0, 1)
    lines.begin(1, 1, 0, 100, b"less than a unit")
    assert lines.match(units[1:], rest, 1) == (3, 4)
    with pytest.raises(ValueError, match="room"):
        lines.match(units, rest, 1)
    with pytest.raises(IndexError):
        lines.end(-1, True)
