"""Messages of a period and of a topic, counted: from heads, by a zone map, in SQL."""

from __future__ import annotations

import os
import shutil
from typing import Any

import duckdb
import numpy as np

import mqindex
from bench.contenders.result import Result, repeat
from mqindex.rocketmq import CommitLog, scan

__all__ = ["first", "later", "sql", "walk"]

PARTS = 1000  # a window is this part of the time that the log has


def walk(*, store: str, scratch: str, **spec: Any) -> Result:
    """The heads of all messages."""
    result = Result()
    with CommitLog.open(os.path.join(store, "commitlog")) as log:
        for keep in repeat(**spec):
            with result.timed("walk", 1, keep=keep):
                rows = sum(len(batch) for batch in log.scan(columns=["store_timestamp"]))
            result.answer(rows=rows)
    return result


def first(*, store: str, scratch: str, **spec: Any) -> Result:
    """A window of which no zone map is known yet."""
    result, cache = Result(), os.path.join(scratch, "cache")
    for keep in repeat(**spec):
        shutil.rmtree(cache, ignore_errors=True)
        with result.timed("scan", 1, keep=keep):
            found = _window(store, cache)
        result.answer(found=found[0])
    return result


def later(*, store: str, scratch: str, **spec: Any) -> Result:
    """The same where it is."""
    result, cache = Result(), os.path.join(scratch, "cache")
    _window(store, cache)
    for keep in repeat(**spec):
        with result.timed("scan", 1, keep=keep):
            found, size, more = _window(store, cache)
        result.answer(found=found, bytes=size, more=more)
    return result


def sql(*, store: str, scratch: str, **spec: Any) -> Result:
    """Windows and topics in DuckDB with one thread: the window pushed down, and of the whole table."""
    result, cache = Result(), os.path.join(scratch, "cache")
    messages = mqindex.dataset(store, "messages", cache=cache)
    begin, end = _bounds(store)
    with duckdb.connect() as database:
        database.execute("SET threads = 1; SET TimeZone = 'UTC'")
        database.register("messages", messages)
        period = f"store_timestamp BETWEEN make_timestamptz({begin * 1000}) AND make_timestamptz({(end - 1) * 1000})"
        bodies = "sum(octet_length(body))"
        queries = {
            "window": f"SELECT count(*), {bodies} FROM messages WHERE {period}",
            "full": f"SELECT count(*) FILTER ({period}), {bodies} FILTER ({period}) FROM messages",
            "by_topic": "SELECT topic, count(*) FROM messages GROUP BY topic",
        }
        for name, query in queries.items():
            for keep in repeat(**spec):
                with result.timed(name, 1, keep=keep):
                    rows = database.execute(query).fetchall()
                result.answer(**{name: str(rows)})
    return result


def _bounds(store: str) -> tuple[int, int]:
    """A window in the middle of the times of a log, ms."""
    with CommitLog.open(os.path.join(store, "commitlog")) as log:
        starts = [batch["store_timestamp"] for batch in log.scan(columns=["store_timestamp"])]
    times = np.concatenate(starts)
    low, high = int(times.min()), int(times.max())
    middle, half = (low + high) // 2, max((high - low) // PARTS // 2, 1)
    return middle - half, middle + half


def _window(store: str, cache: str) -> tuple[int, int, int]:
    begin, end = _bounds_of[store] if store in _bounds_of else _bounds_of.setdefault(store, _bounds(store))
    with scan(store, begin=begin, end=end, columns=["size"], cache=cache) as found:
        sizes = [batch["size"] for batch in found]
    size = int(sum(one.sum() for one in sizes))
    return sum(map(len, sizes)), size, found.bytes_read - size


_bounds_of: dict[str, tuple[int, int]] = {}
