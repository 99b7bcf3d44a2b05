"""The one owner of memory maps: open, create, flush, advise, close."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mqindex._native.guard import Mapping
from mqindex.errors import ClosedFileError, FormatError, TruncatedFileError
from mqindex.files import disk
from mqindex.files.disk import exists, named
from mqindex.files.rights import neighbour_of
from mqindex.files.sync_trust import SyncTrust
from mqindex.files.tmpfile import link_into_place, open_nameless

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

_MADV_POPULATE_READ = 22  # Linux 5.14; not in the mmap module
_MADV_POPULATE_WRITE = 23
_READ_AHEAD = 128 << 10  # bytes that Linux reads at most for one advice, unless a disk is set to more
_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class MappedFile:
    """A whole file in memory, shared with the page cache.

    `map` is the `Mapping`; kernels pin it with a buffer export, so closing while a call runs is safe: the map is then
    released when the call ends. At most one object writes one file (the kernels' callers ensure it).

    Others may cut the file at any moment. The missing bytes then read as zeros, and the reader gets a
    `TruncatedFileError`: kernels and slices of `map` check for it; code that reads `map` in another way calls `check`.
    The end of a `with` does so too.
    """

    step = 2**63 - 1
    """How many bytes a window should have at most: of a file elsewhere each takes memory."""

    def __init__(self, path: str, memory: mmap.mmap | int, writable: bool) -> None:
        self.path = path
        self._map: Mapping | None = Mapping(memory, str(path), writable)
        self.size = len(self._map)
        self.writable = writable
        self._syncs = SyncTrust()
        self._populated = False
        self._random = False

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, writable: bool = False) -> MappedFile:
        """Map an existing file of this machine, read-only by default. An empty file is a `TruncatedFileError`.

        For writing, its disk space is reserved first, because brokers leave files sparse: a full disk is an `OSError`
        before any byte has changed.
        """
        name = os.fspath(path)
        with named(name):
            fd = _open_at_once(name, os.O_RDWR if writable else os.O_RDONLY)
            try:
                status = os.fstat(fd)
                if stat.S_ISDIR(status.st_mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
                if status.st_size == 0:
                    raise TruncatedFileError("the file is empty", path=name, expected="1 byte or more", got=0)
                if writable:
                    fill_holes(fd)
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                return cls(name, _map_whole(fd, name, access), writable)
            finally:
                os.close(fd)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], size: int, *, sparse: bool = False, like: os.stat_result | None = None
    ) -> MappedFile:
        """Create a zero-filled file that must not exist yet, and map it for writing.

        The space is reserved first, because a full disk is then an `OSError` and not a SIGBUS in the middle of a
        store. `sparse=True` leaves that out. A failed create leaves no file. Where files can be made without a name
        (Linux), this one appears only when it has its length, and owner and mode of `like`, else of what is beside it,
        as far as this process may set them.
        """
        name = os.fspath(path)
        if exists(name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        return cls._create_nameless(name, size, sparse, like) or cls._create_in_place(name, size, sparse, like)

    @classmethod
    def _create_nameless(cls, name: str, size: int, sparse: bool, like: os.stat_result | None) -> MappedFile | None:
        fd = open_nameless(os.path.dirname(name) or ".")
        if fd is None:
            return None
        try:
            with named(name):
                reserve(fd, size, sparse=sparse)
                disk.own_like(f"/proc/self/fd/{fd}", like or neighbour_of(name))
                mapping = mmap.mmap(fd, size, access=mmap.ACCESS_WRITE)
            return cls(name, mapping, True) if link_into_place(fd, name) else None
        finally:
            os.close(fd)

    @classmethod
    def _create_in_place(cls, name: str, size: int, sparse: bool, like: os.stat_result | None) -> MappedFile:
        like = like or neighbour_of(name)
        fd = disk.create(name)
        try:
            with named(name):
                disk.own_like(name, like)
                reserve(fd, size, sparse=sparse)
                return cls(name, mmap.mmap(fd, size, access=mmap.ACCESS_WRITE), True)
        except BaseException:
            os.unlink(name)
            raise
        finally:
            os.close(fd)

    @property
    def map(self) -> Mapping:
        """The mapping; `ClosedFileError` after `close()`."""
        if self._map is None:
            raise ClosedFileError("the file is closed", path=self.path)
        return self._map

    def window(self, start: int, stop: int) -> Buffer:
        """The file from its first byte on, of which at least the bytes [start, stop) are there, up to its end.

        Here it is the whole mapping; of a file elsewhere these bytes are read, and the buffer ends with what is there.
        """
        return self.map

    def windows(self, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> Buffer:
        """The same for the bytes of several stretches; what is between them is not used."""
        return self.map

    def ahead(self, start: int, stop: int) -> None:
        """Windows of the bytes [start, stop) will be asked for in order: elsewhere requests for them begin now."""

    def again(self) -> MappedFile:
        """The same file for one who releases what others may be reading: elsewhere with memory of its own."""
        return self

    def release(self, stop: int) -> None:
        """The bytes before `stop` are not used any more."""

    def read(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop), copied."""
        return self.map[start:stop]

    def check(self) -> None:
        """`TruncatedFileError` if the file was cut; `OSError(ENOSPC)` if the disk had no space for a written page."""
        self.map.check()

    def require_whole(self) -> None:
        """`TruncatedFileError` if the file is shorter by now; called before much of it is read.

        A closed one is let pass: another thread has just closed it, and what reads it says so.
        """
        mapping = self._map
        if mapping is not None and (size := mapping.size()) < self.size:
            raise TruncatedFileError("the file was cut while it was open", path=self.path, expected=self.size, got=size)

    def require_asked_for(self) -> None:
        """`AssertionError` where bytes of a file elsewhere were used that no window had read.

        When they are used that is a `FileStateError`, after which goes on who leaves out what cannot be read. So it is
        asked when the file is done with: no `except` for the errors of files catches this one.
        """

    def flush(self) -> None:
        """Bring every changed page to the disk. After a failure every later call fails too: `SyncTrust`."""
        if self.writable:
            with self._syncs, named(self.path):
                self.map.flush()

    def advise_random(self) -> None:
        """Few, scattered reads will follow: read single pages, not 128 KiB and more around each."""
        self._random = True
        self._advise(getattr(mmap, "MADV_RANDOM", None))

    def advise_huge(self) -> None:
        """A bulk build will use most pages: request huge ones."""
        self._advise(getattr(mmap, "MADV_HUGEPAGE", None))

    def will_need(self, start: int, stop: int) -> None:
        """The bytes [start, stop) will be read soon: read them ahead, and nothing after them."""
        for at in range(start - start % mmap.PAGESIZE, stop, _READ_AHEAD):
            self._advise(getattr(mmap, "MADV_WILLNEED", None), at, min(_READ_AHEAD, stop - at))

    def populate(self, stop: int | None = None) -> None:
        """Read the file up to byte `stop` into memory, once, before many scattered reads; None: all of it."""
        if not self._populated:
            self._populated = True
            self._advise(getattr(mmap, "MADV_NORMAL", None))  # after MADV_RANDOM a cold 420 MB take a minute, not 0.3 s
            self._advise(_MADV_POPULATE_READ, 0, stop)
            if self._random:
                self.advise_random()

    def reserve_range(self, start: int, stop: int) -> None:
        """Give the bytes [start, stop) of a sparse file their disk space now: no space left is an `OSError` here."""
        first = start - start % mmap.PAGESIZE
        try:
            self.map.advise(_MADV_POPULATE_WRITE, first, stop - first)
        except OSError as error:
            if error.errno == errno.EFAULT:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path) from None
            if error.errno != errno.EINVAL:  # kernels before 5.14 do not know the advice
                raise

    def _advise(self, advice: int | None, start: int = 0, length: int | None = None) -> None:
        mapping = self.map
        if advice is not None and hasattr(mmap.mmap, "madvise"):
            with contextlib.suppress(OSError):  # advice only: a kernel that does not know it changes nothing
                mapping.advise(advice, start, length)

    def close(self) -> None:
        """Release the map: now, or at the end of a call that still uses it. May be called twice."""
        self._map = None

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._map is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if self._map is not None and (error is None or isinstance(error, FormatError)):
                self._map.check()  # the zeros of a cut file may be the cause of the error
        finally:
            self.close()


