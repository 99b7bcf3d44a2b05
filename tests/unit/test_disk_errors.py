"""Errors of the system name a path, also those of calls that know a descriptor only."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.files import disk

CALLS: dict[str, Callable[[int], object]] = {
    "write_all": lambda fd: disk.write_all(fd, b"x"),
    "pwrite_all": lambda fd: disk.pwrite_all(fd, b"x", 0),
    "resize": lambda fd: disk.resize(fd, 10),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_a_descriptor_names_its_file(call: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match=str(path)) as raised:
            CALLS[call](fd)
    finally:
        os.close(fd)
    assert raised.value.filename == str(path)
    with pytest.raises(OSError) as gone:
        CALLS[call](fd)
    assert (gone.value.errno, gone.value.filename) == (errno.EBADF, None)


def test_an_error_inside_a_block_names_its_path_unless_it_has_one() -> None:
    for error, name in ((OSError(errno.EIO, "x"), "here"), (OSError(errno.EIO, "x", "there"), "there")):
        with pytest.raises(OSError, match="x") as raised, disk.named("here"):
            raise error
        assert raised.value.filename == name


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("fails", [False, True])
def test_all_is_synced_where_no_more_threads_can_be_started(
    threads: int, fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told as a bug. No error of a sync that was begun is lost: the next one of the same file says success."""
    paths = [str(tmp_path / str(n)) for n in range(40)]
    synced: list[str] = []
    left, start = threads, threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        nonlocal left
        if left == 0:
            raise RuntimeError("can't start new thread")
        left -= 1
        start(thread)

    def sync(path: str) -> None:
        synced.append(path)
        if fails and len(synced) == 7:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(disk, "sync_file", sync)
    if not fails:
        disk.sync_files(paths)
        assert sorted(synced) == sorted(paths)
        return
    with pytest.raises(OSError, match="Input/output error"):
        disk.sync_files(paths)
    assert len(synced) == 7
