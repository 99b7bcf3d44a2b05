# cython: language_level=3

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "mqi_consume_queue.h" nogil:
    int MQI_UNIT_SIZE

    ctypedef struct mqi_unit_take:
        const int64_t* starts
        const int64_t* stops
        int64_t files
        int64_t* queue_offsets
        int64_t* phy_offsets
        int32_t* sizes
        int64_t* tags_codes
        int64_t room
        int64_t found
        int64_t gone

    int64_t mqi_units_take(
        mqi_unit_take* t, const int32_t* hashes, int64_t k, const uint8_t* units, int64_t n, int64_t first) noexcept
    int64_t mqi_units_check(const uint8_t* units, int64_t n) noexcept
