"""A disk that fails once while a store is written: what was acknowledged is consumed after the next opening."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import MessageStore, NewMessage, verify
from tests.support.failing_calls import FailingCall
from tests.support.nightly import NIGHTLY

CONFIG = {
    "maxHashSlotNum": 5,
    "maxIndexNum": 16,
    "mappedFileSizeCommitLog": 1 << 12,
    "mappedFileSizeConsumeQueue": 100,
    "flushDiskType": "SYNC_FLUSH",
}
QUEUES = [("A", 0), ("A", 1), ("B", 0)]
FAILURES = ("ENOSPC", "EIO", "EMFILE", "EACCES")
Acknowledged = dict[str, tuple[tuple[str, int], int]]  # by key


def put(store: MessageStore, number: int, acknowledged: Acknowledged) -> None:
    queue = QUEUES[number % len(QUEUES)]
    message = NewMessage(queue[0], bytes(number % 50), queue_id=queue[1], keys=f"k{number}")
    acknowledged[f"k{number}"] = queue, store.put_message(message).queue_offset


def write(root: Path) -> Acknowledged:
    """Puts and dispatch in turn; whoever calls goes on after an error, as a program that only writes it to its log."""
    acknowledged: Acknowledged = {}
    with contextlib.suppress(OSError, MQIndexError), MessageStore.open(root, writable=True, config=CONFIG) as store:
        for number in range(40):
            with contextlib.suppress(OSError, MQIndexError):
                put(store, number, acknowledged)
            if number % 7 == 6:
                with contextlib.suppress(OSError, MQIndexError):
                    (store.reput, store.flush)[number % 2]()
    return acknowledged


def require_nothing_lost(root: Path, acknowledged: Acknowledged) -> None:
    """One more message a queue, and every one is where it was promised, alone."""
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        for number in range(100, 100 + len(QUEUES)):
            put(store, number, acknowledged)
        assert len(set(acknowledged.values())) == len(acknowledged)
        for queue in QUEUES:
            found = store.get_messages(*queue, 0, max_msg_nums=1000, columns=["keys", "queue_offset"]).messages
            consumed = dict(zip(found["keys"].to_pylist(), found["queue_offset"].tolist(), strict=True))
            assert {key: at for key, (of, at) in acknowledged.items() if of == queue}.items() <= consumed.items()
        for key, (queue, _) in acknowledged.items():
            assert len(store.query_message(queue[0], key, exact=True).messages) == 1
    assert not (root / "abort").exists()
    report = verify(root, deep=True, engine=LocalEngine(1), config=CONFIG)
    assert report.ok, report.findings


def attempt(root: Path, at: int, failure: str) -> FailingCall:
    """A whole life of a store, of which one call fails."""
    with FailingCall((str(root),), at, failure) as failing:
        acknowledged = write(root)
    require_nothing_lost(root, acknowledged)
    return failing


@pytest.mark.parametrize("failure", FAILURES)
def test_whichever_call_fails_nothing_acknowledged_is_lost(failure: str, tmp_path: Path, rng: random.Random) -> None:
    calls = attempt(tmp_path / "whole", 10**9, failure).calls
    assert len(calls) > 200
    chosen = range(1, len(calls) + 1) if NIGHTLY else sorted(rng.sample(range(1, len(calls) + 1), 15))
    lost = {}
    for at in chosen:
        try:
            assert attempt(tmp_path / str(at), at, failure).struck
        except BaseException as error:
            lost[at, calls[at - 1]] = f"{type(error).__name__}: {error}"[:300]
    assert not lost, "\n".join(f"call {at} {name}: {said}" for (at, name), said in lost.items())
