# cython: language_level=3


cdef long forks_so_far  # between this process and the one that loaded the module


cdef class Owner:
    cdef readonly object path
    cdef long forks

    cpdef bint require(self) except -1


cdef inline int require_owner(Owner owner) except -1:
    """`owner.require()` of other kernels: one comparison."""
    if owner.forks != forks_so_far:
        owner.require()
    return 0
