"""A rolling directory of index files, queried newest first and filled at its end."""

from __future__ import annotations

import os
import resource
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from mqindex._native.numbers import period, whole_number
from mqindex._native.owner import Owner
from mqindex.columns.hits import Hits
from mqindex.columns.keys import index_key, key_batch
from mqindex.columns.limits import whole_count
from mqindex.columns.numbers import int64s, times
from mqindex.errors import ClosedFileError, ReadOnlyFileError, require_switch
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.few_threads import of_each
from mqindex.files.fork_lock import new_lock
from mqindex.files.paths import base_name, join, size_of
from mqindex.files.places.place import Place, given_path, require_here
from mqindex.rocketmq import kinds, layout
from mqindex.rocketmq.directories import store
from mqindex.rocketmq.directories.wrong_place import refuse_other_place
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.geometry_fit import Geometry
from mqindex.rocketmq.index.index_file import IndexFile, asked_hashes
from mqindex.rocketmq.index.names import next_name
from mqindex.rocketmq.layout import MAX_TIMESTAMP
from mqindex.rocketmq.sidecar.names import remove_fence

if TYPE_CHECKING:
    from mqindex.columns.keys import Keys
    from mqindex.columns.numbers import Time, Times

_T = TypeVar("_T")

_DESCRIPTORS_LEFT = 128  # for others
_AT_ONCE = 32  # files elsewhere that are asked


class QueryOffsetResult(NamedTuple):
    """What `IndexService.query_offset` answers.

    Attributes
    ----------
    phy_offsets : ndarray of int64, shape (h,), newest file first
    index_last_update_timestamp, index_last_update_phy_offset : int
        How far the newest file reaches, the time in ms since the epoch; 0 and 0: there is no file.

    Notes
    -----
    Source: RocketMQ 4.9.3 `store/index/QueryOffsetResult`.
    """

    phy_offsets: npt.NDArray[np.int64]
    index_last_update_timestamp: int
    index_last_update_phy_offset: int


