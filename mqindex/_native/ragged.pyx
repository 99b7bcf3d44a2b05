# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Rows of different lengths, picked out of a column."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from mqindex._native.memory cimport Pinned, integers, target_of


def taken(data, offsets, rows, /):
    """The rows with these numbers of a column of bytes: data uint8[b], offsets int64[n + 1].

    Raises
    ------
    IndexError : there is no such row
    ValueError : the offsets are none of this data
    """
    import numpy as np

    cdef Pinned source = Pinned(data)
    cdef Pinned bounds = integers(offsets, sizeof(int64_t)), wanted = integers(rows, sizeof(int64_t))
    cdef Pinned target, starts
    cdef const int64_t* at = <const int64_t*>bounds.view.buf
    cdef const int64_t* row = <const int64_t*>wanted.view.buf
    cdef int64_t* out
    cdef int64_t n = bounds.n - 1, i, length, total = 0
    made = np.empty(wanted.n + 1, np.int64)
    starts = target_of(made)
    out = <int64_t*>starts.view.buf
    out[0] = 0
    for i in range(wanted.n):
        if not 0 <= row[i] < n:
            raise IndexError(f"row {row[i]} of {max(n, 0)}")
        length = at[row[i] + 1] - at[row[i]]
        if length < 0 or at[row[i]] < 0 or at[row[i] + 1] > source.view.len or total > (1 << 62) - length:
            raise ValueError("offsets: expected those of a column of bytes")
        total += length
        out[i + 1] = total
    copied = np.empty(total, np.uint8)
    target = target_of(copied)
    with nogil:
        for i in range(wanted.n):
            if out[i + 1] > out[i]:
                memcpy(
                    <uint8_t*>target.view.buf + out[i], <const uint8_t*>source.view.buf + at[row[i]],
                    <size_t>(out[i + 1] - out[i]))
    source.whole()
    return copied, made
