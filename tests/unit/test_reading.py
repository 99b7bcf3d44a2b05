"""Reading what must be a file: every error names it, and no descriptor is left."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from mqindex.files.reading.regular import reading, reading_text
from mqindex.files.reading.residency import read_ahead
from mqindex.rocketmq.kinds import beginning_of

UNREADABLE = "/proc/self/mem"  # opens, is a file, and no byte can be read at its begin
needs_it = pytest.mark.skipif(
    not os.path.exists(UNREADABLE), reason="no file here opens and cannot be read; a status that fails is tested anyway"
)


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@needs_it
def test_an_error_of_a_read_names_the_file() -> None:
    with pytest.raises(OSError) as raised:
        beginning_of(UNREADABLE)
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, UNREADABLE)


@needs_it
def test_a_read_inside_the_block_names_the_file() -> None:
    with pytest.raises(OSError) as raised, reading(UNREADABLE) as file:
        file.read(1)
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, UNREADABLE)


def test_status_that_cannot_be_had_names_the_file_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")

    def fails(fd: int) -> os.stat_result:
        raise OSError(errno.ENOLCK, "No locks available")

    before = descriptors()
    for opened in (reading, reading_text):
        with monkeypatch.context() as patched, pytest.raises(OSError) as raised:
            patched.setattr(os, "fstat", fails)
            with opened(path):
                pass
        assert raised.value.filename == str(path)
    assert descriptors() == before


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"), reading(path):
        pass


def test_reading_ahead_asks_for_all_and_never_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "POSIX_FADV_WILLNEED", 3, raising=False)
    monkeypatch.setattr(os, "posix_fadvise", lambda fd, at, size, advice: asked.append((at, size)), raising=False)
    path = tmp_path / "file"
    path.write_bytes(b"x" * 300_000)
    before = descriptors()
    read_ahead(str(path), 300_000)
    assert asked == [(0, 131_072), (131_072, 131_072), (262_144, 37_856)]
    os.mkfifo(tmp_path / "fifo")
    for missing in ("fifo", "missing"):
        read_ahead(str(tmp_path / missing), 10)
    monkeypatch.delattr(os, "posix_fadvise")  # as on macOS
    read_ahead(str(path), 300_000)
    assert (len(asked), descriptors()) == (3, before)
