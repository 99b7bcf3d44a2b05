# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Batches of one Kafka segment's log: walk them, search them by offset or time. `buf` is the log.

A fault is `(kind, at, field, expected, got)`: "bad-length" or "bad-crc", and the position of the first bad batch. A log
that ends inside a batch has none.
"""

cimport cython
from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint32_t

from mqindex._native.crc cimport checksum32, checksum32c, mqi_checksum
from mqindex._native.guard cimport still_whole
from mqindex._native.kafka_log cimport (
    MQI_BATCH_BAD_CRC, MQI_BATCH_FINE, BatchSource, mqi_batch_fault, mqi_crc_sums, mqi_kafka_batch, mqi_kafka_log,
)
from mqindex._native.memory cimport Block, Pinned, Source, integers, new_block, target_of

from mqindex.errors import OffsetOverflowError


cdef extern from "mqi_kafka_log.h" nogil:
    ctypedef struct mqi_kafka_scan:
        int64_t at
        int done
        mqi_batch_fault fault

    int64_t mqi_kafka_scan_batches(
        const mqi_kafka_log* log, mqi_kafka_scan* scan, int64_t stop, mqi_kafka_batch* out, int64_t max) noexcept

    int MQI_FIND_LAST_OFFSET
    int MQI_FIND_MAX_TIMESTAMP
    int mqi_kafka_find_batch(
        const mqi_kafka_log* log, mqi_kafka_scan* scan, int64_t stop, int column, int64_t target,
        mqi_kafka_batch* out) noexcept

    void mqi_kafka_find_batches(
        const mqi_kafka_log* log, int64_t stop, const int64_t* starts, const int64_t* times, int64_t n, int64_t* found,
        mqi_batch_fault* fault) noexcept
    int64_t mqi_kafka_batches_at(
        const mqi_kafka_log* log, const int64_t* positions, int64_t n, mqi_kafka_batch* out) noexcept
    void mqi_first_not_below(
        const int64_t* values, const int64_t* starts, const int64_t* stops, const int64_t* targets, int64_t n,
        int64_t* found) noexcept


cdef extern from "mqi_crc_sums.h" nogil:
    uint32_t MQI_CRC32_POLYNOMIAL
    uint32_t MQI_CRC32C_POLYNOMIAL
    int mqi_crc_sums_start(
        mqi_crc_sums* s, const uint8_t* buf, int64_t len, mqi_checksum* checksum, uint32_t polynomial) noexcept
    void mqi_crc_sums_free(mqi_crc_sums* s) noexcept


cdef extern from "mqi_kafka_resync.h" nogil:
    int64_t mqi_kafka_next_batch(const mqi_kafka_log* log, int64_t at, int64_t floor, int64_t ceiling) noexcept
    int64_t mqi_kafka_batch_after(const mqi_kafka_log* log, int64_t bad, int64_t floor, int64_t ceiling) noexcept


cdef enum:
    CHUNK = 4096  # batches of one view
    LEAST = 26  # bytes of the shortest batch


cdef object fault_of(const mqi_batch_fault* fault):
    if fault.kind == MQI_BATCH_FINE:
        return None
    if fault.kind == MQI_BATCH_BAD_CRC:
        return "bad-crc", fault.at, "crc", f"0x{fault.expected:08X}", f"0x{<uint32_t>fault.got:08X}"
    most = "less" if fault.got > fault.expected else "more"
    return "bad-length", fault.at, "length", f"{fault.expected} bytes or {most}", str(fault.got)


cdef class BatchSource(Source):
    """The bytes of a log."""

    def __cinit__(self, buf, bint check_crc):
        self.pin(buf)
        self.log.buf, self.log.len = <const uint8_t*>self.view.buf, self.view.len
        if check_crc:
            self.log.crc32, self.log.crc32c = checksum32, checksum32c
        if self.log.len > INT32_MAX:
            raise OffsetOverflowError(
                "the log is longer than a position can say", field="position", expected=f"{INT32_MAX} bytes or less",
                got=self.log.len)

    cdef int64_t position(self, int64_t at, str name) except -1:
        if not 0 <= at <= self.log.len:
            raise ValueError(f"{name}: expected 0..{self.log.len}, positions of batches of the log, got {at}")
        return at

    cdef int64_t limit(self, object stop) except? -1:
        return self.log.len if stop is None else min(<int64_t>stop, self.log.len)


@cython.final
cdef class Resync:
    """Where a damaged log goes on: the positions of its valid batches. What is valid: `mqi_kafka_resync.h`.

    floor, ceiling : offsets; a batch's base offset is not below the one, its last offset is below the other. All calls
    of one object, ever further on, cost time in proportion to the log's length, whatever it holds; with it, a
    `BatchScan` too. For one thread at a time.
    """

    def __cinit__(self, buf):
        self.log = BatchSource(buf, True)
        cdef mqi_kafka_log* log = &self.log.log
        if not mqi_crc_sums_start(&self.sums[0], log.buf, log.len, log.crc32, MQI_CRC32_POLYNOMIAL):
            raise MemoryError
        if not mqi_crc_sums_start(&self.sums[1], log.buf, log.len, log.crc32c, MQI_CRC32C_POLYNOMIAL):
            raise MemoryError
        log.sums = self.sums

    def __dealloc__(self):
        mqi_crc_sums_free(&self.sums[0])
        mqi_crc_sums_free(&self.sums[1])

    def next_batch(self, int64_t at, int64_t floor, int64_t ceiling, /):
        """The first position from `at` on where a valid batch begins; the log's length: there is none."""
        return self._found(mqi_kafka_next_batch, self.log.position(at, "at"), floor, ceiling)

    def batch_after(self, int64_t bad, int64_t floor, int64_t ceiling, /):
        """Where the log goes on behind what is no valid batch at `bad`; the log's length: nowhere.

        Where its length leads, if a valid batch begins there or the log ends; else at the next valid batch.
        """
        return self._found(mqi_kafka_batch_after, self.log.position(bad, "bad"), floor, ceiling)

    cdef object _found(
        self, int64_t (*find)(const mqi_kafka_log*, int64_t, int64_t, int64_t) noexcept nogil, int64_t at,
        int64_t floor, int64_t ceiling
    ):
        cdef int64_t found
        with cython.critical_section(self), nogil:
            found = find(&self.log.log, at, floor, ceiling)
        still_whole(self.log.range)
        return found


