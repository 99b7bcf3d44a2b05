"""Tasks that are mostly Python take turns; others do not wait for them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.engines import python_turn as turns
from mqindex.engines.python_turn import python_turn
from mqindex.kafka import stages
from mqindex.rocketmq.pipeline import queue_stages
from tests.support.big_log import write_big_log
from tests.support.big_segments import write_big_segment


def test_a_task_that_is_mostly_python_waits_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "one_at_a_time", lambda: True)
    entered = threading.Event()

    def task() -> None:
        with python_turn(mostly_python=True):
            entered.set()

    thread = threading.Thread(target=task)
    with python_turn(mostly_python=True):
        thread.start()
        assert not entered.wait(0.05)
    thread.join()
    assert entered.is_set()


def test_other_tasks_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with python_turn(mostly_python=True), python_turn(mostly_python=False):
        pass
    monkeypatch.setattr(turns, "one_at_a_time", lambda: False)  # an interpreter without that lock
    with python_turn(mostly_python=True), python_turn(mostly_python=True):
        pass


@pytest.mark.parametrize(("messages", "small"), [(40, True), (40_000, False)])
def test_only_small_queues_are_built_in_turn(
    messages: int, small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "one_at_a_time", lambda: True)
    seen: list[bool] = []
    build = queue_stages._Queues._begin

    def looked_at(*arguments: object) -> object:
        seen.append(turns._turn.locked())
        return build(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(queue_stages._Queues, "_begin", looked_at)
    write_big_log(tmp_path / "store", messages=messages, body_size=0, mapped_file_size=16 << 20, queues=4)
    rocketmq.rebuild(
        tmp_path / "store", tmp_path / "out", parts=["consumequeue"], broker_version="4.9.3", engine=LocalEngine(2)
    )
    assert set(seen) == {small}


@pytest.mark.parametrize(("size", "small"), [(100 << 10, True), (300 << 10, False)])
def test_only_small_segments_are_recovered_in_turn_and_come_from_the_disk_together(
    size: int, small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "one_at_a_time", lambda: True)
    seen: list[bool] = []
    asked: list[str] = []
    recover = stages._recover

    def looked_at(item: stages.SegmentRecovery) -> stages.RecoveredSegment:
        seen.append(turns._turn.locked())
        assert len(asked) == (3 if small else 0)
        return recover(item)

    monkeypatch.setattr(stages, "_recover", looked_at)
    monkeypatch.setattr(stages, "read_ahead", lambda path, size: asked.append(path))
    for base_offset in (0, 1000, 2000):
        write_big_segment(str(tmp_path / "orders-0"), base_offset, size)
    kafka.rebuild(tmp_path / "orders-0", tmp_path / "out", engine=LocalEngine(2))
    assert set(seen) == {small}


def test_a_forked_child_finds_the_turn_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "one_at_a_time", lambda: True)
    with python_turn(mostly_python=True):
        child = os.fork()
        if child == 0:
            os._exit(int(turns._turn.locked()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
