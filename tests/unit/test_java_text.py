"""Bytes that are no UTF-8: every way to a text gives what Java reads."""

from __future__ import annotations

import random

import numpy as np

from mqindex._java_text import JAVA
from mqindex.columns.columns import StringColumn
from mqindex.rocketmq import Message
from tests.reference.java import decode_utf8
from tests.support.log_writer import LogMessage, frame

POOL = bytes.fromhex("41 80 9f a0 bf c2 e0 e1 ed ed ed ef f0 f4 ff")


def malformed(rng: random.Random) -> list[bytes]:
    return [bytes(rng.choice(POOL) for _ in range(rng.randrange(8))) for _ in range(5000)]


def test_the_codec_decodes_as_the_twin(rng: random.Random) -> None:
    words = malformed(rng)
    assert [word.decode(errors=JAVA) for word in words] == [decode_utf8(word) for word in words]


def test_a_column_has_java_s_text(rng: random.Random) -> None:
    words = malformed(rng)
    offsets = np.cumsum([0, *map(len, words)])
    column = StringColumn(np.frombuffer(b"".join(words), np.uint8), offsets)
    expected = [decode_utf8(word) for word in words]
    assert (column.to_pylist(), [column[i] for i in range(len(column))]) == (expected, expected)


def test_a_message_has_java_s_topic() -> None:
    made = frame(LogMessage(topic="Tabc", body=b"b"), 0)
    assert made.count(b"Tabc") == 1
    assert Message.decode(made.replace(b"Tabc", b"T\xed\xa0\x80")).topic == "T\N{REPLACEMENT CHARACTER}"
