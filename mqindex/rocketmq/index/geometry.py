"""The geometry (hash_slot_num, index_num) of index files, which no file records: found from their content.

A file fits a geometry when every used slot heads a chain of entries with `key_hash % hash_slot_num == slot`. Its
length leaves millions of candidates; the header has the first and the last entry's phy_offset, and the last entry
is the newest of its slot, which leaves one, seldom more. In a file that was optimized these two may be anywhere.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._words import plural
from mqindex.errors import GeometryError, MQIndexError
from mqindex.files import disk
from mqindex.files.paths import base_name, is_link, parent_of, size_of
from mqindex.files.places.place import Place, require_answer, without_unread
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.regular import reading
from mqindex.rocketmq import layout
from mqindex.rocketmq.index.geometry_fit import (
    DEFAULT,
    DEFAULT_SIZE,
    NEWEST,
    SMALLEST,
    Geometry,
    content_fits,
    entries_of,
    of_length,
)
from mqindex.rocketmq.layout import (
    HASH_SLOT_NUM,
    INDEX_ENTRY_FIELDS,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    INDEX_NUM,
    INDEX_SLOT_SIZE,
    IndexHeader,
)

Array = npt.NDArray[Any]

_ENTRY = INDEX_ENTRY_SIZE // INDEX_SLOT_SIZE  # in words, of a slot each
_KEY_HASH, _PHY_OFFSET, _PREV_INDEX = (
    INDEX_ENTRY_FIELDS[name] // INDEX_SLOT_SIZE for name in ("key_hash", "phy_offset", "prev_index")
)
_BLOCK = _ENTRY << 20  # words of slots tried in one go
_LOOKS: Final = 3  # at files that fit none, while a broker writes
_PAUSE: Final = 0.01  # seconds
_HINT = (
    "pass hash_slot_num= and index_num= (--hash-slot-num, --index-num), the broker's maxHashSlotNum and maxIndexNum; "
    f"--hash-slot-num {HASH_SLOT_NUM} --index-num {INDEX_NUM} if the broker runs with its defaults"
)


def infer(paths: Sequence[str | os.PathLike[str]], *, thorough: bool = False) -> Geometry:
    """The one geometry that the files agree on, the default geometry first.

    A file that fits none is damaged and has no vote; one without entries fits all. Files of the default length are
    checked by their newest 16 entries, unless `thorough`.

    Raises
    ------
    GeometryError
        No file, or none or more than one geometry fits; the message names the options to pass.
    OSError
        No file shows it, and one cannot be opened.
    """
    names = [os.fspath(path) for path in paths]
    if not names:
        raise GeometryError("there is no index file to infer the geometry from", hint=_HINT)
    if (said := _of_result(names[0])) and all(size_of(name) == layout.index_file_size(*said) for name in names):
        return said
    unread: list[OSError] = []
    votes = _votes(names, thorough, unread)
    if not votes:
        return _default_or_refuse(names, unread)
    agreed = set.intersection(*votes)
    if DEFAULT in agreed:
        return DEFAULT
    if len(agreed) == 1:
        return agreed.pop()
    what = "more than one geometry fits the index files" if agreed else "the index files agree on no geometry"
    raise GeometryError(what, path=names[0], got=_listed(agreed or set.union(*votes)), hint=_HINT)


def _of_result(path: str) -> Geometry | None:
    if not isinstance(path, Place):
        return None
    from mqindex.rocketmq.index.geometry_elsewhere import of_result  # here: see `candidates`

    return of_result(path)


def file_size(path: str) -> int:
    """The length of a listed file; 0 for a link that leads nowhere, which a broker fills with zeros or cannot open."""
    try:
        return size_of(path)
    except OSError:
        if is_link(path):
            return 0
        raise


def resolve(hash_slot_num: int | None, index_num: int | None, size: int) -> Geometry | None:
    """The geometry that is given, whole or by one half and the file's length; None: neither half is given.

    Where the length leaves no room, the other half is the least there is, which the length does not fit.

    >>> resolve(5, None, 220), resolve(None, 8, 220), resolve(None, None, 220), resolve(40, None, 220)
    ((5, 8), (5, 8), None, (40, 2))
    """
    if hash_slot_num is None and index_num is None:
        return None
    slots, entries = hash_slot_num, index_num
    if entries is None:
        entries = max((size - INDEX_HEADER_SIZE - INDEX_SLOT_SIZE * (slots or 0)) // INDEX_ENTRY_SIZE, 2)
    if slots is None:
        slots = max((size - INDEX_HEADER_SIZE - INDEX_ENTRY_SIZE * entries) // INDEX_SLOT_SIZE, 1)
    return slots, entries


def require(paths: Sequence[str], given: Geometry, source: str) -> None:
    """Refuse a given geometry that the files refute: if their content shows another, one of the two is wrong.

    Files that show no geometry, damaged ones and those without entries, refute nothing.
    """
    if not paths or any(fits(path, given) for path in reversed(paths)):
        return
    seen = given
    with without_unread(paths[0], GeometryError):
        seen = infer(paths, thorough=True)
    if seen != given and any(fits(path, seen) for path in paths):
        raise GeometryError(
            "the index files have another geometry than was given",
            path=parent_of(paths[0]) if len(paths) > 1 else paths[0],
            expected=f"hash_slot_num {seen[0]}, index_num {seen[1]}, by their content",
            got=f"hash_slot_num {given[0]}, index_num {given[1]} ({source})",
            hint="leave the geometry out, or give the right one (--hash-slot-num, --index-num, --broker-conf)",
        )


def of_file(file: MappedFile, hash_slot_num: int | None, index_num: int | None) -> Geometry:
    """The geometry of one file: what is given of it, which the content must not refute, or what the content shows."""
    given = resolve(hash_slot_num, index_num, file.size)
    if given is None:
        return infer([file.path])
    require_size(file.path, file.size, given)
    if not looks_like(file, given):
        require([file.path], given, "given")
    return given


def require_size(path: str, size: int, given: Geometry) -> Geometry:
    """Refuse a given geometry that asks for another length of a file; returns it."""
    expected = layout.index_file_size(*given)
    if size != expected:
        raise GeometryError(
            f"file size does not match {plural(given[0], 'slot')} and {plural(given[1], 'entry')}",
            path=path,
            expected=expected,
            got=size,
            hint="pass the hash_slot_num= and index_num= (--hash-slot-num, --index-num) that the broker had",
        )
    return given


def candidates(path: str, *, thorough: bool = True) -> list[Geometry]:
    """Every geometry that fits the content of one file; empty where it holds no entry or fits none."""
    if isinstance(path, Place):
        from mqindex.rocketmq.index.geometry_elsewhere import shown_by  # here: files of this machine need none of it

        return shown_by(path)
    with MappedFile.open(path) as file:
        if not SMALLEST <= file.size <= layout.MAX_INDEX_FILE_SIZE or file.size % 4:
            return []
        header = IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE))
        count = header.index_count
        if not 2 <= count <= (file.size - INDEX_HEADER_SIZE) // INDEX_ENTRY_SIZE:
            return []
        if file.size == DEFAULT_SIZE:
            if not thorough:
                file.advise_random()  # the quick look needs some forty pages of a file that may be cold
            if content_fits(file.map, DEFAULT, None if thorough else NEWEST):
                return [DEFAULT]
        file.populate()
        words = np.frombuffer(memoryview(file.map), np.uint8)[INDEX_HEADER_SIZE:].view(">i4")
        as_written = [
            pair for pair in of_length(_plausible(words, header), file.size) if content_fits(file.map, pair, None)
        ]
        if as_written:
            return as_written
        moved = of_length(_plausible(words, header, moved=True), file.size)
        return [pair for pair in moved if content_fits(file.map, pair, None) and _has_ends(words, pair[0], header)]


def is_index_file(path: str) -> bool:
    """Whether a file's length and entries fit a geometry: for one whose name and place do not show what it is."""
    try:
        return bool(infer([path]))
    except MQIndexError as error:
        require_answer(error, path)
        return False
    except OSError as error:
        require_answer(error, path)
        return False


