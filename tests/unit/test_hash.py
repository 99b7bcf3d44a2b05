"""`String.hashCode` of every storage form: the C kernels against the plain loop, and against a real JVM's words."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqindex import kernels
from mqindex._native.keys import hashes_to_slots, key_hash, seed_of
from mqindex.columns.keys import hash_slots, key_hashes
from tests.reference.java import decode_utf8, java_hash
from tests.reference.java import key_hash as twin_hash

LENGTHS = range(301)  # every length: a wrong power of 31 hides at most of them
ALPHABETS = {
    "ascii": range(128),
    "latin1": range(128, 256),
    "two bytes": range(256, 0x800),
    "three bytes": range(0x800, 0xD800),
    "astral": range(0x10000, 0x110000),
    "surrogates": range(0xD800, 0xE000),
}


def texts(alphabet: range, rng: random.Random) -> list[str]:
    return ["".join(chr(rng.choice(alphabet)) for _ in range(length)) for length in LENGTHS]


@pytest.fixture(params=["string", "large_string", "string_view"])
def arrow(request: pytest.FixtureRequest) -> Callable[[list[str]], Any]:
    """Makes an Arrow array of strings, in one of their storage forms."""
    pa = pytest.importorskip("pyarrow")
    return lambda words: pa.array(words, getattr(pa, request.param)())


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_str_of_every_length_and_width_hashes_as_java(alphabet: str, rng: random.Random) -> None:
    words = texts(ALPHABETS[alphabet], rng)
    expected = [twin_hash(word) for word in words]
    assert [key_hash(word) for word in words] == expected
    assert key_hashes(words).tolist() == expected


@pytest.mark.parametrize("alphabet", [name for name in ALPHABETS if name != "surrogates"])
def test_utf8_of_every_length_hashes_as_the_str(alphabet: str, rng: random.Random) -> None:
    words = texts(ALPHABETS[alphabet], rng)
    data = np.array([word.encode() + b"." for word in words], "S")  # the dot keeps a trailing NUL
    assert key_hashes(data).tolist() == [twin_hash(word + ".") for word in words]


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_topic_is_continued_not_concatenated(alphabet: str, rng: random.Random) -> None:
    for topic in ("T", "", "a topic with 42 characters, as they may be", "主题", "😀"):
        words = texts(ALPHABETS[alphabet], rng)[::7]
        assert key_hashes(words, topic=topic).tolist() == [twin_hash(f"{topic}#{word}") for word in words]
        assert seed_of(topic) == java_hash(f"{topic}#") & 0xFFFFFFFF


def test_one_wide_character_anywhere_is_seen(arrow: Callable[[list[str]], Any]) -> None:
    """The fast paths are for ASCII alone: each looks at every byte for it."""
    words = [f"{'a' * at}é{'z' * (length - at - 1)}" for length in range(1, 100) for at in range(length)]
    assert key_hashes(arrow(words), topic="T").tolist() == [twin_hash(f"T#{word}") for word in words]


def test_arrow_strings_of_every_length(arrow: Callable[[list[str]], Any], rng: random.Random) -> None:
    words = texts(range(1, 128), rng)
    assert key_hashes(arrow(words)).tolist() == [twin_hash(word) for word in words]
    assert key_hashes(arrow(words)[3:], topic="T").tolist() == [twin_hash(f"T#{word}") for word in words[3:]]


def test_malformed_utf8_is_replaced_as_java_replaces_it(rng: random.Random) -> None:
    pool = bytes.fromhex("41 80 90 9f a0 bf c0 c1 c2 df e0 e1 ed ef f0 f1 f3 f4 f5 f7 f8 ff 8f 88 2e")
    words = [bytes(rng.choice(pool) for _ in range(rng.randrange(1, 12))) + b"." for _ in range(5000)]
    assert key_hashes(np.array(words)).tolist() == [twin_hash(decode_utf8(word)) for word in words]


@pytest.mark.parametrize(
    ("data", "java"),
    [  # hashCode of new String(bytes, UTF_8) as a JDK 17 prints it
        ("eda080", 65533),  # a surrogate in three bytes: one replacement
        ("c0af", 65533 * 31 + 65533),
        ("f09f98", 65533),
        ("e282", 65533),
        ("f8888080", 65533 * (31**3 + 31**2 + 31 + 1)),
        ("41c3", 65 * 31 + 65533),
    ],
)
def test_malformed_utf8_words_of_a_jvm(data: str, java: int) -> None:
    expected = (java + (1 << 31)) % (1 << 32) - (1 << 31)
    assert key_hashes(np.array([bytes.fromhex(data)])).tolist() == [abs(expected)]


def test_the_value_without_a_positive_counterpart_becomes_zero() -> None:
    words = ["polygenelubricants", "T#Cugcafb", "f5a5a608", ""]
    assert [key_hash(word) for word in words] == [0, 0, 0, 0]
    assert key_hashes(["Ctyvxa9"], topic="TopicTest").tolist() == [0]


def test_slots_are_the_hash_modulo() -> None:
    words = [f"k{i}" for i in range(1000)]
    assert hash_slots(words, 97).tolist() == [twin_hash(word) % 97 for word in words]
    assert hash_slots(words, 1).tolist() == [0] * 1000
    assert hash_slots([], 5).dtype == np.int32


def test_slots_by_multiplication_are_exact_at_every_edge() -> None:
    edges = {1 << power for power in range(32)} | {5_000_000, 20_000_000, 2**31 - 1, 3 * 5 * 17 * 257 * 65537}
    edges = {edge + step for edge in edges for step in range(-3, 4)}
    for number in sorted(edge for edge in edges if 1 <= edge < 1 << 31):
        near = {number * times + step for times in (1, 2, 3, (1 << 31) // number) for step in range(-2, 3)} | edges
        hashes = np.array(sorted(hash for hash in near if 0 <= hash < 1 << 31), np.int32)
        slots = hashes.copy()
        hashes_to_slots(slots, number)
        assert slots.tolist() == (hashes % number).tolist()


@given(st.integers(1, 2**31 - 1), st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_slots_by_multiplication_are_those_by_division(number: int, hashes: list[int]) -> None:
    slots = np.array(hashes, np.int32)
    hashes_to_slots(slots, number)
    assert slots.tolist() == [hash % 2**32 % number for hash in hashes]


def test_hashes_that_may_not_be_changed_stay() -> None:
    hashes = np.arange(5, dtype=np.int32)
    hashes.flags.writeable = False
    with pytest.raises(ValueError, match="written to"):
        hashes_to_slots(hashes, 3)


@pytest.mark.parametrize("number", [0, -1, 1 << 31])
def test_no_such_number_of_slots(number: int) -> None:
    with pytest.raises(ValueError, match="hash_slot_num"):
        hash_slots(["a"], number)


def test_the_kernel_in_use_has_a_name() -> None:
    assert kernels()["hash"] in {"sse2", "neon", "portable"}
