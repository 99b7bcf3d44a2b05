# cython: language_level=3

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from mqindex._native.guard cimport mqi_guard_range
from mqindex._native.memory cimport Pinned
from mqindex._native.owner cimport Owner


cdef extern from "mqi_index_file.h" nogil:
    cdef enum:
        MQI_INDEX_HEADER_SIZE
        MQI_SLOT_SIZE
        MQI_ENTRY_SIZE

    ctypedef struct mqi_index_file:
        uint8_t* base
        uint32_t hash_slot_num
        int32_t index_num


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
    cdef Owner owner
    cdef ChainHeads heads

    cdef int leave_buffer(self) except -1
    cdef int require_open(self) except -1
    cdef int require_writable(self) except -1
    cdef int enter(self, bint writing) except -1
    cdef int leave(self, bint writing) except -1
    cdef object put_key(self, object key, int64_t phy_offset, int64_t store_timestamp)
    cdef object put_waiting(self, int32_t h, int64_t phy_offset, int64_t store_timestamp)
    cdef object select_phy_offset(self, object key, int64_t max_num, int64_t begin, int64_t end)
    cdef object select_more(self, mqi_walk* walk, const int64_t* few)
    cdef object select_many(
        self, const int32_t* hashes, const int32_t* heads, const int32_t* limits, int64_t max_num, Py_ssize_t n,
        int64_t begin, int64_t end)


cdef Pinned run_of(object run)