def fits(path: str, geometry: Geometry) -> bool:
    """Whether a file with entries can be of this geometry, by its length and its newest entries."""
    try:
        if size_of(path) != layout.index_file_size(*geometry):
            return False
        if isinstance(path, Place):
            from mqindex.rocketmq.index.geometry_elsewhere import has_entries_of  # here: see `candidates`

            return has_entries_of(path, geometry)
        with MappedFile.open(path) as file:
            file.advise_random()
            return looks_like(file, geometry)
    except MQIndexError as error:
        require_answer(error, path)
        return False
    except OSError as error:
        require_answer(error, path)
        return False


def looks_like(file: MappedFile, geometry: Geometry) -> bool:
    """Whether a file of the right length has entries, the newest of this geometry; a few pages are read."""
    return entries_of(file) > 0 and content_fits(file.map, geometry, NEWEST)


def _plausible(words: Array, header: IndexHeader, *, moved: bool = False) -> list[int]:
    """The hash_slot_nums for which entries 0, 1 and count-1 and the newest entry's slot look as they must.

    `moved`: entries may have been brought together, so that any two are the header's first and last.
    """
    first = len(words) % _ENTRY or _ENTRY  # the words are slots and whole entries, so S is fixed modulo an entry's
    stop = len(words) - _ENTRY * header.index_count + 1
    blocks = (np.arange(at, min(at + _BLOCK, stop), _ENTRY) for at in range(first, stop, _BLOCK))
    return [slots for block in blocks for slots in _plausible_in(words, block, header, moved).tolist()]


