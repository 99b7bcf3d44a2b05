# cython: language_level=3

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from mqindex._native.guard cimport mqi_guard_range, still_whole
from mqindex._native.memory cimport Pinned
from mqindex._native.owner cimport Owner, forks_so_far


cdef extern from "mqi_index_file.h" nogil:
    cdef enum:
        MQI_INDEX_HEADER_SIZE
        MQI_INDEX_PAGE
        MQI_SLOT_SIZE
        MQI_ENTRY_SIZE

    ctypedef struct mqi_index_file:
        uint8_t* base
        uint32_t hash_slot_num
        int32_t index_num


cdef extern from "mqi_index_put.h" nogil:
    size_t mqi_index_put(mqi_index_file* f, int32_t key_hash, int64_t phy_offset, int64_t store_timestamp) noexcept


cdef extern from "mqi_index_select.h" nogil:
    ctypedef struct mqi_walk:
        int32_t cur


cdef extern from "pthread.h" nogil:
    ctypedef struct pthread_mutex_t:
        pass

    int pthread_mutex_init(pthread_mutex_t* mutex, const void* attributes) noexcept
    int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define MQI_HAS_GIL 0
    #else
    #define MQI_HAS_GIL 1
    #endif
    """
    const bint MQI_HAS_GIL


cdef class ChainHeads:
    cdef int32_t head(self, const mqi_index_file* f, int32_t key_hash) except -2


cdef class IndexEntries:
    cdef mqi_index_file file
    cdef Py_buffer view
    cdef const mqi_guard_range* range
    cdef pthread_mutex_t writers
    cdef Py_ssize_t running  # calls inside the buffer without the GIL
    cdef Py_ssize_t putting  # those of them that hold the mutex or wait for it
    cdef bint has_mutex, open, writable, exported
    cdef object path
    cdef object waiting      # has the open writer store what it has accepted; None: there is no writer
    cdef Owner owner
    cdef ChainHeads heads

    cdef int leave_buffer(self) except -1
    cdef int require_open(self) except -1
    cdef int require_writable(self) except -1
    cdef int enter(self, bint writing) except -1
    cdef int leave(self, bint writing) except -1
    cdef int lend(self, object store) except -1
    cdef int take_back(self) except -1
    cdef Py_ssize_t room(self) except -1
    cdef int put_lent(
        self, const int32_t* hashes, const int64_t* phy_offsets, const int64_t* store_timestamps, Py_ssize_t n
    ) except -1
    cdef bint put_waiting(self, int32_t h, int64_t phy_offset, int64_t store_timestamp) except -1
    cdef int32_t head_of(self, int32_t key_hash) except -2
    cdef object select_phy_offset(self, object key, int64_t max_num, int64_t begin, int64_t end)
    cdef object select_more(self, mqi_walk* walk, const int64_t* few)
    cdef object select_many(
        self, const int32_t* hashes, const int32_t* heads, const int32_t* limits, int64_t max_num, Py_ssize_t n,
        int64_t begin, int64_t end)


cdef inline int may_put(IndexEntries core) except -1:
    """`require_writable` in three comparisons."""
    if not (core.open and core.writable and core.owner.forks == forks_so_far):
        core.require_writable()
    return 0


cdef inline bint put_one(IndexEntries core, int32_t h, int64_t phy_offset, int64_t store_timestamp) except -1:
    """Append an entry; False: the file is full."""
    cdef size_t stored
    with cython.critical_section(core):
        may_put(core)
        if MQI_HAS_GIL and core.putting == 0:  # then the GIL is a sufficient mutex
            stored = mqi_index_put(&core.file, h, phy_offset, store_timestamp)
            still_whole(core.range)
            return stored == 1
        if pthread_mutex_trylock(&core.writers) == 0:
            stored = mqi_index_put(&core.file, h, phy_offset, store_timestamp)
            pthread_mutex_unlock(&core.writers)
            still_whole(core.range)
            return stored == 1
    return core.put_waiting(h, phy_offset, store_timestamp)


cdef Pinned run_of(object run)
