"""Real brokers answer as `tests/data/rocketmq/thresholds.json` says: a sample, or with MQINDEX_EVERY_RELEASE=1 all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.peer.thresholds.ask import ANSWERS, answer
from tests.peer.thresholds.questions import NOT_ASKED, QUESTIONS

KEPT = json.loads(ANSWERS.read_text())
SAMPLE = ("NEGATIVE_BLANK_CUTS",)
NAMES = QUESTIONS if os.environ.get("MQINDEX_EVERY_RELEASE") else SAMPLE


@pytest.mark.parametrize(("name", "release"), [(name, each) for name in NAMES for each in QUESTIONS[name].releases])
def test_a_broker_answers_as_it_did(name: str, release: str, tmp_path: Path) -> None:
    assert answer(QUESTIONS[name], release, tmp_path) == KEPT["rows"][name]["answers"][release]


def test_the_data_has_these_questions() -> None:
    rows = {name: (one["asked"], one["does"], list(one["answers"])) for name, one in KEPT["rows"].items()}
    assert rows == {name: (one.asked, one.does, list(one.releases)) for name, one in QUESTIONS.items()}
    assert KEPT["not asked"] == NOT_ASKED
