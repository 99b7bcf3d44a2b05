"""`Reput`: what is put, what is passed over, what is counted, and when it looks."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from mqindex.rocketmq import ConsumeQueueTable, IndexService
from mqindex.rocketmq.dispatch import reput
from mqindex.rocketmq.dispatch.dispatched import dispatched_offset
from mqindex.rocketmq.dispatch.dispatcher import DispatchBuffer, Dispatcher
from mqindex.rocketmq.dispatch.reput import Reput, ReputProgress
from mqindex.rocketmq.log.growing_log import LogChangedError
from mqindex.rocketmq.queue.queue_rules import QueueRules
from tests.support.growing_store import GrowingStore, Turns
from tests.support.log_writer import LogMessage, frame
from tests.support.tree import index_bytes, queue_bytes

RULES = QueueRules(file_size=200)


@pytest.fixture
def store(tmp_path: Path) -> GrowingStore:
    return GrowingStore(tmp_path / "store")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@contextmanager
def dispatching(
    store: GrowingStore, out: Path, *, start: int = 0, index: bool = True, queues: bool = True, **options: object
) -> Iterator[Reput]:
    with (
        IndexService.open(out / "index", hash_slot_num=5, index_num=16, writable=True) as service,
        ConsumeQueueTable.open(out / "consumequeue", file_size=200, writable=True) as table,
        Reput(
            store.writer.directories,
            service if index else None,
            table if queues else None,
            tags=False,
            rules=RULES,
            start=start,
            **options,  # type: ignore[arg-type]
        ) as dispatch,
    ):
        yield dispatch


def files_of(out: Path) -> tuple[list[bytes], dict[str, bytes]]:
    return index_bytes(out), queue_bytes(out)


def test_a_call_tells_what_it_did(store: GrowingStore, out: Path) -> None:
    offsets = store.write(10)
    with dispatching(store, out) as dispatch:
        first = dispatch.run_once(offsets[4])
        assert (first.messages, first.from_phy_offset, first.phy_offset) == (4, 0, offsets[4])
        second = dispatch.run_once()
        assert (second.messages, second.from_phy_offset, second.phy_offset) == (6, offsets[4], store.writer.position)
        assert dispatch.result() == second._replace(
            messages=10, entries=first.entries + second.entries, units=first.units + second.units, from_phy_offset=0
        )
        assert second.units == 5  # one is rolled back
        assert second.store_timestamp == 1_700_000_000_000 + 9 * 700
        assert dispatch.run_once()[:3] == (0, 0, 0)


def test_entries_below_the_end_of_the_index_are_passed_over_as_by_the_broker(store: GrowingStore, out: Path) -> None:
    offsets = store.write(10)
    with dispatching(store, out) as dispatch:
        dispatch.run_once(offsets[7])
    with dispatching(store, out) as dispatch:  # from the start again: the last message with keys is indexed again
        done = dispatch.run_once(offsets[7])
        assert (done.units, done.entries) == (0, 3)


def test_what_is_known_to_be_indexed_is_not_indexed_again(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    offsets = store.write(10)
    with dispatching(store, out) as dispatch:
        dispatch.run_once(offsets[7])
    with dispatching(store, out, indexed=offsets[7]) as dispatch:
        assert dispatch.run_once(offsets[7])[:3] == (7, 0, 0)
        dispatch.run_once()
    assert files_of(out) == store.expected(tmp_path / "rebuilt")


def test_index_and_queues_may_be_dispatched_alone(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    store.write(40)
    index, queues = store.expected(tmp_path / "rebuilt")
    with dispatching(store, out, queues=False) as dispatch:
        done = dispatch.run_once()
    assert (index_bytes(out), queue_bytes(out)) == (index, {})
    assert (done.units, done.store_timestamp > 0) == (0, True)
    with dispatching(store, out, index=False) as dispatch:
        assert dispatch.run_once().entries == 0
    assert queue_bytes(out) == queues


def test_a_message_without_keys_makes_the_first_index_file(store: GrowingStore, out: Path) -> None:
    store.writer.write(LogMessage())
    with dispatching(store, out) as dispatch:
        dispatch.run_once()
    (data,) = index_bytes(out)
    assert not any(data)


@pytest.mark.parametrize("more", [LogMessage(), LogMessage(sys_flag=0xC, keys="k")])
def test_a_message_behind_a_full_index_file_makes_the_next(store: GrowingStore, out: Path, more: LogMessage) -> None:
    store.writer.write(*(LogMessage(keys=f"k{n}", queue_offset=n) for n in range(15)))
    with dispatching(store, out) as dispatch:
        dispatch.run_once()
        assert len(index_bytes(out)) == 1
        (at,) = store.writer.write(replace(more, queue_offset=15))
        dispatch.run_once(at)
        assert len(index_bytes(out)) == 1
        dispatch.run_once()
    first, second = index_bytes(out)
    assert second[:16] == first[8:16] * 2
    assert not any(second[32:])


def test_queues_that_cannot_be_files_are_counted(store: GrowingStore, out: Path) -> None:
    names = ["../evil", "", "a/b", "x" * 300]
    store.writer.write(*(LogMessage(topic=name, version=2, keys="k") for name in names))
    store.writer.write(LogMessage(queue_id=-1), LogMessage(topic="Huge", queue_offset=2**62), LogMessage(topic="Good"))
    with dispatching(store, out) as dispatch:
        done = dispatch.run_once()
    assert (done.messages, done.entries, done.units) == (7, 4, 1)
    assert dispatch.refused == {
        **{(name, 0): 1 for name in names}, ("TopicTest", -1): 1, ("Huge", 0): 1
    }  # fmt: skip
    assert queue_bytes(out).keys() == {next(iter(queue_bytes(out)))}


def test_topics_of_batch_queues_have_no_units_here(store: GrowingStore, out: Path) -> None:
    store.writer.write(LogMessage(topic="Batch"), LogMessage(topic="Simple"))
    with dispatching(store, out, batch_topics=frozenset({"Batch"})) as dispatch:
        assert dispatch.run_once().units == 1
    assert dispatch.refused == {("Batch", 0): 1}


def test_names_that_decode_alike_are_one_queue_in_the_log_s_order(store: GrowingStore, out: Path) -> None:
    for n, raw in enumerate([b"\xff", b"\xfe", b"\xff", b"\xfe"]):
        at = store.writer.position
        data = frame(LogMessage(topic="A", queue_offset=n, properties=b""), at)
        store.writer.write_bytes(data.replace(b"\x01A\x00\x00", b"\x01" + raw + b"\x00\x00"))
    with dispatching(store, out) as dispatch:
        assert dispatch.run_once().units == 4
    with ConsumeQueueTable.open(out / "consumequeue") as queues:
        (queue,) = queues.values()
        assert len(queue.units()["phy_offset"]) == 4
        assert (queue.units()["phy_offset"][1:] > queue.units()["phy_offset"][:-1]).all()


@pytest.mark.parametrize("gathered", [1, 3])
def test_how_many_units_are_put_at_a_time_makes_no_difference(
    store: GrowingStore, out: Path, tmp_path: Path, gathered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reput, "_GATHERED", gathered)
    monkeypatch.setattr(reput, "_PER_QUEUE", 0)
    store.write(60)
    with dispatching(store, out) as dispatch:
        dispatch.run_once()
    assert files_of(out) == store.expected(tmp_path / "rebuilt")


@pytest.fixture
def many(store: GrowingStore, monkeypatch: pytest.MonkeyPatch) -> GrowingStore:
    """A log of which every message is long enough to be put beside reading."""
    monkeypatch.setattr(reput, "_GATHERED", 1)
    monkeypatch.setattr(reput, "_PER_QUEUE", 0)
    store.write(60)
    return store


def putting_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("mqindex-put")]


def test_no_thread_is_left_when_all_is_put(many: GrowingStore, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, put = [], Dispatcher.put

    def watched(dispatcher: Dispatcher, stretch: DispatchBuffer) -> None:
        seen.append(threading.current_thread().name)
        put(dispatcher, stretch)

    monkeypatch.setattr(Dispatcher, "put", watched)
    with dispatching(many, out) as dispatch:
        dispatch.run_once()
        assert not putting_threads()
    assert any(name.startswith("mqindex-put") for name in seen)


def test_what_went_wrong_beside_reading_is_raised_and_stays(
    many: GrowingStore, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(dispatcher: Dispatcher, stretch: DispatchBuffer) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with dispatching(many, out) as dispatch:
        with monkeypatch.context() as failing:
            failing.setattr(Dispatcher, "put", full)
            with pytest.raises(OSError, match="No space left"):
                dispatch.run_once()
        with pytest.raises(OSError, match="No space left"):  # what follows is never put after a hole
            dispatch.run_once()
        assert dispatch.phy_offset == 0
    assert not putting_threads()


def test_closing_waits_for_what_is_being_put(many: GrowingStore, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, put, done = threading.Event(), Dispatcher.put, []

    def slow(dispatcher: Dispatcher, stretch: DispatchBuffer) -> None:
        began.set()
        time.sleep(0.2)
        put(dispatcher, stretch)
        done.append(stretch)

    def interrupted(putting: object) -> None:
        assert began.wait(10)
        raise KeyboardInterrupt

    with dispatching(many, out) as dispatch:
        monkeypatch.setattr(Dispatcher, "put", slow)
        wait = reput._Putting.wait
        monkeypatch.setattr(reput._Putting, "wait", lambda own: interrupted(own) if began.is_set() else wait(own))
        with pytest.raises(KeyboardInterrupt):
            dispatch.run_once()
        dispatch.close()
        assert len(done) == 1


def test_following_ends_when_the_event_is_set(store: GrowingStore, out: Path) -> None:
    store.write(10)
    stop = threading.Event()
    told: list[ReputProgress] = []

    def tell(progress: ReputProgress) -> None:
        told.append(progress)
        if progress.messages == 10:
            stop.set()

    with dispatching(store, out) as dispatch:
        done = dispatch.follow(stop, progress=tell)
    assert (done.messages, done.phy_offset) == (10, store.writer.position)
    assert told[-1].messages == 10
    assert told[-1].lag_bytes == 0


def test_it_looks_less_often_when_nothing_comes(
    store: GrowingStore, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reput, "_PATIENCE", 0.02)
    store.write(1)

    class Counted(Turns):
        slept: ClassVar[list[float]] = []

        def wait(self, timeout: float) -> None:
            self.slept.append(timeout)
            super().wait(timeout)

    clock = SimpleNamespace(monotonic=lambda: sum(Counted.slept))  # nothing but a sleep takes time
    monkeypatch.setattr(reput, "time", clock)

    with dispatching(store, out) as dispatch:
        dispatch.follow(Counted(80), interval=0.001)
    assert Counted.slept[0] == 0.0005, "the last message counts as soon as it has stayed as it is for so long"
    assert Counted.slept[1:3] == [0.001, 0.001]
    assert Counted.slept[-1] == 0.004


def test_where_dispatch_stands_is_read_off_index_and_queues(store: GrowingStore, out: Path) -> None:
    offsets = store.write(30)
    for stop in (offsets[1], offsets[9], offsets[29], store.writer.position):
        with dispatching(store, out, start=stands(store, out)) as dispatch:
            dispatch.run_once(stop)
        assert stands(store, out) == stop


def stands(store: GrowingStore, out: Path) -> int:
    with (
        IndexService.open(out / "index", hash_slot_num=5, index_num=16, writable=True) as index,
        ConsumeQueueTable.open(out / "consumequeue", file_size=200, writable=True) as queues,
    ):
        return dispatched_offset(store.writer.directories, index, queues, tags=False, rules=RULES)


@pytest.mark.parametrize("what", ["keys", "tags", "gone"])
def test_a_last_message_that_the_log_does_not_have_is_told(store: GrowingStore, out: Path, what: str) -> None:
    message = LogMessage(keys="some-key", tags="TagA")
    (at,) = store.writer.write(message)
    with dispatching(store, out) as dispatch:
        dispatch.run_once()
    other = {"keys": replace(message, keys="else-key"), "tags": replace(message, tags="TagB")}
    store.writer.overwrite(at, frame(other[what], at) if what in other else bytes(8))
    with pytest.raises(LogChangedError):
        stands(store, out)
