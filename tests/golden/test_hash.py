"""Hashes of the package against the broker's own, and against the twin for every string of the golden stores."""

from __future__ import annotations

import pytest

from mqindex.rocketmq import hash_slots, key_hash, key_hashes
from tests.golden.test_reference import HASHES
from tests.reference.java import key_hash as twin_hash
from tests.support.golden import STORE_CASES, case, oracle_cases

POSITIVE = {text: 0 if value == -(1 << 31) else abs(value) for text, value in HASHES.items()}


@pytest.mark.parametrize("text", POSITIVE)
def test_key_hash_is_the_broker_s(text: str) -> None:
    assert key_hash(text) == POSITIVE[text]


def test_bulk_hash_is_the_single_one() -> None:
    assert key_hashes(list(POSITIVE)).tolist() == list(POSITIVE.values())


@pytest.mark.parametrize("name", STORE_CASES)
def test_topic_and_key_are_hashed_as_one_string(name: str) -> None:
    asked = [(query["topic"], query["key"]) for query in case(name).truth["queryOffset"]]
    for topic in {topic for topic, _ in asked}:
        keys = [key for of, key in asked if of == topic]
        expected = [twin_hash(f"{topic}#{key}") for key in keys]
        assert key_hashes(keys, topic=topic).tolist() == expected
        assert hash_slots(keys, 97, topic=topic).tolist() == [value % 97 for value in expected]


def test_every_string_that_the_broker_put_is_hashed_as_the_twin_does() -> None:
    keys = sorted({put["key"] for oracle in oracle_cases() for put in oracle.said["puts"]})
    assert len(keys) > 100
    assert key_hashes(keys).tolist() == [twin_hash(key) for key in keys]
