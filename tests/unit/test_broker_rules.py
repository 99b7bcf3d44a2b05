"""Each threshold of RocketMQ's rules lies between the two neighbouring releases that are named here."""

from __future__ import annotations

import pytest

from mqindex.rocketmq import brokers

RELEASES = [
    "4.5.0", "4.5.1", "4.5.2", "4.6.0", "4.6.1",
    "4.7.0", "4.7.1", "4.8.0", "4.9.0", "4.9.1", "4.9.2", "4.9.3", "4.9.4", "4.9.5", "4.9.6", "4.9.7", "4.9.8",
    "5.0.0", "5.1.0", "5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.2.0", "5.3.0", "5.3.1", "5.3.2", "5.3.3", "5.3.4",
    "5.4.0", "5.5.0", "5.5.1",
]  # fmt: skip
RULES = {  # the first release that does it, or None; the last one that does, or None
    "BACK_TO_MIN": (None, "4.9.3"),
    "BATCH_QUEUES": ("5.0.0", None),
    "BLANK_ENDS_STOP": ("5.0.0", "5.4.0"),
    "COMPACTION": ("5.1.0", None),
    "CONFIGS_OF_5": ("5.0.0", None),
    "CONFIRMED_DISPATCHED": ("5.1.1", None),
    "DIRECTORIES_STOP": (None, "5.0.0"),
    "EMPTY_FILES_STOP": (None, "5.1.2"),
    "FASTJSON_2": ("5.4.0", None),
    "FRAMES_AS_BODIES": (None, "4.9.3"),
    "FRAMES_LIMITED": ("4.9.5", None),
    "GROUPS_NOT_BLANK": (None, "5.0.0"),
    "INDEX_FILES_REQUIRED": ("5.1.0", None),
    "LARGE_BLANK_CUTS": ("5.3.2", None),
    "LOG_IN_PLACES": ("4.9.2", None),
    "LOG_IN_ROOT": ("4.9.4", None),
    "LONG_TOPICS": ("5.1.0", None),
    "MAPED_NAMES": (None, "4.5.1"),
    "NEGATIVE_BLANK_CUTS": ("5.5.1", None),
    "OFFSETS_NOT_BLANK": ("5.0.0", None),
    "PROCESS_ID_KEPT": ("5.0.0", None),
    "RECOVERS_FEW_FILES": ("5.4.0", None),
    "RECOVERS_FROM_OFFSET": ("5.5.0", None),
    "RECOVERS_FROM_QUEUES": ("5.3.2", None),
    "RETRY_TOPICS_DISPATCHED": (None, "5.1.0"),
    "ROCKSDB": ("5.2.0", None),
    "ROCKSDB_OF_INDEXES": ("5.4.0", None),
    "SYSTEM_TOPICS_DISPATCHED": (None, "5.1.4"),
    "TAGS_INDEXED": ("5.4.0", None),
    "TEXTS_TRIMMED": ("5.2.0", None),
    "TIMERS": ("5.0.0", None),
    "TIMER_OFFSET_CORRECTED": ("5.3.2", None),
    "UNSEPARATED": ("4.9.1", "5.1.4"),
    "WAITING_TOPICS_DISPATCHED": (None, "5.1.2"),
    "WAITS_FOR_DISPATCH": (None, "4.9.8"),
    "WAITS_IF_TOLD": ("5.0.0", None),
}


def test_every_rule_has_its_releases() -> None:
    assert {id(getattr(brokers, name)) for name in RULES} == {id(rule) for rule in brokers.RULES}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_changes_between_two_neighbouring_releases(name: str) -> None:
    first, last = RULES[name]
    begin = 0 if first is None else RELEASES.index(first)
    end = len(RELEASES) if last is None else RELEASES.index(last) + 1
    does = [brokers.broker_of(release).does(getattr(brokers, name)) for release in RELEASES]
    assert does == [begin <= at < end for at in range(len(RELEASES))]


def test_the_rules_of_older_brokers_are_not_known() -> None:
    """How they start differs: 4.4.0 starts without a log file of another length, and writes over it."""
    with pytest.raises(ValueError, match=r"expected 4\.5 or later, got 4\.4\.0: .*give that"):
        brokers.broker_of("4.4.0")


@pytest.mark.parametrize("name", RULES)
def test_of_an_unknown_version_nothing_is_known(name: str) -> None:
    assert brokers.broker_of(None).does(getattr(brokers, name)) is None
