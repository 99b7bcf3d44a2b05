"""LocalEngine: order, failures, progress."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import mqindex
from mqindex.engines import LocalEngine, processors
from mqindex.engines.workers import Workers
from mqindex.rocketmq.log.log_entries import RUN_ENTRY
from mqindex.rocketmq.pipeline.in_turn import IndexFiles


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


def test_many_short_tasks_run_in_the_callers_thread_and_long_ones_are_spread():
    """Threads would only take the interpreter's lock from each other."""

    def stage(seconds):
        time.sleep(seconds)
        return threading.current_thread()

    assert set(LocalEngine(2).map(stage, [0.0] * 20_000, name="short")) == {threading.current_thread()}
    threads = LocalEngine(2).map(stage, [0.0] * 50 + [0.02] * 50, name="some long")
    assert len(set(threads)) == 3
    assert set(threads[:50]) == {threading.current_thread()}
    assert threading.current_thread() not in LocalEngine(2).map(stage, [0.001] * 10, name="few")


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


@pytest.mark.parametrize(
    ("own", "limits", "workers"),
    [
        ("0::/\n", {"/": "max 100000\n"}, 8),
        ("0::/\n", {"/": "250000 100000\n"}, 3),  # a part of a processor is one more thread
        ("0::/\n", {"/": "10000 100000\n"}, 1),
        ("9:cpu:/a\n0::/a/b\n", {"/": "max 100000\n", "/a": "200000 100000\n", "/a/b": "max 100000\n"}, 2),
        ("0::/of/the/host\n", {"/": "400000 100000\n"}, 4),  # a container that is told its path outside
        ("0::/\n", {"/": "9900000 100000\n"}, 8),
        ("0::/\n", {"/": "?"}, 8),
        ("1:cpu:/\n", {}, 8),
        (None, {}, 8),
    ],
)
def test_workers_are_no_more_than_a_container_pays_for(own, limits, workers, tmp_path, monkeypatch):
    monkeypatch.setattr(processors, "_GROUPS", str(tmp_path / "cgroup"))
    monkeypatch.setattr(processors, "_OWN_GROUP", str(tmp_path / "own"))
    monkeypatch.setattr(os, "process_cpu_count", lambda: 8, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    if own is not None:
        (tmp_path / "own").write_text(own)
    for group, limit in limits.items():
        place = tmp_path / "cgroup" / group.strip("/")
        place.mkdir(parents=True, exist_ok=True)
        (place / "cpu.max").write_text(limit)
    assert LocalEngine().workers == workers


class Interrupted:
    """Ctrl-C as a thread has just been started; what was begun goes on for a while."""

    def __init__(self, monkeypatch, name):
        self.begun, self.ended = threading.Event(), []
        start = threading.Thread.start

        def start_and_interrupt(thread):
            start(thread)
            if thread.name.startswith(name):
                self.begun.wait()
                raise KeyboardInterrupt

        monkeypatch.setattr(threading.Thread, "start", start_and_interrupt)

    def task(self, item):
        self.begun.set()
        time.sleep(0.3)
        self.ended.append(item)
        return item


@pytest.mark.parametrize("worker", [0, 1])
def test_no_stage_runs_any_more_after_an_interrupt_as_a_worker_starts(worker, monkeypatch):
    """It went on writing while the scratch was removed: the pool does not wait for a thread that it has not noted."""
    interrupted = Interrupted(monkeypatch, f"mqindex_{worker}")
    with pytest.raises(KeyboardInterrupt):
        LocalEngine(3).map(interrupted.task, range(20), name="work")
    ended = list(interrupted.ended)
    assert 0 in ended
    for thread in threading.enumerate():
        if thread.name.startswith("mqindex"):
            thread.join()
    assert interrupted.ended == ended


def test_a_file_that_is_brought_to_the_disk_is_waited_for_after_an_interrupt(monkeypatch, tmp_path):
    interrupted = Interrupted(monkeypatch, "mqindex-disk")
    monkeypatch.setattr(IndexFiles, "_finish", lambda files, file: interrupted.task(file))
    files = IndexFiles(str(tmp_path), (5, 10), beside=True)
    files.put(np.ones(1, RUN_ENTRY))
    with pytest.raises(KeyboardInterrupt):
        files.finish(more=False, empty=False)
    files.close()
    (file,) = interrupted.ended
    file.close()


@pytest.mark.parametrize("cancel", [False, True])
def test_an_interrupt_while_tasks_are_waited_for_is_raised_when_none_runs(cancel):
    """The store was let go while a thread still wrote to it."""
    workers, begun, ended = Workers(1, "mqindex-slow"), threading.Event(), []

    def slow():
        begun.set()
        time.sleep(0.5)
        ended.append(True)

    workers.submit(slow)
    begun.wait()
    for delay in (0.1, 0.2):
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        workers.close(cancel=cancel)
    assert ended
    workers.close(cancel=cancel)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("items", [2, 100])
def test_any_exception_of_a_stage_arrives_unchanged(workers: int, items: int) -> None:
    with pytest.raises(StopIteration):
        LocalEngine(workers).map(lambda item: next(iter(())), range(items), name="ends")


INTERRUPTED_AS_IT_TAKES_A_LOCK = """
import sys
import threading
import time
from concurrent.futures import _base
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from mqindex.engines import LocalEngine

met = []

def interrupt(frame, event, called):  # as the second lock of a future is taken
    if event == "c_return" and called.__name__ in ("acquire", "__enter__"):
        while frame is not None and frame.f_code.co_filename != _base.__file__:
            frame = frame.f_back
        if frame is not None:
            met.append(frame)
            if len(met) == 2:
                raise KeyboardInterrupt

sys.setprofile(interrupt)
try:
    LocalEngine(2).map(lambda seconds: time.sleep(seconds), [0.2] * 4, name="sleep")
except KeyboardInterrupt:
    pass
sys.setprofile(None)
print("ended", flush=True)
"""


def test_an_interrupt_leaves_no_lock_that_a_task_needs():
    """A command hung for ever where Ctrl-C arrived as the locks of its tasks' futures were taken one by one."""
    place = str(Path(mqindex.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AS_IT_TAKES_A_LOCK, place], capture_output=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (b"ended\n", b"")


class Unstarted:
    """From here on no thread can be started, as where a user's or a container's are used up."""

    def __init__(self, monkeypatch, after=0):
        self.left, start = after, threading.Thread.start

        def refused(thread):
            if self.left == 0:
                raise RuntimeError("can't start new thread")
            self.left -= 1
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refused)


@pytest.mark.parametrize("threads", [0, 1])
def test_where_no_thread_can_be_started_those_that_there_are_do_the_work(threads, monkeypatch):
    """It was told as a bug."""
    Unstarted(monkeypatch, after=threads)
    seen = []

    def stage(n):
        seen.append((n, threading.current_thread()))
        return n * n

    assert LocalEngine(3).map(stage, range(20), name="square") == [n * n for n in range(20)]
    assert sorted(n for n, _ in seen) == list(range(20))
    (thread,) = {thread for _, thread in seen}
    assert (thread is threading.current_thread()) == (threads == 0)


def test_a_failure_without_a_thread_stops_the_rest(monkeypatch):
    Unstarted(monkeypatch)
    seen = []

    def stage(n):
        seen.append(n)
        raise KeyError(n)

    with pytest.raises(KeyError):
        LocalEngine(2).map(stage, range(20), name="fail")
    assert seen == [0]


def test_what_waits_for_a_thread_that_cannot_be_started_is_done_at_the_end(monkeypatch):
    Unstarted(monkeypatch)
    workers, done = Workers(1, "mqindex-alone"), []
    workers.submit(done.append, 1)
    workers.submit(done.append, 2)
    assert workers.next() is None
    assert done == [1]
    workers.close(cancel=False)
    assert done == [1, 2]
