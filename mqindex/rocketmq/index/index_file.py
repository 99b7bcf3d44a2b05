"""One index file: `topic#key` to physical offsets, on a memory map, byte for byte as the broker writes it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mqindex._native.index_file import IndexCore
from mqindex._native.index_sort import sort_into
from mqindex._native.index_writer import IndexWriter
from mqindex._native.numbers import int64, milliseconds, period, whole_number
from mqindex._native.single_calls import SingleCalls
from mqindex.columns.columns import Columns
from mqindex.columns.hits import Hits
from mqindex.columns.keys import key_batch
from mqindex.columns.limits import whole_count
from mqindex.columns.numbers import int64s, times
from mqindex.errors import path_of, require_switch
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.paths import parent_of
from mqindex.files.places.place import Place, given_path, require_here
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.opening import map_file
from mqindex.rocketmq import layout
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.geometry_fit import Geometry
from mqindex.rocketmq.index.index_space import IndexSpace
from mqindex.rocketmq.layout import HASH_SLOT_NUM, INDEX_ENTRY_FIELDS, INDEX_NUM, MAX_TIMESTAMP, IndexHeader, Order
from mqindex.rocketmq.sidecar.names import sidecar_directory

if TYPE_CHECKING:
    from mqindex._native.key_filter import AskedHashes
    from mqindex._native.keys import KeyBatch
    from mqindex.columns.keys import Keys
    from mqindex.columns.numbers import Time, Times
    from mqindex.rocketmq.index.elsewhere import Elsewhere
    from mqindex.rocketmq.sidecar.reading import Sidecars

_THREADED = 1 << 17  # look-ups that several threads share
_MANY = 1000  # look-ups, or entries to decode, from which reading the whole file ahead is cheaper than single faults
_BULK = 100_000  # puts from which huge pages pay; fewer would spread over 2 MiB each


class IndexFile(SingleCalls, Closable):
    """An index file, open for reading or, with `create` or `writable=True`, for putting too.

    Safe for use by several threads: puts exclude each other, look-ups run beside them and see whole entries only.
    One object at a time may put, in one process: another that opens the file writable is a `StoreInUseError`, and a
    forked child may not put. A file that a live broker fills shows its new entries at every call. Closing
    while another thread's call runs is safe; a call after it is a `ClosedFileError`.
    Source: RocketMQ 4.9.3, `store/index/IndexFile`; the format is the same in 4.0 to 5.5.

    Attributes
    ----------
    path : str
    hash_slot_num, index_num : int
        Slots, and entries plus one: entry 0 is never used.
    writable : bool

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "20231114221320000")
    >>> with IndexFile.create(path, hash_slot_num=5, index_num=8) as index:
    ...     index.put_keys(["k1", "k2", "k1"], [0, 200, 400], [1_700_000_000_000] * 3, topic="T")
    ...     index.select_phy_offset("T#k1").tolist()
    3
    [400, 0]
    >>> with IndexFile.open(path, writable=True) as index:
    ...     index.put_key("T#k1", 600, 1_700_000_000_000), index.select_phy_offset("T#k1", max_num=2).tolist()
    ...     index.hash_slot_num, index.header.index_count
    (True, [600, 400])
    (5, 5)
    """

    def __init__(
        self,
        file: MappedFile,
        hash_slot_num: int,
        index_num: int,
        held: ExitStack,
        *,
        sparse: bool = False,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.path = file.path
        self.hash_slot_num = hash_slot_num
        self.index_num = index_num
        self.writable = file.writable
        self._file = file
        memory = file.map if elsewhere is None else elsewhere.memory
        self._core = IndexCore(memory, hash_slot_num, index_num, file.writable, file.path)
        self._held = held  # the right to write it alone
        self._space = IndexSpace(file, self._core, hash_slot_num, index_num, sparse=sparse)
        self._reserve = self._space.reserve  # `SingleCalls` calls it before each put into a sparse file
        self._sidecars: Sidecars | None = None
        self._elsewhere = elsewhere
        self._bind_core(self._core, sparse, elsewhere is not None)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        hash_slot_num: int = HASH_SLOT_NUM,
        index_num: int = INDEX_NUM,
        end_phy_offset: int = 0,
        end_timestamp: Time = 0,
        sparse: bool = False,
    ) -> IndexFile:
        """Create an empty index file, which must not exist yet, and open it for putting.

        Parameters
        ----------
        path : where the file will be; a broker expects 17 digits as its name
        hash_slot_num, index_num : int
            The broker's maxHashSlotNum and maxIndexNum: slots, and entries plus one.
        end_phy_offset, end_timestamp : int, optional; the time in ms since the epoch
            The seeds of a rolled file: where its predecessor ended. 0 or less: none.
        sparse : bool, optional
            Leave out reserving disk space for the whole file; it is then taken as the file fills.

        Raises
        ------
        GeometryError
            A broker could not map a file of this geometry.
        FileExistsError
        StoreInUseError
            A broker, or another writer, holds the store.
        OSError
            No space left, before anything is written.

        Notes
        -----
        Source: RocketMQ 4.9.3, the constructor of `IndexFile`.
        """
        slots, entries = layout.whole_geometry(hash_slot_num, index_num, least=1)
        phy_offset = int64("end_phy_offset", whole_number("end_phy_offset", end_phy_offset))
        timestamp = int64("end_timestamp", milliseconds("end_timestamp", end_timestamp))
        size = layout.index_file_size(slots, entries)
        require_switch("sparse", sparse)
        file = MappedFile.create(path_of("path", path), size, sparse=sparse)
        try:
            if sparse:
                file.reserve_range(0, layout.INDEX_HEADER_SIZE)
            with ExitStack() as held:
                held.enter_context(_only_writer(file.path))
                index = cls(file, slots, entries, held.pop_all(), sparse=sparse)
            index._core.seed(phy_offset, timestamp)
        except BaseException:
            file.close()
            disk.remove(file.path)
            raise
        return index

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        hash_slot_num: int | None = None,
        index_num: int | None = None,
        writable: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> IndexFile:
        """Open the index file `path`, read-only unless asked.

        Parameters
        ----------
        path : path, or a URL (`s3://`, `gs://`, `az://`, `hdfs://`, `https://`), of which a look-up reads only what it
            needs: few pages where the file was optimised and its sidecars lie there as `optimize` wrote them
        hash_slot_num, index_num : int, optional
            The broker's maxHashSlotNum and maxIndexNum, which no file records. Not given: inferred from the content; of
            a URL from its sidecars or the default length.
        storage_options : dict, optional
            For a URL: as of `obstore.store.from_url`, for `hdfs://` the configuration of hdfs-native; never shown.

        Raises
        ------
        GeometryError
            The file's size does not match this geometry, its content shows another, or none can be found from it.
        TruncatedFileError
            The file is empty.
        StoreInUseError
            `writable`, and somebody has it open for writing, or a broker holds its store.
        OSError
            `writable`, and no space is left for what is sparse of it; nothing has changed.
        ImportError, ValueError
            A URL: obstore or hdfs-native is missing, or no storage has such URLs or options.
        """
        require_switch("writable", writable)
        given = layout.given_geometry(hash_slot_num, index_num, least=1)
        where = given_path("path", path, storage_options)
        if isinstance(where, Place):
            if writable:
                require_here(where)
            from mqindex.rocketmq.index.elsewhere import find_file

            return cls._open_elsewhere(find_file(where, *given))
        return cls._opened(where, writable, lambda file: geometry.of_file(file, *given))

    @classmethod
    def _open_known(cls, path: str, known: Geometry, *, writable: bool = False, sidecars: bool = True) -> IndexFile:
        """Open a file whose geometry other files show; its own content may be damaged, and is not asked.

        `sidecars` False: they are left alone, which take another descriptor.
        """
        return cls._opened(
            path, writable, lambda file: geometry.require_size(file.path, file.size, known), sidecars=sidecars
        )

    @classmethod
    def _open_elsewhere(cls, found: Elsewhere) -> IndexFile:
        """An index file of which the pages that a call needs are read before."""
        return cls(found.file, *found.geometry, ExitStack(), elsewhere=found)

    @classmethod
    def _opened(
        cls,
        path: str,
        writable: bool,
        geometry_of: Callable[[MappedFile], Geometry],
        *,
        sidecars: bool = True,
    ) -> IndexFile:
        with ExitStack() as held:
            if writable:
                held.enter_context(_only_writer(path))
            if disk.is_directory(path):
                hint = "a directory; IndexService.open takes a directory of index files"
                raise IsADirectoryError(errno.EISDIR, hint, path)
            file = MappedFile.open(path, writable=True) if writable else map_file(path)
            file.advise_random()
            file.window(0, layout.INDEX_HEADER_SIZE)
            file.window(file.size - 1, file.size)
            slots, entries = geometry_of(file)
            index = cls(file, slots, entries, held.pop_all())
        return index._with_sidecars() if sidecars and not writable else index

    def writer(self) -> IndexWriter:
        """A context manager with the same `put_key`, which stores by blocks: several times faster where each key comes
        by itself.

        What it has accepted is found, and counted in the header, after its `flush()`, after each block of 4096 and at
        its end, also when that is an exception; `flush` and `close` of the index file store it too. Only a kill loses
        it. Its `put_key` returns False for the same put that would find the file full otherwise.

        While it is open it alone puts: any other put is a `FileStateError`. Safe for use by several threads.

        Raises
        ------
        ReadOnlyFileError, ClosedFileError
        FileStateError : a writer is open already, or another thread is putting at this moment

        Examples
        --------
        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "index")
        >>> with IndexFile.create(path, hash_slot_num=5, index_num=4) as index:
        ...     with index.writer() as writer:
        ...         accepted = [writer.put_key("T#a", offset, 1_700_000_000_000) for offset in (0, 200)]
        ...         before = index.select_phy_offset("T#a").tolist()
        ...     before, index.select_phy_offset("T#a").tolist()
        ([], [200, 0])
        """
        return IndexWriter(self._core, self._reserve)

    def put_keys(
        self, keys: Keys, phy_offsets: npt.ArrayLike, store_timestamps: Times, *, topic: str | None = None
    ) -> int:
        """Append an entry for each key, in order; with a topic each key stands for `topic#key`.

        Parameters
        ----------
        keys : list[str], ndarray of text, Arrow, polars or pandas strings, shape (n,)
        phy_offsets : anything that is an array of int64, shape (n,)
        store_timestamps : likewise, ms since the epoch, or datetime64, aware datetimes, Arrow timestamps
        topic : str, optional
            Hashed once; no concatenated string is built.

        Returns
        -------
        int
            How many were stored, from the first on; fewer than given: the file is full.

        Raises
        ------
        ValueError
            A null (nothing was stored; the message names its position), or lengths that differ.
        TypeError, OverflowError
            Numbers that are no integers, or do not fit 64 bits.

        Notes
        -----
        After a kill inside this call every entry that `index_count` counts is whole and found, but hash_slot_count and
        the end's offset and timestamp may be those of up to 4096 entries before: the next put mends the end, `verify`
        reports the rest.
        """
        phys, stored = int64s("phy_offsets", phy_offsets), times("store_timestamps", store_timestamps)
        return self._put_batch(key_batch(keys, topic), 0, phys, stored)

    def _put_batch(
        self,
        batch: KeyBatch,
        start: int,
        phy_offsets: npt.NDArray[np.int64],
        store_timestamps: npt.NDArray[np.int64],
    ) -> int:
        """Append the keys of a batch from position `start` on; returns how many were stored."""
        self._file.require_whole()
        self._reserve(len(batch) - start)
        self._expect(len(batch) - start)
        return self._core.put_keys(batch, phy_offsets, store_timestamps, start)

    def _expect(self, entries: int) -> None:
        """About so many entries will be put soon, in one run or in several; that makes many faster."""
        if entries >= _BULK and not self._core.closed:
            self._file.advise_huge()

    def _put_run(self, run: npt.NDArray[Any]) -> int:
        """Append entries that a walk of a log gave, an array of `RUN_ENTRY`; returns how many."""
        self._file.require_whole()
        self._reserve(len(run))
        return self._core.put_run(run)

    def select_phy_offsets(
        self, keys: Keys, *, topic: str | None = None, max_num: int = 64, begin: Time = 0, end: Time = MAX_TIMESTAMP
    ) -> Hits:
        """`select_phy_offset` of many keys in one pass, with the GIL released.

        Of 131,072 keys and more each processor looks up its share.

        Parameters
        ----------
        keys : list[str], ndarray of text, Arrow, polars or pandas strings, shape (n,)
        topic : str, optional
            Each key then stands for `topic#key`.
        max_num, begin, end : for each key as in the single call

        Returns
        -------
        Hits
            Of key i the same offsets, in the same order, as the single call.

        Examples
        --------
        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "index")
        >>> with IndexFile.create(path, hash_slot_num=5, index_num=8) as index:
        ...     stored = index.put_keys(["a", "b"], [100, 200], [1, 1], topic="T")
        ...     index.select_phy_offsets(["b", "?", "a"], topic="T").to_pylist()
        [[200], [], [100]]
        """
        first, last = period(begin, end)
        hashes = key_batch(keys, topic).hashes()
        return Hits(*self._select_hashes(hashes, whole_count("max_num", max_num), begin=first, end=last))

    def _select_hashes(
        self,
        hashes: npt.NDArray[np.int32],
        max_num: int | npt.NDArray[np.int32] = 64,
        *,
        begin: int = 0,
        end: int = MAX_TIMESTAMP,
        asked: AskedHashes | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(values, offsets) of many key hashes; `max_num` may be an array of int32, one for each.

        `asked`: the same hashes, where other files are asked for them too.
        """
        if self._elsewhere is not None:
            asked = asked or asked_hashes(hashes, alone=True)
            return self._elsewhere.select_hashes(self._core, asked, max_num, begin, end)
        self._file.require_whole()
        heads, sidecars = None, self._sidecars  # another thread may close the file
        if sidecars is not None:
            heads = sidecars.search.heads(self._core, asked or asked_hashes(hashes, alone=True))
        if heads is None and len(hashes) > _MANY:
            self._space.populate()
        if len(hashes) < _THREADED:
            return self._core.select_hashes(hashes, max_num, begin, end, heads)
        from mqindex.rocketmq.index.select_parts import select_in_parts  # here: few look-ups need no threads

        return select_in_parts(self._core, hashes, max_num, begin, end, heads)

    @property
    def _asks_a_filter(self) -> bool:
        """Whether `select_hashes` may ask a key filter, as of many files once, by `asked_hashes`."""
        return self._sidecars is not None or self._elsewhere is not None

    @property
    def _is_elsewhere(self) -> bool:
        """Whether it is no file of this machine, and `read_ahead` saves time."""
        return self._elsewhere is not None

    def _read_ahead(self, asked: AskedHashes, max_num: int, begin: int, end: int) -> None:
        """Of a file elsewhere, read what `select_hashes` of these will need, beside other files."""
        if self._elsewhere is not None:
            self._elsewhere.read_ahead(self._core, asked, max_num, begin, end)

    def _select_elsewhere(self, key_hash: int, max_num: int, begin: int, end: int) -> npt.NDArray[np.int64]:
        """`SingleCalls` calls it for a file elsewhere."""
        return self._select_hashes(np.array([key_hash], np.int32), max_num, begin=begin, end=end)[0]

    @property
    def header(self) -> IndexHeader:
        """The header as it is now, also while a broker writes the file.

        Returns
        -------
        IndexHeader
            A tuple of int: `begin_timestamp` and `end_timestamp`, ms since the epoch, of the first entry and of the
            last; `begin_phy_offset` and `end_phy_offset`, bytes, of the same two; `hash_slot_count`, the used slots
            (brokers up to 4.7.0 count entries); `index_count`, the number of the next entry, 1 without any.

        Notes
        -----
        Source: RocketMQ 4.9.3, `store/index/IndexHeader`.
        """
        begin, end, begin_phy, end_phy, slot_count, index_count = self._core.header()
        return IndexHeader(begin, end, begin_phy, end_phy, slot_count, max(index_count, 1))

    def is_write_full(self) -> bool:
        """True when no further entry fits. Source: RocketMQ 4.9.3, `IndexFile.isWriteFull`."""
        return self._core.is_write_full()

    def is_time_matched(self, begin: Time, end: Time) -> bool:
        """Whether the file may hold entries of [begin, end], ms since the epoch, by its header alone.

        Source: RocketMQ 4.9.3, `IndexFile.isTimeMatched`.
        """
        begin, end = milliseconds("begin", begin), milliseconds("end", end)
        first, last, *_ = self._core.header()
        return (begin < first and end > last) or first <= begin <= last or first <= end <= last

    def entries(self, start: int = 1, stop: int | None = None) -> Columns:
        """The entries with the numbers [start, stop), clamped to those that exist; the first one has number 1.

        Returns
        -------
        Columns : key_hash int32, phy_offset int64, time_diff int32 (s since the header's begin), prev_index int32
        """
        self._file.require_whole()
        start, stop = whole_number("start", start), None if stop is None else whole_number("stop", stop)
        start = min(max(start, 1), self.index_num)  # as an int of C
        count = min(self.index_num if stop is None else stop, self.header.index_count) - start
        if count > _MANY:
            self._space.populate()
        self._need(start, count)
        return Columns(dict(zip(INDEX_ENTRY_FIELDS, self._core.entries(start, stop), strict=True)))

    def _compare_run(self, start: int, run: npt.NDArray[Any]) -> int:
        """How many records of a run (`RUN_ENTRY`), from the first on, are the entries from number `start` on.

        The time_diff of entry 1 is left out: it counts from the end of a file before this one.
        """
        self._file.require_whole()
        self._need(start, len(run))
        return self._core.compare_run(start, run.view(np.uint8).data)

    def _need(self, start: int, count: int) -> None:
        """Entries will be read: of a file elsewhere they are read now."""
        first = layout.INDEX_HEADER_SIZE + layout.INDEX_SLOT_SIZE * self.hash_slot_num + layout.INDEX_ENTRY_SIZE * start
        self._file.window(first, min(first + layout.INDEX_ENTRY_SIZE * max(count, 0), self._file.size))

    def slots(self) -> npt.NDArray[np.int32]:
        """For every slot the number of its newest entry, 0 where there is none: ndarray of int32, one for each slot."""
        self._file.require_whole()
        self._space.populate()
        return self._core.slots()

    def _check(self) -> list[tuple[str, int, int, int, int]]:
        """The first 100 contradictions inside the file: (kind, number, at byte, expected, got) each."""
        self._file.require_whole()
        self._space.populate()
        return self._core.check()

    def _order(self) -> Order:
        """How many entries are in the order of their slots."""
        self._file.require_whole()
        self._need(0, _MANY + 1)
        order = Order(*self._core.order(_MANY))
        if order.entries < _MANY:  # as a broker left it: the file may be cold, and few of its pages were needed
            return order
        self._space.populate()
        return Order(*self._core.order())

    def _sort_into(self, target: IndexCore) -> None:
        """Fill a zeroed file with the entries in the order of their slots, and the header."""
        self._file.require_whole()
        self._space.populate()
        sort_into(self._core, target)

    def flush(self) -> None:
        """Bring every change to the disk. The count of a file without entries becomes 1, as the broker's flush has it.

        Source: RocketMQ 4.9.3, `IndexFile.flush`.
        """
        if self.writable:
            self._core.flush_header()
            self._file.flush()

    def close(self) -> None:
        """Unmap the file; may be called twice. It changes no byte, but stores what an open writer has accepted."""
        try:
            self._core.close()
        finally:
            self._file.close()
            self._held.close()
            sidecars, self._sidecars = self._sidecars, None
            if sidecars is not None:
                sidecars.close()

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._core.closed

    def __repr__(self) -> str:
        return f"IndexFile({self.path!r}, hash_slot_num={self.hash_slot_num}, index_num={self.index_num})"

    def _with_sidecars(self) -> IndexFile:
        """Uses the fence of an optimised file that nobody has written to since, and the key filter."""
        if not isinstance(self.path, Place) and disk.is_directory(sidecar_directory(parent_of(self.path))):
            from mqindex.rocketmq.sidecar.reading import find_sidecars

            self._sidecars = find_sidecars(self._file, (self.hash_slot_num, self.index_num))
            self._core.use_heads(None if self._sidecars is None else self._sidecars.search)
        return self


def asked_hashes(hashes: npt.NDArray[np.int32], *, alone: bool = False) -> AskedHashes:
    """Key hashes for the key filter of one file (`alone`) or of several; most look-ups load none of it."""
    from mqindex._native.key_filter import AskedHashes

    return AskedHashes(hashes, alone=alone)


def _only_writer(path: str) -> AbstractContextManager[None]:
    from mqindex.rocketmq.directories.store import hold_index_file  # here: who reads a file does without

    return hold_index_file(path)