class IndexService(Closable):
    """The index directory of one store.

    Load order is by name, as the broker's; names that are no numbers are skipped with a warning. Queries are safe
    from several threads and see what a live broker appends to the files that were there at `open`. One at a time may be
    open for writing, in one process: another is a `StoreInUseError`, and a forked child may not write.
    Source: RocketMQ 4.9.3, `store/index/IndexService`.

    Attributes
    ----------
    on_full : called with a file that has been rolled over; by default it is flushed.

    Examples
    --------
    >>> import tempfile
    >>> with IndexService.open(tempfile.mkdtemp(), hash_slot_num=5, index_num=4, writable=True) as service:
    ...     stored = service.build_index("T", ["a", "b", "a", "c"], [0, 100, 200, 300], [1000, 2000, 3000, 4000])
    ...     len(service.files), service.query_offset("T", "a").phy_offsets.tolist()
    (2, [200, 0])
    """

    _thing = "index service"
    _path_attribute = "directory"

    def __init__(
        self,
        directory: str,
        files: list[IndexFile],
        hash_slot_num: int,
        index_num: int,
        writable: bool,
        held: ExitStack,
    ) -> None:
        self.directory = directory
        self.hash_slot_num = hash_slot_num
        self.index_num = index_num
        self.writable = writable
        self.on_full: Callable[[IndexFile], None] = IndexFile.flush
        self._expected = 0
        self._files = files
        self._held = held  # the lock of the only writer
        self._owner = Owner(directory)
        self._lock = new_lock()

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        hash_slot_num: int | None = None,
        index_num: int | None = None,
        writable: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> IndexService:
        """Open every index file of a directory.

        Parameters
        ----------
        directory : path, `<store>/index`, or its URL, as for `IndexFile.open`
        writable : bool; True: also creates the directory
        hash_slot_num, index_num : int or None
            None: inferred over all files; without files the broker's defaults hold.
        storage_options : dict, optional; for a URL, as of `obstore.store.from_url`, for `hdfs://` the
            configuration of hdfs-native; never shown

        Raises
        ------
        FileNotFoundError : there is no such directory, and it is not to be written
        BadMagicError : it is to be read, and is a store's root, or only has files that are not the index's
        GeometryError : files and geometry disagree, or no file shows it
        StoreInUseError : it is to be written, and a broker or another writer has it

        Notes
        -----
        A read-only service skips a newest file that is empty, with a warning: a file that a running broker
        creates is empty for a moment.
        """
        require_switch("writable", writable)
        where = given_path("directory", directory, storage_options)
        given = layout.given_geometry(hash_slot_num, index_num)
        if isinstance(where, Place):
            if writable:
                require_here(where)
            from mqindex.rocketmq.index.elsewhere import find_files

            found = find_files(where, *given)
            return cls(where, [IndexFile._open_elsewhere(one) for one in found], *found[0].geometry, False, ExitStack())
        if writable:
            disk.make_directories(where, inherit=True)
        elif not disk.is_directory(where):
            raise FileNotFoundError(2, "no such index directory", where)
        with ExitStack() as held:
            if writable:
                held.enter_context(store.hold_part(where, "index"))
            else:
                refuse_other_place(where, "index", has_files=bool(kinds.index_paths(where)))
            paths = _index_paths(where, writable)
            slots, entries = _geometry(paths, *given)
            files = _opened(paths, (slots, entries), writable, held)
            return cls(where, files, slots, entries, writable, held.pop_all())

    @property
    def files(self) -> tuple[IndexFile, ...]:
        """The open index files, oldest first."""
        self._require_open()
        return tuple(self._files)

    def query_offset(
        self, topic: str | None, key: str, *, max_num: int = 64, begin: Time = 0, end: Time = MAX_TIMESTAMP
    ) -> QueryOffsetResult:
        """Offsets of the messages of `topic` with `key`, exactly as the broker answers one request.

        Parameters
        ----------
        topic : str or None; None: the key is a whole `topic#key`
        max_num : int, most offsets; the broker caps it by `maxMsgsNumBatch` (64), this does not.
        begin, end : int, ms since the epoch, or an aware datetime or a datetime64; both inclusive, compared with times
            of 1 s resolution. A begin after the end, and times in seconds, are answered with a UserWarning.

        Notes
        -----
        The walk stops after the first file that begins before `begin`. Only hashes are compared: an offset may be
        of another key, the message shows which. Source: RocketMQ 4.9.3, `IndexService.queryOffset`.
        """
        return self._answer_of(topic, key, whole_count("max_num", max_num), *period(begin, end))

    def _answer_of(self, topic: str | None, key: str, max_num: int, begin: int, end: int) -> QueryOffsetResult:
        """`query_offset`, with numbers, and times in ms, that were checked before."""
        return self._asked(partial(_answer, full_key=index_key(topic, key), most=max_num, begin=begin, end=end))

    def query_offsets(
        self, topic: str | None, keys: Keys, *, max_num: int = 64, begin: Time = 0, end: Time = MAX_TIMESTAMP
    ) -> Hits:
        """`query_offset` of many keys at once: each key is hashed once, each file is searched once.

        Parameters
        ----------
        topic : str or None; None: each key is a whole `topic#key`
        keys : list[str], ndarray of text, Arrow, polars or pandas strings, shape (n,)
        max_num, begin, end : for each key as in the single call

        Returns
        -------
        Hits : of key i the offsets of the single call, int64, in its order
        """
        most = whole_count("max_num", max_num)
        first, last = period(begin, end)
        return self._hits(key_batch(keys, topic=topic).hashes(), most, first, last)

    def _hits(self, hashes: npt.NDArray[np.int32], max_num: int, begin: int, end: int) -> Hits:
        """`query_offsets` of hashes, with numbers, and times in ms, that were checked before."""
        return self._asked(partial(_select, hashes=hashes, most=max_num, begin=begin, end=end))

    def build_index(self, topic: str | None, keys: Keys, phy_offsets: npt.ArrayLike, store_timestamps: Times) -> int:
        """Put many keys, rolling over to new files as the broker does; returns how many were stored: all.

        A new file takes its seeds from the full one before it, so its first entry has the broker's time_diff.
        Entries are not compared with what the files hold already: a broker skips messages that it has indexed, here
        the caller must do so. Arguments and errors as of `IndexFile.put_keys`.
        Source: RocketMQ 4.9.3, `IndexService.buildIndex`, `putKey`.
        """
        phys, stored = int64s("phy_offsets", phy_offsets), times("store_timestamps", store_timestamps)
        batch = key_batch(keys, topic=topic)
        if not len(batch) == len(phys) == len(stored):
            lengths = f"{len(batch)}, {len(phys)}, {len(stored)}"
            raise ValueError(f"keys, phy_offsets, store_timestamps: expected one length, got {lengths}")
        self._check_writable()
        with self._lock:
            done = 0
            while done < len(batch):
                done += self._current()._put_batch(batch, done, phys, stored)
        return done

    def _put_run(self, run: npt.NDArray[Any]) -> int:
        """Put the entries of a stretch of log, an array of `RUN_ENTRY`, rolling over as `build_index`."""
        self._check_writable()
        with self._lock:
            done = self._files[-1]._put_run(run) if self._files and not self._closed else 0  # as a rule there is room
            while done < len(run):
                done += self._current()._put_run(run[done:])
        return done

    def _expect(self, entries: int) -> None:
        """About so many entries will be put soon, in many runs."""
        self._expected = entries
        for file in self._files[-1:]:
            file._expect(entries)

    def _create_index_file(self) -> None:
        """Make sure that a file has room for an entry, as the broker does before it reads any message."""
        self._check_writable()
        with self._lock:
            self._current()

    def _asked(self, ask: Callable[[tuple[IndexFile, ...]], _T]) -> _T:
        """What the open files answer; those that are left, where one of them expired meanwhile."""
        while True:
            files = self.files
            try:
                return ask(files)
            except ClosedFileError:
                if files == self.files:
                    raise

    def _check_writable(self) -> None:
        if not self.writable:
            raise ReadOnlyFileError("the index service is read-only", path=self.directory, hint="open it writable")
        self._owner.require()

    def _current(self) -> IndexFile:
        """The last file, or a new one after it when there is none or it is full."""
        files = self.files
        if files and not files[-1].is_write_full():
            return files[-1]
        seeds = (files[-1].header.end_phy_offset, files[-1].header.end_timestamp) if files else (0, 0)
        path = join(self.directory, next_name(base_name(files[-1].path) if files else None))
        fresh = IndexFile.create(
            path,
            hash_slot_num=self.hash_slot_num,
            index_num=self.index_num,
            end_phy_offset=seeds[0],
            end_timestamp=seeds[1],
        )
        self._files.append(fresh)
        fresh._expect(self._expected)
        if files:
            self.on_full(files[-1])
        return fresh

    def delete_expired_file(self, min_phy_offset: int) -> list[str]:
        """Delete the files that end below `min_phy_offset`, the log's minimum, never the last; returns their paths.

        Source: RocketMQ 4.9.3, `IndexService.deleteExpiredFile`.
        """
        self._check_writable()
        lowest = whole_number("min_phy_offset", min_phy_offset)
        with self._lock:
            expired = []
            for file in self.files[:-1]:
                if file.header.end_phy_offset >= lowest:
                    break
                expired.append(file)
            for file in expired:
                remove_fence(file.path)
                disk.remove(file.path)  # one that cannot be removed stays, and answers
                self._files.remove(file)
                file.close()  # who asks it now asks the others again
        return [file.path for file in expired]

    def flush(self) -> None:
        """Bring every file to the disk, headers included."""
        self._asked(_flush)

    def close(self) -> None:
        """Close every file; may be called twice and changes no byte."""
        self._closed = True
        for file in tuple(self._files):  # of which another thread may remove one
            file.close()
        self._held.close()

    def __iter__(self) -> Iterator[IndexFile]:
        return iter(self.files)

    def __repr__(self) -> str:
        return f"IndexService({self.directory!r}, files={len(self._files)})"


