# cython: language_level=3


cdef class Owner:
    cdef readonly object path
    cdef long forks

    cpdef bint require(self) except -1
