"""`IndexFile`: bulk and single put, bulk and single select."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import memory
from bench.contenders.keys import TOPIC, arrow_keys, full_keys, phy_offsets, store_timestamps
from bench.contenders.result import Result, checksum, repeat
from mqindex.rocketmq import IndexFile

__all__ = ["fill", "put", "select", "single_put", "single_select"]


def fill(path: str, keys: str, slots: int, entries: int) -> None:
    """Make the index file of all keys."""
    wanted = arrow_keys(keys)
    with IndexFile.create(path, hash_slot_num=slots, index_num=entries) as index:
        index.put_keys(wanted, phy_offsets(len(wanted)), store_timestamps(len(wanted)), topic=TOPIC)
        index.flush()


def put(*, keys: str, count: int, slots: int, entries: int, warm: int, scratch: str, **spec: Any) -> Result:
    """put_keys of Arrow keys into a freshly allocated file: hashing, page faults, no fsync."""
    result = Result()
    wanted, offsets, times = arrow_keys(keys, count), phy_offsets(count), store_timestamps(count)
    path, checked = os.path.join(scratch, "1"), ""
    for keep in repeat(**spec):
        memory.warm(warm)
        index = IndexFile.create(path, hash_slot_num=slots, index_num=entries)
        with result.timed("put", count, keep=keep):
            stored = index.put_keys(wanted, offsets, times, topic=TOPIC)
        index.close()
        if stored != count:
            raise RuntimeError(f"full after {stored} keys")
        checked = checked or checksum([path])
        os.unlink(path)
    result.answer(files=checked)
    return result


def select(*, index: str, hit: str, miss: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """select_phy_offsets of Arrow keys, hashing included, results as arrays; `*_one`: on one processor."""
    result = Result()
    every = os.sched_getaffinity(0)
    with IndexFile.open(index, hash_slot_num=slots, index_num=entries) as file:
        for measure, path in (("hit", hit), ("miss", miss)):
            wanted = arrow_keys(path)
            for keep in repeat(**spec):
                for name, processors in ((f"{measure}_one", {min(every)}), (measure, every)):
                    os.sched_setaffinity(0, processors)
                    with result.timed(name, len(wanted), keep=keep):
                        hits = file.select_phy_offsets(wanted, topic=TOPIC)
            result.answers.update(_answer(measure, hits.values, hits.offsets))
    return result


def single_put(*, keys: str, count: int, slots: int, entries: int, warm: int, scratch: str, **spec: Any) -> Result:
    """put_key in a Python loop: of the file and of a writer, and with `topic + "#" + key` made for each call."""
    result = Result()
    ready, short = full_keys(keys, count), arrow_keys(keys, count).to_pylist()
    offsets, times = phy_offsets(count).tolist(), store_timestamps(count).tolist()

    def call_ready(index: IndexFile) -> None:
        put_key = index.put_key
        for key, offset, timestamp in zip(ready, offsets, times, strict=True):
            put_key(key, offset, timestamp)

    def call_concatenated(index: IndexFile) -> None:
        put_key, topic = index.put_key, TOPIC
        for key, offset, timestamp in zip(short, offsets, times, strict=True):
            put_key(topic + "#" + key, offset, timestamp)

    def call_writer(index: IndexFile) -> None:
        with index.writer() as writer:
            put_key = writer.put_key
            for key, offset, timestamp in zip(ready, offsets, times, strict=True):
                put_key(key, offset, timestamp)

    calls: dict[str, Callable[[IndexFile], None]] = {
        "put": call_ready,
        "put_by_writer": call_writer,
        "put_concatenated": call_concatenated,
    }
    path = os.path.join(scratch, "1")
    checked: dict[str, str] = {}
    for keep in repeat(**spec):
        for measure, call in calls.items():
            memory.warm(warm)
            index = IndexFile.create(path, hash_slot_num=slots, index_num=entries)
            with result.timed(measure, count, keep=keep):
                call(index)
            index.close()
            checked.setdefault(measure, checksum([path]))
            os.unlink(path)
    result.answer(files=checked["put"])
    if len(set(checked.values())) != 1:
        raise RuntimeError("the ways to put made different files")
    return result


def single_select(*, index: str, hit: str, miss: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """select_phy_offset in a Python loop, the key's string at hand."""
    result = Result()
    with IndexFile.open(index, hash_slot_num=slots, index_num=entries) as file:
        for measure, path in (("hit", hit), ("miss", miss)):
            wanted = full_keys(path)
            for keep in repeat(**spec):
                with result.timed(measure, len(wanted), keep=keep):
                    _loop(file, wanted)
            found = [file.select_phy_offset(key) for key in wanted]
            sizes = np.fromiter((len(values) for values in found), np.int64, len(found))
            offsets = np.concatenate(([0], np.cumsum(sizes)))
            result.answers.update(_answer(measure, np.concatenate(found), offsets))
    return result


def _loop(file: IndexFile, keys: list[str]) -> None:
    select_phy_offset = file.select_phy_offset
    for key in keys:
        select_phy_offset(key)


def _answer(measure: str, values: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> dict[str, int]:
    """The hits, and a sum that says to which key each belongs; both wrap as Java's longs do."""
    numbers = np.repeat(np.arange(1, len(offsets), dtype=np.int64), np.diff(offsets))
    with np.errstate(over="ignore"):
        total = (values * numbers).sum(dtype=np.int64)
    return {f"{measure}_hits": len(values), f"{measure}_checksum": int(total)}
