# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Puts one at a time, stored many at a time: a call writes three numbers into a buffer."""

cimport cython
from libc.stdint cimport int32_t, int64_t

from mqindex._native.index_entries cimport IndexEntries
from mqindex._native.keys cimport hash_of
from mqindex._native.numbers cimport time_of, whole
from mqindex._native.owner cimport require_owner

from mqindex.errors import ClosedFileError


cdef enum:
    BLOCK = 4096  # as many as the bulk kernel hashes and puts together


@cython.final
cdef class IndexWriter:
    """Puts entries into an index file, in blocks: `IndexFile.writer` makes one."""

    cdef IndexEntries core
    cdef object reserve
    cdef bint closed
    cdef Py_ssize_t n      # puts that wait
    cdef Py_ssize_t limit  # puts that may wait: as many as fit the block and the file; 0: the next put checks again
    cdef int32_t hashes[BLOCK]
    cdef int64_t phy_offsets[BLOCK]
    cdef int64_t store_timestamps[BLOCK]

    def __cinit__(self, IndexEntries core not None, object reserve not None):
        core.lend(self._store)
        self.core, self.reserve = core, reserve

    def put_key(self, object key, object phy_offset, object store_timestamp):
        """Append an entry for a whole `topic#key`, as `IndexFile.put_key` does; it is found after the block is stored.

        Returns
        -------
        bool
            False: the file is full, and all that was accepted is stored. Everything else that goes wrong raises, and
            then this put was not accepted.
        """
        cdef int64_t offset = whole(phy_offset, "phy_offset")
        cdef int64_t timestamp = time_of(store_timestamp, "store_timestamp")
        cdef int32_t h = hash_of(key)
        with cython.critical_section(self):
            require_owner(self.core.owner)
            if self.n == self.limit and not self.next_block():
                return False
            self.hashes[self.n] = h
            self.phy_offsets[self.n] = offset
            self.store_timestamps[self.n] = timestamp
            self.n += 1
        return True

    cdef bint next_block(self) except -1:
        """Store what waits; False: the file has no room for more. Disk space of a sparse file is reserved now."""
        self.require_open()
        self._store()
        cdef Py_ssize_t room = min(self.core.room(), BLOCK)
        if room > 0:
            self.reserve(room)
            self.require_open()  # another thread may have closed the writer, or the file, meanwhile
        self.limit = room
        return room > 0

    cdef int require_open(self) except -1:
        if self.closed:
            raise ClosedFileError("the writer is closed", path=self.core.path)
        return 0

    cpdef int _store(self, bint last=False) except -1:
        """Store what was accepted; `last`: and accept no more."""
        cdef Py_ssize_t n
        with cython.critical_section(self):
            n = self.n
            self.n = self.limit = 0
            self.closed |= last
            if n > 0:
                self.core.put_lent(self.hashes, self.phy_offsets, self.store_timestamps, n)
        return 0

    def flush(self):
        """Store what was accepted: every look-up finds it then. `IndexFile.flush` brings it to the disk too."""
        self.require_open()
        self._store()

    def close(self):
        """Store what was accepted and release the file; may be called twice."""
        if self.closed:
            return
        try:
            if self.core.open and self.core.owner.here:  # a forked child does not store what its parent accepted
                self._store(True)
        finally:
            self.closed = True
            self.core.take_back()

    def __enter__(self):
        self.require_open()
        return self

    def __exit__(self, *error):
        self.close()
