# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Names of files: calls that the standard library does not have."""

from libc.errno cimport EINVAL, ENOSYS, EOPNOTSUPP

import os


cdef extern from "mqi_swap.h" nogil:
    int mqi_swap(const char* one, const char* other) noexcept


def swap(str one, str other, /):
    """Let two names exchange what they lead to, at once. False: the system or the file system cannot."""
    cdef bytes first = os.fsencode(one), second = os.fsencode(other)
    cdef const char* a = first
    cdef const char* b = second
    cdef int failed
    if 0 in first or 0 in second:
        raise ValueError("embedded null byte")
    with nogil:
        failed = mqi_swap(a, b)
    if failed in (ENOSYS, EINVAL, EOPNOTSUPP):
        return False
    if failed:
        raise OSError(failed, os.strerror(failed), one, None, other)
    return True
