# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Searches by time in one Kafka segment's log, many at once. `buf` is the log."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t

from mqindex._native.arrays cimport Pinned

from mqindex.errors import OffsetOverflowError


cdef extern from "mqi_kafka_log.h" nogil:
    ctypedef struct mqi_kafka_log:
        const uint8_t* buf
        int64_t len
        int check_crc

    int MQI_BATCH_FINE

    ctypedef struct mqi_kafka_batch:
        int64_t position

    ctypedef struct mqi_batch_fault:
        int64_t at
        int64_t expected
        int64_t got
        int32_t kind


cdef extern from "mqi_kafka_search.h" nogil:
    void mqi_kafka_find_batches(
        const mqi_kafka_log* log, int64_t stop, const int64_t* starts, const int64_t* times, int64_t n, int64_t* found,
        mqi_batch_fault* fault) noexcept
    int64_t mqi_kafka_batches_at(
        const mqi_kafka_log* log, const int64_t* positions, int64_t n, mqi_kafka_batch* out) noexcept
    void mqi_first_not_below(
        const int64_t* values, const int64_t* starts, const int64_t* stops, const int64_t* targets, int64_t n,
        int64_t* found) noexcept


cdef Pinned _pin(mqi_kafka_log* log, object buf):
    cdef Pinned pinned = Pinned(buf)
    if pinned.n > INT32_MAX:
        raise OffsetOverflowError(
            "the log is longer than any position can tell", field="position", expected=f"{INT32_MAX} bytes or less",
            got=pinned.n)
    log.buf, log.len, log.check_crc = <const uint8_t*>pinned.view.buf, pinned.n, False
    return pinned


cdef Pinned _numbers(object array):
    return Pinned(array, sizeof(int64_t), False, True)


cdef const int64_t* _positions(Pinned positions, const mqi_kafka_log* log) except NULL:
    cdef const int64_t* at = <const int64_t*>positions.view.buf
    cdef int64_t i
    for i in range(positions.n):
        if not 0 <= at[i] <= log.len:
            raise ValueError(f"positions: expected 0..{log.len}, of batches of the log, got {at[i]}")
    return at


def find_batches(buf, int64_t stop, starts, times, /):
    """For each pair the first batch from its start on whose max timestamp is not below its time: `(positions, at)`.

    Batches that begin before `stop`; -1: there is none. Each start is the begin of a batch. Pairs in the order of
    (start, time) share their walk. at : the position of a batch that is none and ended a walk, None: no such met.
    """
    import numpy as np

    cdef mqi_kafka_log log
    cdef mqi_batch_fault fault
    cdef Pinned begins = _numbers(starts), wanted = _numbers(times), held = _pin(&log, buf)
    cdef const int64_t* positions = _positions(begins, &log)
    if wanted.n != begins.n:
        raise ValueError(f"times: expected {begins.n}, as many as starts, got {wanted.n}")
    answer = np.empty(begins.n, np.int64)
    cdef Pinned found = Pinned(answer, 1, True)
    fault.kind = MQI_BATCH_FINE
    with nogil:
        mqi_kafka_find_batches(
            &log, min(stop, log.len), positions, <const int64_t*>wanted.view.buf, begins.n, <int64_t*>found.view.buf,
            &fault)
    held.whole()
    return answer, None if fault.kind == MQI_BATCH_FINE else fault.at


def batches_at(buf, positions, /):
    """The batches that begin at `positions`: packed rows, fewer than asked for where one of them is none."""
    import numpy as np

    cdef mqi_kafka_log log
    cdef int64_t done
    cdef Pinned begins = _numbers(positions), held = _pin(&log, buf)
    cdef const int64_t* at = _positions(begins, &log)
    rows = np.empty(begins.n * sizeof(mqi_kafka_batch), np.uint8)
    cdef Pinned out = Pinned(rows, 1, True)
    with nogil:
        done = mqi_kafka_batches_at(&log, at, begins.n, <mqi_kafka_batch*>out.view.buf)
    held.whole()
    return rows[:done * sizeof(mqi_kafka_batch)].data


def first_not_below(values, starts, stops, targets, /):
    """For each target the index of the first value in [start, stop) that is not below it; -1: there is none.

    In the order of (start, target) no value is read twice.
    """
    import numpy as np

    cdef Pinned all_of = _numbers(values), first = _numbers(starts), last = _numbers(stops), wanted = _numbers(targets)
    cdef const int64_t* start = <const int64_t*>first.view.buf
    cdef const int64_t* stop = <const int64_t*>last.view.buf
    cdef int64_t i
    if last.n != first.n or wanted.n != first.n:
        raise ValueError(f"stops, targets: expected {first.n} each, got {last.n} and {wanted.n}")
    for i in range(first.n):
        if not 0 <= start[i] <= stop[i] <= all_of.n:
            raise ValueError(f"starts, stops: expected parts of {all_of.n}, got {start[i]} and {stop[i]}")
    answer = np.empty(first.n, np.int64)
    cdef Pinned found = Pinned(answer, 1, True)
    with nogil:
        mqi_first_not_below(
            <const int64_t*>all_of.view.buf, start, stop, <const int64_t*>wanted.view.buf, first.n,
            <int64_t*>found.view.buf)
    return answer