@cython.final
cdef class BatchScan:
    """Batches that begin at the positions [start, stop); `start` must be the beginning of one. stop None: to the end.

    Iterating gives memoryviews of packed rows (`mqindex.kafka.batches.BATCH`). Afterwards `end` is the position
    after the last whole, good batch, and `fault` is that of the one there, if it is bad. check_crc=False compares
    no checksums. resync: the object that found `start`, of the same log. For one thread at a time.
    """

    cdef BatchSource log
    cdef Resync resync
    cdef mqi_kafka_scan scan
    cdef int64_t stop
    cdef bint busy

    def __init__(self, buf, int64_t start=0, stop=None, /, *, bint check_crc=True, Resync resync=None):
        if self.log is not None:
            raise TypeError("a BatchScan is made once")
        cdef BatchSource log = BatchSource(buf, check_crc)
        self.stop = log.limit(stop)
        self.scan.at = log.position(start, "start")
        if resync is not None:
            if not check_crc or resync.log.log.buf != log.log.buf or resync.log.log.len != log.log.len:
                raise ValueError("resync: expected that of the same log, and checksums that are compared")
            log.log.sums, self.resync = resync.sums, resync
        self.log = log

    def __iter__(self):
        return self

    def __next__(self):
        cdef Block rows = None
        cdef int64_t n = 0, room
        with cython.critical_section(self):
            if self.busy or self.log is None:
                raise RuntimeError("a BatchScan serves one thread at a time")
            self.busy = True
        try:
            if not self.scan.done:
                room = min(<int64_t>CHUNK, max(self.stop - self.scan.at, 0) // LEAST + 1)
                rows = new_block(room * sizeof(mqi_kafka_batch))
                with nogil:
                    n = mqi_kafka_scan_batches(&self.log.log, &self.scan, self.stop, <mqi_kafka_batch*>rows.data, room)
                still_whole(self.log.range)
            if n == 0:
                self.log.release()
                raise StopIteration
            return memoryview(rows)[:n * sizeof(mqi_kafka_batch)]
        finally:
            self.busy = False

    @property
    def end(self):
        """The position after the last whole, good batch."""
        return self.scan.at

    @property
    def fault(self):
        """`(kind, at, field, expected, got)` of the bad batch that ended the walk, or None."""
        return fault_of(&self.scan.fault)


def find_batch(buf, int64_t start, stop, str column, int64_t target, /):
    """The first batch from `start` on that is not below `target`: `(row, end, fault)`.

    column : "last_offset" or "max_timestamp". row : the packed bytes of one batch, None: there is none; end : after
    the last batch that was read; fault : as of a `BatchScan` without checksums.
    """
    cdef BatchSource log = BatchSource(buf, False)
    cdef mqi_kafka_scan scan
    cdef mqi_kafka_batch row
    cdef int64_t limit = log.limit(stop)
    cdef int which = MQI_FIND_MAX_TIMESTAMP
    cdef bint found
    if column == "last_offset":
        which = MQI_FIND_LAST_OFFSET
    elif column != "max_timestamp":
        raise ValueError(f"column: expected last_offset or max_timestamp, got {column}")
    scan.at, scan.fault.kind = log.position(start, "start"), MQI_BATCH_FINE
    with nogil:
        found = mqi_kafka_find_batch(&log.log, &scan, limit, which, target, &row) != 0
    log.leave()
    return (<const char*>&row)[:sizeof(row)] if found else None, scan.at, fault_of(&scan.fault)


# ---- searches, many at once

cdef Pinned _numbers(object array):
    return integers(array, sizeof(int64_t))


cdef const int64_t* _positions(Pinned positions, BatchSource log) except NULL:
    cdef const int64_t* at = <const int64_t*>positions.view.buf
    cdef int64_t i
    for i in range(positions.n):
        log.position(at[i], "positions")
    return at


def find_batches(buf, int64_t stop, starts, times, /):
    """For each pair the first batch from its start on whose max timestamp is not below its time: `(positions, at)`.

    Batches that begin before `stop`; -1: there is none. Each start is the beginning of a batch. Pairs in the order of
    (start, time) share their walk. at : a position that has no batch and ended a walk, None: there was none.
    """
    import numpy as np

    cdef BatchSource log = BatchSource(buf, False)
    cdef mqi_batch_fault fault
    cdef Pinned begins = _numbers(starts), wanted = _numbers(times)
    cdef const int64_t* positions = _positions(begins, log)
    if wanted.n != begins.n:
        raise ValueError(f"times: expected {begins.n}, as many as starts, got {wanted.n}")
    answer = np.empty(begins.n, np.int64)
    cdef Pinned found = target_of(answer)
    fault.kind = MQI_BATCH_FINE
    with nogil:
        mqi_kafka_find_batches(
            &log.log, min(stop, log.log.len), positions, <const int64_t*>wanted.view.buf, begins.n,
            <int64_t*>found.view.buf, &fault)
    log.leave()
    return answer, None if fault.kind == MQI_BATCH_FINE else fault.at


def batches_at(buf, positions, /):
    """The batches that begin at `positions`: packed rows, fewer than `positions` if one of them has none."""
    import numpy as np

    cdef BatchSource log = BatchSource(buf, False)
    cdef int64_t done
    cdef Pinned begins = _numbers(positions)
    cdef const int64_t* at = _positions(begins, log)
    rows = np.empty(begins.n * sizeof(mqi_kafka_batch), np.uint8)
    cdef Pinned out = target_of(rows)
    with nogil:
        done = mqi_kafka_batches_at(&log.log, at, begins.n, <mqi_kafka_batch*>out.view.buf)
    log.leave()
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
    cdef Pinned found = target_of(answer)
    with nogil:
        mqi_first_not_below(
            <const int64_t*>all_of.view.buf, start, stop, <const int64_t*>wanted.view.buf, first.n,
            <int64_t*>found.view.buf)
    return answer
