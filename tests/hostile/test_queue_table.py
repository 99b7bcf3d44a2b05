"""Whoever names topics must not decide how long a pass over the log takes."""

from __future__ import annotations

import itertools
import struct

from mqindex._native.log_extract import Extractor, QueueTable
from tests.reference.java import java_hash
from tests.support.log_writer import LogMessage, frame

TOPICS = 1 << 17


def colliding_log() -> bytearray:
    """A log of one message in each of 131072 topics of one Java hash."""
    template = frame(LogMessage(topic="Aa" * 17, body=b""), 0)
    topic_at = template.index(b"AaAa")
    log = bytearray(template * TOPICS)
    for number, parts in enumerate(itertools.product((b"Aa", b"BB"), repeat=17)):
        at = number * len(template)
        struct.pack_into(">q", log, at + 28, at)
        log[at + topic_at : at + topic_at + 34] = b"".join(parts)
    return log


def test_topics_whose_java_hashes_collide_cost_what_others_cost(time_bound):
    assert java_hash("AaBB" * 8 + "Aa") == java_hash("Aa" * 17)
    log = colliding_log()
    table = QueueTable([])
    time_bound(30)  # a table that is keyed by that hash needs minutes
    units = sum(len(step) for step in units_of(log, table))
    assert (units, len(table), len(set(table.names()))) == (TOPICS, TOPICS, TOPICS)


def units_of(log: bytearray, table: QueueTable):
    step = Extractor(log, 0, 0, len(log), tags=False, queues=table)
    for _ in step:
        yield bytes(step.units)[::40]
