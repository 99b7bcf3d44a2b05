"""Look-ups in index files that were dropped from the page cache; page reads are counted by major faults."""

from __future__ import annotations

import os
import resource
import shutil
import time
from contextlib import ExitStack
from typing import Any

import numpy as np

from bench import memory
from bench.contenders.keys import TOPIC, arrow_keys, phy_offsets, store_timestamps
from bench.contenders.result import Result, repeat
from mqindex.rocketmq import IndexFile, IndexService, optimize

__all__ = ["fill", "optimize_in_place", "run", "warm"]

FILES = 50
_UNTIL_WARM = 5  # calls after which it is known that the files are in memory
_PASSES = 5


def fill(root: str, keys: str, slots: int, entries: int, files: int = FILES) -> None:
    """Full index files; the keys of file i are of topic Ti."""
    wanted = arrow_keys(keys)
    offsets, times = phy_offsets(len(wanted)), store_timestamps(len(wanted))
    os.makedirs(os.path.join(root, "index"))
    for i in range(files):
        path = os.path.join(root, "index", f"202401010000{i:05d}")
        with IndexFile.create(path, hash_slot_num=slots, index_num=entries) as index:
            index.put_keys(wanted, offsets + i * 10**12, times, topic=f"T{i}")
            index.flush()


def optimize_in_place(root: str, slots: int, entries: int) -> None:
    """All at once, as a user does: the disk holds them twice until the old ones are removed."""
    report = optimize(root, root, hash_slot_num=slots, index_num=entries, overwrite=True)
    if report.backup:
        shutil.rmtree(report.backup)


def run(
    *, root: str, hit: str, miss: str, count: int, single: int, slots: int, entries: int, scratch: str, **spec: Any
) -> Result:
    """Single calls in one file that is open; then all keys over all files by one call, the opening of them counted."""
    result = Result()
    present = [f"T{i % FILES}#{key}" for i, key in enumerate(arrow_keys(hit).to_pylist()[:count])]
    first = [f"T0#{key}" for key in arrow_keys(hit).to_pylist()[:single]]
    absent = [f"T0#{key}" for key in arrow_keys(miss).to_pylist()[:single]]
    for keep in repeat(**spec):
        for measure, keys in (("reads_hit", first), ("reads_miss", absent)):
            _drop(root)
            with _open(root, slots, entries) as service:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
                found = [service.files[0].select_phy_offset(key).tolist() for key in keys]
                reads = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
            result.answers[measure] = sum(map(sum, found))
            if keep:
                result.add(measure, float(reads), len(keys))
        _drop(root)
        with result.timed("batch", len(present), keep=keep), _open(root, slots, entries) as service:
            hits = service.query_offsets(None, present)
        result.answers["batch"] = int(np.sum(hits.values))
    return result


def warm(*, files: dict[str, str], hit: str, miss: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """Present and absent keys in files that are in memory, which take turns: a neighbour of the machine hits all.

    On one processor, and more keys than its caches hold entries of.
    """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    result = Result()
    keys = {"hit": arrow_keys(hit), "miss": arrow_keys(miss)}
    with ExitStack() as opened:
        indexes = {
            name: opened.enter_context(IndexFile.open(path, hash_slot_num=slots, index_num=entries))
            for name, path in files.items()
        }
        memory.read(files.values())
        for index in indexes.values():
            for _ in range(_UNTIL_WARM):
                index.select_phy_offsets(keys["hit"], topic=TOPIC)
        for keep in repeat(**spec):
            for measure, wanted in keys.items():
                seconds = dict.fromkeys(indexes, 0.0)
                for _ in range(_PASSES):
                    for name, index in indexes.items():
                        start = time.perf_counter()
                        hits = index.select_phy_offsets(wanted, topic=TOPIC)
                        seconds[name] += time.perf_counter() - start
                        answer = int(np.sum(hits.values))
                        if result.answers.setdefault(f"warm_{measure}", answer) != answer:
                            raise RuntimeError(f"{name}: another answer: {answer}")
                for name in indexes if keep else ():
                    result.add(f"{name}_{measure}", seconds[name], _PASSES * len(wanted))
    return result


def _drop(root: str) -> None:
    for directory, _, names in os.walk(root):
        for name in names:
            memory.drop(os.path.join(directory, name))


def _open(root: str, slots: int, entries: int) -> IndexService:
    return IndexService.open(os.path.join(root, "index"), hash_slot_num=slots, index_num=entries)