def _map_whole(fd: int, path: str, access: int) -> mmap.mmap:
    try:
        return mmap.mmap(fd, 0, access=access)
    except ValueError:  # cut to nothing since it was opened
        raise TruncatedFileError("the file is empty", path=path, expected="1 byte or more", got=0) from None


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting: a FIFO among the files counts as empty, whether it has a writer or not."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def reserve(fd: int, size: int, *, sparse: bool = False) -> None:
    """Make an empty file `size` zero bytes long; unless sparse, every one of them has its disk space afterwards."""
    if sparse or size == 0:
        os.ftruncate(fd, size)
    elif hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:  # macOS: writing zeros is the portable way to reserve the space
        _write_zeros(fd, size)


def fill_holes(fd: int) -> None:
    """Reserve disk space for every byte of an existing file; no byte changes.

    Where a file system cannot, the mapping's guard reports a page for which there is no space.
    """
    status = os.fstat(fd)
    if status.st_blocks * 512 >= status.st_size or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(fd, 0, status.st_size)
    except OSError as error:
        if error.errno not in _CANNOT_RESERVE:
            raise


def _write_zeros(fd: int, size: int) -> None:
    zeros = memoryview(bytes(1 << 20))
    while size > 0:
        size -= os.write(fd, zeros[: min(size, len(zeros))])
