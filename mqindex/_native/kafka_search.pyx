# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Searches by time in one Kafka segment's log, many at once. `buf` is the log."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t

from mqindex._native.guard cimport range_at, still_whole

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


cdef int _pin(mqi_kafka_log* log, const uint8_t[::1] buf) except -1:
    if buf.shape[0] > INT32_MAX:
        raise OffsetOverflowError(
            "the log is longer than any position can tell", field="position", expected=f"{INT32_MAX} bytes or less",
            got=buf.shape[0])
    log.buf, log.len, log.check_crc = &buf[0] if buf.shape[0] else NULL, buf.shape[0], False
    return 0


cdef int _check(const mqi_kafka_log* log, const int64_t[::1] positions) except -1:
    cdef int64_t i
    for i in range(positions.shape[0]):
        if not 0 <= positions[i] <= log.len:
            raise ValueError(f"positions: expected 0..{log.len}, of batches of the log, got {positions[i]}")
    return 0


def find_batches(const uint8_t[::1] buf, int64_t stop, const int64_t[::1] starts, const int64_t[::1] times, /):
    """For each pair the first batch from its start on whose max timestamp is not below its time: `(positions, at)`.

    Batches that begin before `stop`; -1: there is none. Each start is the begin of a batch. Pairs in the order of
    (start, time) share their walk. at : the position of a batch that is none and ended a walk, None: no such met.
    """
    import numpy as np

    cdef mqi_kafka_log log
    cdef mqi_batch_fault fault
    cdef int64_t n = starts.shape[0]
    if times.shape[0] != n:
        raise ValueError(f"times: expected {n}, as many as starts, got {times.shape[0]}")
    _pin(&log, buf)
    _check(&log, starts)
    answer = np.empty(n, np.int64)
    cdef int64_t[::1] found = answer
    fault.kind = MQI_BATCH_FINE
    if n:
        with nogil:
            mqi_kafka_find_batches(&log, min(stop, log.len), &starts[0], &times[0], n, &found[0], &fault)
    still_whole(range_at(log.buf))
    return answer, None if fault.kind == MQI_BATCH_FINE else fault.at


def batches_at(const uint8_t[::1] buf, const int64_t[::1] positions, /):
    """The batches that begin at `positions`: packed rows, fewer than asked for where one of them is none."""
    import numpy as np

    cdef mqi_kafka_log log
    cdef int64_t n = positions.shape[0], done = 0
    _pin(&log, buf)
    _check(&log, positions)
    rows = np.empty(n * sizeof(mqi_kafka_batch), np.uint8)
    cdef uint8_t[::1] out = rows
    if n:
        with nogil:
            done = mqi_kafka_batches_at(&log, &positions[0], n, <mqi_kafka_batch*>&out[0])
    still_whole(range_at(log.buf))
    return rows[:done * sizeof(mqi_kafka_batch)].data


def first_not_below(
    const int64_t[::1] values, const int64_t[::1] starts, const int64_t[::1] stops, const int64_t[::1] targets, /
):
    """For each target the index of the first value in [start, stop) that is not below it; -1: there is none.

    In the order of (start, target) no value is read twice.
    """
    import numpy as np

    cdef int64_t n = starts.shape[0], i
    if stops.shape[0] != n or targets.shape[0] != n:
        raise ValueError(f"stops, targets: expected {n} each, got {stops.shape[0]} and {targets.shape[0]}")
    for i in range(n):
        if not 0 <= starts[i] <= stops[i] <= values.shape[0]:
            raise ValueError(f"starts, stops: expected parts of {values.shape[0]}, got {starts[i]} and {stops[i]}")
    answer = np.empty(n, np.int64)
    cdef int64_t[::1] found = answer
    if n and values.shape[0]:
        with nogil:
            mqi_first_not_below(&values[0], &starts[0], &stops[0], &targets[0], n, &found[0])
    else:
        answer.fill(-1)
    return answer
