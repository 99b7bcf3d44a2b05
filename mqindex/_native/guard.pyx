# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Mapped files under the guard of `mqi_guard.h`, and the checks of every kernel for the buffers it reads.

Only this module compiles the guard, because there must be one registry of ranges.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_SIMPLE,
    PyBUF_WRITABLE,
    PyBUF_WRITE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.memoryview cimport (
    PyMemoryView_Check,
    PyMemoryView_FromMemory,
    PyMemoryView_GET_BUFFER,
)
from libc.stddef cimport size_t

import errno
import os

from mqindex.errors import FileStateError, TruncatedFileError


cdef extern from "mqi_guard.h" nogil:
    mqi_guard_range* mqi_guard_add(void* start, size_t length, int writable, void* owner) noexcept
    void mqi_guard_remove(mqi_guard_range* range) noexcept
    mqi_guard_range* mqi_guard_find(const void* byte) noexcept
    void* mqi_guard_map_nothing(size_t length) noexcept
    bint mqi_guard_show(mqi_guard_range* range, size_t start, size_t stop) noexcept
    bint mqi_guard_hide(mqi_guard_range* range, size_t start, size_t stop) noexcept

cdef extern from "<sys/mman.h>" nogil:
    int munmap(void* start, size_t length)


@cython.final
cdef class Mapping:
    """A mapped file that others may cut: a buffer, as `mmap.mmap` is.

    memory : an `mmap.mmap`; or the length of a file that is no file of this machine: nothing of it is here until `fill`

    It is unmapped when no name and no exported buffer refers to it: so its range stays guarded as long as a call may be
    reading there.
    """

    def __cinit__(self, memory, str path, bint writable):
        self.elsewhere = isinstance(memory, int)
        self.memory, self.path, self.writable = memory, path, writable
        if self.elsewhere:
            self.view.buf, self.view.len = mqi_guard_map_nothing(memory), memory
            if self.view.buf == NULL:
                raise OSError(errno.ENOMEM, f"no memory for its {memory:,} bytes", path)
        else:
            PyObject_GetBuffer(memory, &self.view, PyBUF_WRITABLE if writable else PyBUF_SIMPLE)
        self.held = True
        self.range = mqi_guard_add(self.view.buf, self.view.len, writable, <void*>self)
        if self.range == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.range != NULL:
            mqi_guard_remove(self.range)
        if self.held and self.elsewhere:
            munmap(self.view.buf, self.view.len)
        elif self.held:
            PyBuffer_Release(&self.view)

    def __getbuffer__(self, Py_buffer* view, int flags):
        mqi_fill_view(view, self, self.view.buf, self.view.len, not self.writable, flags)

    def __buffer__(self, int flags, /):
        """PEP 688: from Python 3.12 on every buffer has it."""
        return memoryview(self)

    def __len__(self):
        return self.view.len

    def __getitem__(self, key):
        """A byte as a number, or the bytes of a slice, copied."""
        with memoryview(self) as whole:
            some = bytes(whole[key]) if isinstance(key, slice) else whole[key]
        still_whole(self.range)
        return some

    def __setitem__(self, key, value):
        with memoryview(self) as whole:
            whole[key] = value
        still_whole(self.range)

    @property
    def cut(self):
        """Whether a page was missing when it was accessed; what was read since is not valid."""
        return mqi_guard_was_cut(self.range)

    cpdef int check(self) except -1:
        """`TruncatedFileError` if the file was cut, also if no read showed it: in its last page it reads as zeros.

        `OSError(ENOSPC)` if the disk had no space for a written page.
        """
        if mqi_guard_was_cut(self.range) or self.size() < self.view.len:
            self.refuse()
        return 0

    cdef int refuse(self) except -1:
        size = self.size()
        if self.elsewhere:
            raise FileStateError("bytes were used that had not been read: an error of this package", path=self.path)
        if size < self.view.len:
            what = "the file was cut while it was read"
            raise TruncatedFileError(what, path=self.path, expected=self.view.len, got=size)
        if self.writable:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        what = "bytes of the file were missing while it was read: cut for a while, or the disk failed or is full"
        raise TruncatedFileError(what, path=self.path)

    def size(self):
        """The file's length now; of one elsewhere, its length when it was opened."""
        if self.elsewhere:
            return self.view.len
        try:
            return self.memory.size()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from None

    def fill(self, size_t start, size_t stop):
        """Memory for the pages of the bytes [start, stop) of a file elsewhere, zeros until the caller has filled it."""
        cdef size_t size = self.view.len
        if not self.elsewhere or start > stop or stop > size:
            raise ValueError(f"[{start}, {stop}): expected bytes of a file elsewhere of {size} bytes")
        if not mqi_guard_show(self.range, start, stop):
            raise MemoryError
        return PyMemoryView_FromMemory(<char*>self.view.buf + start, stop - start, PyBUF_WRITE)

    def hide(self, size_t start, size_t stop):
        """Give that memory of whole pages back: reading there is an error again."""
        if not self.elsewhere or start > stop or stop > <size_t>self.view.len or not mqi_guard_hide(
                self.range, start, stop):
            raise MemoryError

    def flush(self):
        """Bring every changed page to the disk."""
        still_whole(self.range)
        self.memory.flush()
        still_whole(self.range)

    def advise(self, advice, start=0, length=None):
        """`mmap.madvise`."""
        self.memory.madvise(advice, start, self.view.len - start if length is None else length)


def check_whole(buf, /):
    """`TruncatedFileError` where a buffer is of a mapping that was cut: what was read from it may be zeros."""
    cdef Py_buffer view
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    give_back(&view)


cdef const mqi_guard_range* range_of(const Py_buffer* view) noexcept:
    """The range of the mapping with a buffer's first byte; NULL: none."""
    owner = view.obj
    if PyMemoryView_Check(owner):
        owner = PyMemoryView_GET_BUFFER(owner).obj
    if type(owner) is Mapping:
        return (<Mapping>owner).range
    return NULL if type(owner) is bytes else mqi_guard_find(view.buf)


cdef int refuse(const mqi_guard_range* range) except -1:
    """Raise the reason; the caller holds a buffer of the range."""
    return (<Mapping>range.owner).refuse()


cdef int give_back(Py_buffer* view) except -1:
    """`PyBuffer_Release`, and an error if the file was cut while the buffer was held."""
    cdef const mqi_guard_range* range = range_of(view)
    owner = <Mapping>range.owner if mqi_guard_was_cut(range) else None
    PyBuffer_Release(view)
    if owner is not None:
        (<Mapping>owner).refuse()
    return 0
