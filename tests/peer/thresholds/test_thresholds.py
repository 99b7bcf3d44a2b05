"""Real brokers answer as `tests/data/rocketmq/thresholds.json` says: a sample, in the nightly run all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.peer.thresholds.ask import ANSWERS, answer
from tests.peer.thresholds.questions import QUESTIONS
from tests.support.nightly import some

KEPT = json.loads(ANSWERS.read_text())
SAMPLE = ("NEGATIVE_BLANK_CUTS",)
ASKED = some([(name, each) for name in QUESTIONS for each in QUESTIONS[name].releases], lambda name, _: name in SAMPLE)


@pytest.mark.parametrize(("name", "release"), ASKED)
def test_a_broker_answers_as_it_did(name: str, release: str, tmp_path: Path) -> None:
    assert answer(QUESTIONS[name], release, tmp_path) == KEPT["rows"][name]["answers"][release]


def test_the_data_has_these_questions() -> None:
    rows = {name: (one["asked"], one["does"], list(one["answers"])) for name, one in KEPT["rows"].items()}
    assert rows == {name: (one.asked, one.does, list(one.releases)) for name, one in QUESTIONS.items()}