def _index_paths(where: str, writable: bool) -> list[str]:
    for name in kinds.stray_index_names(where):
        warnings.warn(f"skipped, its name is not a number: {join(where, name)}", stacklevel=3)
    paths = kinds.index_paths(where)
    if paths and not writable and size_of(paths[-1]) == 0:
        warnings.warn(f"skipped, it is empty; a broker that is about to fill it? {paths.pop()}", stacklevel=3)
    return paths


def _opened(paths: list[str], pair: Geometry, writable: bool, held: ExitStack) -> list[IndexFile]:
    """The files, with their sidecars if there are descriptors enough, of which these take a second one each."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    sidecars = most == resource.RLIM_INFINITY or 2 * len(paths) <= most - _DESCRIPTORS_LEFT
    return [
        held.enter_context(IndexFile._open_known(path, pair, writable=writable, sidecars=sidecars)) for path in paths
    ]


def _geometry(paths: list[str], hash_slot_num: int | None, index_num: int | None) -> Geometry:
    default = layout.index_file_size(layout.HASH_SLOT_NUM, layout.INDEX_NUM)
    given = geometry.resolve(hash_slot_num, index_num, max(map(size_of, paths), default=default))
    if given is not None:
        geometry.require(paths, given, "given")
        return given
    return geometry.infer(paths) if paths else (layout.HASH_SLOT_NUM, layout.INDEX_NUM)


def _flush(files: tuple[IndexFile, ...]) -> None:
    for file in files:
        file.flush()


def _answer(files: tuple[IndexFile, ...], full_key: str, most: int, begin: int, end: int) -> QueryOffsetResult:
    """What a broker answers, from the newest file on."""
    found: list[npt.NDArray[np.int64]] = []
    at_once = bool(files) and files[0]._is_elsewhere  # what is needed of them is read together
    if at_once:
        found.append(_select(files, key_batch([full_key]).hashes(), most, begin, end).values)
    for file in () if at_once else reversed(files):
        if file.is_time_matched(begin, end):
            found.append(file._select_between(full_key, most, begin, end))
            most -= len(found[-1])
        if file.header.begin_timestamp < begin or most <= 0:
            break
    offsets = np.concatenate(found) if found else np.empty(0, np.int64)
    last = (files[-1].header.end_timestamp, files[-1].header.end_phy_offset) if files else (0, 0)
    return QueryOffsetResult(offsets, *last)


def _select(files: tuple[IndexFile, ...], hashes: npt.NDArray[np.int32], most: int, begin: int, end: int) -> Hits:
    """What a broker answers to each of many keys."""
    parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    most = min(most, 2**31 - 1)
    left: int | npt.NDArray[np.int32] = most  # of every key, then of each
    asked = asked_hashes(hashes) if any(file._asks_a_filter for file in files) else None
    searched = [file for file in _until(files, begin) if file.is_time_matched(begin, end)]
    if asked is not None and len(searched) > 1 and searched[0]._is_elsewhere:
        of_each(lambda file: file._read_ahead(asked, most, begin, end), searched, _AT_ONCE)
    for file in searched:
        parts.append(file._select_hashes(hashes, left, begin=begin, end=end, asked=asked))
        if file is searched[-1]:
            break
        left = (left - np.diff(parts[-1][1])).astype(np.int32)
        if not np.any(left):
            break
    return _joined(parts, len(hashes))


def _until(files: tuple[IndexFile, ...], begin: int) -> Iterator[IndexFile]:
    """The newest file first, up to the first that begins before `begin`."""
    for file in reversed(files):
        yield file
        if file.header.begin_timestamp < begin:
            break


def _joined(parts: list[tuple[Any, Any]], n: int) -> Hits:
    """One result from those of several files: for each key the first part's hits, then the second's, and so on."""
    if len(parts) == 1:
        return Hits(*parts[0])
    counts = [np.diff(offsets) for _, offsets in parts]
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.sum(counts, axis=0) if counts else np.zeros(n, np.int64), out=offsets[1:])
    values = np.empty(int(offsets[-1]), np.int64)
    start = offsets[:-1].copy()
    for (hits, at), count in zip(parts, counts, strict=True):
        values[np.repeat(start - at[:-1], count) + np.arange(len(hits))] = hits
        start += count
    return Hits(values, offsets)
