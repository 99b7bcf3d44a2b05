"""Standalone Spark clusters of two workers on this machine: on its file system, or each with files of its own."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

__all__ = ["ROOT", "WORKERS", "IsolatedCluster", "isolated_cluster", "require_apart", "spark_environment", "standalone"]

ROOT = Path(__file__).parents[2]
WORKERS = {"w2": "127.0.0.2", "w3": "127.0.0.3"}  # host names of the isolated ones, and their addresses
MEMORY = "512m"
PRIVATE = "64m"  # of files, in memory
# $0: the worker's host name, $1: the directory that it has for itself, $2...: what it runs
APART = f'hostname "$0" && mount -t tmpfs -o size={PRIVATE} none "$1" && shift && exec "$@"'
# However the tests end, also by a signal, no daemon stays: what is run keeps this.
WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
PATIENCE = 600.0  # seconds; only a machine that does much else, or a defect, comes near
Result = TypeVar("Result")


def spark_environment() -> dict[str, str]:
    """What a process needs so that it and its Spark workers run this interpreter and this checkout, on this machine."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path}


class Daemon:
    """A Spark daemon in the foreground of its own process; `spark-class` replaces itself by Java."""

    def __init__(self, log: Path, name: str, *arguments: str, inside: Sequence[str] = ()) -> None:
        import pyspark

        home, self.log = Path(pyspark.__file__).parent, log
        brief = {"SPARK_HOME": str(home), "SPARK_DAEMON_JAVA_OPTS": os.environ["SPARK_SUBMIT_OPTS"]}
        brief |= {"SPARK_DAEMON_MEMORY": MEMORY}
        command = [
            *inside,
            *WITH_PARENT,
            str(home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{name}",
            *arguments,
        ]
        with log.open("w") as output:
            self.process = subprocess.Popen(
                command, env={**os.environ, **spark_environment(), **brief}, stdout=output, stderr=subprocess.STDOUT
            )

    def wait_for(self, pattern: str, count: int = 1) -> str:
        """The last of so many matches in what it logs."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.findall(pattern, self.log.read_text())
            if len(found) >= count:
                return str(found[-1])
            time.sleep(0.05)
        raise AssertionError(f"no {pattern!r} in:\n{self.log.read_text()[-3000:]}")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(300)


@contextmanager
def standalone(directory: Path, memory: str, inside: Callable[[str], Sequence[str]]) -> Iterator[tuple[str, list[int]]]:
    """The URL of the master of two workers with one core each, and the workers' process ids.

    directory : for logs and work. inside : the command in which the worker of a host name runs.
    """
    with ExitStack() as stack:

        def start(name: str, *arguments: str, inside: Sequence[str] = ()) -> Daemon:
            log = directory / f"{len(os.listdir(directory))}.log"
            daemon = Daemon(log, name, *arguments, "--port", "0", "--webui-port", "0", inside=inside)
            stack.callback(daemon.close)
            return daemon

        master = start("master.Master", "--host", "127.0.0.1")
        url = master.wait_for(r"Starting Spark master at (spark://\S+)")
        workers = [
            start(
                "worker.Worker", "--host", address, "--cores", "1", "--memory", memory,
                "--work-dir", str(directory / name), url, inside=inside(name),
            )
            for name, address in WORKERS.items()
        ]  # fmt: skip
        master.wait_for("Registering worker", len(workers))
        yield url, [worker.process.pid for worker in workers]


class IsolatedCluster:
    """Two workers and a driver that share no file below `data`: each worker has an empty file system there."""

    def __init__(self, data: Path, roots: dict[str, Path], driver: ProcessPoolExecutor, url: str) -> None:
        self.data, self._roots, self._driver, self._url = data, roots, driver, url
        self._connect({})

    def _connect(self, settings: dict[str, str]) -> None:
        self._driver.submit(_connect, self._url, spark_environment(), settings).result(PATIENCE)

    @contextmanager
    def configured(self, settings: dict[str, str]) -> Iterator[None]:
        """Another session, with these settings too."""
        self._connect(settings)
        try:
            yield
        finally:
            self._connect({})

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """`function(session, *arguments)` in the driver; it is one of a module's own, and its error comes back."""
        return self._driver.submit(_in_driver, function, *arguments).result(PATIENCE)

    def on_each(self, function: Callable[..., Result], *arguments: Any) -> dict[str, Result]:
        """`function(*arguments)` once on each worker, by its host name."""
        return self.run(_on_each, function, *arguments)

    def seen_by(self, worker: str, path: Path) -> Path:
        """A path of a worker, for this process."""
        return self._roots[worker] / path.relative_to("/")


def _in_driver(function: Callable[..., Result], *arguments: Any) -> Result:
    from pyspark.sql import SparkSession

    return function(SparkSession.getActiveSession(), *arguments)


def _on_each(spark: Any, function: Callable[..., Result], *arguments: Any) -> dict[str, Result]:
    def both(_: Iterator[int]) -> Iterator[tuple[str, Result]]:
        yield socket.gethostname(), function(*arguments)

    tasks = spark.sparkContext.parallelize(range(len(WORKERS)), len(WORKERS))
    return dict(tasks.barrier().mapPartitions(both).collect())  # a barrier's tasks run at the same time


def _connect(url: str, environment: dict[str, str], settings: dict[str, str]) -> None:
    from pyspark.sql import SparkSession

    os.environ.update(environment)
    if active := SparkSession.getActiveSession():
        active.stop()
    (
        SparkSession.builder.master(url)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", MEMORY)
        .config("spark.executor.memory", MEMORY)
        .config("spark.executor.extraJavaOptions", os.environ["SPARK_SUBMIT_OPTS"])
        .config("spark.cores.max", len(WORKERS))
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")  # no task before both are there
        .config("spark.task.maxFailures", "1")  # what a worker says comes at once
        .config(map=settings)
        .getOrCreate()
    )


def _apart(name: str, data: Path) -> list[str]:
    return ["unshare", "-Urmu", "sh", "-c", APART, name, str(data)]


def require_apart(data: Path) -> None:
    """Where no process may have files of its own at `data`: a failure in CI, elsewhere a skip."""
    try:
        done = subprocess.run([*_apart("w", data), "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        refused = str(error)
    else:
        refused = done.stderr.strip() if done.returncode else ""
    if refused:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say(f"no process may have files of its own here: {refused}")


@pytest.fixture(scope="session")
def isolated_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IsolatedCluster]:
    """The workers see nothing of any `tmp_path`. Missing rights to mount fail in CI, else they skip."""
    pytest.importorskip("pyspark")
    data, directory = tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("isolated")
    require_apart(data)
    with standalone(directory, MEMORY, lambda name: _apart(name, data)) as (url, workers):
        roots = {name: Path(f"/proc/{pid}/root") for name, pid in zip(WORKERS, workers, strict=True)}
        apart = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, apart) as driver:
            yield IsolatedCluster(data, roots, driver, url)
