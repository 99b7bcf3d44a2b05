"""The driver of a rebuild holds counts: its memory, and what travels, grow with the splits, not with queues in each."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from tests.support.simulated_log import SimulatedLog, rebuild_simulated

MIB = 1 << 20


def held(log: SimulatedLog, home: Path) -> int:
    """The most bytes at a time that a rebuild took, the simulation of its tasks included."""
    home.mkdir()
    tracemalloc.start()
    try:
        report = rebuild_simulated(log, home)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.ok
    assert (report.messages, report.units) == (log.splits * log.messages,) * 2
    assert report.entries == log.splits * log.entries
    assert report.bytes == log.files * log.file_size
    return most


def test_a_hundredth_of_100_tb(tmp_path: Path) -> None:
    """Of 100 TB, 1.6 million splits: the driver has 4 GiB at most, a task or result 100 MB, all of them 1.2 GB."""
    log = SimulatedLog(files=1000, queues=200)
    assert log.splits == 16_000
    assert held(log, tmp_path / "home") < 3072 * MIB // 100
    assert log.largest < 1_000_000
    assert log.crossed < 12_000_000


def test_queues_cost_no_more_in_a_longer_log(tmp_path: Path) -> None:
    """A row of 32 bytes for each queue of each split, as there was, would be 120 MB more."""
    few, many = SimulatedLog(files=60, queues=100), SimulatedLog(files=60, queues=4000)
    more = held(many, tmp_path / "many") - held(few, tmp_path / "few")
    assert more < 3900 * 2000  # bytes for a queue: its name, directory, files and place
    assert many.crossed - few.crossed < 3900 * 500
