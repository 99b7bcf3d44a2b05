"""Spark's workers share no file: they read from a server and write to it, byte for byte what is rebuilt here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mqindex import rocketmq
from mqindex.files.places.place import Place, place_of
from tests.peer.places.servers import CREDENTIAL, Server
from tests.support.golden import case
from tests.support.spark_cluster import IsolatedCluster

RETRIES = {
    "spark.task.maxFailures": "4",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.2",
}
SPLITS = 4096  # bytes: many tasks


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


class Disturbed:
    """An engine, for stages of which a task goes wrong the first time; `trace` gets a file of each later attempt."""

    def __init__(self, engine: Any, wrong: dict[str, Callable[[], None]], trace: Place) -> None:
        self.engine, self.wrong, self.trace, self.progress = engine, wrong, trace, engine.progress

    def looks(self) -> int:
        return int(self.engine.looks())

    def map(self, stage: Callable[[Any], Any], items: Sequence[Any], *, name: str, **options: Any) -> list[Any]:
        how = self.wrong.get(name)
        chosen = stage if how is None else partial(disturbed, stage, how, self.trace / how.__name__)
        found: list[Any] = self.engine.map(chosen, items, name=name, **options)
        return found


def disturbed(stage: Callable[[Any], Any], how: Callable[[], None], trace: Place, item: Any) -> Any:
    """A stage whose first attempt at the first task is disturbed when its work is done."""
    from pyspark import TaskContext

    done, context = stage(item), TaskContext.get()
    assert context is not None
    if context.partitionId() == 0:
        if context.attemptNumber() == 0:
            how()
        else:
            trace.storage.put(trace.path, b"")
    return done


def kill_executor() -> None:
    with open(f"/proc/{os.getppid()}/stat", encoding="ascii") as file:  # of the process that forks Python workers
        os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(60)


def straggle() -> None:
    time.sleep(10)


def rebuilt(spark: Any, url: str, out: str, options: dict[str, Any]) -> Any:
    import mqindex.spark

    return mqindex.spark.rebuild(spark, url, out, storage_options=options, split_size=SPLITS)


def rebuilt_disturbed(spark: Any, url: str, out: str, options: dict[str, Any]) -> Any:
    import mqindex.spark

    trace = place_of(f"{url}-trace", options)
    assert isinstance(trace, Place)
    wrong = {"read the log": kill_executor, "build the index": straggle}
    engine = Disturbed(mqindex.spark.SparkEngine(spark), wrong, trace)
    return rocketmq.rebuild(url, out, storage_options=options, split_size=SPLITS, engine=engine)


def verified(spark: Any, url: str, options: dict[str, Any]) -> Any:
    import mqindex.spark

    return mqindex.spark.verify(spark, url, storage_options=options)


def require_same(server: Server, out: str, here: Path, report: Any) -> None:
    found = server.files(out)
    found.pop("mqindex.json", None)
    assert found == files_below(here)
    assert sorted(report.out_files) == sorted(f"{server.url}/{out}/{name}" for name in found)
    above = place_of(f"{server.url}/{out}".rpartition("/")[0], server.options)
    assert not [name for name in above.entries() if "mqindex-" in name]
    assert CREDENTIAL not in repr(report)


@pytest.mark.parametrize("name", ["basic-493", "ipv6-batch-ext-493"])
def test_a_store_is_rebuilt_beside_itself(
    server: Server, isolated_cluster: IsolatedCluster, name: str, tmp_path: Path
) -> None:
    root = case(name).unpack(tmp_path)
    here = rocketmq.rebuild(root, tmp_path / "here")
    url, out = server.upload(root, f"plain/{name}"), f"plain/results/{name}"
    there = isolated_cluster.run(rebuilt, url, f"{server.url}/{out}", server.options)
    assert (there.messages, there.entries, there.units) == (here.messages, here.entries, here.units)
    require_same(server, out, tmp_path / "here", there)
    assert isolated_cluster.run(verified, url, server.options).ok


def test_attempts_that_do_not_count_leave_nothing(
    server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path
) -> None:
    """An executor is killed when it has written its part, and a slow attempt is overtaken by a second one."""
    root, out = case("basic-493").unpack(tmp_path), "disturbed/results/basic"
    rocketmq.rebuild(root, tmp_path / "here")
    url = server.upload(root, "disturbed/basic")
    with isolated_cluster.configured(RETRIES):
        there = isolated_cluster.run(rebuilt_disturbed, url, f"{server.url}/{out}", server.options)
    require_same(server, out, tmp_path / "here", there)
    assert set(server.files("disturbed/basic-trace")) == {"kill_executor", "straggle"}
