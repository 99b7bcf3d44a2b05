"""An archive whose directories appear somewhere whole: unpacked aside, brought to the disk, renamed into place."""

from __future__ import annotations

import contextlib
import errno
import os
import tarfile
from collections.abc import Iterator
from typing import IO

from mqindex.errors import FormatError, OutputExistsError
from mqindex.files import disk
from mqindex.files.results import staging
from mqindex.files.results.output_place import require_place


def unpack(archive: IO[bytes], directory: str) -> list[str]:
    """Let the top directories of a tar archive appear in `directory`, and return their paths.

    None replaces anything (`OutputExistsError`), and after any failure none of them is there. Owner, mode and
    time of the files are those of any new file there.
    """
    with tarfile.open(fileobj=archive) as tar:
        members = list(_checked(tar))
        tops = sorted({member.name.partition("/")[0] for member in members})
        targets = [os.path.join(directory, top) for top in tops]
        for target in targets:
            if disk.exists(target):
                raise OutputExistsError("the output exists already", path=target, hint="choose another directory")
        if disk.exists(directory) and not disk.is_directory(directory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        with _made(directory), staging.scratch(directory) as scratch:
            for member in members:
                _write(tar, member, os.path.join(scratch, member.name))
            disk.sync_tree(scratch)
            _appear([os.path.join(scratch, top) for top in tops], targets)
    disk.sync_directory(directory)
    return targets


@contextlib.contextmanager
def _made(directory: str) -> Iterator[None]:
    """The directory, with those above it; after a failure the ones that were made are gone again."""
    above, missing = directory, []
    while not disk.exists(above):
        missing.append(above)
        above = os.path.dirname(above)
    if missing:
        require_place(missing[-1])
    try:
        disk.make_directories(directory)
        yield
    except BaseException:
        for path in missing:
            with contextlib.suppress(OSError):  # not there yet, or others use it
                disk.remove_directory(path)
        raise


def _checked(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Files and directories below the archive's top directories; anything else is refused before a byte is written."""
    for member in tar:
        parts = member.name.split("/")
        if member.name.startswith("/") or not {"", ".", ".."}.isdisjoint(parts):
            raise FormatError("a member's name leads out of the archive", got=member.name)
        if not (member.isdir() or (member.isreg() and len(parts) > 1)):
            raise FormatError("a member is neither a directory nor a file in one", got=member.name)
        yield member


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    disk.make_directories(path if member.isdir() else os.path.dirname(path))
    if member.isreg() and (content := tar.extractfile(member)) is not None:
        disk.write_new(path, content.read())
        disk.sync_file(path)


def _appear(sources: list[str], targets: list[str]) -> None:
    done: list[tuple[str, str]] = []
    try:
        for source, target in zip(sources, targets, strict=True):
            disk.rename(source, target)
            done.append((target, source))
    except BaseException:
        for target, source in done:
            disk.rename(target, source)
        raise
