# cython: language_level=3

from libc.stddef cimport size_t
from libc.stdint cimport int64_t


cdef object array_of(int64_t* values, size_t n)
cdef object copy_of(const int64_t* values, size_t n)
