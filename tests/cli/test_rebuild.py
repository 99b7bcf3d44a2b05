"""`mqindex rebuild`."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mqindex import kafka, rocketmq
from mqindex.cli.printing.output import print_fields
from mqindex.errors import StoreInUseError
from mqindex.report import RebuildReport
from mqindex.wording.reports import settings
from tests.cli.conftest import Shell, Store, ordinary_user, process
from tests.support.golden_kafka import PartitionCase


def test_gives_the_brokers_files(shell: Shell, basic: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = basic.contents()
    done = shell("rebuild", basic.root, "--out", out)
    assert done.status == 0
    queues = list(basic.queue_files)
    wrote = f"rebuilt {out}: {4 + len(queues)} files, 1237 index entries, 548 units, 595 messages; "
    assert any(line.startswith(wrote) for line in done.lines)
    assert {path: (out / path).read_bytes() for path in queues} == {
        path: (basic.root / path).read_bytes() for path in queues
    }
    rebuilt = [path.read_bytes() for path in sorted((out / "index").iterdir())]
    assert rebuilt == [path.read_bytes() for path in basic.index_files]
    assert basic.contents() == before
    assert sorted(os.listdir(tmp_path)) == ["basic-493", "out"]


def test_says_beforehand_what_it_needs(shell: Shell, basic: Store, tmp_path: Path) -> None:
    done = shell("rebuild", basic.root, "--out", tmp_path / "out")
    assert done.err.startswith("mqindex: reads ")
    assert f" bytes, and 4,096 for each queue, in {tmp_path}, where " in done.err  # how many these are shows the log
    assert done.err.count("\n") == 1
    done = shell("rebuild", basic.root, "--out", tmp_path / "index", "--parts", "index")
    assert f" bytes in {tmp_path}, where " in done.err


def test_refuses_when_the_space_is_not_there(
    shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = __import__("shutil").disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    done = shell("rebuild", basic.root, "--out", tmp_path / "out")
    assert (done.status, done.out) == (2, "")
    assert "No space left on device" in done.err
    assert not (tmp_path / "out").exists()


def test_json_is_one_object(shell: Shell, basic: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (report,) = shell("rebuild", basic.root, "--out", out, "--json").json
    assert list(report)[:2] == ["schema", "ok"]
    assert (report["schema"], report["ok"], report["units"]) == ("mqindex.rebuild/1", True, 548)
    assert len(report["out_files"]) == report["files"]
    assert {Path(file) for file in report["out_files"]} == {file for file in out.rglob("*") if file.is_file()}


def test_a_part_alone_is_what_was_asked_for(shell: Shell, basic: Store, tmp_path: Path) -> None:
    for part in ("index", "consumequeue"):
        assert shell("rebuild", basic.root, "--out", tmp_path / part, "--parts", part).status == 0
        assert os.listdir(tmp_path / part) == [part]
    done = shell("rebuild", basic.root, "--out", tmp_path / "wrong", "--parts", "queues")
    assert (done.status, done.out) == (2, "")
    assert "parts: expected some of index, consumequeue, got queues" in done.err


def test_an_output_that_exists_is_refused_unless_forced(shell: Shell, basic: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("mine")
    refused = shell("rebuild", basic.root, "--out", out)
    assert (refused.status, refused.out) == (2, "")
    assert "--force" in refused.err
    assert os.listdir(out) == ["precious"]
    done = shell("rebuild", basic.root, "--out", out, "--force")
    assert done.status == 0
    assert sorted(os.listdir(out)) == ["consumequeue", "index"]
    (backup,) = tmp_path.glob("out.backup-*")
    assert (backup / "precious").read_text() == "mine"
    assert f"what was at {out} is now {backup}" in done.lines
    (report,) = shell("rebuild", basic.root, "--out", out, "--force", "--json").json
    assert sorted(os.listdir(report["backup"])) == ["consumequeue", "index"]
    (report,) = shell("rebuild", basic.root, "--out", tmp_path / "new", "--force", "--json").json
    assert report["backup"] is None


def test_damage_in_the_log_is_done_with_findings(shell: Shell, basic: Store, tmp_path: Path) -> None:
    with basic.log_files[0].open("r+b") as file:
        file.seek(basic.case.truth["messages"][20]["phyOffset"] + 4)
        file.write(b"\1\2\3\4")
    done = shell("rebuild", basic.root, "--out", tmp_path / "out")
    assert done.status == 1
    assert f"  commitlog/{basic.log_files[0].name} " in done.out
    assert (tmp_path / "out" / "index").is_dir()


def test_several_stores_are_one_job_and_one_report(shell: Shell, basic: Store, tmp_path: Path) -> None:
    roots = [tmp_path / name / "store" for name in ("broker-a", "broker-b")]
    for root in roots:
        shutil.copytree(basic.root, root)
    done = shell("rebuild", *roots, "--out", tmp_path / "out")
    assert done.status == 0
    starts = [f"rebuilt {tmp_path}/out/{name}: " for name in ("broker-a", "broker-b")]
    assert [any(line.startswith(start) for line in done.lines) for start in starts] == [True, True]
    assert done.err.startswith("mqindex: reads ")
    assert (" bytes of 2 logs, needs about " in done.err, done.err.count("\n")) == (True, 1)
    shell("rebuild", basic.root, "--out", tmp_path / "alone")
    expected = {
        path.relative_to(tmp_path / "alone"): path for path in (tmp_path / "alone").rglob("*") if path.is_file()
    }
    for name in ("broker-a", "broker-b"):
        assert all((tmp_path / "out" / name / at).read_bytes() == path.read_bytes() for at, path in expected.items())


def test_of_several_the_worst_is_the_exit_code(shell: Shell, basic: Store, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(basic.root, damaged)
    with (damaged / "commitlog" / basic.log_files[0].name).open("r+b") as file:
        file.seek(basic.case.truth["messages"][20]["phyOffset"] + 4)
        file.write(b"\1\2\3\4")
    assert shell("rebuild", basic.root, damaged, "--out", tmp_path / "out").status == 1
    (tmp_path / "file").write_text("no store")
    done = shell("rebuild", basic.root, tmp_path / "none", tmp_path / "file", "--out", tmp_path / "more")
    assert done.status == 2
    assert f"not rebuilt: {tmp_path}/none" in done.lines
    assert f"not rebuilt: {tmp_path}/file" in done.lines
    assert os.listdir(tmp_path / "more") == [basic.root.name]
    (report,) = shell("rebuild", basic.root, tmp_path / "none", "--out", tmp_path / "json", "--json").json
    assert (report["ok"], list(report["stores"])) == (False, [basic.root.name, "none"])
    assert [one["ok"] for one in report["stores"].values()] == [True, False]
    done = shell("rebuild", tmp_path / "none", tmp_path / "nor-this", "--out", tmp_path / "nothing")
    assert (done.status, done.out) == (2, "")
    assert not (tmp_path / "nothing").exists()


def test_several_are_of_one_broker(shell: Shell, basic: Store, tmp_path: Path) -> None:
    partition = PartitionCase("410-txn").closed(tmp_path / "log-dir")
    done = shell("rebuild", basic.root, partition, "--out", tmp_path / "out")
    assert (done.status, done.out) == (2, "")
    assert "is of another broker than" in done.err
    assert not (tmp_path / "out").exists()


def test_workers_and_parts(shell: Shell, basic: Store, tmp_path: Path) -> None:
    done = shell("rebuild", basic.root, "--out", tmp_path / "out", "--workers", "2", "--parts", "index")
    assert done.status == 0
    wrong = shell("rebuild", basic.root, "--out", tmp_path / "other", "--parts", "index,everything")
    assert wrong.status == 2
    assert "everything" in wrong.err
    assert not (tmp_path / "other").exists()


def test_an_output_that_cannot_be_written(shell: Shell, public: Store) -> None:
    assert shell("rebuild", public.root, "--out", public.root.parent / "first").status == 0
    closed = public.root.parent / "closed"
    closed.mkdir(0o555)
    with ordinary_user():
        done = shell("rebuild", public.root, "--out", closed / "out")
    assert (done.status, done.out) == (2, "")
    assert f"mqindex: {closed}: nothing can be made in it (Permission denied); " in done.err
    assert os.listdir(closed) == []


@pytest.mark.parametrize("out", ["missing/out", "file/out"])
def test_an_output_without_a_parent_is_one_sentence(shell: Shell, basic: Store, tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_text("")
    done = shell("rebuild", basic.root, "--out", tmp_path / out)
    assert (done.status, done.out) == (2, "")
    last = done.err.splitlines()[-1]
    assert last.startswith("mqindex: ")
    assert str(tmp_path) in last
    assert "directory" in last


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("nowhere", "no such directory"),
        (
            "index",
            "is a directory of index files: expected a store's root directory; did you mean",
        ),
        (
            "commitlog",
            "is a commit-log directory: expected a store's root directory; did you mean",
        ),
        ("checkpoint", "is a checkpoint: expected a store's root directory; did you mean"),
    ],
)
@pytest.mark.parametrize("command", ["rebuild", "repair"])
def test_what_is_not_a_store_is_told_so(shell: Shell, basic: Store, command: str, store: str, words: str) -> None:
    out = ["--out", basic.root.parent / "out"] if command == "rebuild" else []
    done = shell(command, basic.root / store, *out)
    assert (done.status, done.out) == (2, "")
    assert words in done.err


@pytest.mark.spark
def test_spark_gives_the_same_files(basic: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = process("rebuild", basic.root, "--out", out, "--engine", "spark", "--master", "local[2]")
    assert done.returncode == 0
    assert b"/mqindex/" not in done.stderr  # Spark's own workers may complain that their driver has gone
    assert not any(noise in done.stderr for noise in (b"WARN", b"log4j", b"log level"))
    rebuilt = [path.read_bytes() for path in sorted((out / "index").iterdir())]
    assert rebuilt == [path.read_bytes() for path in basic.index_files]


def test_the_seconds_of_fsync_are_those_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields(settings(RebuildReport("store", fsync_seconds=2.34)))
    assert capsys.readouterr().out.split() == ["fsync", "2.3", "s", "of", "it"]


@pytest.mark.parametrize("place", ["index", "commitlog", "consumequeue", "consumequeue_ext"])
def test_an_output_among_the_files_of_the_store_is_refused(shell: Shell, basic: Store, place: str) -> None:
    """Among the queues it would be one more topic."""
    before = basic.contents()
    done = shell("rebuild", basic.root, "--out", basic.root / place / "anew")
    assert (done.status, done.out) == (2, "")
    assert ": expected a place " in done.err
    assert basic.contents() == before


def test_a_file_that_may_not_grow_is_named(basic: Store, tmp_path: Path) -> None:
    """As under `ulimit -f`, or a quota: what could not be written had no name."""

    before = os.listdir(tmp_path)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = process("rebuild", basic.root, "--out", tmp_path / "out", preexec_fn=limit)
    said = done.stderr.decode().splitlines()[-1]
    assert done.returncode == 2
    assert said == (
        f"mqindex: {tmp_path}: File too large; expected a higher limit, of this process (ulimit -f) or of the file "
        "system"
    )
    assert os.listdir(tmp_path) == before


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """A lock file, held by another process."""
    program = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate()


def test_a_store_in_use_is_not_overwritten(shell: Shell, basic: Store, tmp_path: Path) -> None:
    """`--force` moved it to a backup under the hands of its broker, or of `mqindex follow`."""
    used = tmp_path / "used"
    used.mkdir()
    (used / "kept").touch()
    with held(used / "lock"):
        done = shell("rebuild", basic.root, "--out", used, "--force")
    assert (done.status, done.out) == (2, "")
    assert f"a broker holds this lock, or another writer: {used}/lock" in done.err
    assert sorted(os.listdir(used)) == ["kept", "lock"]
    assert shell("rebuild", basic.root, "--out", used, "--force").status == 0


def test_a_log_dir_in_use_is_not_overwritten(shell: Shell, tmp_path: Path) -> None:
    partition = PartitionCase("410-txn").closed(tmp_path / "log-dir")
    used = tmp_path / "used"
    shutil.copytree(partition, used / partition.name)
    with held(used / ".lock"):
        done = shell("rebuild", partition, "--out", used, "--force")
    assert (done.status, done.out) == (2, "")
    assert f"a broker holds this lock, or another writer: {used}/.lock" in done.err
    assert sorted(os.listdir(used)) == [".lock", partition.name]
    done = shell("rebuild", partition, "--out", used, "--force")
    (backup,) = tmp_path.glob("used.backup-*")
    assert (done.status, f"what was at {used} is now {backup}" in done.lines) == (0, True)


@pytest.mark.parametrize("lock", ["lock", ".lock"])
@pytest.mark.parametrize(
    ("out", "place"), [("", ""), ("", "data/store"), ("consumequeue", ""), ("consumequeue/T/0", ""), ("orders-0", "")]
)
def test_what_any_broker_holds_is_not_moved(tmp_path: Path, basic: Store, out: str, place: str, lock: str) -> None:
    """Each command looked for the lock of its own broker, and only in the directory itself."""
    used, partition = tmp_path / "used", PartitionCase("410-txn").closed(tmp_path / "log-dir")
    (used / out).mkdir(parents=True)
    (used / out / "file").touch()
    (used / place).mkdir(parents=True, exist_ok=True)
    calls: list[Callable[..., Any]] = [
        partial(rocketmq.rebuild, basic.root),
        partial(rocketmq.optimize, basic.root),
        partial(kafka.rebuild, partition),
    ]
    with held(used / place / lock):
        for call in calls:
            with pytest.raises(StoreInUseError, match="a broker holds this lock"):
                call(used / out, overwrite=True)
        assert (used / out / "file").exists()
    backup = rocketmq.rebuild(basic.root, used / out, overwrite=True).backup
    assert (Path(str(backup)) / "file").exists()


def test_no_step_fails_when_the_old_output_is_in_its_backup(
    shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error did not say where it was."""
    full = OSError(errno.EIO, os.strerror(errno.EIO), "log")
    monkeypatch.setattr(importlib.import_module("mqindex.rocketmq.rebuild"), "find_after_end", Mock(side_effect=full))
    (tmp_path / "out" / "kept").mkdir(parents=True)
    assert shell("rebuild", basic.root, "--out", tmp_path / "out", "--force").status == 2
    assert list(tmp_path.glob("out*")) == [tmp_path / "out"]
    assert os.listdir(tmp_path / "out") == ["kept"]
