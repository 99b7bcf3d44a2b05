"""On macOS `fsync` leaves the bytes in the drive's cache: `F_FULLFSYNC` empties it, as the brokers' own Java does."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mqindex.files import disk

FULL = 51  # macOS's number of it


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """A platform as macOS is, whose file system answers F_FULLFSYNC so; what is called of it."""

    def made(answer: int = 0) -> list[str]:
        called: list[str] = []

        def control(fd: int, command: int, *_: Any) -> int:
            called.append("F_FULLFSYNC" if command == FULL else str(command))
            if answer:
                raise OSError(answer, os.strerror(answer))
            return 0

        monkeypatch.setattr(disk, "fcntl", SimpleNamespace(F_FULLFSYNC=FULL, fcntl=control))
        monkeypatch.setattr(os, "fsync", lambda fd: called.append("fsync"))
        monkeypatch.setattr(os, "fdatasync", lambda fd: called.append("fdatasync"), raising=False)
        return called

    return made


def of_file(path: Path) -> None:
    disk.sync_file(str(path / "file"))


def of_directory(path: Path) -> None:
    disk.sync_directory(str(path))


def of_data(path: Path) -> None:
    with open(path / "file", "rb") as file:
        disk.sync_data(file.fileno())


@pytest.mark.parametrize("sync", [of_file, of_directory, of_data])
def test_a_sync_on_macos_reaches_the_disk(
    sync: Callable[[Path], None], tmp_path: Path, calls: Callable[..., list[str]]
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    called = calls()
    sync(tmp_path)
    assert called == ["F_FULLFSYNC"]


@pytest.mark.parametrize("answer", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_a_file_system_without_it_gets_the_usual_sync(
    answer: int, tmp_path: Path, calls: Callable[..., list[str]]
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    called = calls(answer)
    of_file(tmp_path)
    of_data(tmp_path)
    assert called == ["F_FULLFSYNC", "fsync", "F_FULLFSYNC", "fdatasync"]


def test_a_disk_that_fails_is_told_and_not_asked_again(tmp_path: Path, calls: Callable[..., list[str]]) -> None:
    (tmp_path / "file").write_bytes(b"x")
    called = calls(errno.EIO)
    with pytest.raises(OSError, match="error") as caught:
        of_file(tmp_path)
    assert (caught.value.errno, called) == (errno.EIO, ["F_FULLFSYNC"])


@pytest.mark.skipif(hasattr(fcntl, "F_FULLFSYNC"), reason="this is macOS")
def test_other_systems_sync_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"x")
    called: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: called.append("fsync"))
    monkeypatch.setattr(os, "fdatasync", lambda fd: called.append("fdatasync"), raising=False)
    of_file(tmp_path)
    of_data(tmp_path)
    assert called == ["fsync", "fdatasync"]
