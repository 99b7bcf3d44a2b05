"""A worker that does not see a path is named before any work; what the workers run is told once, where it is known."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mqindex.engines.tasks import require_seen
from mqindex.errors import FileStateError
from mqindex.spark import SparkEngine, build, engine, session
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import index_bytes, scraps


@pytest.mark.parametrize("elsewhere", [True, False])
def test_each_worker_is_asked_where_there_are_several_machines(
    elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "is_local", lambda spark: not elsewhere)
    monkeypatch.setattr(engine, "ensure_session", lambda spark: session.Workers(2, "python"))
    assert SparkEngine(None).looks() == (8 if elsewhere else 0)  # type: ignore[arg-type]


def test_tasks_look_for_what_they_must_see(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a cluster: each task sees the store's directories, the scratch and the marks where files are exchanged."""
    monkeypatch.setattr(engine, "is_local", lambda spark: False)
    store = make_small_store(tmp_path / "store")
    expected = index_bytes(store)
    for path in (store / "index").iterdir():
        path.unlink()
    assert build.repair(spark, store, **OPTIONS).ok
    assert index_bytes(store) == expected
    rows = [(f"k{number}", number, 1_700_000_000_000) for number in range(20)]
    frame = spark.createDataFrame(rows, "key string, phy_offset bigint, store_timestamp bigint")
    assert build.build_index(frame, tmp_path / "out", hash_slot_num=5, index_num=16).entries == 20
    assert scraps(tmp_path) == []


def test_a_task_that_does_not_see_a_path_names_its_worker(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "is_local", lambda spark: False)
    seeing = require_seen(SparkEngine(spark), [str(tmp_path)])
    assert seeing.map(abs, [-1, 2], name="work") == [1, 2]
    tmp_path.rename(tmp_path.with_name("away"))
    with pytest.raises(FileStateError, match=rf"^the worker on {socket.gethostname()} does not see it .*: {tmp_path}"):
        seeing.map(abs, [-1, 2], name="work")


@pytest.mark.parametrize("act", [build.rebuild, build.repair, build.verify])
def test_urls_of_other_schemes_are_refused(act: Any) -> None:
    with pytest.raises(ValueError, match="ftp:// is not read by this version"):
        act(None, "ftp://host/store", *(["out"] if act is build.rebuild else []))


class Conf:
    def get(self, name: str, default: Any) -> Any:
        return default


def a_session(connect: bool) -> Any:
    context = type("Context", (), {"master": "spark://m:7077", "pythonExec": "python3"})
    names = {"conf": Conf(), "sparkContext": context, "createDataFrame": list}
    made = type("Session", (), names)
    made.__module__ = "pyspark.sql.connect.session" if connect else "pyspark.sql.session"
    return made()


def test_what_workers_run_is_not_guessed_from_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Connect server has an environment of its own: one path, this process's, was named twice."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("SPARK_LOCAL_REMOTE", raising=False)
    error = RuntimeError("ModuleNotFoundError: No module named 'pyarrow'")
    said = str(session._explained(a_session(connect=True), error))
    assert said.startswith(
        f"the workers of the Spark server run their own Python, this process runs {sys.executable}: "
    )
    assert said.count(sys.executable) == 1
    said = str(session._explained(a_session(connect=False), error))
    assert said.startswith(f"the Spark workers run {sys.executable}, as this process does: ModuleNotFoundError")
    assert said.count(sys.executable) == 1
