"""A standalone cluster of two workers on two loopback addresses: lost processes and stragglers change no byte."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.spark.conftest import ROOT, spark_environment
from tests.support.golden import case
from tests.support.tree import index_bytes, queue_contents, scraps

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the loopback addresses 127.0.0.2 and 127.0.0.3")


@contextmanager
def daemon(log: Path, name: str, *arguments: str) -> Iterator[None]:
    """A Spark daemon in the foreground of its own process; `spark-class` replaces itself by Java."""
    import pyspark

    home = Path(pyspark.__file__).parent
    brief = {"SPARK_HOME": str(home), "SPARK_DAEMON_JAVA_OPTS": os.environ["SPARK_SUBMIT_OPTS"]}
    environment = {**os.environ, **spark_environment(), **brief}
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
            env=environment, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait(300)


def wait_for(log: Path, pattern: str, count: int = 1) -> str:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        found = re.findall(pattern, log.read_text())
        if len(found) >= count:
            return str(found[-1])
        time.sleep(0.1)
    raise AssertionError(f"no {pattern!r} in:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("cluster")
    log = directory / "master.log"
    with ExitStack() as stack:
        stack.enter_context(daemon(log, "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"))
        url = wait_for(log, r"Starting Spark master at (spark://\S+)")
        for host in ("127.0.0.2", "127.0.0.3"):
            stack.enter_context(
                daemon(
                    directory / f"{host}.log", "worker.Worker", "--host", host, "--port", "0", "--webui-port", "0",
                    "--cores", "1", "--memory", "700m", "--work-dir", str(directory / host), url,
                )
            )  # fmt: skip
        wait_for(log, "Registering worker", 2)
        yield url


def test_dead_process_and_straggler_change_no_byte_and_leave_nothing(master: str, golden: Path, tmp_path: Path) -> None:
    out, marks = tmp_path / "out", tmp_path / "marks"
    out.mkdir()
    marks.mkdir()
    job = [sys.executable, str(Path(__file__).with_name("cluster_job.py")), master, str(golden), str(out), str(marks)]
    environment = {**os.environ, **spark_environment()}
    done = subprocess.run(job, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    keys = sum(said["uniqKey"] is not None for said in case("basic-493").truth["messages"])
    queues = queue_contents(golden)
    assert done.stdout == f"files {4 + len(queues)} entries {keys} waited False\n"
    assert index_bytes(out / "rebuilt") == index_bytes(golden)
    assert queue_contents(out / "rebuilt") == queues
    assert {f"{stage}-0-{attempt}" for stage in ("read the log", "build the index") for attempt in (0, 1)} <= {
        path.name for path in marks.iterdir()
    }
    assert sorted(path.name for path in out.iterdir()) == ["built", "rebuilt"]
    assert scraps(tmp_path) == []
