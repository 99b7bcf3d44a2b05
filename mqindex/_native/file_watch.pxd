# cython: language_level=3

cimport cython
from posix.time cimport timespec


@cython.final
cdef class FileWatch:
    cdef int fd
    cdef timespec[2] seen

    cdef int changed(self) except -1
