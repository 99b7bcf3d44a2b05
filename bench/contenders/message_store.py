"""A store as a consumer reads it."""

from __future__ import annotations

import time
from typing import Any

from bench.contenders.result import Result, repeat
from mqindex.rocketmq import MessageStore

__all__ = ["get_messages"]


def get_messages(*, store: str, tags: str, batch: int, columns: list[str] | None, scratch: str, **spec: Any) -> Result:
    """Every message with a tag, from the first to the last offset of a queue, in batches."""
    result = Result()
    with MessageStore.open(store) as opened:
        for keep in repeat(**spec):
            start = time.perf_counter()
            found = offsets = at = 0
            while True:
                got = opened.get_messages("TopicTest", 0, at, max_msg_nums=batch, tags=tags, columns=columns)
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
