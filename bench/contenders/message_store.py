"""A whole store: read as a consumer reads it, and verified."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bench.contenders.result import Result, repeat
from mqindex.engines import LocalEngine
from mqindex.rocketmq import MessageStore
from mqindex.rocketmq import verify as verify_store

__all__ = ["get_messages", "look_message_by_offset", "verify"]


def get_messages(
    *, store: str, tags: str, batch: int, columns: list[str] | None, exact: bool, scratch: str, **spec: Any
) -> Result:
    """Every message with a tag, from the first to the last offset of a queue, in batches.

    The offsets are added up within the time, as they are in Java, but all at once: NumPy adds 32 numbers in 1 us.
    """
    result = Result()
    with MessageStore.open(store) as opened:
        for keep in repeat(**spec):
            start = time.perf_counter()
            parts, at = [], 0
            while True:
                got = opened.get_messages(
                    "TopicTest", 0, at, max_msg_nums=batch, tags=tags, exact=exact, columns=columns
                )
                parts.append(got.messages["phy_offset"])
                at = got.next_begin_offset
                if at >= got.max_offset:
                    break
            places = np.concatenate(parts)
            offsets = int(places.sum())
            seconds = time.perf_counter() - start
            if keep:
                result.add("get", seconds, len(places))
            result.answer(found=len(places), offsets=offsets)
    return result


def look_message_by_offset(*, store: str, count: int, scratch: str, **spec: Any) -> Result:
    """Messages at random places, one call each."""
    result = Result()
    with MessageStore.open(store) as opened:
        queue = opened.consume_queue("TopicTest", 0)
        assert queue is not None
        places = np.random.default_rng(3).choice(queue.units()["phy_offset"], count).tolist()
        look = opened.look_message_by_offset
        for keep in repeat(**spec):
            with result.timed("look", count, keep=keep):
                for place in places:
                    look(place)
        result.answer(bytes=sum(len(look(place).body) for place in places))
    return result


def verify(*, store: str, slots: int, entries: int, workers: int, scratch: str, **spec: Any) -> Result:
    """`verify --deep`: frames and checksums, each unit and each index entry against the log."""
    result, engine = Result(), LocalEngine(workers=workers)
    for keep in repeat(**spec):
        start = time.perf_counter()
        report = verify_store(
            store, deep=True, hash_slot_num=slots, index_num=entries, broker_version="4.9.3", engine=engine
        )
        if keep:
            result.add("verify", time.perf_counter() - start, report.messages)
        if not report.ok:
            raise RuntimeError(f"findings: {report.findings}")
    result.answer(messages=report.messages)
    return result
