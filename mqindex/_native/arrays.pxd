# cython: language_level=3

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int64_t


cdef object array_of(int64_t* values, size_t n)
cdef object copy_of(const int64_t* values, size_t n)
cdef int hold(object exporter, Py_buffer* view, int flags, Py_ssize_t itemsize) except -1
cdef int take(object array, Py_buffer* view, Py_ssize_t itemsize, bint writable=*) except -1


@cython.final
cdef class Pinned:
    cdef Py_buffer view
    cdef bint held
    cdef readonly Py_ssize_t n

    cdef int whole(self) except -1
