"""What is counted in a split of the log, against the same in a few plain lines."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mqindex._native.consume_queue import UnitTally
from mqindex.health import MAX_BINS
from mqindex.rocketmq.log.log_entries import RUN_ENTRY, UNIT
from mqindex.rocketmq.tally.split_tally import SplitCounts, SplitTally, sampling
from tests.conftest import SeededRandom
from tests.reference.unit_sample import chosen_units

Array = npt.NDArray[Any]
FIRST = 1_700_000_000_000


def units_at_random(rng: SeededRandom, count: int, queues: int) -> Array:
    units = np.zeros(count, UNIT)
    units["phy_offset"] = np.arange(count) * 100
    units["queue"] = [rng.randrange(queues) for _ in range(count)]
    units["size"] = [rng.choice([91, 128, 5000, 2**31 - 1]) for _ in range(count)]
    units["tags_code"] = [rng.choice([0, 5, -7, 2**31 - 1, -(2**31), 2**40]) for _ in range(count)]
    units["store_timestamp"] = [FIRST + rng.randrange(10**6) for _ in range(count)]
    return units


def tallied(units: Array, names: list[tuple[str, int]], every: int = 1) -> SplitCounts:
    tally = SplitTally(every, 0)
    for part in np.array_split(units, 3):
        tally.add_units(part)
    return tally.finish(names, (1, 2), 3)


def test_topics_and_queues_are_those_of_plain_counting(rng: SeededRandom) -> None:
    names = [("A", 0), ("A", 1), ("B", 0), ("SCHEDULE_TOPIC_XXXX", 3), ("never", 0)]
    units = units_at_random(rng, 500, 4)
    counts = tallied(units, names)
    rows = [(*names[unit["queue"]], int(unit["size"]), int(unit["tags_code"]), int(unit["store_timestamp"]))
            for unit in units]  # fmt: skip
    assert {(one.topic, one.queue_id): (one.messages, one.bytes) for one in counts.queues} == {
        name: (sum(row[:2] == name for row in rows), sum(row[2] for row in rows if row[:2] == name))
        for name in names[:4]
    }
    assert {one.topic for one in counts.topics} == {"A", "B", "SCHEDULE_TOPIC_XXXX"}
    for one in counts.topics:
        own = [row for row in rows if row[0] == one.topic]
        assert one.seen == len(own)
        assert one.sizes == Counter(row[2].bit_length() - 1 for row in own)
        assert one.untagged == sum(row[3] == 0 for row in own)
        tags = Counter(row[3] for row in own if row[3] and abs(row[3]) <= 2**31)
        assert {tag: count for tag, count, _ in one.tags} == (tags if one.topic in "AB" else {})
        places = dict(zip(units["phy_offset"].tolist(), rows, strict=True))
        assert all(places[place][0] == one.topic and places[place][3] == tag for tag, _, place in one.tags)
        times = Counter(row[4] // one.times.width for row in own)
        assert {number: count for number, (count, _) in one.times.bins.items()} == times
    assert (counts.times, counts.file_size) == ((1, 2), 3)


@pytest.mark.parametrize("every", [2, 7, 64])
def test_a_sample_keeps_queues_exact(every: int, rng: SeededRandom) -> None:
    names = [("A", 0), ("B", 0)]
    units = units_at_random(rng, 1000, 2)
    counts, whole = tallied(units, names, every), tallied(units, names)
    assert counts.queues == whole.queues
    assert sum(one.seen for one in counts.topics) == pytest.approx(1000 / every, abs=6)  # a last one of each part
    assert counts == tallied(units, names, every)


def test_a_sample_takes_one_of_each_however_the_units_come(rng: SeededRandom) -> None:
    units = units_at_random(rng, 5000, 1)
    seen = []
    for _ in range(2):
        tally, at = SplitTally(5, 0), 0
        while at < len(units):
            step = rng.randrange(1, 400)
            tally.add_units(units[at : at + step])
            at += step
        chosen = tally._units.kept().view(UNIT)["phy_offset"] // 100
        assert (chosen // 5).tolist() == list(range(1000))
        assert len(set((chosen % 5).tolist())) == 5
        seen.append(chosen.tolist())
    assert seen[0] == seen[1]


def test_many_topics_make_no_large_result(rng: SeededRandom) -> None:
    names = [(f"{number}" * 50, 0) for number in range(3000)]
    units = units_at_random(rng, 6000, 3000)
    units["tags_code"] = np.arange(6000)
    counts = tallied(units, names)
    assert len(counts.topics) <= 65
    assert sum(one.seen for one in counts.topics) == 6000
    assert max(len(one.tags) for one in counts.topics) <= 16
    assert max(len(one.times.bins) for one in counts.topics) <= MAX_BINS
    assert len(pickle.dumps(counts.topics)) < 300_000
    assert sum(one.messages for one in counts.queues) == 6000


def test_times_that_are_none_are_left_out(rng: SeededRandom) -> None:
    units = units_at_random(rng, 10, 1)
    units["store_timestamp"][:3] = [0, -(2**63), 2**63 - 1]
    (topic,) = tallied(units, [("A", 0)]).topics
    assert topic.seen == 10
    assert sum(count for count, _ in topic.times.bins.values()) == 7


def test_a_split_without_a_message_counts_nothing() -> None:
    assert SplitTally(1, 0).finish([], None, 5) == SplitCounts(file_size=5)


def test_keys_and_their_messages() -> None:
    entries = np.zeros(9, RUN_ENTRY)
    entries["phy_offset"] = [0, 0, 100, 200, 200, 200, 300, 400, 500]
    entries["key_hash"] = [7, 8, 7, 7, 9, 9, 1, 2, 3]
    tally = SplitTally(1, 0)
    tally.add_entries(entries[:3])
    tally.add_entries(entries[3:])
    keys = tally.finish([], None, 0).keys
    assert (keys.seen, keys.messages) == (9, {1: 4, 2: 1, 3: 1})
    assert keys.frequent == ((7, 3, 0), (9, 2, 200))


@pytest.mark.parametrize("every", [2, 16])
def test_sampled_stretches_go_on_from_split_to_split(every: int) -> None:
    """A split of 16 stretches, then one of 16 more: together one in `every`, wherever the border is."""
    entries, seen = np.zeros(10, RUN_ENTRY), 0
    for start in (0, 128 << 20, 256 << 20):
        tally = SplitTally(every, start)
        for _ in range(16):
            tally.add_entries(entries)
        seen += tally.finish([], None, 0).keys.seen
    assert seen == 480 // every


def test_as_much_is_looked_at_in_every_long_log() -> None:
    assert [sampling(size << 20) for size in (0, 1, 64, 65, 1024, 1 << 20)] == [1, 1, 1, 2, 16, 64]


@pytest.mark.parametrize(("every", "seed"), [(1, 0), (3, 5), (40, 2**64 - 1), (2**31, 9)])
def test_units_kept_are_those_of_the_slow_twin(every: int, seed: int, rng: SeededRandom) -> None:
    units, tally = units_at_random(rng, 1000, 30), UnitTally(every, seed)
    units["queue"][0] = 70
    for part in np.array_split(units, 7):
        tally.add(part)
    assert tally.kept().view(UNIT).tolist() == units[chosen_units(len(units), every, seed)].tolist()
    sums = tally.sums()
    assert len(sums) >= 71
    for queue, (messages, size) in enumerate(sums.tolist()):
        own = units["size"][units["queue"] == queue]
        assert (messages, size) == (len(own), int(own.astype(np.int64).sum()))


def test_a_tally_without_units_is_empty() -> None:
    tally = UnitTally(2, 0)
    tally.add(np.zeros(0, UNIT))
    assert (tally.sums().shape, len(tally.kept())) == ((0, 2), 0)


def test_what_a_tally_does_not_take_is_named(rng: SeededRandom) -> None:
    units = units_at_random(rng, 5, 1)
    units["queue"][3] = -1
    with pytest.raises(ValueError, match="expected queues of 0 or more, got -1 at 3"):
        UnitTally(1, 0).add(units)
    with pytest.raises(TypeError, match="units: expected"):
        UnitTally(1, 0).add(np.zeros(5, np.int64))
    for every in (0, 2**31 + 1):
        with pytest.raises(ValueError, match=f"every: expected 1 to {2**31}, got {every}"):
            UnitTally(every, 0)
    with pytest.raises(TypeError, match="not made"):
        UnitTally.__new__(UnitTally).add(units)
    tally = UnitTally(1, 0)
    with pytest.raises(TypeError, match="made once"):
        tally.__init__(1, 0)
