"""The kernels of searches by time: shared walks give what single ones give; wrong arguments are refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mqindex._native.kafka_log import batches_at, find_batches, first_not_below
from mqindex.kafka.log.batches import batch_rows
from tests.reference.kafka_partition import batches
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, batch


def int64(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def log_of(times: list[int]) -> bytes:
    return b"".join(batch([KafkaRecord(timestamp=FIRST_TIME + ms)], at) for at, ms in enumerate(times))


def test_many_walks_find_what_single_ones_find(rng: random.Random) -> None:
    log = log_of([rng.randrange(30) for _ in range(40)]) + bytes(30)
    known = list(batches(log))
    for stop in (len(log), known[20].position):
        pairs = [(rng.choice(known).position, FIRST_TIME + rng.randrange(-1, 32)) for _ in range(300)]
        for asked in (pairs, sorted(pairs), sorted(pairs, reverse=True), sorted(pairs, key=lambda pair: pair[1])):
            starts, times = (int64(*column) for column in zip(*asked, strict=True))
            found, _ = find_batches(log, stop, starts, times)
            assert found.tolist() == [
                next((b.position for b in known if start <= b.position < stop and b.max_timestamp >= ms), -1)
                for start, ms in asked
            ]


def test_a_walk_behind_a_bad_batch_is_its_own() -> None:
    head, tail = log_of([1]), log_of([5])
    log = head + b"\0" * 40 + tail
    found, at = find_batches(
        log, len(log), int64(0, 0, len(head) + 40), int64(FIRST_TIME, FIRST_TIME + 5, FIRST_TIME + 5)
    )
    assert (found.tolist(), at) == ([0, -1, len(head) + 40], len(head))


def test_a_walk_from_within_a_batch_is_its_own(rng: random.Random) -> None:
    """A wrong index leads there: what looks like a batch there is found as by a search for it alone."""
    inner = log_of([rng.randrange(30) for _ in range(3)])
    log = b"".join(
        batch([KafkaRecord(inner, timestamp=FIRST_TIME + rng.randrange(30))], at) if rng.random() < 0.3
        else log_of([rng.randrange(30)]) for at in range(30)
    )  # fmt: skip
    inside = [at for at in range(len(log)) if log.startswith(inner[:61], at)]
    places = [*(one.position for one in batches(log)), *inside, *(rng.randrange(len(log)) for _ in range(20))]
    pairs = [(rng.choice(places), FIRST_TIME + rng.randrange(-1, 32)) for _ in range(300)]
    for asked in (pairs, sorted(pairs), sorted(pairs, key=lambda pair: pair[1])):
        starts, times = (int64(*column) for column in zip(*asked, strict=True))
        found, _ = find_batches(log, len(log), starts, times)
        alone = [find_batches(log, len(log), int64(start), int64(ms))[0].tolist() for start, ms in asked]
        assert [[position] for position in found.tolist()] == alone


def test_rows_of_chosen_batches_end_at_one_that_is_none() -> None:
    log = log_of([1, 2, 3])
    positions = [found.position for found in batches(log)]
    rows = batch_rows([batches_at(log, int64(positions[2], positions[0]))])
    assert rows["base_offset"].tolist() == [2, 0]
    assert len(batch_rows([batches_at(log, int64(positions[1], 3, positions[0]))])) == 1
    assert len(batches_at(log, int64(len(log)))) == len(batches_at(b"", int64())) == 0


def test_first_values_not_below_a_target(rng: random.Random) -> None:
    values = int64(*(rng.randrange(20) for _ in range(50)))
    parts = [sorted((rng.randrange(51), rng.randrange(51))) for _ in range(200)]
    targets = [rng.randrange(-1, 22) for _ in parts]
    for order in (range(200), sorted(range(200), key=lambda at: (parts[at][0], targets[at]))):
        starts, stops = int64(*(parts[at][0] for at in order)), int64(*(parts[at][1] for at in order))
        found = first_not_below(values, starts, stops, int64(*(targets[at] for at in order)))
        assert found.tolist() == [next((n for n in range(*parts[at]) if values[n] >= targets[at]), -1) for at in order]
    assert first_not_below(int64(), int64(0), int64(0), int64(5)).tolist() == [-1]


def test_arguments_that_do_not_fit_are_refused() -> None:
    log = log_of([1])
    with pytest.raises(ValueError, match="times: expected 2"):
        find_batches(log, 9, int64(0, 0), int64(1))
    for position in (-1, len(log) + 1):
        with pytest.raises(ValueError, match="positions"):
            find_batches(log, 9, int64(position), int64(1))
        with pytest.raises(ValueError, match="positions"):
            batches_at(log, int64(position))
    for start, stop in ((-1, 0), (1, 0), (0, 2)):
        with pytest.raises(ValueError, match="starts, stops"):
            first_not_below(int64(1), int64(start), int64(stop), int64(1))
    with pytest.raises(ValueError, match="expected 1 each"):
        first_not_below(int64(1), int64(0), int64(1), int64())
