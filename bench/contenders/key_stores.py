"""What a user would pick instead: general key-value stores and a join, on the same keys, one thread, no fsync."""

from __future__ import annotations

import os
import shutil
import struct
from typing import Any

import numpy as np
import pyarrow as pa

from bench.contenders.keys import TOPIC, arrow_keys, full_keys, phy_offsets, store_timestamps
from bench.contenders.result import Result, repeat
from mqindex.rocketmq import IndexFile

__all__ = ["duckdb", "lmdb", "mqindex", "rocksdb"]


def mqindex(*, keys: str, wanted: str, count: int, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """put_keys and select_phy_offsets."""
    result = Result()
    stored, asked = arrow_keys(keys, count), arrow_keys(wanted)
    offsets, times = phy_offsets(count), store_timestamps(count)
    path = os.path.join(scratch, "1")
    for _ in repeat(**spec):
        with result.timed("build", count):
            index = IndexFile.create(path, hash_slot_num=slots, index_num=entries)
            index.put_keys(stored, offsets, times, topic=TOPIC)
        with result.timed("look_up", len(asked)):
            hits = index.select_phy_offsets(asked, topic=TOPIC)
        index.close()
        os.unlink(path)
    result.answer(found=int(np.count_nonzero(np.diff(hits.offsets))))
    return result


def lmdb(*, keys: str, wanted: str, count: int, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """One write transaction of putmulti, one getmulti."""
    import lmdb as library

    result = Result()
    items, asked = _pairs(keys, count), _bytes(wanted)
    for _ in repeat(**spec):
        path = os.path.join(scratch, "lmdb")
        with library.open(path, map_size=1 << 36, sync=False) as environment:
            with result.timed("build", count), environment.begin(write=True) as transaction:
                transaction.cursor().putmulti(items)
            with result.timed("look_up", len(asked)), environment.begin() as transaction:
                found = transaction.cursor().getmulti(asked)
        shutil.rmtree(path)
    result.answer(found=len(found))
    return result


def rocksdb(*, keys: str, wanted: str, count: int, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """Write batches of 10 000, multi-get."""
    from rocksdict import Options, Rdict, WriteBatch

    result = Result()
    items = _pairs(keys, count)
    asked: list[Any] = _bytes(wanted)
    found: Any = None
    for _ in repeat(**spec):
        path = os.path.join(scratch, "rocksdb")
        database = Rdict(path, Options(raw_mode=True))
        with result.timed("build", count):
            for start in range(0, count, 10_000):
                batch = WriteBatch(raw_mode=True)
                for key, value in items[start : start + 10_000]:
                    batch.put(key, value)
                database.write(batch)
            database.flush()
        with result.timed("look_up", len(asked)):
            found = database[asked]
        database.close()
        shutil.rmtree(path)
    result.answer(found=sum(value is not None for value in found))
    return result


def duckdb(*, keys: str, wanted: str, count: int, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """A table loaded from Arrow, a join of the wanted keys with it."""
    import duckdb as library

    result = Result()
    stored = pa.table({"key": arrow_keys(keys, count), "phy_offset": phy_offsets(count)})
    asked = pa.table({"key": arrow_keys(wanted)})
    found: Any = None
    for _ in repeat(**spec):
        path = os.path.join(scratch, "duckdb")
        with library.connect(path, config={"threads": 1}) as connection:
            connection.register("stored", stored)
            connection.register("asked", asked)
            with result.timed("build", count):
                connection.execute("create table entries as select key, phy_offset from stored")
            with result.timed("look_up", len(asked)):
                found = connection.execute("select phy_offset from asked join entries using (key)").to_arrow_table()
        os.unlink(path)
    result.answer(found=found.num_rows)
    return result


def _bytes(path: str) -> list[bytes]:
    return [key.encode() for key in full_keys(path)]


def _pairs(path: str, count: int) -> list[tuple[bytes, bytes]]:
    values = phy_offsets(count).tolist()
    return [(key.encode(), struct.pack(">q", value)) for key, value in zip(full_keys(path, count), values, strict=True)]
