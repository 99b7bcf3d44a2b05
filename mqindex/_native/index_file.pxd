# cython: language_level=3

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from mqindex._native.owner cimport Owner

from mqindex._native.guard cimport mqi_guard_range


cdef extern from "mqi_status.h" nogil:
    cdef enum:
        MQI_OK

    ctypedef struct mqi_fault:
        int32_t kind
        int64_t number
        int64_t at
        int64_t expected
        int64_t got


cdef extern from "mqi_index_file.h" nogil:
    cdef enum:
        MQI_HASH_SLOT_COUNT
        MQI_INDEX_COUNT
        MQI_INDEX_HEADER_SIZE
        MQI_SLOT_SIZE
        MQI_ENTRY_SIZE
        MQI_RUN_SIZE

    ctypedef struct mqi_index_file:
        uint8_t* base
        uint32_t hash_slot_num
        int32_t index_num

    ctypedef struct mqi_walk:
        int32_t cur

    ctypedef struct mqi_index_header:
        int64_t begin_timestamp, end_timestamp, begin_phy_offset, end_phy_offset
        int32_t hash_slot_count, index_count

    ctypedef struct mqi_hits:
        int64_t* values
        size_t room

    void mqi_index_bind(mqi_index_file* f, uint8_t* base, uint32_t hash_slot_num, int32_t index_num) noexcept
    int32_t mqi_index_next(const mqi_index_file* f) noexcept
    void mqi_index_read_header(const mqi_index_file* f, mqi_index_header* header) noexcept
    void mqi_index_seed(mqi_index_file* f, int64_t end_phy_offset, int64_t end_timestamp) noexcept
    void mqi_index_flush_header(mqi_index_file* f) noexcept
    size_t mqi_index_put(mqi_index_file* f, int32_t key_hash, int64_t phy_offset, int64_t store_timestamp) noexcept
    size_t mqi_index_put_columns(
        mqi_index_file* f, const int32_t* key_hashes, const int64_t* phy_offsets, const int64_t* store_timestamps,
        size_t n) noexcept
    size_t mqi_index_put_run(mqi_index_file* f, const uint8_t* run, size_t n) noexcept
    void mqi_index_walk_start(
        const mqi_index_file* f, mqi_walk* walk, int32_t key_hash, int64_t max_num, int64_t begin, int64_t end) noexcept
    size_t mqi_index_walk(const mqi_index_file* f, mqi_walk* walk, int64_t* out, size_t room) noexcept
    int mqi_index_select_many(
        const mqi_index_file* f, const int32_t* key_hashes, const int32_t* limits, int64_t max_num, size_t n,
        int64_t begin, int64_t end, int64_t* offsets, mqi_hits* hits) noexcept
    void mqi_index_entries(
        const mqi_index_file* f, size_t start, size_t n, int32_t* key_hashes, int64_t* phy_offsets,
        int32_t* time_diffs, int32_t* prev_indexes) noexcept
    void mqi_index_slots(const mqi_index_file* f, int32_t* out) noexcept
    size_t mqi_index_compare_run(const mqi_index_file* f, size_t start, const uint8_t* run, size_t n) noexcept
    size_t mqi_index_check(const mqi_index_file* f, int32_t* heads, mqi_fault* faults, size_t room) noexcept
    int mqi_index_fits(const mqi_index_file* f, size_t newest) noexcept


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define MQI_HAS_GIL 0
    #else
    #define MQI_HAS_GIL 1
    #endif
    """
    const bint MQI_HAS_GIL


cdef extern from "pthread.h" nogil:
    ctypedef struct pthread_mutex_t:
        pass

    int pthread_mutex_init(pthread_mutex_t* mutex, const void* attributes) noexcept
    int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept


cdef class IndexCore:
    cdef mqi_index_file file
    cdef Py_buffer view
    cdef const mqi_guard_range* range
    cdef pthread_mutex_t writers
    cdef Py_ssize_t running  # calls inside the buffer without the GIL
    cdef Py_ssize_t putting  # those of them that hold or want the mutex
    cdef bint has_mutex, open, writable, exported
    cdef object path
    cdef Owner owner

    cdef int leave_buffer(self) except -1
    cdef int want_open(self) except -1
    cdef int want_writable(self) except -1
    cdef int enter(self, bint writing) except -1
    cdef int leave(self, bint writing) except -1
    cdef object put_key(self, object key, int64_t phy_offset, int64_t store_timestamp)
    cdef object put_waiting(self, int32_t h, int64_t phy_offset, int64_t store_timestamp)
    cdef object select_phy_offset(self, object key, int64_t max_num, int64_t begin, int64_t end)
    cdef object select_more(self, mqi_walk* walk, const int64_t* few)
    cdef object select_many(
        self, const int32_t* hashes, const int32_t* limits, int64_t max_num, Py_ssize_t n, int64_t begin, int64_t end)
