"""The parts of a health report that every broker's has."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest

from mqindex.health import MAX_BINS, Histogram, Share, Text, TimeBins, TimeSeries, plain, width_for
from tests.conftest import SeededRandom

SPANS = [0, 1, 59, 60, 61, 999, 60_000, 3_599_999, 86_400_000, 10**10, 10**12, 10**17]


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("low", [0, 7, 1_700_000_000_123])
def test_width_is_the_least_that_fits(low: int, span: int) -> None:
    widths = [width_for(0, 1 << power) for power in range(60)]
    known = sorted({*widths, 1, 5, 10, 50, 100, 500, 1000, 5000, 15_000, 60_000})
    width = width_for(low, low + span)
    assert (low + span) // width - low // width < MAX_BINS
    assert all(low // less != (low + span) // less for less in known if less < width)
    assert all(larger % less == 0 for less, larger in pairwise(known))


def test_gathered_bins_hold_every_count(rng: SeededRandom) -> None:
    for _ in range(200):
        parts, at = [], rng.randrange(10**12)
        for _ in range(rng.randint(1, 6)):
            times = [at + rng.randrange(rng.choice([1, 10**4, 10**7])) for _ in range(rng.randint(0, 20))]
            at += rng.randrange(10**8)
            width = width_for(min(times, default=0), max(times, default=0))
            counts = Counter(time // width for time in times)
            parts.append(TimeBins(width, {number: (count, 3 * count) for number, count in counts.items()}))
        gathered = TimeBins.gather(parts)
        series = gathered.series()
        total = sum(count for part in parts for count, _ in part.bins.values())
        assert (sum(series.counts), sum(series.bytes)) == (total, 3 * total)
        assert len(series.counts) <= MAX_BINS
        for part in parts:
            over = part.series(over=gathered)
            assert len(over.counts) == len(series.counts)
            assert sum(over.counts) == sum(count for count, _ in part.bins.values())


def test_nothing_over_time_is_an_empty_series() -> None:
    assert TimeBins.gather([]).series() == TimeSeries() == TimeBins().series()


def test_a_topic_without_times_has_the_bins_of_all() -> None:
    assert TimeBins().series(over=TimeBins(10, {3: (1, 1), 5: (1, 1)})) == TimeSeries(30, 10, (0, 0, 0), (0, 0, 0))


def test_a_sample_says_what_it_is_of() -> None:
    assert str(Share("keys", "entries", 0, 0)) == "keys: all 0 entries"
    assert Share("keys", "entries", 0, 10).estimate(3) == 3
    assert TimeBins(10, {1: (2, 20)}).series(Share("times", "messages", 2, 8)) == TimeSeries(10, 10, (8,), (80,))


def test_hostile_text_is_cut_and_measured() -> None:
    text = Text.of("<script>\0\u202e" * 1_000_000)
    assert (len(text.text), text.length, text.cut) == (200, 10_000_000, True)
    assert str(text).endswith("… (10000000 characters)")


def test_histograms_have_no_missing_bins() -> None:
    assert Histogram.of({}) == Histogram()
    assert Histogram.of({0: 1, 3: 2}).counts == (1, 0, 0, 2)


def test_plain_is_what_json_reads_back() -> None:
    section = Share("keys", "entries", 1, 2)
    assert json.loads(json.dumps(plain(section))) == plain(section)
    assert plain(None) is None
