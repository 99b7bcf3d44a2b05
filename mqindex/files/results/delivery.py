"""What a task builds for a place elsewhere: on this machine first, then delivered to the scratch of its run."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from mqindex._native.crc import crc32c
from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.files.few_threads import of_each
from mqindex.files.places.place import Place
from mqindex.files.places.remote_file import RemoteFile
from mqindex.files.places.storage import errors_of
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.results.staging import say_left

AT_ONCE: Final = 16  # files
FILE: Final = re.compile(r"(.*)\.([0-9a-f]{8})\.(\d+)", re.DOTALL)  # its checksum and length end its name in a scratch
BLOCK: Final = 4 << 20


@contextlib.contextmanager
def workshop(directory: str) -> Iterator[str]:
    """A directory of this machine for what a task builds: `directory` itself, if it is one."""
    if not isinstance(directory, Place):
        yield directory
        return
    import shutil  # here: most runs write on this machine
    import tempfile

    try:
        made = tempfile.mkdtemp(prefix="mqindex-")
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
            if os.path.lexists(made):
                say_left(made, then="")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or isinstance(error.filename, Place):
            raise
        text = f"{os.strerror(error.errno)}, where files are built before they go to {directory}; TMPDIR= names another"
        raise OSError(error.errno, text, tempfile.gettempdir()) from error


def deliver(path: str, directory: str) -> str:
    """Bring a finished file or directory of the workshop to `directory`; returns where it is now."""
    if not isinstance(directory, Place):
        return path
    if os.path.isdir(path):
        target = directory / os.path.basename(path)
        below = [os.path.join(home, name) for home, _, names in os.walk(path) for name in names]
        of_each(lambda one: _upload(one, inside(target, os.path.relpath(one, path))), below, AT_ONCE)
        return target
    return _upload(path, directory / os.path.basename(path))


def deliver_all(paths: Sequence[str], directory: str) -> list[str]:
    """The same of several, side by side."""
    return of_each(lambda one: deliver(one, directory), paths, AT_ONCE if isinstance(directory, Place) else 0)


def fetch_all(paths: Sequence[str], directory: str) -> list[str]:
    """Delivered files as files of this machine, those that are elsewhere copied to a directory."""

    def fetch(path: str) -> str:
        if not isinstance(path, Place):
            return path
        (_, told, length), crc = told_by(path.name), 0
        copy, size = os.path.join(directory, path.name), int(length)
        with disk.new_file(copy) as fd:
            for start in range(0, size, BLOCK):
                some = path.read(start, min(start + BLOCK, size))
                crc = crc32c(some, crc)
                disk.write_all(fd, some)
        if f"{crc:08x}" != told:
            what = "a file of the scratch came back with other bytes"
            raise FileStateError(what, path=path, expected=f"checksum {told}", got=f"{crc:08x}", hint="run it again")
        return copy

    return of_each(fetch, paths, AT_ONCE if any(isinstance(path, Place) for path in paths) else 0)


def copied(place: Place, directory: str) -> MappedFile:
    """A file elsewhere as one of this machine, to read here and there: its copy, which no name leads to.

    The few parts that are on their way are all that takes memory.
    """
    copy = os.path.join(directory, f"{place.name}.{os.urandom(6).hex()}")
    with disk.new_file(copy) as fd:
        try:
            with RemoteFile(place) as file:
                file.ahead(0, file.size)
                for start in range(0, file.size, file.step):
                    stop = min(start + file.step, file.size)
                    with memoryview(file.window(start, stop)) as window, window[start:stop] as some:
                        disk.write_all(fd, some)
                    file.release(stop)
            found = MappedFile.open(copy)
        finally:
            os.unlink(copy)
    found.path = place
    return found


def remove(path: str) -> None:
    """Remove a delivered file; what was not delivered went with its workshop, if it was built for elsewhere."""
    if isinstance(path, Place):
        with errors_of(path):
            path.storage.remove(path.path)
    elif os.path.lexists(path):
        disk.remove(path)


def _upload(path: str, target: Place) -> Place:
    target += f".{checksum(path):08x}.{os.path.getsize(path)}"
    with errors_of(target):
        target.storage.upload(target.path, path)
    os.unlink(path)
    return target


def checksum(path: str) -> int:
    """The CRC-32C of a file of this machine."""
    if not os.path.getsize(path):
        return 0
    with MappedFile.open(path) as file, memoryview(file.map) as whole:
        crc = 0
        for start in range(0, len(whole), BLOCK):
            crc = crc32c(whole[start : start + BLOCK], crc)
        return crc


def inside(place: Place, name: str) -> Place:
    """What is below a place, by a name of several parts."""
    for part in name.split(os.sep):
        place = place / part
    return place


def told_by(name: str) -> tuple[str, str, str]:
    """What a name in the scratch says: the file's own, its checksum and its length."""
    found = FILE.fullmatch(name)
    assert found is not None, name
    return found[1], found[2], found[3]
