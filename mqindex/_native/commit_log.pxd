# cython: language_level=3

from libc.stdint cimport int32_t, int64_t, uint8_t

from mqindex._native.crc cimport mqi_checksum
from mqindex._native.memory cimport Source


cdef extern from "mqi_log_scan.h" nogil:
    ctypedef struct mqi_log:
        const uint8_t* buf
        int64_t len
        int64_t start
        mqi_checksum* crc32

    ctypedef struct mqi_log_fault:
        int64_t at
        int32_t kind
        int32_t field
        int32_t relation
        int64_t expected
        int64_t got

    ctypedef struct mqi_log_frame:
        int64_t born_host_pos
        int64_t store_host_pos
        int32_t born_host_len
        int32_t store_host_len
        int64_t phy_offset
        int64_t queue_offset
        int64_t born_timestamp
        int64_t store_timestamp
        int64_t prepared_transaction_offset
        int64_t body_pos
        int64_t topic_pos
        int64_t properties_pos
        int32_t size
        int32_t body_crc
        int32_t queue_id
        int32_t flag
        int32_t sys_flag
        int32_t reconsume_times
        int32_t body_len
        int32_t topic_len
        int32_t properties_len

    ctypedef struct mqi_log_scan:
        int64_t at
        int64_t blank
        int done
        mqi_log_fault fault

    int64_t mqi_log_scan_frames(
        const mqi_log* log, mqi_log_scan* scan, int64_t stop, mqi_log_frame* out, int64_t max) noexcept


cdef class LogBuffer(Source):
    cdef mqi_log log

    cdef int64_t position(self, int64_t phy_offset) except -1
    cdef int64_t limit(self, int64_t phy_offset) noexcept
    cdef object fault(self, mqi_log_fault* fault)


cdef class FrameWalk:
    cdef LogBuffer log
    cdef mqi_log_scan scan
    cdef int64_t start, stop, max_frames
    cdef bint busy

    cdef int64_t most(self) noexcept
    cdef object next_frames(self)
