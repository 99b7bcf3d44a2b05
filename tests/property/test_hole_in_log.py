"""A hole in the log's last files, and dispatch that came to anywhere: what is there once the store is written again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mqindex.rocketmq import MessageStore, NewMessage, repair, verify
from mqindex.rocketmq.log.writing.log_recovery import RECOVERED_FILES

FILE = 2048
CONFIG = {"maxHashSlotNum": 5, "maxIndexNum": 64, "mappedFileSizeCommitLog": FILE, "mappedFileSizeConsumeQueue": 100}
UNIT = 20  # bytes
QUEUES = 3


def make(root: Path, rng: random.Random) -> int:
    """A store whose power went; returns how many messages come before the hole."""
    sizes = [rng.choice((5, 90, 400, 900)) for _ in range(rng.randint(4, 40))]
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        at = [
            store.put_message(NewMessage("T", bytes(size), queue_id=rng.randrange(QUEUES), keys=f"k{n}")).phy_offset
            for n, size in enumerate(sizes)
        ]
    logs = sorted((root / "commitlog").iterdir())
    hole = rng.choice([place for place in at[1:] if place >= int(logs[-RECOVERED_FILES:][0].name)])
    torn = [log for log in logs if int(log.name) + FILE > hole]
    for log in torn[: rng.randint(1, len(torn))]:  # those behind these reached the disk
        log.write_bytes(log.read_bytes()[: max(hole - int(log.name), 0)].ljust(FILE, b"\0"))
    dispatched = rng.choice((0, hole, at[-1] + 1, rng.choice(at)))
    for file in root.glob("consumequeue/T/*/*"):
        data = file.read_bytes()
        units = [data[place : place + UNIT] for place in range(0, len(data), UNIT)]
        kept = b"".join(unit for unit in units if int.from_bytes(unit[:8], "big") < dispatched)
        file.write_bytes(kept.ljust(len(data), b"\0"))
    (root / "abort").touch()
    return sum(place < hole for place in at)


@pytest.mark.parametrize("repaired", [False, True])
@pytest.mark.parametrize("number", range(25))
def test_every_message_before_the_hole_is_there(
    number: int, repaired: bool, tmp_path: Path, rng: random.Random
) -> None:
    root = tmp_path / "store"
    before = make(root, rng)
    if repaired:
        repair(root, config=CONFIG)
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        new = [store.put_message(NewMessage("T", b"new", queue_id=n, keys=f"new{n}")) for n in range(QUEUES)]
    report = verify(root, deep=True, config=CONFIG)
    assert report.ok, report.findings
    with MessageStore.open(root, config=CONFIG) as store:
        parts = [store.get_messages("T", n, 0, max_msg_nums=99).messages["keys"].to_pylist() for n in range(QUEUES)]
        keys = [key for part in parts for key in part]
        assert sorted(keys) == sorted([*(f"k{n}" for n in range(before)), *(f"new{n}" for n in range(QUEUES))])
        assert all(store.query_message("T", key, exact=True).messages for key in keys)
        assert [part[one.queue_offset] for part, one in zip(parts, new, strict=True)] == [
            f"new{n}" for n in range(QUEUES)
        ]
