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
        self.look(self.seen)

    cdef int look(self, timespec* now) noexcept:
        """WATCH_CHANGED since it was made or the last `accept`, WATCH_SAME, or WATCH_CLOSED; `now` gets the times."""
        cdef struct_stat status
        if fstat(self.fd, &status) != 0:
            return WATCH_CLOSED
        now[0], now[1] = status.st_mtim, status.st_ctim
        return WATCH_SAME if memcmp(now, self.seen, sizeof(self.seen)) == 0 else WATCH_CHANGED

    cdef void accept(self, const timespec* now) noexcept:
        """What was changed up to this look is good. Until then every look says so, to other threads too."""
        memcpy(self.seen, now, sizeof(self.seen))
