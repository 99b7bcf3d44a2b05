# cython: language_level=3

from libc.stdint cimport uint8_t, uint32_t


cdef extern from "mqi_crc.h" nogil:
    ctypedef uint32_t mqi_checksum(const uint8_t* p, size_t n, uint32_t crc) noexcept


cdef mqi_checksum* checksum32
cdef mqi_checksum* checksum32c
