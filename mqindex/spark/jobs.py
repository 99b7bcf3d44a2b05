"""One running Spark job: awaited in the caller's thread, counted while it runs, cancelled when the caller leaves.

The job runs in a thread of its own, because job groups and tags are properties of a thread, and those of the caller's
thread must not change. Classic sessions count tasks through the status tracker, Connect through a progress handler.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILL_SECONDS = 4.5  # Spark kills the Python process of a cancelled task after about four
SETTLE_SECONDS = 10.0


def is_connect(spark: SparkSession) -> bool:
    """True for a Spark Connect session, which has no SparkContext and no JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def start_job(spark: SparkSession, action: Callable[[], Any], description: str) -> Job:
    """Run `action`, which starts Spark jobs, in a thread; leaving the context cancels a job that still runs."""
    return (_ConnectJob if is_connect(spark) else _ClassicJob)(spark, action, description)


class Job:
    """See `start_job`."""

    def __init__(self, spark: SparkSession, action: Callable[[], Any], description: str) -> None:
        self.spark, self.action, self.description = spark, action, description
        self.tag = f"mqindex-{uuid.uuid4().hex}"
        self._ended = threading.Event()
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Job:
        try:
            self._thread = threading.Thread(target=_inherit(self.spark, self._run), name=self.tag, daemon=True)
            self._thread.start()
        except Exception as error:  # Spark is gone: handled as a failed job
            self._error = error
            self._ended.set()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if not self._ended.is_set():
            with contextlib.suppress(Exception):  # Spark is gone: what went wrong is told, not that
                self.cancel()
        self.settle()

    def wait(self, seconds: float | None) -> bool:
        """True when the job has ended; False after `seconds`."""
        return self._ended.wait(seconds)

    def result(self) -> Any:
        """The action's value, or its exception."""
        if self._error is not None:
            raise self._error
        return self._value

    def finished_tasks(self) -> int:
        """How many tasks have finished."""
        return 0

    def mark(self) -> None:
        """In the job's thread: make the coming jobs recognisable by `tag`."""
        self.spark.addTag(self.tag)

    def cancel(self) -> None:
        """Cancel the jobs of this action."""
        self.spark.interruptTag(self.tag)

    def settle(self) -> None:
        """Wait a little until no attempt runs any more: cancelled and speculative ones outlive the job."""
        self._ended.wait(SETTLE_SECONDS)

    def _run(self) -> None:
        try:
            self.mark()
            self._value = self.action()
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()


class _ClassicJob(Job):
    def mark(self) -> None:
        self.spark.sparkContext.setJobGroup(self.tag, self.description)

    def cancel(self) -> None:
        self.spark.sparkContext.cancelJobGroup(self.tag)

    def finished_tasks(self) -> int:
        return sum(stage.numCompletedTasks for stage in self._stages())

    def settle(self) -> None:
        super().settle()
        deadline = time.monotonic() + SETTLE_SECONDS
        while any(stage.numActiveTasks for stage in self._stages()) and time.monotonic() < deadline:
            time.sleep(0.05)

    def _stages(self) -> list[Any]:
        try:
            tracker = self.spark.sparkContext.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.tag)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        except Exception:  # the context died: the job raises its own error
            return []
        return [stage for stage in stages if stage is not None]


class _ConnectJob(Job):
    def __init__(self, spark: SparkSession, action: Callable[[], Any], description: str) -> None:
        super().__init__(spark, action, description)
        self._finished = 0

    def __enter__(self) -> Job:
        self.spark.registerProgressHandler(self._on_progress)  # type: ignore[arg-type]
        return super().__enter__()

    def finished_tasks(self) -> int:
        return self._finished

    def settle(self) -> None:
        super().settle()
        self.spark.removeProgressHandler(self._on_progress)  # type: ignore[arg-type]
        if self._error is not None or not self._ended.is_set():
            time.sleep(KILL_SECONDS)  # Connect does not say which attempts still run

    def _on_progress(self, stages: Any, **others: Any) -> None:
        if threading.current_thread() is self._thread:  # handlers are called for every operation of the session
            self._finished = max(self._finished, sum(stage.num_completed_tasks for stage in stages or ()))


def _inherit(spark: SparkSession, run: Callable[[], None]) -> Callable[[], None]:
    """`run` with the caller's scheduler pool, tags and the like."""
    from pyspark import inheritable_thread_target

    wrap: Any = inheritable_thread_target(spark)
    return run if wrap is spark else wrap(run)  # the session itself: without pinned threads there is nothing to inherit
