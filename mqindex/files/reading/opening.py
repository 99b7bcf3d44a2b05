"""Files to read, of this machine or of a place elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mqindex.files.places.place import Place
from mqindex.files.reading.mapped_file import MappedFile


def map_file(path: str) -> MappedFile:
    """A file to read through windows. An empty one is a `TruncatedFileError`."""
    if not isinstance(path, Place):
        return MappedFile.open(path)
    from mqindex.files.places.remote_file import RemoteFile  # here: files of this machine need none of it

    return RemoteFile(path)


@contextmanager
def bytes_of(path: str, start: int, stop: int) -> Iterator[memoryview]:
    """The bytes [start, stop) of a file; elsewhere by one request."""
    if isinstance(path, Place):
        yield path.read(start, stop)
        return
    with MappedFile.open(path) as file, memoryview(file.map) as whole, whole[start:stop] as some:
        yield some
