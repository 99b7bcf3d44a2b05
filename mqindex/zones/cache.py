"""Zone maps of files, kept in a directory between runs; what does not fit its file there is as if it were not."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar

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

_T = TypeVar("_T")
Cache = str | os.PathLike[str] | bool | None

_MAGIC: Final = b"MQZONES1"
_HEAD: Final = struct.Struct("<8s32s32sqqqq")  # magic, version of the file, mark of its end, base, end, zones, topics
_MOST: Final = 64 << 20  # bytes: a log file of 100 GiB has less
_INSTEAD: Final = "the log is read instead, the answer is the same, and {} writes the map anew: nothing to do"
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
        return self.read(identity.name.hex(), lambda data: _decoded(data, identity, base), "a search for a time")

    def store(self, found: FileZones | None) -> None:
        """Keep a map, in place of an older one; None: there is none."""
        if self._directory is None or found is None:
            return
        identity, base, zones, mark = found
        head = _HEAD.pack(_MAGIC, identity.version, mark, base, zones.end, len(zones.zones), len(zones.topics))
        self.write(identity.name.hex(), head + zones.zones.tobytes() + zones.topics.astype("<i4").tobytes())

    def read(self, name: str, decoded: Callable[[bytes], _T], anew: str) -> _T | None:
        """What `write` kept by that name, as `decoded` makes it of its bytes; None: nothing, or what is `NotUsed`.

        `anew`: what writes it again.
        """
        if self._directory is None:
            return None
        path = os.path.join(self._directory, name)
        try:
            with reading(path) as file:
                return decoded(_trusted(file))
        except NotUsed as why:
            warnings.warn(f"zone map not used, {why}: {path}; {_INSTEAD.format(anew)}", UserWarning, stacklevel=2)
        except (OSError, MQIndexError):
            pass
        return None

    def write(self, name: str, data: bytes) -> None:
        """Keep some bytes, in place of older ones of that name."""
        if self._directory is None:
            return
        scratch = ""
        try:
            disk.make_directories(self._directory)
            scratch = disk.temporary(self._directory, "zones")
            disk.write_new(scratch, data + struct.pack("<I", crc32(data)))
            disk.rename(scratch, os.path.join(self._directory, name))
        except OSError:  # a full disk, a home that cannot be written: the next run reads the log again
            if scratch:
                with suppress(OSError):
                    disk.remove(scratch)


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


class NotUsed(Exception):
    """Why a file of a cache is not believed."""


def _trusted(file: BinaryIO) -> bytes:
    found = os.fstat(file.fileno())
    if found.st_uid != os.geteuid():
        raise NotUsed("its file is another user's")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotUsed(f"others may write its file (mode {stat.S_IMODE(found.st_mode):o})")
    if found.st_size > _MOST:
        raise NotUsed("its file is longer than any map")
    return file.read(_MOST)


def whole(data: bytes, magic: bytes, head: int) -> bytes:
    """What a file of a cache holds without its checksum; `NotUsed` where it is damaged. `head`: least bytes of it."""
    if len(data) < head + 4:
        raise NotUsed("its file is cut")
    if not data.startswith(magic):
        raise NotUsed("its file is of another format")
    if struct.unpack_from("<I", data, len(data) - 4)[0] != crc32(memoryview(data)[:-4]):
        raise NotUsed("its file has a wrong checksum")
    return data[:-4]


def _decoded(data: bytes, identity: FileIdentity, base: int) -> tuple[ZoneMap, bool, bytes]:
    """Any bytes: what is no map of this file, whole and in order, is not used."""
    data = whole(data, _MAGIC, _HEAD.size)
    _, version, mark, at, end, count, topics = _HEAD.unpack_from(data)
    if count < 0 or topics < 0 or len(data) != _HEAD.size + count * ZONE.itemsize + 4 * topics:
        raise NotUsed("its file has a wrong length")
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
        raise NotUsed("its zones are not those of a log file")
    return made, version == identity.version, mark


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=32).digest()
