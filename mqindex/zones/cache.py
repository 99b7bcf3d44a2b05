"""Zone maps of files, kept in a directory between runs; what does not fit its file there is as if it were not."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np

from mqindex._native.crc import crc32
from mqindex.errors import MQIndexError
from mqindex.files import disk
from mqindex.files.path_relations import around
from mqindex.files.paths import real_path, status_of
from mqindex.files.places.place import Place
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.regular import reading
from mqindex.zones.zone_map import ZONE, ZoneMap

Cache = str | os.PathLike[str] | bool | None

_MAGIC: Final = b"MQZONES1"
_HEAD: Final = struct.Struct("<8s32s32sqqqq")  # magic, version of the file, mark of its end, base, end, zones, topics
_MOST: Final = 64 << 20  # bytes: a log file of 100 GiB has less
_INSTEAD: Final = (
    "the log is read instead, the answer is the same, and a search for a time writes the map anew: nothing to do"
)
MARK_BYTES: Final = 256 << 10
"""Of what comes before the end: a log that goes on has them still, one that was cut and written anew has not."""


class FileIdentity(NamedTuple):
    """Which file it is, and which version of it. A file that is written to has another version each time."""

    name: bytes
    version: bytes


class FileZones(NamedTuple):
    """A zone map as a cache keeps it. `base`: where its file begins; `mark`: of what is before the map's end."""

    identity: FileIdentity
    base: int
    zones: ZoneMap
    mark: bytes


def identity_of(path: str) -> FileIdentity:
    """What binds a zone map to its file: of this machine device, inode, length and times; elsewhere its version."""
    if isinstance(path, Place):
        return FileIdentity(_digest(str(path)), _digest(repr(tuple(path.pinned()))))
    found = status_of(path)
    return FileIdentity(
        _digest(f"{real_path(path)}\0{found.st_dev}\0{found.st_ino}"),
        _digest(f"{found.st_size}\0{found.st_mtime_ns}\0{found.st_ctime_ns}"),
    )


def mark_of(window: Any) -> bytes:
    """The mark of the bytes before a map's end."""
    return hashlib.blake2b(bytes(window), digest_size=32).digest()


def mark_before(mapped: MappedFile, end: int) -> bytes:
    """The mark of a map that ends at a byte of a file, or with the file."""
    stop = min(end, mapped.size)
    start = max(stop - MARK_BYTES, 0)
    with memoryview(mapped.window(start, stop)) as window:
        return mark_of(window[start:stop])


class ZoneCache:
    """Zone maps by file. A directory that cannot be read or written keeps none, and nothing is said of it.

    Who can write there decides what a scan skips: files of others, and those that others may write, are not read. Of
    these and of damaged ones a UserWarning tells.
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = directory

    @classmethod
    def of(cls, cache: Cache, homes: Callable[[], Iterable[str]] | None = None) -> ZoneCache:
        """`cache`: a directory; None: the user's own; False: nothing is kept.

        homes : what is read, where a broker may stumble over other files; a cache in one of these is a ValueError.
        """
        directory = _directory_of(cache)
        if directory is not None and homes is not None:
            found = around(directory, [home for home in homes() if not isinstance(home, Place)])
            if found is not None:
                said = "cache" if cache is not None else "cache (XDG_CACHE_HOME)"
                raise ValueError(
                    f"{said}: expected a directory outside of {found}, where a broker reads, got {directory}"
                )
        return cls(directory)

    @property
    def keeps(self) -> bool:
        """Whether there is a directory for it."""
        return self._directory is not None

    def load(self, identity: FileIdentity, base: int) -> tuple[ZoneMap, bool, bytes] | None:
        """The map of a file, whether it is of just this version, and the mark of its end; None: there is none."""
        if self._directory is None:
            return None
        path = self._path(identity)
        try:
            with reading(path) as file:
                return _decoded(_trusted(file), identity, base)
        except _NotUsed as why:
            warnings.warn(f"zone map not used, {why}: {path}; {_INSTEAD}", UserWarning, stacklevel=2)
        except (OSError, MQIndexError):
            pass
        return None

    def store(self, found: FileZones | None) -> None:
        """Keep a map, in place of an older one; None: there is none."""
        if self._directory is None or found is None:
            return
        identity, base, zones, mark = found
        head = _HEAD.pack(_MAGIC, identity.version, mark, base, zones.end, len(zones.zones), len(zones.topics))
        data = head + zones.zones.tobytes() + zones.topics.astype("<i4").tobytes()
        scratch = ""
        try:
            disk.make_directories(self._directory)
            scratch = disk.temporary(self._directory, "zones")
            disk.write_new(scratch, data + struct.pack("<I", crc32(data)))
            disk.rename(scratch, self._path(identity))
        except OSError:  # a full disk, a home that cannot be written: the next run reads the log again
            if scratch:
                with suppress(OSError):
                    disk.remove(scratch)

    def _path(self, identity: FileIdentity) -> str:
        assert self._directory is not None
        return os.path.join(self._directory, identity.name.hex())


def _directory_of(cache: Cache) -> str | None:
    if cache is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        return os.path.join(home, "mqindex", "zones") if os.path.isabs(home) else None
    if cache is False:
        return None
    if cache is True or not isinstance(cache, (str, os.PathLike)):
        raise TypeError(f"cache: expected a directory, None or False, got {cache!r}")
    directory = os.path.abspath(os.fsdecode(cache))
    if not os.fspath(cache):
        raise ValueError("cache: expected a directory, None or False, got an empty path")
    return directory


class _NotUsed(Exception):
    """Why a file of a cache is not believed."""


def _trusted(file: BinaryIO) -> bytes:
    found = os.fstat(file.fileno())
    if found.st_uid != os.geteuid():
        raise _NotUsed("its file is another user's")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _NotUsed(f"others may write its file (mode {stat.S_IMODE(found.st_mode):o})")
    if found.st_size > _MOST:
        raise _NotUsed("its file is longer than any map")
    return file.read(_MOST)


def _decoded(data: bytes, identity: FileIdentity, base: int) -> tuple[ZoneMap, bool, bytes]:
    """Any bytes: what is no map of this file, whole and in order, is not used."""
    if len(data) < _HEAD.size + 4:
        raise _NotUsed("its file is cut")
    magic, version, mark, at, end, count, topics = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise _NotUsed("its file is of another format")
    size = _HEAD.size + count * ZONE.itemsize + 4 * topics + 4
    if count < 0 or topics < 0 or len(data) != size:
        raise _NotUsed("its file has a wrong length")
    if struct.unpack_from("<I", data, size - 4)[0] != crc32(memoryview(data)[: size - 4]):
        raise _NotUsed("its file has a wrong checksum")
    zones = np.frombuffer(data, ZONE, count, _HEAD.size)
    made = ZoneMap(zones, np.frombuffer(data, "<i4", topics, _HEAD.size + count * ZONE.itemsize), end)
    ordered = (
        np.all(zones["start"] < zones["stop"])
        and np.all(zones["stop"][:-1] <= zones["start"][1:])
        and (not count or (base <= zones["start"][0] and zones["stop"][-1] <= end))
        and np.all(zones["topics"] >= 0)
        and int(zones["topics"].sum()) == topics
    )
    if at != base or not ordered:
        raise _NotUsed("its zones are not those of a log file")
    return made, version == identity.version, mark


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=32).digest()
