"""Which index files hold every entry of a log's file, as a pass over both has found; kept beside the zone maps."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex.zones.cache import FileIdentity, NotUsed, ZoneCache, whole

_MAGIC: Final = b"MQCOVER1"
_HEAD: Final = struct.Struct("<8s32sqqqqq")  # magic, version of the log's file, end, slots, entries, files, others
_FILE: Final = struct.Struct("<32s32s")


class IndexCover(NamedTuple):
    """Every message of a log's file that has keys is found by them in these index files, or is one of `others`.

    Attributes
    ----------
    identity : of the log's file
    end : int, the phy offset up to which this holds
    geometry : of the index files
    files : of the index files
    others : int64[n], phy offsets of messages that no broker indexes, whatever keys they have
    """

    identity: FileIdentity
    end: int
    geometry: tuple[int, int]
    files: frozenset[FileIdentity]
    others: npt.NDArray[np.int64]


def keep_cover(cache: ZoneCache, cover: IndexCover) -> None:
    """Keep it, in place of an older one of that file."""
    counts = len(cover.files), len(cover.others)
    head = _HEAD.pack(_MAGIC, cover.identity.version, cover.end, *cover.geometry, *counts)
    files = b"".join(_FILE.pack(*one) for one in sorted(cover.files))
    cache.write(_name(cover.identity), head + files + cover.others.astype("<i8").tobytes())


def known_cover(cache: ZoneCache, identity: FileIdentity) -> IndexCover | None:
    """What is known of just this version of a file of a log; None: nothing."""
    cover = cache.read(_name(identity), lambda data: _decoded(data, identity.name), "a deep verify")
    return cover if cover is not None and cover.identity == identity else None


def _decoded(data: bytes, name: bytes) -> IndexCover:
    data = whole(data, _MAGIC, _HEAD.size)
    _, version, end, slots, entries, count, others = _HEAD.unpack_from(data)
    at = _HEAD.size + count * _FILE.size
    if min(count, others) < 0 or len(data) != at + 8 * others:
        raise NotUsed("its file has a wrong length")
    files = frozenset(FileIdentity(*one) for one in _FILE.iter_unpack(data[_HEAD.size : at]))
    places = np.frombuffer(data, "<i8", others, at).astype(np.int64)
    return IndexCover(FileIdentity(name, version), end, (slots, entries), files, places)


def _name(identity: FileIdentity) -> str:
    return f"{identity.name.hex()}.index"
