"""Files of a store on a bad disk: `rebuild`, which is what to do about them, goes on where it does not need them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import TruncatedFileError
from mqindex.files.reading.sparse import SparseFile
from mqindex.rocketmq import rebuild, verify
from mqindex.rocketmq.checks.queues import queue_check
from tests.support.golden import StoreCase

GoldenStore = Callable[[str], tuple[StoreCase, Path]]


@pytest.fixture
def basic(golden_store: GoldenStore) -> Path:
    return golden_store("basic-493")[1]


def break_file(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """From now on the disk cannot read it."""
    open_ = os.open

    def opened(name: Any, *arguments: Any, **named: Any) -> int:
        if os.fspath(name) == str(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return open_(name, *arguments, **named)

    monkeypatch.setattr(os, "open", opened)


def test_a_queue_s_file_that_cannot_be_read_is_a_warning_of_a_rebuild(
    basic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rebuild(basic, tmp_path / "whole")
    bad = sorted((basic / "consumequeue").glob("*/*/*"))[0]
    break_file(monkeypatch, bad)
    report = rebuild(basic, tmp_path / "out")
    assert (report.entries, report.units) == (whole.entries, whole.units)
    (finding,) = [one for one in report.findings if one.kind == "file-unread"]
    assert (finding.severity, finding.path) == ("warning", str(bad))
    assert "Input/output error" in str(finding.hint)


def test_an_index_file_that_cannot_be_read_is_refused_with_what_to_do(
    basic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = sorted((basic / "index").iterdir())[0]
    break_file(monkeypatch, bad)
    with pytest.raises(OSError, match="move it elsewhere to go on without it") as caught:
        rebuild(basic, tmp_path / "out", broker_version="4.9.3")
    assert caught.value.filename == str(bad)
    assert not (tmp_path / "out").exists()


def test_a_queue_s_file_that_is_cut_while_it_is_read_is_an_error(basic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = sorted((basic / "consumequeue").glob("*/*/*"))[0]

    def cut(path: str) -> SparseFile:
        if path == str(bad):
            raise TruncatedFileError("the file was cut while it was read", path=path)
        return SparseFile(path)

    monkeypatch.setattr(queue_check, "SparseFile", cut)
    (one,) = verify(basic).findings
    assert (one.severity, one.kind, one.path, one.mended_by) == (
        "error", "queue-unreadable", str(bad), "consumequeue",
    )  # fmt: skip
