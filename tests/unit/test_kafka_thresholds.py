"""Each threshold of Kafka's rules lies between two neighbouring releases, of which real brokers were asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from mqindex._rules import Rule, numbers_of
from mqindex.kafka import brokers

ANSWERS: Final = json.loads((Path(__file__).parents[1] / "data" / "kafka" / "thresholds.json").read_text())

Does = Callable[[dict[str, Any]], bool]


def starts(answer: dict[str, Any]) -> bool:
    return bool(answer["starts"])


def stops(answer: dict[str, Any]) -> bool:
    return not answer["starts"]


CASES: Final[dict[str, tuple[str, Does]]] = {  # which answers tell of a rule, and whether one shows that it is done
    "AFTER_RAFT": ("zookeeper", stops),
    "CHECKPOINT_STOPS": ("unreadable", stops),
    "FIRST_OFFSETS_INDEXED": ("recover", lambda answer: answer["index"].startswith("00000014")),  # batches of five
    "LOST_INDEXES_LEFT": ("lost", lambda answer: answer["index"] == ""),
    "METADATA_INDEXES_TRIMMED": ("metaindex", lambda answer: bool(answer["trimmed"])),
    "NUMBER_STOPS": ("number", stops),
    "ONE_BYTE_OF_VERSION": ("txn", starts),
    "RAFT": ("raft", lambda answer: "zookeeper.connect" not in answer["said"]),
    "STRAY_STOPS": ("stray", stops),
    "TOPIC_IDS": ("meta", stops),
}
BEFORE: Final = {  # the release before a threshold, in the order of numbers
    "1.0": "0.11.0.3", "1.1": "1.0.2", "2.0": "1.1.1", "2.3": "2.2.2", "2.8": "2.7.2", "3.1": "3.0.2",
    "3.6.1": "3.6.0", "4.0": "3.9.2", "4.4": "4.3.1",
}  # fmt: skip

RULES: Final = {name: rule for name, rule in vars(brokers).items() if isinstance(rule, Rule)}
THRESHOLDS: Final = [(name, each) for name, rule in RULES.items() for each in rule.thresholds]


def told(name: str) -> dict[str, bool]:
    """Whether the brokers of each version that was asked did what a rule says."""
    case, does = CASES[name]
    return {one["version"]: does(one) for one in ANSWERS if one["case"] == case}


def disagreeing(name: str, rule: Rule) -> list[str]:
    """The versions whose brokers did something else than the rule says."""
    return [version for version, did in told(name).items() if brokers.broker_of(version).does(rule) is not did]


def test_every_rule_has_a_case_and_is_in_the_table() -> None:
    assert CASES.keys() == RULES.keys()
    assert set(brokers.RULES) == set(RULES.values())


@pytest.mark.parametrize("name", CASES)
def test_real_brokers_did_what_a_rule_says(name: str) -> None:
    assert disagreeing(name, RULES[name]) == []


@pytest.mark.parametrize(("name", "threshold"), THRESHOLDS)
def test_the_two_neighbouring_releases_of_a_threshold_were_asked(name: str, threshold: str) -> None:
    asked = {numbers_of(version) for version in told(name)}
    assert {numbers_of(BEFORE[threshold]), numbers_of(threshold)} <= asked


@pytest.mark.parametrize(("name", "threshold"), THRESHOLDS)
def test_a_threshold_at_another_release_disagrees(name: str, threshold: str) -> None:
    field = "since" if RULES[name].since == threshold else "until"
    for other in (BEFORE[threshold], f"{threshold}.0.1", None):
        assert disagreeing(name, replace(RULES[name], **{field: other}))


def test_a_partition_beside_its_future_one_stops_all_but_3_9_with_zookeeper() -> None:
    asked = [one for one in ANSWERS if one["case"] in ("future", "futurek")]
    assert len(asked) > 5
    for one in asked:
        assert one["starts"] is (one["version"].startswith("3.9.") and one["mode"] == "zk")


def test_a_partition_in_two_log_dirs_stops_every_broker() -> None:
    asked = [one for one in ANSWERS if one["case"] == "twice"]
    assert len(asked) > 4
    assert not any(one["starts"] for one in asked)
