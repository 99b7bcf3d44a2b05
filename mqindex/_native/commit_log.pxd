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


cdef class LogBuffer(Source):
    cdef mqi_log log

    cdef int64_t position(self, int64_t phy_offset) except -1
    cdef int64_t limit(self, int64_t phy_offset) noexcept
    cdef object fault(self, mqi_log_fault* fault)
