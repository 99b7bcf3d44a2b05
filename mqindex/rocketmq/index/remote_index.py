"""Index files elsewhere, named by a URL: look-ups read the pages on their way and no others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.numbers import period
from mqindex.columns.columns import Columns
from mqindex.columns.keys import key_batch
from mqindex.columns.limits import whole_count
from mqindex.columns.numbers import Time
from mqindex.errors import BadMagicError, GeometryError
from mqindex.files.remote import AT_ONCE, PAGE, RemoteFile, RemotePlace
from mqindex.rocketmq import layout, store
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.layout import (
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    INDEX_SLOT_SIZE,
    MAX_TIMESTAMP,
    IndexHeader,
    Order,
)
from mqindex.rocketmq.sidecar.remote import RemoteSidecars, find_remote_sidecars

__all__ = ["RemoteIndexFile", "open_remote_file", "open_remote_files"]

_DEFAULT: Final = (layout.HASH_SLOT_NUM, layout.INDEX_NUM)
_MOST_BEFORE = 255  # pages: of a slot with many entries, those before the one that was needed last


class RemoteIndexFile(IndexFile):
    """An index file elsewhere, open for reading: `IndexFile.open` of a URL gives it.

    A look-up takes some rounds of requests, each for all keys: three in a file that `optimize` wrote, with a fence and
    a key filter beside it, else one more than the longest chain has entries. What was read stays in memory until
    `close`. Where the file is replaced meanwhile, a look-up that has read of it since ends in a `FileStateError`, as
    far as its place tells (by an ETag, a time, the length).
    """

    def __init__(self, file: RemoteFile, pair: geometry.Geometry, sidecars: RemoteSidecars | None) -> None:
        super().__init__(file, *pair, ExitStack())
        self._remote, self._fences = file, sidecars

    def select_phy_offset(
        self, key: str, *, max_num: int = 64, begin: Time = 0, end: Time = MAX_TIMESTAMP
    ) -> npt.NDArray[np.int64]:
        """As of a file on this machine."""
        return self.select_between(key, whole_count("max_num", max_num), *period(begin, end))

    def select_between(self, key: str, max_num: int, begin: int, end: int) -> npt.NDArray[np.int64]:
        """Internal: `select_phy_offset` with times in ms that were checked before."""
        return self.select_hashes(key_batch([key]).hashes(), max_num, begin=begin, end=end)[0]

    def select_hashes(
        self,
        hashes: npt.NDArray[np.int32],
        max_num: int | npt.NDArray[np.int32] = 64,
        *,
        begin: int = 0,
        end: int = MAX_TIMESTAMP,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Internal: as of a file on this machine; what it needs is read before."""
        heads = None if self._fences is None else self._fences.heads(self._core, hashes)
        before = 0
        while len(missing := self._core.pages_missing(self._remote.present, hashes, max_num, begin, end, heads)):
            self._remote.need(missing, before=before)
            if heads is not None:  # the entries of a slot lie side by side, the next ones before these
                before = min(2 * before + 1, _MOST_BEFORE)
        found = self._core.select_hashes(hashes, max_num, begin, end, heads)
        self._remote.require_same()
        return found

    def entries(self, start: int = 1, stop: int | None = None) -> Columns:
        """As of a file on this machine; all of the file is read before."""
        self._space.populate()
        return super().entries(start, stop)

    def compare_run(self, start: int, run: npt.NDArray[Any]) -> int:
        """Internal: as of a file on this machine; all of the file is read before."""
        self._space.populate()
        return super().compare_run(start, run)

    def order(self) -> Order:
        """Internal: likewise."""
        self._space.populate()
        return super().order()


def open_remote_file(
    url: str, hash_slot_num: int | None, index_num: int | None, storage_options: Mapping[str, Any] | None
) -> RemoteIndexFile:
    """What `IndexFile.open` returns for a URL."""
    file, sidecars = _opened(RemotePlace.of(url, storage_options))
    pair = _geometry([file], [sidecars], hash_slot_num, index_num)
    return RemoteIndexFile(file, pair, _of(sidecars, pair))


