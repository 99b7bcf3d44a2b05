"""A process that is killed inside `put_keys`: what the file has then, and what a next writer makes of it."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mqindex.rocketmq import IndexFile

ROUNDS = 8
BLOCK = 4096  # entries that the header may lag
MANY = 1_000_000
SLOTS = 200_000
T0 = 1_700_000_000_000
PHYS = np.arange(1, MANY + 1) * 100
TIMES = T0 + np.arange(MANY)


@cache
def keys() -> npt.NDArray[np.bytes_]:
    return np.char.mod("T#k%d", np.arange(MANY)).astype("S")


def put_and_die(index: IndexFile, enough: int) -> None:
    """A child puts all keys and is killed when so many are counted, somewhere inside that put."""
    given = keys()
    child = os.fork()
    if child == 0:
        with IndexFile.open(index.path, hash_slot_num=SLOTS, index_num=MANY + 1, writable=True) as own:
            own.put_keys(given, PHYS, TIMES)
        os._exit(0)
    while index.header.index_count <= enough:
        pass
    os.kill(child, signal.SIGKILL)  # it may have finished: then it waits to be asked
    os.waitpid(child, 0)


def test_killed_inside_put_keys_every_counted_entry_is_whole(
    tmp_path: Path, rng: random.Random, tell_kills: Callable[..., None]
) -> None:
    cut = 0
    for number in range(ROUNDS):
        path = tmp_path / str(number)
        IndexFile.create(path, hash_slot_num=SLOTS, index_num=MANY + 1).close()
        with IndexFile.open(path, hash_slot_num=SLOTS, index_num=MANY + 1) as index:
            put_and_die(index, rng.randrange(1, MANY // 4))
            header, entries = index.header, index.entries()
            stored = header.index_count - 1
            cut += stored < MANY
            assert np.array_equal(entries["phy_offset"], PHYS[:stored])
            ended = header.end_phy_offset // 100  # puts that the end of the header knows
            assert stored - BLOCK <= ended <= stored + 1
            assert (header.end_timestamp == TIMES[ended - 1]) or stored == ended
            assert 0 <= header.hash_slot_count <= np.count_nonzero(index.slots())
            assert {kind for kind, *_ in index._check()} <= {
                "hash_slot_count", "end_phy_offset", "end_timestamp", "slot_head"}  # fmt: skip
            assert all(len(hits) for hits in index.select_phy_offsets(keys()[: stored - 1 : 1000]))
        with IndexFile.open(path, hash_slot_num=SLOTS, index_num=MANY + 1, writable=True) as index:
            assert index.put_keys(keys()[stored:], PHYS[stored:], TIMES[stored:]) == MANY - stored
            assert {kind for kind, *_ in index._check()} <= {"hash_slot_count", "prev_index"}
            assert [len(hits) for hits in index.select_phy_offsets(keys()[::1000])] == [1] * len(keys()[::1000])
    assert cut > 0
    tell_kills("put_keys", cut, entries_lost=0)
