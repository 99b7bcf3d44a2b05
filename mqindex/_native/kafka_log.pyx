# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Batches of one Kafka segment's log: walk them, search them, make the index files of a recovery. `buf` is the log.

A fault is `(kind, at, field, expected, got)`: "bad-length" or "bad-crc", and the position of the first bad batch. A log
that ends inside a batch has none.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

import os

from mqindex._native.guard cimport mqi_guard_range, range_of, still_whole

from mqindex.errors import IndexFullError, OffsetOverflowError, OutOfOrderError, TruncatedFileError


cdef extern from "mqi_kafka_log.h" nogil:
    ctypedef struct mqi_kafka_log:
        const uint8_t* buf
        int64_t len
        int check_crc

    int MQI_BATCH_FINE
    int MQI_BATCH_BAD_CRC

    ctypedef struct mqi_batch_fault:
        int64_t at
        int64_t expected
        int64_t got
        int32_t kind

    ctypedef struct mqi_kafka_batch:
        int64_t position
        int64_t base_offset
        int64_t last_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        int32_t size
        int32_t leader_epoch
        uint32_t crc
        int32_t count
        int32_t base_sequence
        int16_t attributes
        int16_t producer_epoch
        int8_t magic

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

    int MQI_RECOVERY_RUNS
    int MQI_RECOVERY_DONE
    int MQI_RECOVERY_WANTS_FIRST
    int MQI_RECOVERY_OVERFLOW
    int MQI_RECOVERY_FULL
    int MQI_RECOVERY_ORDER
    int MQI_RECOVERY_NO_MEMORY
    int MQI_RECOVERY_UNREADABLE

    ctypedef struct mqi_bytes:
        uint8_t* data
        int64_t size

    int MQI_ODDITIES

    ctypedef struct mqi_batch_odd:
        int64_t count
        int64_t at
        int64_t expected
        int64_t got

    ctypedef struct mqi_kafka_recovery:
        mqi_kafka_log log
        int64_t base_offset
        int64_t index_interval
        int64_t max_index_size
        int fd
        int first_offsets
        int state
        int error
        int in_time_index
        int64_t valid
        int64_t batches
        int64_t last_offset
        int64_t max_timestamp
        int64_t max_timestamp_offset
        int64_t first_offset
        int64_t refused
        int64_t limit
        mqi_bytes offset_index
        mqi_bytes time_index
        mqi_bytes transactional
        mqi_bytes epochs
        mqi_batch_odd odd[4]
        mqi_batch_fault fault

    void mqi_kafka_recover_start(mqi_kafka_recovery* r) noexcept
    void mqi_kafka_recover(mqi_kafka_recovery* r, int64_t stop) noexcept
    void mqi_kafka_recover_free(mqi_kafka_recovery* r) noexcept


cdef enum:
    CHUNK = 4096  # batches of one view
    LEAST = 26  # bytes of the shortest batch

_INDEXES = ("offset index", "time index")
_ODDITIES = ("order", "base", "magic", "count")  # as MQI_ODD_*


cdef object _fault(const mqi_batch_fault* fault):
    if fault.kind == MQI_BATCH_FINE:
        return None
    if fault.kind == MQI_BATCH_BAD_CRC:
        return "bad-crc", fault.at, "crc", f"0x{fault.expected:08X}", f"0x{<uint32_t>fault.got:08X}"
    return "bad-length", fault.at, "length", f"{fault.expected} bytes or more", str(fault.got)


@cython.final
cdef class _Log:
    """A pinned buffer."""

    cdef Py_buffer view
    cdef const mqi_guard_range* range
    cdef mqi_kafka_log log
    cdef bint held

    def __cinit__(self, buf, bint check_crc):
        PyObject_GetBuffer(buf, &self.view, PyBUF_SIMPLE)
        self.held = True
        self.range = range_of(&self.view)
        self.log.buf, self.log.len = <const uint8_t*>self.view.buf, self.view.len
        self.log.check_crc = check_crc
        if self.log.len > INT32_MAX:
            raise OffsetOverflowError(
                "the log is longer than any position can tell", field="position", expected=f"{INT32_MAX} bytes or less",
                got=self.log.len)

    cdef void release(self) noexcept:
        if self.held:
            self.held = False
            PyBuffer_Release(&self.view)

    cdef int leave(self) except -1:
        """Let the buffer go; an error where bytes were taken away while it was held."""
        try:
            still_whole(self.range)
        finally:
            self.release()
        return 0

    def __dealloc__(self):
        self.release()


