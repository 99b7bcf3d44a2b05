# cython: language_level=3

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from mqindex._native.crc cimport mqi_checksum
from mqindex._native.file_watch cimport FileWatch
from mqindex._native.guard cimport mqi_guard_range
from mqindex._native.index_entries cimport mqi_index_file
from mqindex._native.memory cimport Pinned


cdef extern from "mqi_key_filter.h" nogil:
    ctypedef struct mqi_key_filter:
        uint32_t n, files, shift

    ctypedef struct mqi_key_column:
        mqi_key_filter* filter
        uint32_t file


@cython.final
cdef class KeyFilter:
    cdef Pinned data
    cdef const mqi_guard_range* range
    cdef mqi_key_filter filter
    cdef FileWatch watch
    cdef bint loaded, lost

    cdef bint is_same(self) except -1
    cdef bint is_whole(self) noexcept nogil


@cython.final
cdef class AskedHashes:
    cdef readonly object hashes
    cdef Pinned pinned
    cdef bint alone
    cdef KeyFilter asked
    cdef uint32_t first, files
    cdef uint8_t[::1] held

    cdef const uint8_t* held_by(self, KeyFilter filter, uint32_t file, const mqi_index_file* f) except? NULL
