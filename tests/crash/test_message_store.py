"""A store whose writer is killed anywhere, while it appends, flushes, rolls, dispatches: opening it needs no hand."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import MessageStore, NewMessage, verify
from tests.crash.test_full_disk import REPOSITORY, mountable
from tests.support.killed import ROUNDS, killed

CONFIG = {
    "maxHashSlotNum": 20,
    "maxIndexNum": 64,
    "mappedFileSizeCommitLog": 1 << 14,
    "mappedFileSizeConsumeQueue": 400,
    "flushDiskType": "SYNC_FLUSH",
}
ACK = struct.Struct("=qqqq")  # number of a message, its queue, its queue offset, its phy offset
ROUNDS_PER_STORE = 10
Acknowledged = dict[int, tuple[int, int, int]]


def message(number: int) -> NewMessage:
    size = (5, 90, 700, 2500)[number % 4]
    return NewMessage("T", bytes([number % 251]) * size, queue_id=number % 3, keys=f"k{number}", tags="TagA")


def write(root: Path, answer: int, seed: int, first: int) -> None:
    """Puts of both kinds, dispatch and flushes; a word for each message that must not be lost."""
    source, number = random.Random(seed), first
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        while True:
            batch = [message(number + n) for n in range(source.choice((1, 1, 4, 30)))]
            if len(batch) == 1:
                one = store.put_message(batch[0])
                places = [(one.queue_offset, one.phy_offset)]
            else:
                many = store.put_messages(batch)
                places = list(zip(many.queue_offsets.tolist(), many.phy_offsets.tolist(), strict=True))
            for put, place in zip(batch, places, strict=True):
                os.write(answer, ACK.pack(number, put.queue_id, *place))
                number += 1
            if source.random() < 0.4:
                source.choice((store.reput, store.flush))()


def killed_writer(root: Path, source: random.Random, first: int) -> Acknowledged:
    """What a writer acknowledged before it was killed, at some time after some word of it."""
    seed, words, pause = source.getrandbits(32), source.choice((0, 1, 3, 20, 80)), source.random()
    seconds = pause * (0.002 if words else 0.03)
    said = killed(lambda pipe: write(root, pipe, seed, first), ACK, words=words, seconds=seconds)
    return {number: (queue, offset, phy) for number, queue, offset, phy in said}


def found_in(store: MessageStore) -> Acknowledged:
    """What a consumer of every queue gets."""
    return {
        int(key[1:]): (queue_id, offset, phy)
        for topic, queue_id in store.queues
        for part in [store.get_messages(topic, queue_id, 0, max_msg_nums=1 << 20).messages]
        for key, offset, phy in zip(
            part["keys"].to_pylist(), part["queue_offset"].tolist(), part["phy_offset"].tolist(), strict=True
        )
    }


def test_killed_anywhere_everything_acknowledged_is_consumed_and_found(
    tmp_path: Path, rng: random.Random, tell_kills: Callable[..., None]
) -> None:
    words = kills = 0
    for store_number in range(-(-ROUNDS // (4 * ROUNDS_PER_STORE))):
        root = tmp_path / f"store{store_number}"
        root.mkdir()
        acknowledged: Acknowledged = {}
        following = 0
        for _ in range(ROUNDS_PER_STORE):
            said = killed_writer(root, rng, following)
            acknowledged |= said
            words += len(said)
            kills += 1
            with MessageStore.open(root, writable=True, config=CONFIG) as store:
                found = found_in(store)
                assert acknowledged.items() <= found.items()
                for number in rng.sample(sorted(acknowledged), min(len(acknowledged), 5)):
                    (only,) = store.query_message("T", f"k{number}", exact=True).messages
                    assert (only.queue_id, only.queue_offset, only.phy_offset) == acknowledged[number]
                    assert only.body == message(number).body
            following = max(found, default=-1) + 1
            report = verify(root, deep=True, engine=LocalEngine(1), config=CONFIG)
            assert report.ok, report.findings
        shutil.rmtree(root)
    assert words > ROUNDS // 10
    tell_kills("put, put of many, dispatch, flush", kills, acknowledged=words, lost=0)


FULL = """
import errno, pathlib, sys
from mqindex.engines import LocalEngine
from mqindex.rocketmq import MessageStore, NewMessage, verify
from tests.crash.test_message_store import CONFIG

disk = pathlib.Path(sys.argv[1])
ballast, root = disk / "ballast", disk / "store"
ballast.write_bytes(bytes(3_500_000))

def full(call):
    try:
        call()
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
        return True

def put_all():
    while True:
        store.put_message(NewMessage("T", bytes(500), keys=f"k{len(offsets)}"))
        offsets.append(len(offsets))

root.mkdir()
offsets = []
store = MessageStore.open(root, writable=True, config=CONFIG)
assert full(put_all) and len(offsets) > 100
full(store.flush)
full(store.close)
ballast.unlink()
with MessageStore.open(root, writable=True, config=CONFIG) as store:
    assert store.put_message(NewMessage("T", b"after", keys="after")).queue_offset >= len(offsets)
    for number in offsets:
        (only,) = store.query_message("T", f"k{number}", exact=True).messages
        assert only.queue_offset == number
assert verify(root, deep=True, engine=LocalEngine(1), config=CONFIG).ok
print("done")
"""


@pytest.mark.skipif(not mountable(), reason="no file system may be mounted here; full disks of its parts are tested")
def test_full_disk_is_an_error_and_the_store_opens_again_when_there_is_space(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    mount = f'mount -t tmpfs -o size=4m none "{tmp_path}/disk" && exec "$@"'
    inside = [sys.executable, "-c", FULL, str(tmp_path / "disk")]
    command = ["unshare", "-Urm", "sh", "-c", mount, "sh", *inside]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
