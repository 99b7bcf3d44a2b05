"""Real brokers do as `tests/data/kafka/thresholds.json` says: a sample, in the nightly run all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.peer.thresholds.kafka import ANSWERS, CASES, NOT_ASKED, answer
from tests.support.nightly import some

KEPT = {(one["case"], one["version"]): one for one in json.loads(ANSWERS.read_text())}
SAMPLE = ("txn",)
ASKED = some([(name, each) for name in CASES for each in CASES[name].versions], lambda name, _: name in SAMPLE)


@pytest.mark.parametrize(("name", "version"), ASKED)
def test_a_broker_does_as_it_did(name: str, version: str, tmp_path: Path) -> None:
    assert answer(name, version, tmp_path) == KEPT[name, version]


def test_the_data_has_these_cases() -> None:
    asked = {(name, version) for name in CASES for version in CASES[name].versions}
    assert asked == {(name, version) for name, version in KEPT if name not in NOT_ASKED}
