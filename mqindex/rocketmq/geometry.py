"""The geometry (hash_slot_num, index_num) of index files, which no file records: found from their content.

A file fits a geometry when every used slot heads a chain of entries with `key_hash % hash_slot_num == slot`. Its
length leaves millions of candidates; the header names the first and the last entry's phy_offset, and the last entry
is the newest of its slot, which leaves one, seldom more.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from mqindex.errors import GeometryError, MQIndexError
from mqindex.rocketmq import layout
from mqindex.rocketmq.layout import HASH_SLOT_NUM, INDEX_ENTRY_SIZE, INDEX_HEADER_SIZE, INDEX_NUM

__all__ = ["Geometry", "candidates", "infer", "resolve"]

Geometry = tuple[int, int]

_DEFAULT: Geometry = (HASH_SLOT_NUM, INDEX_NUM)
_DEFAULT_SIZE = layout.index_file_size(*_DEFAULT)
_NEWEST = 16  # entries checked in a quick look at a file of the default length
_HINT = "pass hash_slot_num= and index_num= (--hash-slot-num, --index-num), or the broker's configuration (--broker-conf)"


def infer(paths: Sequence[str | os.PathLike[str]], *, thorough: bool = False) -> Geometry:
    """The one geometry that the files agree on, the default geometry first.

    A file that fits none is damaged and has no vote; one without entries fits all. Files of the default length are
    checked by their newest 16 entries, unless `thorough`.

    Raises
    ------
    GeometryError
        No file, or none or more than one geometry fits; the message names the options to pass.
    """
    names = [os.fspath(path) for path in paths]
    if not names:
        raise GeometryError("there is no index file to infer the geometry from", hint=_HINT)
    votes = [fitting for fitting in (_vote(name, thorough) for name in _of_one_size(names)) if fitting]
    if not votes:
        return _default_or_refuse(names[0])
    agreed = set.intersection(*votes)
    if _DEFAULT in agreed:
        return _DEFAULT
    if len(agreed) == 1:
        return agreed.pop()
    what = "more than one geometry fits the index files" if agreed else "the index files agree on no geometry"
    raise GeometryError(what, path=names[0], got=_listed(agreed or set.union(*votes)), hint=_HINT)


def resolve(hash_slot_num: int | None, index_num: int | None, size: int) -> Geometry | None:
    """The geometry that is given, whole or by one half and the file's length; None: neither half is given.

    >>> resolve(5, None, 220), resolve(None, 8, 220), resolve(None, None, 220)
    ((5, 8), (5, 8), None)
    """
    if hash_slot_num is None and index_num is None:
        return None
    slots, entries = hash_slot_num, index_num
    if entries is None:
        entries = max((size - INDEX_HEADER_SIZE - layout.INDEX_SLOT_SIZE * (slots or 0)) // INDEX_ENTRY_SIZE, 1)
    if slots is None:
        slots = max((size - INDEX_HEADER_SIZE - INDEX_ENTRY_SIZE * entries) // layout.INDEX_SLOT_SIZE, 1)
    return slots, entries


def candidates(path: str, *, thorough: bool = True) -> list[Geometry]:
    """Every geometry that fits the content of one file; empty where it holds no entry or fits none."""
    import numpy as np

    from mqindex._mapped_file import MappedFile
    from mqindex._native.index_file import IndexCore

    def fits(geometry: Geometry, newest: int | None) -> bool:
        core = IndexCore(file.map, *geometry, False)
        try:
            return core.fits(newest)
        finally:
            core.close()

    with MappedFile.open(path) as file:
        if file.size < INDEX_HEADER_SIZE + layout.INDEX_SLOT_SIZE + INDEX_ENTRY_SIZE or (file.size - 40) % 4:
            return []
        view = np.frombuffer(file.map, np.uint8)
        header = view[:INDEX_HEADER_SIZE]
        begin, end = (int(header[at : at + 8].view(">i8")[0]) for at in (16, 24))
        count = int(header[36:40].view(">i4")[0])
        if count < 2:
            return []
        found = []
        if file.size == _DEFAULT_SIZE and fits(_DEFAULT, None if thorough else _NEWEST):
            found = [_DEFAULT]
        elif (file.size - INDEX_HEADER_SIZE) // INDEX_ENTRY_SIZE >= count:
            slots = _plausible(view, begin, end, count)
            found = [pair for pair in _pairs(slots, file.size) if fits(pair, None)]
        del view, header
        return found


def _plausible(view, begin: int, end: int, count: int):  # type: ignore[no-untyped-def]
    """The hash_slot_nums for which entries 0, 1 and count-1 and the newest entry's slot look as they must."""
    import numpy as np

    size = len(view)
    first = (size - INDEX_HEADER_SIZE) // layout.INDEX_SLOT_SIZE % 5 or 5  # 4S + 20N = size - 40, so S is fixed modulo 5
    words = view[INDEX_HEADER_SIZE : size - (size - INDEX_HEADER_SIZE) % 4].view(">i4")
    zeroth = np.arange(first, len(words) - 5 * count + 1, 5, dtype=np.int64)  # word of entry 0 = hash_slot_num
    newest = zeroth + 5 * (count - 1)

    def phy_offset(entry):  # type: ignore[no-untyped-def]
        return (words[entry + 1].astype(np.int64) << 32) | (words[entry + 2].astype(np.int64) & 0xFFFFFFFF)

    keep = phy_offset(newest) == end
    zeroth, newest = zeroth[keep], newest[keep]
    keep = (phy_offset(zeroth + 5) == begin) & (words[zeroth + 9] == 0) & (words[newest] >= 0)
    for word in range(5):
        keep &= words[zeroth + word] == 0
    zeroth, newest = zeroth[keep], newest[keep]
    return zeroth[words[words[newest] % zeroth] == count - 1]


def _pairs(slots: Iterable[int], size: int) -> list[Geometry]:
    return [(int(s), (size - INDEX_HEADER_SIZE - layout.INDEX_SLOT_SIZE * int(s)) // INDEX_ENTRY_SIZE) for s in slots]


def _vote(path: str, thorough: bool) -> set[Geometry]:
    try:
        return set(candidates(path, thorough=thorough))
    except (MQIndexError, OSError):
        return set()


def _of_one_size(names: list[str]) -> list[str]:
    # The files of a directory have one length. A torn one must not vote, so the commonest length does; in a tie all.
    sizes = {name: os.path.getsize(name) for name in names if os.path.isfile(name)}
    ranked = Counter(sizes.values()).most_common(2)
    if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
        if _DEFAULT_SIZE not in (ranked[0][0], ranked[1][0]):
            return list(sizes)
        return [name for name in sizes if sizes[name] == _DEFAULT_SIZE]
    return [name for name in sizes if sizes[name] == ranked[0][0]] if ranked else []


def _default_or_refuse(path: str) -> Geometry:
    size = os.path.getsize(path)
    if size == _DEFAULT_SIZE:
        return _DEFAULT
    what = "the geometry of this index file cannot be inferred from its content"
    raise GeometryError(what, path=path, got=f"{size} bytes", hint=_HINT)


def _listed(geometries: Iterable[Geometry]) -> str:
    return ", ".join(f"({slots}, {entries})" for slots, entries in sorted(geometries)[:4])
