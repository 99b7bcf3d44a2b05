"""`SparkEngine`: a stage runs in Spark tasks; only its items and its small results cross the JVM.

A job is `spark.range(groups)` through `mapInArrow`, which exists on classic sessions and on Connect alike. The items
travel pickled in the function, the results come back pickled in one binary column. Spark keeps the rows of one
attempt per task, so retries and speculation change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mqindex.engines import LocalEngine, OnProgress, Progress
from mqindex.engines.transport import group_by_weight, outcome, results, run_packed
from mqindex.errors import RebuildError
from mqindex.files.rights import as_process
from mqindex.spark.jobs import start_job
from mqindex.spark.parcels import Parcels
from mqindex.spark.session import cause, ensure_session, is_local, quiet_pandas_warning

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")

TASKS_PER_CORE = 4  # a task costs at least 35-50 ms; with fewer tasks a slow one leaves the other cores idle
ELASTIC_TASKS = 1000  # executors that are added later need tasks too
POLL_SECONDS = 0.2
SCHEMA = "i bigint, payload binary"


class SparkEngine:
    """Runs the stages of rebuild, repair and verify on a Spark session, classic or Connect.

    Each path must be visible to all workers, or be a URL.

    Parameters
    ----------
    spark : SparkSession
    progress : callable or None
        Called in the caller's thread with a `Progress` as tasks finish; a task counts as its even share of the units.

    Examples
    --------
    >>> SparkEngine(spark).map(abs, [-1, 2, -3], name="demo")
    [1, 2, 3]
    """

    def __init__(self, spark: SparkSession, *, progress: OnProgress | None = None) -> None:
        self.spark = spark
        self.progress = progress

    def __repr__(self) -> str:
        return f"SparkEngine({self.spark!r})"

    def map(
        self,
        stage: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        name: str,
        weights: Sequence[int] | None = None,
        unit: str = "task",
    ) -> list[Result]:
        """See `Engine.map`. Neighbours share a task, about four tasks a core; a task stops at its first failure.

        Where the workers are on this machine, a single item runs in this process: a Spark job costs 0.1 s.
        """
        if len(items) == 1 and is_local(self.spark):
            return LocalEngine(1, progress=self.progress).map(stage, items, name=name, weights=weights, unit=unit)
        weights = weights or [1] * len(items)
        total = sum(weights)
        show = partial(self._show, name, total, unit)
        show(0)
        if not items:
            return []
        workers = ensure_session(self.spark)
        tasks = TASKS_PER_CORE * workers.parallelism
        ranges = group_by_weight(weights, max(tasks, ELASTIC_TASKS) if workers.elastic else tasks)
        parcels = Parcels()
        task = _stage_task(stage, [items[group.start : group.stop] for group in ranges], parcels)
        answers = self._run(
            parcels,
            lambda: self.spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(task, SCHEMA),
            name,
            lambda finished: show(min(finished, len(ranges)) * total // len(ranges)),
        )
        if sorted(answers) != list(range(len(ranges))):
            raise RebuildError(f"Spark lost results: {name}", expected=len(ranges), got=len(answers))
        show(total)
        return [result for i in range(len(ranges)) for result in answers[i]]

    def looks(self) -> int:
        """How many tasks reach every worker; 0: all of them are on this machine."""
        return 0 if is_local(self.spark) else TASKS_PER_CORE * ensure_session(self.spark).parallelism

    def _map_partitions(
        self, frame: DataFrame, function: Callable[[int, Iterator[pa.RecordBatch]], Result], *, name: str
    ) -> list[Result]:
        """`function(number, record batches)` of each partition of a DataFrame, in order; fails as `map`."""
        ensure_session(self.spark)
        parcels = Parcels()
        task = _partition_task(function, parcels)
        answers = self._run(parcels, lambda: frame.mapInArrow(task, SCHEMA), name)
        return [answers[i] for i in sorted(answers)]

    def _run(
        self,
        parcels: Parcels,
        frame: Callable[[], DataFrame],
        name: str,
        show: Callable[[int], None] | None = None,
    ) -> dict[int, Any]:
        """The answers of a job by their numbers; `show` gets the number of finished tasks."""

        def collect() -> list[Any]:
            with quiet_pandas_warning():
                return list(frame().collect())

        shown = 0
        with as_process(), start_job(self.spark, collect, f"mqindex: {name}") as job:
            while not job.wait(POLL_SECONDS if self.progress else None):
                finished = job.finished_tasks()
                if finished > shown and show is not None:
                    shown = finished
                    show(finished)
            try:
                rows = job.result()
            except Exception as error:
                raise RebuildError(f"Spark could not {name}: {cause(error)}", hint="nothing was published") from error
        outcomes = {i: bytes(payload) for i, payload in rows}
        rows.clear()  # the job has them too
        return results(outcomes, parcels.unpack)

    def _show(self, name: str, total: int, unit: str, done: int) -> None:
        if self.progress is not None:
            self.progress(Progress(name, done, total, unit=unit))


# The tasks are local functions, which travel by value; what they call is imported in the worker.


def _stage_task(stage: Callable[[Any], Any], groups: list[Sequence[Any]], parcels: Parcels) -> Any:
    work, packed = parcels.pack(stage), list(map(parcels.pack, groups))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for i in batch.column(0).to_pylist():
                yield _row(i, partial(run_packed, work, packed[i], parcels.unpack), parcels)

    return task


def _partition_task(function: Callable[[int, Iterator[Any]], Any], parcels: Parcels) -> Any:
    work = parcels.pack(function)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        number: int = TaskContext.get().partitionId()  # type: ignore[union-attr]
        yield _row(number, lambda: parcels.unpack(work)(number, batches), parcels)

    return task


def _row(i: int, work: Callable[[], Any], parcels: Parcels) -> pa.RecordBatch:
    import pyarrow as pa

    payload = outcome(work, parcels.pack, parcels.unpack)
    return pa.record_batch([pa.array([i], pa.int64()), pa.array([payload], pa.binary())], ["i", "payload"])
