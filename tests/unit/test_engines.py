"""LocalEngine: order, failures, progress."""

from __future__ import annotations

import os
import threading
import time

import pytest

from mqindex.engines import LocalEngine


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_results_come_in_the_order_of_the_items(workers):
    items = list(range(100))
    assert LocalEngine(workers).map(lambda n: n * n, items, name="square") == [n * n for n in items]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_failure_reaches_the_caller_unchanged_and_stops_the_rest(workers):
    failure, seen = KeyError("seven"), []

    def stage(n):
        seen.append(n)
        if n == 7:
            raise failure
        if n > 7:
            time.sleep(0.001)
        return n

    with pytest.raises(KeyError) as caught:
        LocalEngine(workers).map(stage, range(1000), name="fail")
    assert caught.value is failure
    assert len(seen) < 1000


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_weights_in_the_callers_thread(workers):
    told = []
    engine = LocalEngine(workers, progress=lambda event: told.append((event, threading.current_thread())))
    engine.map(str, [1, 2, 3], name="work", weights=[10, 20, 30])
    assert {thread for _, thread in told} == {threading.current_thread()}
    assert (told[0][0].done, told[-1][0].done, told[-1][0].total) == (0, 60, 60)
    assert len(told) == 4


def test_workers_below_one_are_refused():
    with pytest.raises(ValueError, match="workers"):
        LocalEngine(0)


def test_workers_are_the_processors_that_the_process_may_use(monkeypatch):
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3}, raising=False)
    assert (LocalEngine().workers, LocalEngine(5).workers) == (2, 5)
    monkeypatch.delattr(os, "sched_getaffinity")  # as macOS
    assert (LocalEngine().workers, LocalEngine(5).workers) == (7, 5)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 3, raising=False)  # from Python 3.13 on
    assert (LocalEngine().workers, LocalEngine(5).workers) == (3, 5)
