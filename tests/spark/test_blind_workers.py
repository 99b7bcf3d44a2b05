"""A worker that does not see a path is named before any work; what the workers run is told once, where it is known."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.spark import SparkEngine, build, engine, session
from tests.support.small_store import OPTIONS, make_small_store


class Blind(LocalEngine):
    """Workers of which one does not see a path; no stage may run."""

    def require_seen(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        raise FileStateError("the worker on w2 does not see it")

    def map(self, stage: Any, items: Any, **more: Any) -> Any:
        raise AssertionError("it began to work")


@pytest.mark.parametrize(
    ("act", "paths"),
    [
        (lambda root, out, blind: rocketmq.rebuild(root, out, engine=blind, **OPTIONS), ["", "commitlog", ".."]),
        (lambda root, out, blind: rocketmq.repair(root, engine=blind, **OPTIONS), ["", "commitlog"]),
        (lambda root, out, blind: rocketmq.verify(root, engine=blind, **OPTIONS), ["", "commitlog"]),
        (lambda root, out, blind: kafka.rebuild(root, out, engine=blind), ["", ".."]),
        (lambda root, out, blind: kafka.repair(root, engine=blind), [""]),
        (lambda root, out, blind: kafka.verify(root, engine=blind), [""]),
    ],
)
def test_nothing_is_done_where_a_worker_does_not_see_the_paths(
    act: Callable[[Path, Path, Any], Any], paths: list[str], tmp_path: Path
) -> None:
    root, blind = make_small_store(tmp_path / "store"), Blind()
    with pytest.raises(FileStateError, match="the worker on w2 does not see it"):
        act(root, tmp_path / "out", blind)
    assert blind.paths == [os.path.normpath(root / path) for path in paths]


class Workers(SparkEngine):
    """What the workers of a cluster answer."""

    told: list[tuple[str, tuple[bool, ...]]]

    def map(self, stage: Any, items: Any, **more: Any) -> Any:
        return self.told


def test_the_worker_and_the_path_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine, "is_local", lambda spark: False)
    monkeypatch.setattr(engine, "ensure_session", lambda spark: session.Workers(2, "python"))
    workers = Workers(None)  # type: ignore[arg-type]
    workers.told = [("w1", (True, True)), ("w2", (True, False)), ("w1", (True, True))]
    with pytest.raises(FileStateError, match=r"^the worker on w2 does not see it: /b; every path must be visible to"):
        workers.require_seen(["/a", "/b"])
    workers.told = [("w1", (False,)), ("w2", (False,))]
    with pytest.raises(FileStateError, match=rf"^the worker on w1, w2 does not see it: {tmp_path}"):
        workers.require_seen([str(tmp_path)])
    workers.require_seen([str(tmp_path / "nowhere")])  # that it is nowhere is said by whoever needs it
    assert engine._look((str(tmp_path), str(tmp_path / "nowhere")))[1] == (True, False)


@pytest.mark.parametrize("act", [build.rebuild, build.repair, build.verify])
def test_urls_of_other_schemes_are_refused(act: Any) -> None:
    with pytest.raises(ValueError, match="s3:// is not read by this version"):
        act(None, "s3://bucket/store", *(["out"] if act is build.rebuild else []))


class Conf:
    def get(self, name: str, default: Any) -> Any:
        return default


def a_session(connect: bool) -> Any:
    names = {"conf": Conf(), "sparkContext": type("Context", (), {"master": "spark://m:7077", "pythonExec": "python3"})}
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
