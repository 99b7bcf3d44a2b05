# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""RocketMQ's index file as a whole, in a buffer: its header, its columns, and whether it contradicts itself."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free

from mqindex._native.guard cimport still_whole
from mqindex._native.index_entries cimport (
    IndexEntries, mqi_index_file, pthread_mutex_lock, pthread_mutex_unlock, run_of,
)
from mqindex._native.memory cimport Pinned, target_of
from mqindex._native.owner cimport require_owner


cdef extern from "mqi_status.h" nogil:
    ctypedef struct mqi_fault:
        int32_t kind
        int64_t number
        int64_t at
        int64_t expected
        int64_t got


cdef extern from "mqi_index_file.h" nogil:
    ctypedef struct mqi_index_header:
        int64_t begin_timestamp, end_timestamp, begin_phy_offset, end_phy_offset
        int32_t hash_slot_count, index_count

    ctypedef struct mqi_index_order:
        int32_t sorted, moved
        int64_t first_phy_offset, last_phy_offset

    void mqi_index_read_order(const mqi_index_file* f, int32_t most, mqi_index_order* order) noexcept
    int32_t mqi_index_next(const mqi_index_file* f) noexcept
    void mqi_index_read_header(const mqi_index_file* f, mqi_index_header* header) noexcept
    void mqi_index_seed(mqi_index_file* f, int64_t end_phy_offset, int64_t end_timestamp) noexcept
    void mqi_index_flush_header(mqi_index_file* f) noexcept
    void mqi_index_entries(
        const mqi_index_file* f, size_t start, size_t n, int32_t* key_hashes, int64_t* phy_offsets,
        int32_t* time_diffs, int32_t* prev_indexes) noexcept
    void mqi_index_slots(const mqi_index_file* f, int32_t* out) noexcept
    size_t mqi_index_compare_run(const mqi_index_file* f, size_t start, const uint8_t* run, size_t n) noexcept
    size_t mqi_index_check(const mqi_index_file* f, int32_t* heads, mqi_fault* faults, size_t room) noexcept
    int mqi_index_fits(const mqi_index_file* f, size_t newest) noexcept


cdef enum:
    FAULTS = 100  # most contradictions that check() names

cdef tuple FAULT_KINDS = (
    "index_count",
    "hash_slot_count",
    "begin_phy_offset",
    "end_phy_offset",
    "end_timestamp",
    "slot",
    "slot_head",
    "key_hash",
    "time_diff",
    "prev_index",
)


cdef class IndexCore(IndexEntries):
    """One index file in a buffer, pinned until `close`."""

    def header(self):
        """The six fields of the header as they are in the file."""
        cdef mqi_index_header h
        with cython.critical_section(self):
            self.require_open()
            mqi_index_read_header(&self.file, &h)
            still_whole(self.range)
        return (
            h.begin_timestamp, h.end_timestamp, h.begin_phy_offset, h.end_phy_offset, h.hash_slot_count, h.index_count)

    def is_write_full(self):
        """True when there is no room for another entry."""
        with cython.critical_section(self):
            self.require_open()
            full = mqi_index_next(&self.file) >= self.file.index_num
            still_whole(self.range)
            return full

    def entries(self, Py_ssize_t start=1, stop=None):
        """Four columns of the entries [start, stop), clamped to those that exist."""
        import numpy as np

        cdef Pinned hashes, offsets, diffs, previous
        cdef Py_ssize_t n, last
        self.enter(False)
        try:
            last = mqi_index_next(&self.file)
            if stop is not None and stop < last:
                last = max(stop, 0)
            start = max(start, 1)
            n = max(last - start, 0)
            columns = tuple([np.empty(n, dtype) for dtype in ("i4", "i8", "i4", "i4")])
            hashes, offsets, diffs, previous = (target_of(column) for column in columns)
            with nogil:
                mqi_index_entries(
                    &self.file, start, n, <int32_t*> hashes.view.buf, <int64_t*> offsets.view.buf,
                    <int32_t*> diffs.view.buf, <int32_t*> previous.view.buf)
        finally:
            self.leave(False)
        return columns

    def slots(self):
        """The value of every slot."""
        import numpy as np

        cdef Pinned pinned
        self.enter(False)
        try:
            values = np.empty(self.file.hash_slot_num, "i4")
            pinned = target_of(values)
            with nogil:
                mqi_index_slots(&self.file, <int32_t*> pinned.view.buf)
        finally:
            self.leave(False)
        return values

    def compare_run(self, int64_t start, object run):
        """How many packed records of a run, from the first on, are the entries from number `start` on."""
        cdef Pinned records = run_of(run)
        cdef size_t same, n
        if start < 1:
            raise ValueError(f"start: expected 1 or more, got {start}")
        n = min(records.n, max(<int64_t> self.file.index_num - start, 0))
        self.enter(False)
        with nogil:
            same = mqi_index_compare_run(&self.file, start, <const uint8_t*> records.view.buf, n)
        self.leave(False)
        return same

    def seed(self, int64_t end_phy_offset, int64_t end_timestamp):
        """Start a rolled file where its predecessor ended; values of 0 or less change nothing."""
        with cython.critical_section(self):
            self.require_writable()
            mqi_index_seed(&self.file, end_phy_offset, end_timestamp)
            still_whole(self.range)

    def flush_header(self):
        """Write the count of a file without puts as the broker's flush does: 1."""
        self.store_lent()
        cdef bint putting = self.waiting is None
        require_owner(self.owner)
        self.enter(putting)
        with nogil:
            pthread_mutex_lock(&self.writers)
            mqi_index_flush_header(&self.file)
            pthread_mutex_unlock(&self.writers)
        self.leave(putting)

    def check(self):
        """The first 100 contradictions inside the file: (kind, number, at, expected, got) each."""
        cdef mqi_fault faults[FAULTS]
        cdef size_t found
        cdef int32_t* heads
        cdef size_t i
        self.enter(False)
        try:
            heads = <int32_t*> calloc(self.file.hash_slot_num, sizeof(int32_t))
            if heads == NULL:
                raise MemoryError
            with nogil:
                found = mqi_index_check(&self.file, heads, faults, FAULTS)
            free(heads)
        finally:
            self.leave(False)
        listed = []
        for i in range(min(found, <size_t> FAULTS)):
            kind = FAULT_KINDS[faults[i].kind]
            listed.append((kind, faults[i].number, faults[i].at, faults[i].expected, faults[i].got))
        return listed

    def order(self, first=None):
        """How many entries are in the order of their slots, whether no broker wrote them so, and their range.

        `first`: look at so many only, from the first on.
        """
        cdef mqi_index_order order
        cdef int32_t most = INT32_MAX if first is None else first
        self.enter(False)
        with nogil:
            mqi_index_read_order(&self.file, most, &order)
        self.leave(False)
        return order.sorted, order.moved == 1, order.first_phy_offset, order.last_phy_offset

    def fits(self, newest=None):
        """Whether every used slot heads a chain of entries of that slot; `newest`: check only so many entries."""
        cdef size_t some = 0 if newest is None else newest
        cdef int fitting
        self.enter(False)
        with nogil:
            fitting = mqi_index_fits(&self.file, some)
        self.leave(False)
        return fitting == 1
