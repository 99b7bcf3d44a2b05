"""What real brokers of neighbouring releases answered agrees with the rows of RocketMQ's rules."""

from __future__ import annotations

import json

import pytest

from mqindex._rules import numbers_of
from mqindex.rocketmq import brokers
from tests.support.golden import DATA
from tests.unit.test_broker_rules import RELEASES, RULES

KEPT = json.loads((DATA / "thresholds.json").read_text())
NOT_WHOLE = {"4.9.6", "4.9.8", "5.1.2", "5.3.4"}
"""Releases of which Maven Central lacks a part: nobody can start them from there."""
ASKED = [release for release in RELEASES if release not in NOT_WHOLE]


def test_brokers_were_asked_about_every_row() -> None:
    assert sorted(KEPT["rows"]) == sorted(RULES)


@pytest.mark.parametrize("name", KEPT["rows"])
def test_a_row_agrees_with_what_brokers_answered(name: str) -> None:
    row, rule = KEPT["rows"][name], getattr(brokers, name)
    said = {release: answer == row["does"] for release, answer in row["answers"].items()}
    assert said == {release: brokers.broker_of(release).does(rule) for release in said}


@pytest.mark.parametrize("name", KEPT["rows"])
def test_a_threshold_lies_between_two_neighbours_that_answered(name: str) -> None:
    for threshold in getattr(brokers, name).thresholds:
        since = next(at for at, one in enumerate(ASKED) if numbers_of(one) >= numbers_of(threshold))
        assert {ASKED[since - 1], ASKED[since]} <= set(KEPT["rows"][name]["answers"])
