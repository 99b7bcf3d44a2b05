"""A standalone cluster of two workers on two loopback addresses: lost processes and stragglers change no byte."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.golden import case
from tests.support.spark_cluster import ROOT, spark_environment, standalone
from tests.support.tree import index_bytes, queue_contents, scraps

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the loopback addresses 127.0.0.2 and 127.0.0.3")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster"), "700m", lambda name: ()) as (url, _):
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
