# cython: language_level=3

cimport cython
from posix.time cimport timespec


cdef enum:
    WATCH_SAME
    WATCH_CHANGED
    WATCH_CLOSED


@cython.final
cdef class FileWatch:
    cdef int fd
    cdef timespec[2] seen

    cdef int look(self, timespec* now) noexcept
    cdef void accept(self, const timespec* now) noexcept
