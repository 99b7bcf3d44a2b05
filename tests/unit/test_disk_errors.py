"""Errors of the system name a path, also those of calls that know a descriptor only."""

from __future__ import annotations

import errno
import os
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
