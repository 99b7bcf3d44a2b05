"""`mqindex doctor`: what works is said to work, every trap is found, and nothing is left behind."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mqindex.cli.commands import doctor
from mqindex.cli.doctor import cluster, installed, machine
from mqindex.cli.doctor.line import Line
from mqindex.files import lock, probe
from tests.cli.conftest import Shell, ordinary_user, process

GOOD = Line("works", "thing", "good")
BAD = Line("limited", "other", "bad\x1b[2J", "do this")
ABSENT = Line("absent", "extra", "not installed", "install it")


def one(lines: Iterable[Line], about: str) -> Line:
    (found,) = [line for line in lines if line.about == about]
    return found


@pytest.mark.parametrize(("lines", "status"), [([GOOD], 0), ([GOOD, ABSENT], 0), ([GOOD, BAD], 1), ([], 0)])
def test_exit_code_and_lines(shell: Shell, monkeypatch: pytest.MonkeyPatch, lines: list[Line], status: int) -> None:
    monkeypatch.setattr(doctor, "LOOKS", {"all": lambda: lines})
    done = shell("doctor")
    assert (done.status, done.err) == (status, "")
    assert "\x1b" not in done.out
    assert [line.split()[0] for line in done.lines] == [
        word for line in lines for word in ([line.state, "->"] if line.advice else [line.state])
    ]
    objects = [{"schema": "mqindex.doctor/1", **line._asdict()} for line in lines]
    assert shell("doctor", "--json").json == objects


def test_a_look_that_fails_is_a_line_and_the_others_go_on(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> Iterable[Line]:
        yield GOOD
        raise AttributeError("broken\nby half")

    monkeypatch.setattr(doctor, "LOOKS", {"first": fails, "second": lambda: [GOOD]})
    done = shell("doctor", "--json")
    assert done.status == 1
    assert [line["about"] for line in done.json] == ["thing", "first", "thing"]
    assert done.json[1]["found"] == "AttributeError: broken"


def test_it_writes_nothing_that_stays(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    environment = {**os.environ, "HOME": str(tmp_path / "home")}
    environment.pop("MPLCONFIGDIR", None)
    done = process("doctor", "--json", cwd=tmp_path, env=environment)
    assert (done.returncode in {0, 1}, done.stderr) == (True, b"")
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "home"]
    for about in [b"Python", b"kernels", b"locale", b"open files", b"address space", b"current directory"]:
        assert b'"about": "%s"' % about in done.stdout


def test_an_extra_whose_package_is_missing_broken_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    required = [
        'click>=8.1; extra == "cli"', 'rich>=13; extra == "cli"', 'no-such-thing>=1; extra == "sql"', "numpy>=1.26",
        'rich<99,>=98; extra == "html"', 'mqindex[cli]; extra == "all"', 'pytest; extra == "x"', 'rich; extra == "x"',
        "rich[jupyter]>=13 ; extra == 'y'",
    ]  # fmt: skip
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: required)
    monkeypatch.setitem(sys.modules, "pytest", None)
    lines = {line.about: line for line in installed.extras()}
    assert {about: line.state for about, line in lines.items()} == {
        "extra cli": "works",
        "extra sql": "absent",
        "extra html": "limited",
        "extra x": "limited",
        "extra y": "works",
    }
    assert "pip install 'mqindex[sql]'" in lines["extra sql"].advice
    assert "too old, expected 98 or newer" in lines["extra html"].found
    assert "cannot be imported" in lines["extra x"].found


def test_a_musl_library_beside_glibc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr(cluster, "MUSL", str(tmp_path / "ld-musl"))
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    assert not [line for line in cluster.spark() if line.about == "Spark's snappy"]
    (tmp_path / "ld-musl").touch()
    line = one(cluster.spark(), "Spark's snappy")
    assert line.state == "limited"
    assert "spark.sql.parquet.compression.codec=zstd" in line.advice
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not [line for line in cluster.spark() if line.about == "Spark's snappy"]


def test_no_java_and_workers_with_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 3.8 0.0.1\n")
    other.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    lines = list(cluster.spark())
    java, workers = one(lines, "Java"), one(lines, "Spark's workers")
    assert (java.state, workers.state) == ("limited", "limited")
    assert "JAVA_HOME without" in java.found
    assert "got 3.8 0.0.1" in workers.found
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "none"))
    assert "No such file" in one(cluster.spark(), "Spark's workers").found
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert one(cluster.spark(), "Spark's workers").state == "works"
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert one(cluster.spark(), "Spark's workers").state == "works"


def states(**options: Any) -> dict[str, str]:
    done = process("doctor", "--json", **options)
    lines = [line.split(b'"')[7:12:4] for line in done.stdout.splitlines()]
    return {about.decode(): state.decode() for state, about in lines}


def test_low_limits_and_an_ascii_locale() -> None:
    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
        if sys.platform.startswith("linux"):
            resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))

    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    found = states(preexec_fn=lower, env=environment)
    assert (found["open files"], found["size of a file"]) == ("limited", "limited")
    if sys.platform.startswith("linux"):
        assert (found["address space"], found["locale"]) == ("limited", "limited")


def test_a_directory_where_nothing_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o555)
        monkeypatch.chdir(place)
        list(machine.places())  # what is imported on first use is imported now
        with ordinary_user():
            line = one(machine.places(), "current directory")
        monkeypatch.undo()
    assert (line.state, "Permission denied" in line.found) == ("limited", True)


@pytest.mark.parametrize("nameless", [True, False])
def test_a_probe_that_is_killed_leaves_no_file(nameless: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not nameless:
        monkeypatch.setattr(probe, "open_nameless", lambda directory: None)
    seen = []
    locked = lock.lock_whole

    def looks(fd: int) -> bool | None:
        seen.append(os.listdir(tmp_path))
        return locked(fd)

    monkeypatch.setattr(lock, "lock_whole", looks)
    assert probe.probe(str(tmp_path)).mapped
    assert seen == [[]]


def test_a_file_system_without_locks_maps_and_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*arguments: object) -> None:
        raise OSError(95, "Operation not supported")

    good = probe.probe(str(tmp_path))
    assert (good.flock, good.record_locks, good.reserved, good.mapped) == (True, True, True, True)
    assert good.free > 0
    if sys.platform.startswith("linux"):
        assert good.file_system
    monkeypatch.setattr(probe.mmap, "mmap", cannot)
    monkeypatch.chdir(tmp_path)
    assert "cannot be mapped" in one(machine.places(), "current directory").advice
    monkeypatch.setattr(lock, "lock_byte", lambda fd: None)
    monkeypatch.setattr(probe, "reserve", cannot)
    monkeypatch.setattr(probe, "file_system", lambda directory: "nfs4")
    line = one(machine.places(), "current directory")
    assert line.state == "limited"
    for words in ["no locks", "space cannot be reserved", "a network file system"]:
        assert words in line.advice
    assert os.listdir(tmp_path) == []


def test_nothing_is_written_where_there_is_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store to a mapped page without disk space is a SIGBUS."""

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(probe, "reserve", full)
    monkeypatch.setattr(probe.mmap, "mmap", lambda *arguments: pytest.fail("mapped"))
    monkeypatch.chdir(tmp_path)
    line = one(machine.places(), "current directory")
    assert (line.state, line.advice) == ("limited", "space cannot be reserved: nothing can be built here")
