"""Whole numbers and times that callers give, one at a time; an int costs one look at its type."""

from cpython.long cimport PyLong_CheckExact
from libc.stdint cimport int64_t

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef extern from *:
    """
    #include <stdint.h>
    /* An exact int of few digits, 0 .. 2^60 - 1 in Python 3.11, as offsets and times are: no call; 0: another. */
    static inline int mqi_plain_int(PyObject *number, int64_t *value) {
    #if PY_VERSION_HEX < 0x030C0000 && PYLONG_BITS_IN_DIGIT == 30
        if (!PyLong_CheckExact(number)) return 0;
        const digit *digits = ((PyLongObject *)number)->ob_digit;
        Py_ssize_t n = Py_SIZE(number); /* below 0: a negative number */
        *value = n == 2 ? (int64_t)digits[1] << 30 | digits[0] : n == 1 ? (int64_t)digits[0] : 0;
        return n == 0 || n == 1 || n == 2;
    #elif PY_VERSION_HEX >= 0x030C0000
        if (!PyLong_CheckExact(number) || !PyUnstable_Long_IsCompact((PyLongObject *)number)) return 0;
        *value = PyUnstable_Long_CompactValue((PyLongObject *)number);
        return 1;
    #else
        (void)number, (void)value;
        return 0;
    #endif
    }
    """
    bint mqi_plain_int(object number, int64_t* value) noexcept

cdef int64_t other_whole(object number, str name) except? -1
cdef int64_t other_time(object moment, str name) except? -1
cdef int doubt_period(int64_t begin, int64_t end, int level=*) except -1


cdef inline int64_t whole(object number, str name) except? -1:
    """The 64 bits of an integer of any type; Cython's own conversion would cut the fraction off a float."""
    cdef int overflow = 0
    cdef int64_t value
    if mqi_plain_int(number, &value):
        return value
    if PyLong_CheckExact(number):
        value = PyLong_AsLongLongAndOverflow(number, &overflow)
        if overflow == 0:
            return value
    return other_whole(number, name)


cdef inline int64_t time_of(object moment, str name) except? -1:
    """Milliseconds since the epoch of an int, an aware datetime or a datetime64."""
    cdef int overflow = 0
    cdef int64_t value
    if mqi_plain_int(moment, &value):
        return value
    if PyLong_CheckExact(moment):
        value = PyLong_AsLongLongAndOverflow(moment, &overflow)
        if overflow == 0:
            return value
    return other_time(moment, name)


cdef enum:
    SECONDS_FROM = 1_000_000_000  # as seconds: 2001


cdef inline bint looks_like_seconds(int64_t moment) noexcept:
    """Ms of January to April 1970: as seconds they would be of 2001 to 2286."""
    return SECONDS_FROM <= moment < 10 * <int64_t> SECONDS_FROM  # a larger literal would be compared as an object


cdef inline bint is_doubtful(int64_t begin, int64_t end) noexcept:
    """Times out of order, or in seconds, as those of today would be."""
    return begin > end or looks_like_seconds(begin) or looks_like_seconds(end)
