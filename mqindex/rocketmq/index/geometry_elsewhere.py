"""The geometry of index files elsewhere: what the list of a result says, or what some of their pages show."""

from __future__ import annotations

from typing import Final

import numpy as np

from mqindex.files.places.page_cache import PAGE
from mqindex.files.places.paged_file import PagedFile
from mqindex.files.places.place import Place
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
from mqindex.rocketmq.kinds import require_finished
from mqindex.rocketmq.layout import INDEX_ENTRY_SIZE, INDEX_HEADER_SIZE, INDEX_SLOT_SIZE, IndexHeader

_ENTRY: Final = INDEX_ENTRY_SIZE // INDEX_SLOT_SIZE  # in words, of a slot each
_PROBES: Final = 256  # pages


def of_result(path: Place) -> Geometry | None:
    """What the list says of a result elsewhere with this file or directory; None: there is no such list."""
    said = require_finished(path)
    slots, entries = said.get("hash_slot_num"), said.get("index_num")
    return (slots, entries) if isinstance(slots, int) and isinstance(entries, int) else None


def shown_by(path: Place) -> list[Geometry]:
    """The geometry that some pages of the file at a place show; empty: they show none."""
    with PagedFile(path) as file:
        shown = shown_by_pages(file)
    return [] if shown is None else [shown]


def shown_by_pages(file: PagedFile) -> Geometry | None:
    """The geometry that some pages of a file elsewhere show; None: they show none, or it has no entry.

    It is the default one, or follows from where the entries end, as their number is known.
    """
    size = file.size
    if not SMALLEST <= size <= layout.MAX_INDEX_FILE_SIZE or size % INDEX_SLOT_SIZE:
        return None
    count = IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE)).index_count
    if not 2 <= count <= (size - INDEX_HEADER_SIZE) // INDEX_ENTRY_SIZE:
        return None
    if size == DEFAULT_SIZE and pages_look_like(file, DEFAULT):
        return DEFAULT
    used = _used(file, INDEX_ENTRY_SIZE * count)
    end = size - (size - used) // INDEX_ENTRY_SIZE * INDEX_ENTRY_SIZE
    slots = (end - INDEX_HEADER_SIZE - INDEX_ENTRY_SIZE * count) // INDEX_SLOT_SIZE
    return next((pair for pair in of_length([slots], size) if slots >= 1 and pages_look_like(file, pair)), None)


def _used(file: PagedFile, entries: int) -> int:
    """Where the last `entries` bytes that are not zeros end; 0: not found, as they are few of many.

    Pages are asked for that are nearer to each other than these bytes are long, from the file's end on.
    """

    def page(number: int) -> bytes:
        return file.read(number * PAGE, min((number + 1) * PAGE, file.size))

    step, last = max(entries // PAGE - 1, 1), (file.size - 1) // PAGE
    probes = np.arange(last, -1, -step)[:_PROBES]
    file.need(probes)
    first = next((number for number in probes.tolist() if any(page(number))), None)
    if first is None:
        return 0
    last = min(first + step - 1, last)
    while first < last:
        middle = (first + last + 1) // 2
        first, last = (middle, last) if any(page(middle)) else (first, middle - 1)
    return int(first) * PAGE + len(page(first).rstrip(b"\0"))


def pages_look_like(file: PagedFile, pair: Geometry) -> bool:
    """Whether the newest entries are of this geometry, or there are none; what that takes is read."""
    slots, capacity = pair
    file.need([0])
    count = min(IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE)).index_count, capacity)
    if count <= 1:
        return True
    zeroth = INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * slots
    first = max(count - NEWEST, 1)
    newest = file.read(zeroth + INDEX_ENTRY_SIZE * first, zeroth + INDEX_ENTRY_SIZE * count)
    hashes = np.frombuffer(newest, ">i4")[::_ENTRY].astype(np.int64)
    if hashes.min() < 0:
        return False
    at = INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * (hashes % slots)
    file.need(at // PAGE)
    heads = np.frombuffer(b"".join(file.read(one, one + INDEX_SLOT_SIZE) for one in at.tolist()), ">i4").astype(
        np.int64
    )
    entries = zeroth + INDEX_ENTRY_SIZE * heads[(heads >= 0) & (heads < capacity)]
    used = np.r_[0, zeroth + INDEX_ENTRY_SIZE * first, at, entries, entries + INDEX_ENTRY_SIZE - 1] // PAGE
    file.need(used)
    file.require_same()
    return content_fits(file.lent(used), pair, NEWEST)


def has_entries_of(path: Place, geometry: Geometry) -> bool:
    """Whether the file at a place has entries, the newest of this geometry."""
    with PagedFile(path) as file:
        return entries_of(file) > 0 and pages_look_like(file, geometry)
