"""Files to read, of this machine or of a place elsewhere."""

from __future__ import annotations

from mqindex.files.places.place import Place
from mqindex.files.places.remote_file import RemoteFile
from mqindex.files.reading.mapped_file import MappedFile


def map_file(path: str) -> MappedFile:
    """A file to read through windows. An empty one is a `TruncatedFileError`."""
    return RemoteFile(path) if isinstance(path, Place) else MappedFile.open(path)
