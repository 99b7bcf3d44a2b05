"""What a cluster engine sends: groups of items, and what a stage returned or raised in a worker."""

from __future__ import annotations

import pickle

import pytest

from mqindex.engines.transport import group_by_weight, outcome, results, run_packed
from mqindex.errors import CorruptIndexError, RebuildError


def test_groups_are_neighbours_of_about_equal_weight(rng):
    for _ in range(300):
        weights = [rng.choice([0, 1, 5, 100]) for _ in range(rng.randrange(1, 60))]
        groups = rng.randrange(1, 20)
        ranges = group_by_weight(weights, groups)
        assert [i for group in ranges for i in group] == list(range(len(weights)))
        assert all(ranges), "no group is empty"
        assert len(ranges) <= groups
        heaviest = max(sum(weights[i] for i in group) for group in ranges)
        assert heaviest <= sum(weights) / groups + max(weights)


def test_results_are_in_the_order_of_the_tasks():
    packed = {
        i: outcome(lambda i=i: run_packed(pickle.dumps(abs), pickle.dumps([-i, i])), pickle.dumps) for i in (2, 0)
    }
    assert list(results(packed).items()) == [(0, [0, 0]), (2, [2, 2])]


def test_the_first_error_by_the_tasks_arrives_unchanged_with_the_worker_s_traceback():
    def fail():
        raise CorruptIndexError("slot 3", path="a/b", at=52, expected="0..16", got=81, hint="verify")

    packed = {4: outcome(lambda: {}["later"], pickle.dumps), 1: outcome(fail, pickle.dumps)}
    with pytest.raises(CorruptIndexError) as caught:
        results(packed)
    assert str(caught.value) == "slot 3: a/b at byte 52: expected 0..16, got 81; verify"
    assert "in fail" in str(caught.value.__cause__)


def test_an_error_that_cannot_travel_becomes_a_sentence():
    class Odd(Exception):
        pass

    def fail():
        raise Odd("odd one")

    with pytest.raises(RebuildError, match="a stage raised Odd: odd one"):
        results({0: outcome(fail, pickle.dumps)})
