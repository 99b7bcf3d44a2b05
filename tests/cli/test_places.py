"""Results go nowhere among a broker's files, and replace none; what is made for them goes with a failure."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.files import unpacking
from mqindex.rocketmq.dispatch import follow as following
from tests.cli.conftest import Shell, Store
from tests.support.sample_archive import contents


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A directory with another store and a partition."""
    root = tmp_path / "others"
    for name, content in contents().items():
        path = root / name
        path.mkdir(parents=True, exist_ok=True) if content is None else path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            path.write_bytes(content)
    return root


def tree(root: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))}


WITHIN = ("store/commitlog/made", "store/consumequeue/made", "store/consumequeue/LostTopic/0/made", "orders-0/made")


@pytest.mark.parametrize("place", WITHIN)
@pytest.mark.parametrize("command", ["report", "message", "rebuild", "follow", "optimize", "sample"])
def test_a_place_among_a_brokers_files_is_refused(
    shell: Shell, basic: Store, others: Path, command: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "follow", lambda *arguments, **options: pytest.fail("it began"))
    before, out = tree(others), others / place
    first = (
        [out.parent] if command == "sample" else [basic.root, *(["0"] if command == "message" else []), "--out", out]
    )
    done = shell(command, *first)
    assert (done.status, done.out) == (2, "")
    assert "expected a place outside of" in done.err
    assert tree(others) == before


def test_a_link_leads_there_too(shell: Shell, basic: Store, others: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(others / "store" / "commitlog")
    done = shell("message", basic.root, "0", "--out", tmp_path / "link" / "body")
    assert (done.status, "expected a place outside of" in done.err) == (2, True)


@pytest.mark.parametrize(
    "name", ["store/commitlog/00000000000000000000", "store/checkpoint", "orders-0/00000000000000000000.log"]
)
@pytest.mark.parametrize("command", ["report", "message"])
def test_a_brokers_file_is_not_overwritten(
    shell: Shell, basic: Store, others: Path, tmp_path: Path, command: str, name: str
) -> None:
    target = next(path for path in others.glob(f"{name}*"))
    moved = tmp_path / target.name  # also where no other file shows what it is
    shutil.copy(target, moved)
    for out in (target, moved):
        before = out.read_bytes()
        done = shell(command, basic.root, *(["0"] if command == "message" else []), "--out", out, "--force")
        assert (done.status, out.read_bytes() == before) == (2, True)
        assert "which is not overwritten" in done.err or "expected a place outside of" in done.err


def test_a_copy_of_a_file_makes_no_directory_a_brokers(
    shell: Shell, basic: Store, others: Path, tmp_path: Path
) -> None:
    shutil.copy(basic.index_files[0], tmp_path)
    shutil.copy(next((others / "orders-0").glob("*.log")), tmp_path)
    assert shell("report", basic.root, "--out", tmp_path / "page.html").status == 0
    assert shell("rebuild", basic.root, "--out", tmp_path / "built").status == 0


def test_a_body_does_not_go_into_its_own_store(shell: Shell, basic: Store) -> None:
    for name in ("body", "config/body", "index/body"):
        done = shell("message", basic.root, "0", "--out", basic.root / name, "--force")
        assert (done.status, "where brokers may stumble over it" in done.err) == (2, True)


@pytest.mark.parametrize("command", ["rebuild", "optimize"])
def test_what_is_no_directory_is_not_moved_away(shell: Shell, basic: Store, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    for place in (tmp_path / "file", tmp_path / "link", Path("/dev/null")):
        done = shell(command, basic.root, "--out", place, "--force")
        assert (done.status, done.err.startswith(f"mqindex: the output is no directory: {place}")) == (2, True)
    assert Path("/dev/null").is_char_device()
    assert (tmp_path / "file").read_text() == "mine"


def test_a_store_without_an_index_is_told_what_builds_it(shell: Shell, basic: Store, tmp_path: Path) -> None:
    shutil.rmtree(basic.root / "index")
    done = shell("optimize", basic.root, "--out", tmp_path / "out")
    sentence = "the store has no index; `mqindex repair` builds it"
    assert (done.status, done.err) == (2, f"mqindex: {basic.root / 'index'}: {sentence}\n")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x"), KeyboardInterrupt()])
def test_a_sample_that_fails_leaves_no_directory(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(root: str) -> None:
        raise error

    monkeypatch.setattr(unpacking.disk, "sync_tree", fails)
    assert shell("sample", tmp_path / "new" / "deep").status in (2, 128 + signal.SIGINT)
    assert os.listdir(tmp_path) == []
    (tmp_path / "mine").mkdir()
    assert shell("sample", tmp_path / "mine").status in (2, 128 + signal.SIGINT)
    assert os.listdir(tmp_path / "mine") == []


def test_an_interrupted_optimize_says_what_is_there(
    shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqindex import rocketmq

    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rocketmq, "optimize", interrupted)
    said: Callable[[Path], str] = lambda out: shell("optimize", basic.root, "--out", out, "--force").err  # noqa: E731
    assert said(tmp_path / "new") == "mqindex: interrupted; nothing was changed\n"
    assert "every file in" in said(basic.root)


def test_an_empty_path_is_a_variable_that_is_not_set(shell: Shell, basic: Store, tmp_path: Path) -> None:
    for line in (["report", "", "--out", tmp_path / "page"], ["verify", ""], ["info", ""]):
        done = shell(*line)
        assert (done.status, "expected a path, got an empty one" in done.err) == (2, True)


def test_a_url_is_no_path(shell: Shell, basic: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("s3:")
    for line in (["verify", "s3://a"], ["sample", "s3://a"], ["optimize", basic.root, "--out", "s3://a"]):
        done = shell(*line)
        assert (done.status, "expected a path on this machine, got s3://a; " in done.err) == (2, True)
    assert os.listdir("s3:") == []
    (tmp_path / "s3:" / "a").mkdir()
    assert "s3://a is nothing that mqindex knows" in shell("info", "s3://a").err


def test_a_sample_does_not_go_into_a_file(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = shell("sample", tmp_path / "file")
    assert (done.status, done.err) == (2, f"mqindex: {tmp_path / 'file'}: Not a directory\n")
