"""Index files elsewhere, named by a URL: a look-up reads the pages on its way and no others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.guard import Mapping
from mqindex._native.index_file import IndexCore
from mqindex._native.key_filter import AskedHashes
from mqindex._words import plural
from mqindex.errors import BadMagicError, FileStateError, GeometryError, MQIndexError
from mqindex.files.few_threads import of_each
from mqindex.files.places.page_cache import PAGE
from mqindex.files.places.paged_file import PagedFile
from mqindex.files.places.place import Place
from mqindex.files.places.storage import Stat
from mqindex.rocketmq import layout
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.geometry_elsewhere import of_result, pages_look_like, shown_by_pages
from mqindex.rocketmq.index.geometry_fit import DEFAULT, Geometry
from mqindex.rocketmq.index.select_parts import select_in_parts
from mqindex.rocketmq.kinds import number_of, offset_of
from mqindex.rocketmq.layout import INDEX_HEADER_SIZE, INDEX_SLOT_SIZE, IndexHeader
from mqindex.rocketmq.sidecar.remote import (
    RemoteSidecars,
    find_remote_sidecars,
    listed_sidecars,
    read_fence,
    remote_filter,
)

_AT_ONCE: Final = 64  # requests for what is read of files before they are asked
_SHOWN = 10  # names of what is not an index file
_MOST_BEFORE = 255  # pages: of a slot with many entries, those before the one that was needed last


@dataclass(frozen=True)
class _Ready:
    """All pages were read that a look-up of these hashes needs; `heads`: as of `RemoteSidecars.heads`."""

    asked: AskedHashes
    max_num: int | npt.NDArray[np.int32]
    begin: int
    end: int
    heads: npt.NDArray[np.int32] | None

    def covers(self, asked: AskedHashes, max_num: int | npt.NDArray[np.int32], begin: int, end: int) -> bool:
        """Whether another look-up needs no other pages."""
        same = self.asked is asked and (self.begin, self.end) == (begin, end)
        return same and bool(np.all(np.less_equal(max_num, self.max_num)))


class Elsewhere:
    """One index file elsewhere, and its sidecars if they are of use. `geometry`: the file's."""

    def __init__(self, file: PagedFile, geometry: Geometry, sidecars: RemoteSidecars | None) -> None:
        self.file, self.geometry = file, geometry
        self._sidecars = sidecars if sidecars is not None and sidecars.geometry == geometry else None
        self._ready: _Ready | None = None

    @property
    def memory(self) -> Mapping:
        """For an `IndexCore`: of what is not the header only those pages may be used that were read for its call."""
        return self.file.lent([0])

    def select_hashes(
        self, core: IndexCore, asked: AskedHashes, max_num: int | npt.NDArray[np.int32], begin: int, end: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """What the core answers to many key hashes, once the pages on their way have been read."""
        ready, self._ready = self._ready, None
        if self.file.whole:
            return select_in_parts(core, asked.hashes, max_num, begin, end, None)
        if ready is None or not ready.covers(asked, max_num, begin, end):
            ready = self._read(core, asked, max_num, begin, end)
        if ready.heads is None:
            self._require_counted(core, asked.hashes[np.broadcast_to(max_num, len(asked.hashes)) > 0])
        found = core.select_hashes(asked.hashes, max_num, begin, end, ready.heads)
        self.file.require_same()
        return found

    def read_ahead(self, core: IndexCore, asked: AskedHashes, max_num: int, begin: int, end: int) -> None:
        """Read what `select_hashes` of the same hashes will need, with this limit or lower ones.

        Other threads may do the same for other files: `asked` itself is for one thread.
        """
        if not self.file.whole:
            ready = self._read(core, AskedHashes(asked.hashes, alone=True), max_num, begin, end)
            self._ready = replace(ready, asked=asked)

    def _read(
        self, core: IndexCore, asked: AskedHashes, max_num: int | npt.NDArray[np.int32], begin: int, end: int
    ) -> _Ready:
        """Read the pages on the way of the hashes, until the kernel misses none.

        Each round of requests is for all hashes: one in an optimised file, more only where very many entries have one
        slot, and one for the filter of all such files; else one for each entry of the longest chain, and one for the
        slots.
        """
        heads = None if self._sidecars is None else self._sidecars.heads(core, asked)
        before = 0
        while len(missing := core.pages_missing(self.file.present, asked.hashes, max_num, begin, end, heads)):
            self.file.need(missing, before=before)
            if heads is not None:  # the entries of a slot lie side by side, the next ones before these
                before = min(2 * before + 1, _MOST_BEFORE)
        return _Ready(asked, max_num, begin, end, heads)

    def _require_counted(self, core: IndexCore, hashes: npt.NDArray[np.int32]) -> None:
        """`FileStateError` where a chain begins after the entries that the header counts, as it grows meanwhile."""
        wanted = hashes.astype(np.int64) % self.geometry[0]
        lent = self.file.lent((INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * wanted) // PAGE)
        slots = np.frombuffer(memoryview(lent), ">i4", self.geometry[0], INDEX_HEADER_SIZE)
        count = core.header()[5]
        if np.all(slots[wanted] < count):
            return
        if IndexHeader.from_bytes(self.file.read_again(0, INDEX_HEADER_SIZE)).index_count != count:
            raise FileStateError(
                "entries were put into the file while it was read", path=self.file.path,
                hint="open it again; what a broker fills is read where it is",
            )  # fmt: skip


def find_file(place: Place, hash_slot_num: int | None, index_num: int | None) -> Elsewhere:
    """The index file at a place elsewhere."""
    jobs: list[Callable[[], Any]] = [partial(_opened, place), partial(read_fence, place, None)]
    file, fence = of_each(_run, jobs, len(jobs))
    sidecars = find_remote_sidecars(file, fence, None)
    said = of_result(place)
    return Elsewhere(file, _geometry([file], [sidecars], hash_slot_num, index_num, said), sidecars)


def find_files(
    directory: Place,
    hash_slot_num: int | None,
    index_num: int | None,
    tell: Callable[[str, Exception], None] | None = None,
) -> list[Elsewhere]:
    """The files of an index directory elsewhere, oldest first; they have one geometry.

    tell : called with the URL and the error of each file that is left out; None: the error is raised
    """
    given = hash_slot_num or DEFAULT[0], index_num or DEFAULT[1]
    skipped: list[str] = []
    jobs: list[Callable[[], Any]] = [
        partial(of_result, directory),
        partial(_read_files, directory, given, skipped.append, tell),
    ]
    said, read = of_each(_outcome, jobs, len(jobs))
    for text in skipped:
        warnings.warn(text, stacklevel=3)
    for failed in (said, read):
        if isinstance(failed, Exception):
            raise failed
    if not read:
        raise FileStateError("no index file there can be read", path=directory)
    pair = _geometry([file for file, _ in read], [one for _, one in read], hash_slot_num, index_num, said)
    return [Elsewhere(file, pair, sidecars) for file, sidecars in read]


def _run(job: Callable[[], Any]) -> Any:
    return job()


def _outcome(job: Callable[[], Any]) -> Any:
    """What a job returns, or its error."""
    try:
        return job()
    except Exception as error:
        return error


def _read_files(
    directory: Place,
    given: Geometry,
    skip: Callable[[str], None],
    tell: Callable[[str, Exception], None] | None,
) -> list[tuple[PagedFile, RemoteSidecars | None]]:
    """The files with their sidecars: one round of lists, and one for all that is needed first."""
    lists: list[Callable[[], Any]] = [partial(_index_places, directory, skip), partial(listed_sidecars, directory)]
    places, listed = of_each(_run, lists, len(lists))
    keys = remote_filter(directory, listed, given)
    files = [partial(_opened_or_error, place, tell) for place in places]
    fences = [partial(read_fence, place, listed) for place in places]
    filters = [keys.find] if keys is not None and listed is not None else []
    read = of_each(_run, list[Callable[[], Any]]([*files, *fences, *filters]), _AT_ONCE)
    pairs = zip(read[: len(places)], read[len(places) : 2 * len(places)], strict=True)
    return [(file, find_remote_sidecars(file, fence, keys)) for file, fence in pairs if file is not None]


def _opened_or_error(place: Place, tell: Callable[[str, Exception], None] | None) -> PagedFile | None:
    try:
        return _opened(place)
    except (MQIndexError, OSError) as error:
        if tell is None:
            raise
        tell(place, error)
        return None


def _opened(place: Place) -> PagedFile:
    file = PagedFile(place)
    file.need([0])
    return file


def _index_places(directory: Place, skip: Callable[[str], None]) -> list[Place]:
    """The files. `skip` is told, in words, what is none of them."""
    listed = directory.entries()
    names = [name for name, found in listed.items() if number_of(name) is not None and not found.directory]
    if not names and "index" in listed:
        hint = f"its index is {directory / 'index'}"
        raise BadMagicError("not an index directory", path=directory, got="a store's root", hint=hint)
    if names and all(offset_of(name) is not None for name in names):
        raise BadMagicError("not an index directory", path=directory, got="files of a commit log or a queue")
    others = [name for name in listed if number_of(name) is None]
    if others:
        what = "its name is" if len(others) == 1 else f"{plural(len(others), 'name')} are"
        skip(f"skipped, {what} not a number: {directory / others[0]}")
    places = [_place(directory, name, listed[name]) for name in names]
    if places and 0 in (listed[names[-1]].size, places[-1].pinned().size):
        skip(f"skipped, it is empty; a broker that is about to fill it? {places.pop()}")
    if not places:
        got = ", ".join([*list(listed)[:_SHOWN], *["..."][: len(listed) - _SHOWN]]) or "nothing"
        raise BadMagicError("no index file is there", path=directory, expected="files whose names are numbers", got=got)
    return places


def _place(directory: Place, name: str, found: Stat) -> Place:
    """A file, of the version that was listed where a storage has a name for that: its times may be others in a list."""
    place = directory / name
    return Place(place, place.storage, found) if found.etag else place


def _geometry(
    files: list[PagedFile],
    sidecars: list[RemoteSidecars | None],
    hash_slot_num: int | None,
    index_num: int | None,
    said: Geometry | None,
) -> Geometry:
    """What is given, else what a result of ours says, else what the sidecars know, else what some pages show, else the
    default one.
    """
    pair = geometry.resolve(hash_slot_num, index_num, max(file.size for file in files)) or said
    if pair is None:
        pair = _known_to(sidecars)
    if pair is None:
        pair = next(filter(None, map(shown_by_pages, files)), None)
    if pair is None and files[0].size == layout.index_file_size(*DEFAULT):
        pair = DEFAULT
    if pair is None:
        raise GeometryError(
            "some pages of an index file elsewhere do not show its geometry, and all of it is not read for that",
            path=files[0].path,
            hint="pass hash_slot_num= and index_num= (--hash-slot-num, --index-num), the broker's maxHashSlotNum and "
            "maxIndexNum",
        )  # fmt: skip
    for file, own in zip(files, sidecars, strict=True):
        geometry.require_size(file.path, file.size, pair)
        if own is not None and own.geometry != pair and own.is_bound():
            raise GeometryError(
                "the index file has another geometry", path=file.path, expected=own.geometry, got=pair,
                hint="leave the geometry out: the fence beside the file knows it",
            )  # fmt: skip
    if pair != said and not any(
        (one is not None and one.geometry == pair) or pages_look_like(file, pair)
        for file, one in zip(files, sidecars, strict=True)
    ):
        raise GeometryError(
            "the newest entries of the index files are of another geometry", path=files[0].path, got=pair,
            hint="pass the hash_slot_num= and index_num= (--hash-slot-num, --index-num) that the broker had",
        )  # fmt: skip
    return pair


def _known_to(sidecars: list[RemoteSidecars | None]) -> Geometry | None:
    """The geometry that the fences know, of those that are sure to be of their files; None: they know none, or two.

    The default one, which the length of the files says too, is not doubted.
    """
    there = [one for one in sidecars if one is not None]
    if {one.geometry for one in there} == {DEFAULT}:
        return DEFAULT
    bound = of_each(RemoteSidecars.is_bound, there, _AT_ONCE)
    known = {one.geometry for one, is_of_file in zip(there, bound, strict=True) if is_of_file}
    return known.pop() if len(known) == 1 else None
