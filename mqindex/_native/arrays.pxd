# cython: language_level=3

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t


cdef object array_of(int64_t* values, size_t n)
cdef object copy_of(const int64_t* values, size_t n)

# Arrays of n numbers that the caller is to write, through the pointer that is given as long as it holds the array.
cdef object int64_array(Py_ssize_t n, int64_t** values)
cdef object int32_array(Py_ssize_t n, int32_t** values)
