# cython: language_level=3

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t

from mqindex._native.crc cimport mqi_checksum
from mqindex._native.memory cimport Source


cdef extern from "mqi_crc_sums.h" nogil:
    ctypedef struct mqi_crc_sums:
        pass


cdef extern from "mqi_kafka_batch.h" nogil:
    ctypedef struct mqi_kafka_log:
        const uint8_t* buf
        int64_t len
        mqi_checksum* crc32
        mqi_checksum* crc32c
        mqi_crc_sums* sums

    int MQI_BATCH_FINE
    int MQI_BATCH_BAD_CRC

    ctypedef struct mqi_batch_fault:
        int64_t at
        int64_t expected
        int64_t got
        int32_t kind

    ctypedef struct mqi_kafka_batch:
        int64_t position
        int64_t base_offset
        int64_t last_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        int32_t size
        int32_t leader_epoch
        uint32_t crc
        int32_t count
        int32_t base_sequence
        int16_t attributes
        int16_t producer_epoch
        int8_t magic


cdef class BatchSource(Source):
    cdef mqi_kafka_log log

    cdef int64_t position(self, int64_t at, str name) except -1
    cdef int64_t limit(self, object stop) except? -1


cdef class Resync:
    cdef BatchSource log
    cdef mqi_crc_sums sums[2]

    cdef object _found(
        self, int64_t (*find)(const mqi_kafka_log*, int64_t, int64_t, int64_t) noexcept nogil, int64_t at,
        int64_t floor, int64_t ceiling)


cdef object fault_of(const mqi_batch_fault* fault)
