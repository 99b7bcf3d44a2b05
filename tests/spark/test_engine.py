"""`SparkEngine.map`: any stage, results in order, errors unchanged, nothing running afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mqindex.engines import Progress
from mqindex.errors import CorruptIndexError, RebuildError
from mqindex.files.rights import as_owner_of
from mqindex.spark.engine import SparkEngine
from tests.spark.conftest import CONNECT


def test_results_come_in_the_order_of_the_items_whatever_their_weights(spark: Any, rng: Random) -> None:
    weights = [rng.choice([0, 1, 7, 1000]) for _ in range(50)]
    results = SparkEngine(spark).map(lambda item: {"item": item}, list(range(50)), name="dicts", weights=weights)
    assert results == [{"item": i} for i in range(50)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root works with the rights of others")
def test_large_items_reach_the_tasks_of_root_who_works_with_the_rights_of_another(spark: Any, tmp_path: Path) -> None:
    """Spark puts them into a file of its own first."""
    os.chown(tmp_path, 12345, 12345)
    with as_owner_of(str(tmp_path)):
        assert SparkEngine(spark).map(len, [bytes(400_000)] * 8, name="large") == [400_000] * 8
        with pytest.raises(PermissionError):
            (tmp_path.parent / "root's").touch()


def test_no_items_need_no_spark() -> None:
    assert SparkEngine(None).map(abs, [], name="nothing") == []  # type: ignore[arg-type]


def test_a_single_item_needs_no_job_where_the_workers_are_here(spark: Any) -> None:
    told: list[Progress] = []
    here = os.getpid()
    assert SparkEngine(spark, progress=told.append).map(lambda _: os.getpid(), [0], name="one", weights=[7]) == [here]
    assert [(progress.done, progress.total) for progress in told] == [(0, 7), (7, 7)]
    assert here not in SparkEngine(spark).map(lambda _: os.getpid(), [0, 1], name="two")


def test_error_of_a_stage_arrives_unchanged_and_the_first_by_order(spark: Any) -> None:
    def stage(item: int) -> int:
        if item == 3:
            time.sleep(0.5)  # later in time, first in order
            raise CorruptIndexError("slot 3", path="a/b", at=52, expected="0..16", got=81, hint="verify")
        if item == 11:
            raise FileNotFoundError(2, "no such file", "/gone")
        return item

    with pytest.raises(CorruptIndexError) as caught:
        SparkEngine(spark).map(stage, list(range(12)), name="bad")
    assert str(caught.value) == "slot 3: a/b at byte 52: expected 0..16, got 81; verify"
    assert "in stage" in str(caught.value.__cause__), "where it happened in the worker"
    with pytest.raises(FileNotFoundError) as missing:
        SparkEngine(spark).map(stage, list(range(4, 12)), name="bad")
    assert (missing.value.errno, missing.value.filename) == (2, "/gone")


def test_failing_stage_is_not_tried_again(spark: Any, tmp_path: Path) -> None:
    def stage(path: str) -> None:
        with open(path, "a") as file:
            file.write("x")
        raise ValueError(path)

    with pytest.raises(ValueError, match="tries"):
        SparkEngine(spark).map(stage, [str(tmp_path / "tries"), str(tmp_path / "others")], name="bad")
    assert (tmp_path / "tries").read_text() == "x"


def test_error_that_cannot_travel_becomes_a_sentence(spark: Any) -> None:
    def stage(item: int) -> int:
        class Odd(Exception):
            def __init__(self, a: int, b: int) -> None:
                super().__init__("odd one")

        raise Odd(item, item)

    with pytest.raises(RebuildError, match="a stage raised Odd: odd one"):
        SparkEngine(spark).map(stage, [1, 2], name="bad")


def test_death_of_a_worker_is_one_sentence_and_the_session_lives_on(spark: Any) -> None:
    def stage(item: int) -> int:
        if item == 1:
            os._exit(137)
        return item

    with pytest.raises(RebuildError) as caught:
        SparkEngine(spark).map(stage, [0, 1, 2], name="extract")
    assert str(caught.value) == (
        "Spark could not extract: Python worker exited unexpectedly (crashed); nothing was published"
    )
    assert caught.value.__cause__ is not None
    assert SparkEngine(spark).map(abs, [-1, -2], name="again") == [1, 2]


def test_progress_rises_to_the_total_in_the_caller_s_thread(spark: Any) -> None:
    told: list[tuple[Progress, int]] = []
    engine = SparkEngine(spark, progress=lambda progress: told.append((progress, threading.get_ident())))
    engine.map(lambda _: time.sleep(0.3), list(range(8)), name="extract", weights=[10] * 8)
    done = [progress.done for progress, _ in told]
    assert {(progress.stage, progress.total) for progress, _ in told} == {("extract", 80)}
    assert {thread for _, thread in told} == {threading.get_ident()}
    assert (done[0], done[-1], done) == (0, 80, sorted(done))
    assert len(set(done)) > 2, "tasks are counted while the job runs"


def test_interrupt_cancels_the_job(spark: Any, tmp_path: Path) -> None:
    def stage(item: int) -> None:
        for _ in range(6000):
            Path(f"{tmp_path}/{item}").write_text(str(time.time()))
            time.sleep(0.1)

    def interrupt() -> None:
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    def written() -> dict[str, str]:
        return {path.name: path.read_text() for path in tmp_path.iterdir()}

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        SparkEngine(spark).map(stage, [0, 1], name="slow")
    deadline, before = time.monotonic() + 120, {}
    while before != (before := written()):  # a task ends some time after it was cancelled
        assert time.monotonic() < deadline, "tasks still run"
        time.sleep(1)
    assert SparkEngine(spark).map(abs, [-1, -2], name="again") == [1, 2]


@pytest.mark.skipif(CONNECT, reason="Connect has no job groups")
def test_job_group_of_the_caller_stays(spark: Any) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "my work")
    try:
        SparkEngine(spark).map(abs, [-1, -2], name="extract")
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
