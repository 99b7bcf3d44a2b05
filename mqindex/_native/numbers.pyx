# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Whole numbers and times that callers give, one at a time. Arrays of them: `mqindex.columns.numbers`."""

from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyIndex_Check, PyNumber_Index
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t

import datetime
import warnings

cdef object EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
cdef object MILLISECOND = datetime.timedelta(milliseconds=1)


cdef bint _is_bool(value):
    """Whether it is a bool, also NumPy's, which before NumPy 2 is a number for Python."""
    return isinstance(value, bool) or _is_of_kind(value, "b")


cdef bint _is_of_kind(value, str kind):
    """Whether it is a NumPy value of this kind. Of some objects, as a Spark column, every attribute is another one."""
    found = getattr(getattr(value, "dtype", None), "kind", None)
    return isinstance(found, str) and found == kind


def whole_number(str name not None, value, /):
    """An integer of any type as int; TypeError, naming the argument: a bool, a float, anything else."""
    if PyLong_CheckExact(value):
        return value
    if not _is_bool(value) and PyIndex_Check(value):
        try:
            return PyNumber_Index(value)
        except TypeError:
            pass
    raise TypeError(f"{name}: expected a whole number, got {value!r:.80}")


def milliseconds(str name not None, value, /):
    """Milliseconds since the epoch, rounded down, of an int, an aware datetime (also pandas') or a datetime64 (UTC).

    >>> milliseconds("begin", datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.timezone.utc))
    1700000000000
    """
    if PyLong_CheckExact(value):
        return value
    if isinstance(value, datetime.datetime):
        return _of_datetime(name, value)
    if _is_of_kind(value, "M") and getattr(value, "ndim", 1) == 0:
        import numpy

        if numpy.isnat(value):
            raise ValueError(f"{name}: expected a time, got NaT")
        return int(value.astype("datetime64[ms]").astype(numpy.int64))
    try:
        return whole_number(name, value)
    except TypeError:
        shown = f", {value!r:.80}" if isinstance(value, (float, bool, str)) else ""
        raise TypeError(
            f"{name}: expected ms since the epoch, an aware datetime or a datetime64, "
            f"got {type(value).__name__}{shown}") from None


cdef object _of_datetime(str name, object value):
    if value != value:
        raise ValueError(f"{name}: expected a time, got NaT")
    if value.utcoffset() is None:
        raise ValueError(
            f"{name}: expected a datetime with a time zone, got {value}: give it one, as tzinfo=datetime.UTC")
    return int((value - EPOCH) // MILLISECOND)


def int64(str name not None, value, /):
    """An int of at most 64 bits; OverflowError, naming the argument: more."""
    if not INT64_MIN <= value <= INT64_MAX:
        raise OverflowError(f"{name}: expected 64 bits, got {value}")
    return value


cdef int64_t other_whole(object number, str name) except? -1:
    return int64(name, whole_number(name, number))


cdef int64_t other_time(object moment, str name) except? -1:
    return int64(name, milliseconds(name, moment))


cdef int doubt_period(int64_t begin, int64_t end, int level=1) except -1:
    """Warn the caller of a period that probably contains nothing; the answer stays the broker's."""
    if begin > end:
        warnings.warn(f"begin {begin} is after end {end}: nothing is between them", stacklevel=level)
    for name, moment in (("begin", begin), ("end", end)):
        if looks_like_seconds(moment):
            warnings.warn(
                f"{name} {moment} is a time in 1970: times are ms since the epoch, is this one in seconds?",
                stacklevel=level)
    return 0


def period(begin, end, /):
    """(begin, end) in ms since the epoch. A period that is probably empty is a warning for the caller's caller."""
    cdef int64_t first = time_of(begin, "begin")
    cdef int64_t last = time_of(end, "end")
    if is_doubtful(first, last):
        doubt_period(first, last, 2)
    return first, last
