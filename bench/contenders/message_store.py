"""A whole store: read as a consumer reads it, and verified."""

from __future__ import annotations

import time
from typing import Any

from bench.contenders.result import Result, repeat
from mqindex.engines import LocalEngine
from mqindex.rocketmq import MessageStore
from mqindex.rocketmq import verify as verify_store

__all__ = ["get_messages", "verify"]


def get_messages(
    *, store: str, tags: str, batch: int, columns: list[str] | None, exact: bool, scratch: str, **spec: Any
) -> Result:
    """Every message with a tag, from the first to the last offset of a queue, in batches."""
    result = Result()
    with MessageStore.open(store) as opened:
        for keep in repeat(**spec):
            start = time.perf_counter()
            found = offsets = at = 0
            while True:
                got = opened.get_messages(
                    "TopicTest", 0, at, max_msg_nums=batch, tags=tags, exact=exact, columns=columns
                )
                found += got.messages.num_rows
                offsets += int(got.messages["phy_offset"].sum())
                at = got.next_begin_offset
                if at >= got.max_offset:
                    break
            seconds = time.perf_counter() - start
            if keep:
                result.add("get", seconds, found)
            result.answer(found=found, offsets=offsets)
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
