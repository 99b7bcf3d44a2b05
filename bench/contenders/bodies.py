"""Messages and records with their bodies: whole files to Arrow, and those of some keys."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from bench.contenders.result import Result, repeat
from mqindex.columns.columns import Columns
from mqindex.kafka import LogSegment
from mqindex.rocketmq import CommitLog, IndexService, MessageStore
from mqindex.rocketmq.messages.log_columns import COLUMNS

__all__ = ["kafka", "keys_cold", "keys_open", "rocketmq"]

TOPIC = "TopicTest"
WANTED = ["keys", "store_timestamp", "body"]


def rocketmq(*, log: str, scratch: str, **spec: Any) -> Result:
    """Every column of a commit log, each batch as an Arrow table that is dropped."""
    with CommitLog.open(log) as opened:
        return _to_arrow(lambda: opened.scan(columns=COLUMNS), "body", spec)


def kafka(*, log: str, scratch: str, **spec: Any) -> Result:
    """Every column of a segment, likewise."""
    with LogSegment.open(log) as opened:
        return _to_arrow(opened.records, "value", spec)


def _to_arrow(read: Callable[[], Iterator[Columns]], bodies: str, spec: dict[str, Any]) -> Result:
    result = Result()
    for keep in repeat(**spec):
        start = time.perf_counter()
        rows = size = 0
        for batch in read():
            table = pa.table(batch)
            rows += table.num_rows
            size += len(batch[bodies].data)
        if keep:
            result.add("arrow", time.perf_counter() - start, rows)
        result.answer(rows=rows, bytes=size)
    return result


def keys_cold(*, store: str, count: int, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """Messages of keys, with bodies, by one call on a store that is opened for it."""
    result, keys = Result(), _keys(store, count)
    for keep in repeat(**spec):
        with (
            result.timed("query", count, keep=keep),
            MessageStore.open(store, hash_slot_num=slots, index_num=entries) as opened,
        ):
            found = opened.query_messages(TOPIC, keys, columns=WANTED)
        _say(result, found)
    return result


def keys_open(*, store: str, count: int, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """The same by their places, where index and store are open."""
    result, keys, index = Result(), _keys(store, count), os.path.join(store, "index")
    with (
        MessageStore.open(store, hash_slot_num=slots, index_num=entries) as opened,
        IndexService.open(index, hash_slot_num=slots, index_num=entries) as service,
    ):
        for keep in repeat(**spec):
            with result.timed("query", count, keep=keep):
                hits = service.query_offsets(TOPIC, keys)
                found = opened.get_many(hits.values, columns=WANTED)
            _say(result, found)
    return result


def _keys(store: str, count: int) -> list[str]:
    """The first key of messages that are spread over the log's first file."""
    with CommitLog.open(os.path.join(store, "commitlog")) as log:
        chosen = np.random.default_rng(7).permutation(1 << 20)
        batches = islice(log.scan(columns=["keys"]), 16)
        texts = [text for batch in batches for text in batch["keys"].to_pylist()]
    return [texts[number].split()[0] for number in chosen[chosen < len(texts)][:count].tolist()]


def _say(result: Result, found: Columns) -> None:
    result.answer(found=len(found), body_bytes=len(found["body"].data))
