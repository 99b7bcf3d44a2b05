# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Writing to the end of a file, and waiting for the disk together."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport EBADF
from libc.stdint cimport int64_t, uint8_t

from mqindex._native.owner cimport Owner

import os


cdef extern from "mqi_write_all.h" nogil:
    int mqi_write_all(int fd, const uint8_t* p, int64_t n, int64_t at) noexcept


cdef extern from "mqi_allocate.h" nogil:
    int mqi_allocate(int fd, int64_t at, int64_t size) noexcept


cdef extern from "mqi_group_commit.h" nogil:
    ctypedef struct mqi_group:
        int64_t written
        int error

    int64_t mqi_group_flushed(const mqi_group* group) noexcept

    int mqi_group_start(mqi_group* group, int64_t written) noexcept
    void mqi_group_end(mqi_group* group) noexcept
    void mqi_group_drop(mqi_group* group) noexcept
    int mqi_group_switch(mqi_group* group, int fd) noexcept
    void mqi_group_commit(mqi_group* group, int64_t written) noexcept
    int mqi_group_wait(mqi_group* group, int64_t offset) noexcept


cdef enum:
    SHORT = 1 << 16  # bytes that are in the page cache faster than the GIL is released and taken again


def write_at(int fd, data, int64_t at, /):
    """Write all of `data` at that byte of a file; `OSError`: it ended half-way."""
    cdef Py_buffer view
    cdef int failed
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    if view.len <= SHORT:
        failed = mqi_write_all(fd, <const uint8_t*> view.buf, view.len, at)
    else:
        with nogil:
            failed = mqi_write_all(fd, <const uint8_t*> view.buf, view.len, at)
    PyBuffer_Release(&view)
    if failed:
        raise OSError(failed, os.strerror(failed))


def allocate(int fd, int64_t at, int64_t size, /):
    """Allocate the disk's blocks for these bytes of a file, which do not change; False: the file system cannot."""
    cdef int failed
    with nogil:
        failed = mqi_allocate(fd, at, size)
    return failed == 0


@cython.final
@cython.no_gc_clear
cdef class GroupCommit:
    """The files that a log's writer has written to, and the threads that wait for their syncs.

    After a failed sync it is not known which bytes the disk has: every later call raises too. Safe from several
    threads, also closing while some wait: the last of them closes.
    """

    cdef mqi_group group
    cdef bint started, closed
    cdef int users
    cdef Owner owner

    def __cinit__(self, int64_t written):
        cdef int failed = mqi_group_start(&self.group, written)
        if failed:
            raise OSError(failed, os.strerror(failed))
        self.owner = Owner()
        self.started = True

    def __dealloc__(self):
        self.end()

    def close(self):
        """Close the files. May be called twice. Threads that wait when a process forks do not exist in the child."""
        with cython.critical_section(self):
            self.closed = True
            if self.users == 0 or not self.owner.here:
                self.end()

    cdef void end(self) noexcept:
        if self.started:
            self.started = False
            if self.owner.here:
                mqi_group_end(&self.group)
            else:
                mqi_group_drop(&self.group)

    cdef bint enter(self) except -1:
        cdef bint open
        with cython.critical_section(self):
            open = not self.closed
            self.users += open
        if not open:
            raise OSError(EBADF, os.strerror(EBADF))
        return True

    cdef void leave(self) noexcept:
        with cython.critical_section(self):
            self.users -= 1
            if self.closed and self.users == 0:
                self.end()

    @property
    def written(self):
        """The phy offset after what was committed."""
        return self.group.written

    @property
    def flushed(self):
        """The phy offset below which everything is on the disk."""
        return mqi_group_flushed(&self.group)

    @property
    def error(self):
        """The errno of a sync that failed; 0: none did."""
        return self.group.error

    def switch_to(self, int fd, /):
        """Write to this file from now on; the group closes it."""
        self.enter()
        cdef int failed = mqi_group_switch(&self.group, fd)
        self.leave()
        if failed:
            raise MemoryError

    def commit(self, int64_t written, /):
        """Record that everything below that phy offset is written."""
        self.enter()
        mqi_group_commit(&self.group, written)
        self.leave()

    def fail(self, int error, /):
        """Record that a sync of one of the files failed elsewhere."""
        self.group.error = error

    def wait_for(self, int64_t offset, /):
        """Return when the bytes below that phy offset are on the disk."""
        cdef int failed
        if mqi_group_flushed(&self.group) >= offset:
            return
        self.enter()
        with nogil:
            failed = mqi_group_wait(&self.group, offset)
        self.leave()
        if failed:
            raise OSError(failed, os.strerror(failed))
