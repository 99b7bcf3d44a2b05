# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Who may write: the process that opened for writing. A forked child has the same descriptors and maps, and may not."""

cimport cython

import os

from mqindex.errors import FileStateError

forks_so_far = 0


def _forked():
    global forks_so_far
    forks_so_far += 1


os.register_at_fork(after_in_child=_forked)


@cython.final
cdef class Owner:
    """The process in which this object was made. Every writer has one, and checks it before it takes a lock.

    `here`: this process is that one. `require()` costs a comparison of two integers.

    >>> owner = Owner("/data/store")
    >>> owner.require(), owner.here
    (True, True)
    """

    def __cinit__(self, path=None):
        self.path = path
        self.forks = forks_so_far

    @property
    def here(self):
        """False in a child that was forked since: it releases what it holds, writes nothing and removes nothing."""
        return self.forks == forks_so_far

    cpdef bint require(self) except -1:
        """True; `FileStateError` in a forked child."""
        if self.forks != forks_so_far:
            raise FileStateError(
                "a forked child may not write what its parent opened for writing", path=self.path,
                hint="open it in the child, once the parent has closed it",
            )
        return True
