# cython: language_level=3
cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from mqindex._native.guard cimport mqi_guard_range


@cython.final
cdef class Block:
    cdef uint8_t* data
    cdef Py_ssize_t size
    cdef bint readonly


cdef Block new_block(size_t size, bint readonly=*)
cdef Block block_of(void* data, size_t size, bint readonly)


@cython.final
cdef class Pinned:
    cdef Py_buffer view
    cdef bint held
    cdef readonly Py_ssize_t n

    cdef int whole(self) except -1


cdef Pinned integers(object array, Py_ssize_t itemsize)
cdef Pinned target_of(object array)
cdef Pinned strided(object array)


cdef class Source:
    cdef Py_buffer view
    cdef const mqi_guard_range* range
    cdef bint held

    cdef int pin(self, object exporter) except -1
    cdef void release(self) noexcept
    cdef int leave(self) except -1