def _plausible_in(words: Array, zeroth: Array, header: IndexHeader, moved: bool) -> Array:
    """`zeroth`: the word of entry 0, which is hash_slot_num."""
    newest = header.index_count - 1
    if not moved:
        zeroth = zeroth[_phy_offset(words, zeroth + _ENTRY * newest) == header.end_phy_offset]
    first = zeroth + _ENTRY
    keep = words[first + _PREV_INDEX] == 0
    if not moved:
        keep &= _phy_offset(words, first) == header.begin_phy_offset
    for word in range(_ENTRY):
        keep &= words[zeroth + word] == 0
    zeroth = zeroth[keep]
    key_hash = words[zeroth + _ENTRY * newest + _KEY_HASH]
    zeroth, key_hash = zeroth[key_hash >= 0], key_hash[key_hash >= 0]
    fitting: Array = zeroth[words[key_hash % zeroth] == newest]
    return fitting


def _has_ends(words: Array, slots: int, header: IndexHeader) -> bool:
    """Whether the header's first and last phy_offset are those of entries."""
    offsets = _phy_offset(words, slots + _ENTRY * np.arange(1, header.index_count))
    return bool(np.any(offsets == header.begin_phy_offset) and np.any(offsets == header.end_phy_offset))


def _phy_offset(words: Array, entry: Array) -> Array:
    at = entry + _PHY_OFFSET
    high, low = words[at].astype(np.int64), words[at + 1].astype(np.int64)
    offset: Array = (high << 32) | (low & 0xFFFFFFFF)
    return offset


def _votes(names: list[str], thorough: bool, unread: list[OSError]) -> list[set[Geometry]]:
    """Of the files that fit some; looked at again where a broker wrote: one that it makes has no entry for a moment."""
    for _ in range(_LOOKS):
        unread.clear()
        heads = [_head(name) for name in names]
        votes = [fitting for fitting in (_vote(name, thorough, unread) for name in _of_one_size(names)) if fitting]
        if votes:
            return votes
        time.sleep(_PAUSE)
        if heads == [_head(name) for name in names]:
            break
    return []


def _head(path: str) -> bytes:
    try:
        with reading(path, buffered=False) as file:
            return file.read(INDEX_HEADER_SIZE)
    except OSError as error:
        require_answer(error, path)
        return b""


def _vote(path: str, thorough: bool, unread: list[OSError]) -> set[Geometry]:
    try:
        return set(candidates(path, thorough=thorough))
    except MQIndexError as error:
        require_answer(error, path)
        return set()
    except OSError as error:
        require_answer(error, path)
        unread.append(error)
        return set()


def _of_one_size(names: list[str]) -> list[str]:
    # The files of a directory have one length. A torn one must not vote: the most frequent length does, all in a tie.
    sizes = {name: size_of(name) for name in names if disk.is_file(name)}
    sizes = {name: size for name, size in sizes.items() if size >= SMALLEST} or sizes
    ranked = Counter(sizes.values()).most_common(2)
    if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
        if DEFAULT_SIZE not in (ranked[0][0], ranked[1][0]):
            return list(sizes)
        return [name for name in sizes if sizes[name] == DEFAULT_SIZE]
    return [name for name in sizes if sizes[name] == ranked[0][0]] if ranked else []


def _default_or_refuse(names: list[str], unread: list[OSError]) -> Geometry:
    sizes = {name: file_size(name) for name in names}
    if DEFAULT_SIZE in sizes.values():
        return DEFAULT
    if unread:
        raise unread[0]
    if len(names) == 1:
        what = "the geometry of this index file cannot be inferred from its content"
        raise GeometryError(what, path=names[0], got=plural(sizes[names[0]], "byte"), hint=_HINT)
    got = ", ".join(f"{base_name(name)} of {plural(size, 'byte')}" for name, size in list(sizes.items())[:4])
    what = "the geometry of these index files cannot be inferred from their content"
    raise GeometryError(what, path=parent_of(names[0]), got=got, hint=_HINT)


def _listed(geometries: Iterable[Geometry]) -> str:
    return ", ".join(f"({slots}, {entries})" for slots, entries in sorted(geometries)[:4])