@cython.final
cdef class _Rows:
    """Memory that lives as long as the last view of it."""

    cdef mqi_kafka_batch* rows
    cdef int64_t n

    def __cinit__(self, int64_t n):
        self.rows = <mqi_kafka_batch*>malloc(n * sizeof(mqi_kafka_batch))
        if self.rows == NULL:
            raise MemoryError
        self.n = n

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.rows, self.n * sizeof(mqi_kafka_batch), 1, flags)

    def __dealloc__(self):
        free(self.rows)


@cython.final
cdef class BatchScan:
    """Batches that begin at the positions [start, stop); `start` must be the begin of one. stop None: to the end.

    Iterating gives memoryviews of packed rows (`mqindex.kafka.batches.BATCH`). Afterwards `end` is the position
    behind the last whole, good batch, and `fault` is that of the one behind it, if it is bad. check_crc=False compares
    no checksums. For one thread at a time.
    """

    cdef _Log log
    cdef mqi_kafka_scan scan
    cdef int64_t stop
    cdef bint busy

    def __init__(self, buf, int64_t start=0, stop=None, /, *, bint check_crc=True):
        if self.log is not None:
            raise TypeError("a BatchScan is made once")
        cdef _Log log = _Log(buf, check_crc)
        self.stop = _limit(log, stop)
        self.scan.at = _position(log, start)
        self.log = log

    def __iter__(self):
        return self

    def __next__(self):
        cdef _Rows rows = None
        cdef int64_t n = 0, room
        with cython.critical_section(self):
            if self.busy or self.log is None:
                raise RuntimeError("a BatchScan serves one thread at a time")
            self.busy = True
        try:
            if not self.scan.done:
                room = min(<int64_t>CHUNK, max(self.stop - self.scan.at, 0) // LEAST + 1)
                rows = _Rows(room)
                with nogil:
                    n = mqi_kafka_scan_batches(&self.log.log, &self.scan, self.stop, rows.rows, room)
                still_whole(self.log.range)
            if n == 0:
                self.log.release()
                raise StopIteration
            return memoryview(rows)[:n * sizeof(mqi_kafka_batch)]
        finally:
            self.busy = False

    @property
    def end(self):
        """The position behind the last whole, good batch."""
        return self.scan.at

    @property
    def fault(self):
        """`(kind, at, field, expected, got)` of the bad batch that ended the walk, or None."""
        return _fault(&self.scan.fault)


cdef int64_t _position(_Log log, int64_t start) except -1:
    if not 0 <= start <= log.log.len:
        raise ValueError(f"start: expected 0..{log.log.len}, positions of the log, got {start}")
    return start


cdef int64_t _limit(_Log log, object stop) except? -1:
    cdef int64_t limit = log.log.len
    return limit if stop is None else min(<int64_t>stop, limit)


def find_batch(buf, int64_t start, stop, str column, int64_t target, /):
    """The first batch from `start` on that is not below `target`: `(row, end, fault)`.

    column : "last_offset" or "max_timestamp". row : the packed bytes of one batch, None: there is none; end : behind
    the last batch that was looked at; fault : as of a `BatchScan` without checksums.
    """
    cdef _Log log = _Log(buf, False)
    cdef mqi_kafka_scan scan
    cdef mqi_kafka_batch row
    cdef int64_t limit = _limit(log, stop)
    cdef int which = MQI_FIND_MAX_TIMESTAMP
    cdef bint found
    if column == "last_offset":
        which = MQI_FIND_LAST_OFFSET
    elif column != "max_timestamp":
        raise ValueError(f"column: expected last_offset or max_timestamp, got {column}")
    scan.at, scan.fault.kind = _position(log, start), MQI_BATCH_FINE
    with nogil:
        found = mqi_kafka_find_batch(&log.log, &scan, limit, which, target, &row) != 0
    log.leave()
    return (<const char*>&row)[:sizeof(row)] if found else None, scan.at, _fault(&scan.fault)


@cython.final
cdef class Recovered:
    """What a broker's recovery makes of a segment's log: run it with `recover`, or in steps of `run`.

    offset_index, time_index : bytes of the two files, trimmed, the closing entry included. valid_bytes : where the log
    is cut. batches : how many there are before. max_timestamp : the greatest, -1: none; last_offset : of the last
    batch, None: there is none. transactional : packed rows of the batches of magic 2 that have a producer id and are
    transactional or control batches. fault : why the log is cut; None: it ends there, or with a part of a batch.
    oddities, epochs : what no checksum covers and a recovery passes over. For one thread at a time.
    """

    cdef _Log log
    cdef mqi_kafka_recovery r
    cdef object first_offset, path
    cdef bint busy

    def __init__(
        self, buf, int64_t base_offset, /, *, int64_t index_interval_bytes, int64_t max_index_size,
        bint check_crc=True, first_offset=None, path=None
    ):
        if self.log is not None:
            raise TypeError("a Recovered is made once")
        if not 0 <= base_offset <= INT64_MAX - INT32_MAX:
            raise ValueError(f"base_offset: expected 0..{INT64_MAX - INT32_MAX}, got {base_offset}")
        if index_interval_bytes < 0:
            raise ValueError(f"index_interval_bytes: expected 0 or more, got {index_interval_bytes}")
        if max_index_size < 12:
            raise ValueError(f"max_index_size: expected 12 or more, got {max_index_size}")
        cdef _Log log = _Log(buf, check_crc)
        self.r.log = log.log
        self.r.base_offset, self.r.index_interval = base_offset, index_interval_bytes
        self.r.max_index_size, self.r.first_offsets = max_index_size, first_offset is not None
        self.first_offset, self.path = first_offset, path
        mqi_kafka_recover_start(&self.r)
        self.log = log

    def __dealloc__(self):
        mqi_kafka_recover_free(&self.r)

    def run(self, int64_t stop, int fd=-1, /):
        """Go over the batches that begin before position `stop`; False: there is nothing left to do.

        fd : of the same log, to read headers from it instead of the buffer, -1: none. Only without checksums.

        Raises
        ------
        OffsetOverflowError, OutOfOrderError, IndexFullError : what a broker's recovery does not survive
        TruncatedFileError, OSError : the file was cut, or cannot be read
        """
        if fd >= 0 and self.r.log.check_crc:
            raise ValueError("fd: expected none where checksums are compared")
        with cython.critical_section(self):
            if self.busy or self.log is None:
                raise RuntimeError("a Recovered serves one thread at a time")
            self.busy = True
        self.r.fd = fd
        try:
            while True:
                if self.r.state == MQI_RECOVERY_WANTS_FIRST:  # also what was asked before, and ended in an error
                    self.r.first_offset = self.first_offset(self.r.valid)
                with nogil:
                    mqi_kafka_recover(&self.r, stop)
                still_whole(self.log.range)
                if self.r.state != MQI_RECOVERY_WANTS_FIRST:
                    break
            if self.r.state == MQI_RECOVERY_RUNS:
                return True
            self.log.release()
            if self.r.state != MQI_RECOVERY_DONE:
                self._refuse()
            return False
        finally:
            self.busy = False

    cdef int _refuse(self) except -1:
        cdef str index = _INDEXES[self.r.in_time_index]
        if self.r.state == MQI_RECOVERY_OVERFLOW:
            raise OffsetOverflowError(
                "the batch's last offset is too far from the base offset", path=self.path, at=self.r.valid,
                field="offset", expected=f"{self.r.base_offset}..{self.r.base_offset + INT32_MAX}", got=self.r.refused)
        if self.r.state == MQI_RECOVERY_ORDER:
            raise OutOfOrderError(
                f"the batch's offset is not behind the last one in the {index}", path=self.path, at=self.r.valid,
                field="offset", expected=f"{'' if self.r.in_time_index else 'more than '}{self.r.limit}"
                f"{' or more' if self.r.in_time_index else ''}", got=self.r.refused)
        if self.r.state == MQI_RECOVERY_FULL:
            raise IndexFullError(
                f"the {index} is full before the log ends", path=self.path, at=self.r.valid, field="max_index_size",
                expected="more bytes", got=self.r.max_index_size)
        if self.r.state == MQI_RECOVERY_NO_MEMORY:
            raise MemoryError
        if self.r.error:
            raise OSError(self.r.error, os.strerror(self.r.error), self.path)
        raise TruncatedFileError(
            "the log was cut while it was read", path=self.path, at=self.r.valid, expected=f"{self.r.log.len} bytes")

    cdef bytes _copied(self, const mqi_bytes* what):
        with cython.critical_section(self):
            if self.busy:
                raise RuntimeError("a Recovered serves one thread at a time")
            return (<const char*>what.data)[:what.size] if what.size else b""

    @property
    def offset_index(self):
        """The bytes of the `.index`."""
        return self._copied(&self.r.offset_index)

    @property
    def time_index(self):
        """The bytes of the `.timeindex`."""
        return self._copied(&self.r.time_index)

    @property
    def transactional(self):
        """Packed rows of the batches that transactions are made of."""
        return self._copied(&self.r.transactional)

    @property
    def valid_bytes(self):
        """The position behind the last good batch."""
        return self.r.valid

    @property
    def truncated_bytes(self):
        """How many bytes the broker would cut."""
        return self.r.log.len - self.r.valid

    @property
    def batches(self):
        """How many good batches there are."""
        return self.r.batches

    @property
    def max_timestamp(self):
        """The greatest timestamp, ms since the epoch; -1: none."""
        return self.r.max_timestamp

    @property
    def offset_of_max_timestamp(self):
        """The last offset of the first batch that has it; the base offset where there is none."""
        return self.r.max_timestamp_offset

    @property
    def last_offset(self):
        """The last offset of the last batch; None: there is no batch."""
        return self.r.last_offset if self.r.batches else None

    @property
    def fault(self):
        """`(kind, at, field, expected, got)` of the bad batch at which the log is cut, or None."""
        return _fault(&self.r.fault)

    @property
    def oddities(self):
        """Tuples of `(kind, count, at, expected, got)`: how many batches of the kind there are, and the first.

        "order" : the base offset is not behind the batch before; "base" : it is below the segment's; "magic" : none of
        0, 1 and 2; "count" : more records than offsets (expected: the most that may be), or less than none.
        """
        return [
            (_ODDITIES[n], self.r.odd[n].count, self.r.odd[n].at, self.r.odd[n].expected, self.r.odd[n].got)
            for n in range(MQI_ODDITIES)
            if self.r.odd[n].count
        ]

    @property
    def epochs(self):
        """Packed rows of neighbours with one leader epoch (`mqindex.kafka.partition.leader_epochs.RUN`), those without left out.
        """
        return self._copied(&self.r.epochs)


def recover(
    buf, int64_t base_offset, /, *, int64_t index_interval_bytes, int64_t max_index_size, bint check_crc=True,
    first_offset=None, path=None
):
    """A whole log at once: see `Recovered`.

    first_offset : None, or for the rule up to 1.1 what tells, of the position of a compressed wrapper, the offset of
    the first message in it; entries of the offset index have first offsets then. path : of the log, for errors.
    """
    made = Recovered(
        buf, base_offset, index_interval_bytes=index_interval_bytes, max_index_size=max_index_size,
        check_crc=check_crc, first_offset=first_offset, path=path)
    made.run(INT64_MAX)
    return made