def open_remote_files(
    url: str, hash_slot_num: int | None, index_num: int | None, storage_options: Mapping[str, Any] | None
) -> tuple[list[IndexFile], geometry.Geometry]:
    """The files of an index directory elsewhere, oldest first, and their geometry."""
    directory = RemotePlace.of(url, storage_options)
    names = _index_names(directory)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(_opened, (directory / name for name in names)))
    pair = _geometry([file for file, _ in found], [one for _, one in found], hash_slot_num, index_num)
    return [RemoteIndexFile(file, pair, _of(sidecars, pair)) for file, sidecars in found], pair


def _opened(place: RemotePlace) -> tuple[RemoteFile, RemoteSidecars | None]:
    file = RemoteFile(place)
    file.need([0])
    return file, find_remote_sidecars(file, place)


def _index_names(directory: RemotePlace) -> list[str]:
    listed = directory.names()
    names = [name for name in listed if store.is_number(name)]
    if not names and "index" in listed:
        hint = f"{directory.url}/index is its index"
        raise BadMagicError("not an index directory", path=directory.url, got="a store's root", hint=hint)
    for name in listed:
        if name not in names:
            warnings.warn(f"skipped, its name is not a number: {directory.url}/{name}", stacklevel=4)
    if names and not listed[names[-1]]:
        warnings.warn(f"skipped, it is empty: {directory.url}/{names.pop()}", stacklevel=4)
    if not names:
        raise BadMagicError(
            "no index file is there", path=directory.url, expected="files whose names are numbers",
            got=", ".join(listed) or "nothing",
        )  # fmt: skip
    return names


def _of(sidecars: RemoteSidecars | None, pair: geometry.Geometry) -> RemoteSidecars | None:
    return sidecars if sidecars is not None and sidecars.geometry == pair else None


def _geometry(
    files: list[RemoteFile],
    sidecars: list[RemoteSidecars | None],
    hash_slot_num: int | None,
    index_num: int | None,
) -> geometry.Geometry:
    """What is given, else what the sidecars know, else the default one; never read from a whole file."""
    known = {one.geometry for one in sidecars if one is not None}
    pair = geometry.resolve(hash_slot_num, index_num, max(file.size for file in files))
    if pair is None and len(known) == 1:
        pair = known.pop()
    if pair is None and files[0].size == layout.index_file_size(*_DEFAULT):
        pair = _DEFAULT
    if pair is None:
        raise GeometryError(
            "the geometry of an index file elsewhere is not looked for in all of it", path=files[0].path,
            expected="the broker's default, or a fence beside it (mqindex optimize writes one)",
            hint="pass hash_slot_num= and index_num= (--hash-slot-num, --index-num)",
        )  # fmt: skip
    for file, own in zip(files, sidecars, strict=True):
        geometry.require_size(file.path, file.size, pair)
        if own is None and not _looks_like(file, pair):
            raise GeometryError(
                "the newest entries of the index file are of another geometry", path=file.path, got=pair,
                hint="pass the hash_slot_num= and index_num= (--hash-slot-num, --index-num) that the broker had",
            )  # fmt: skip
        if own is not None and own.geometry != pair:
            raise GeometryError(
                "the index file has another geometry", path=file.path, expected=own.geometry, got=pair,
                hint="leave the geometry out: the fence beside the file knows it",
            )  # fmt: skip
    return pair


def _looks_like(file: RemoteFile, pair: geometry.Geometry) -> bool:
    """Whether the newest entries are of this geometry, or there are none; what that takes is read."""
    slots, capacity = pair
    count = min(IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE)).index_count, capacity)
    if count <= 1:
        return True
    zeroth = INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * slots
    first = max(count - geometry.NEWEST, 1)
    newest = file.read(zeroth + INDEX_ENTRY_SIZE * first, zeroth + INDEX_ENTRY_SIZE * count)
    hashes = np.frombuffer(newest, ">i4")[:: INDEX_ENTRY_SIZE // INDEX_SLOT_SIZE].astype(np.int64)
    at = INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * (hashes % slots)
    file.need(at // PAGE)
    heads = np.array([int.from_bytes(file.map[one : one + INDEX_SLOT_SIZE], "big") for one in at.tolist()])
    entries = zeroth + INDEX_ENTRY_SIZE * heads[heads < capacity]
    file.need(np.r_[entries, entries + INDEX_ENTRY_SIZE - 1] // PAGE)
    return geometry.looks_like(file, pair)
