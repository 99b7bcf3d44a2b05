# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Whether somebody has written to a file that is open."""

cimport cython
from libc.string cimport memcmp, memcpy
from posix.stat cimport fstat, struct_stat
from posix.time cimport timespec


cdef extern from *:
    """
    #include <sys/stat.h>
    #ifdef __APPLE__
    #define st_mtim st_mtimespec
    #define st_ctim st_ctimespec
    #endif
    """


@cython.final
cdef class FileWatch:
    """When a file was written to and changed, as of now; the descriptor stays the caller's, who may close it."""

    def __cinit__(self, int fd):
        self.fd = fd
        self.changed()

    cdef int changed(self) except -1:
        """1: since the last call here; 0: not; 2: it was closed."""
        cdef struct_stat status
        cdef timespec[2] now
        if fstat(self.fd, &status) != 0:
            return 2
        now[0], now[1] = status.st_mtim, status.st_ctim
        if memcmp(now, self.seen, sizeof(now)) == 0:
            return 0
        memcpy(self.seen, now, sizeof(now))
        return 1
