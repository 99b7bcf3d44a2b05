# cython: language_level=3

from libc.stdint cimport int64_t, uint8_t


cdef extern from "mqi_log_encode.h" nogil:
    ctypedef struct mqi_piece:
        const uint8_t* p
        int64_t len

    ctypedef struct mqi_pieces:
        const mqi_piece* cells
        int64_t step


cdef extern from "mqi_log_text.h" nogil:
    int MQI_HOST_SIZE_IPV6
    int mqi_log_parse_host(const uint8_t* text, int64_t n, uint8_t* out) noexcept


cdef class Pieces:
    cdef mqi_piece* cells
    cdef readonly Py_ssize_t length
    cdef readonly bint constant
    cdef list owners

    cdef mqi_pieces view(self) noexcept
