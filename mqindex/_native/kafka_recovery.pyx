# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""The result of a broker's recovery for one Kafka segment's log. `buf` is the log; a fault is as in `kafka_log`."""

cimport cython
from libc.stdint cimport INT32_MAX, INT64_MAX, int64_t, uint8_t
from libc.stdlib cimport calloc, free

import os

from mqindex._native.guard cimport still_whole
from mqindex._native.kafka_log cimport BatchSource, Resync, fault_of, mqi_batch_fault, mqi_kafka_log

from mqindex.errors import IndexFullError, OffsetOverflowError, OutOfOrderError, TruncatedFileError


cdef extern from "mqi_kafka_recovery.h" nogil:
    int MQI_RECOVERY_RUNS
    int MQI_RECOVERY_DONE
    int MQI_RECOVERY_NEEDS_FIRST
    int MQI_RECOVERY_OVERFLOW
    int MQI_RECOVERY_FULL
    int MQI_RECOVERY_ORDER
    int MQI_RECOVERY_NO_MEMORY
    int MQI_RECOVERY_UNREADABLE

    ctypedef struct mqi_buffer:
        uint8_t* data
        int64_t size

    int MQI_ODDITIES

    ctypedef struct mqi_batch_odd:
        int64_t count
        int64_t at
        int64_t expected
        int64_t got

    ctypedef struct mqi_batch_counts:
        int64_t late

    ctypedef struct mqi_batch_sum:
        int64_t batches

    ctypedef struct mqi_producer_sum:
        mqi_batch_sum sum

    int MQI_TALLY_PLACES

    ctypedef struct mqi_kafka_tally:
        int64_t stretch
        mqi_batch_counts counts
        mqi_buffer stretches
        mqi_producer_sum* producers

    void mqi_kafka_tally_settle(mqi_kafka_tally* t) noexcept
    void mqi_kafka_tally_free(mqi_kafka_tally* t) noexcept

    ctypedef struct mqi_kafka_damage:
        int64_t at
        int64_t end
        int64_t batches
        int64_t records
        int64_t last_offset
        int64_t next_offset
        int passed
        mqi_batch_fault fault

    ctypedef struct mqi_kafka_recovery:
        mqi_kafka_log log
        int64_t size
        int partly
        const mqi_kafka_log* behind
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
        int64_t records
        int64_t last_offset
        int64_t max_timestamp
        int64_t max_timestamp_offset
        int64_t first_offset
        int64_t refused
        int64_t limit
        mqi_buffer offset_index
        mqi_buffer time_index
        mqi_buffer transactional
        mqi_buffer epochs
        mqi_buffer damage
        mqi_batch_odd odd[4]
        mqi_batch_fault fault
        mqi_kafka_tally* tally

    void mqi_kafka_recover_start(mqi_kafka_recovery* r) noexcept
    void mqi_kafka_recover(mqi_kafka_recovery* r, int64_t stop) noexcept
    void mqi_kafka_recover_free(mqi_kafka_recovery* r) noexcept


_INDEXES = ("offset index", "time index")
_ODDITIES = ("order", "base", "magic", "count")  # as MQI_ODD_*


@cython.final
cdef class Recovered:
    """The result of a broker's recovery for a segment's log: run it with `recover`, or in steps of `run`.

    offset_index, time_index : bytes of the two files, trimmed, the closing entry included. valid_bytes : where the log
    is cut. batches : how many there are before. max_timestamp : the greatest, -1: none; last_offset : of the last
    batch, None: there is none. transactional : packed rows of the batches of magic 2 that have a producer id and are
    transactional or control batches. fault : why the log is cut; None: it ends there, or with a part of a batch.
    past_damage : go on at the next good batch behind bad ones, as no recovery does: `damage` says where. The first
    batch that no length leads to gets an entry for its first offset. oddities, epochs : what no checksum covers and a
    recovery ignores. tally : what is in the log, counted for `stretch` bytes of it at a time. For one thread at a time.
    """

    cdef BatchSource log
    cdef Resync resync
    cdef mqi_kafka_recovery r
    cdef object first_offset, path
    cdef bint busy

    def __init__(
        self, buf, int64_t base_offset, /, *, int64_t index_interval_bytes, int64_t max_index_size,
        bint check_crc=True, first_offset=None, path=None, int64_t stretch=0, bint past_damage=False
    ):
        if self.log is not None:
            raise TypeError("a Recovered is made once")
        if not 0 <= base_offset <= INT64_MAX - INT32_MAX:
            raise ValueError(f"base_offset: expected 0..{INT64_MAX - INT32_MAX}, got {base_offset}")
        if index_interval_bytes < 0:
            raise ValueError(f"index_interval_bytes: expected 0 or more, got {index_interval_bytes}")
        if max_index_size < 12:
            raise ValueError(f"max_index_size: expected 12 or more, got {max_index_size}")
        if stretch < 0:
            raise ValueError(f"stretch: expected 0 or more, got {stretch}")
        cdef BatchSource log = BatchSource(buf, check_crc)
        self.r.log, self.r.size = log.log, log.log.len
        if past_damage:
            self.resync = Resync(buf)
            self.r.behind = &self.resync.log.log
        self.r.base_offset, self.r.index_interval = base_offset, index_interval_bytes
        self.r.max_index_size, self.r.first_offsets = max_index_size, first_offset is not None
        self.first_offset, self.path = first_offset, path
        if stretch:
            self.r.tally = <mqi_kafka_tally*>calloc(1, sizeof(mqi_kafka_tally))
            if self.r.tally == NULL:
                raise MemoryError
            self.r.tally.stretch = stretch
        mqi_kafka_recover_start(&self.r)
        self.log = log

    def __dealloc__(self):
        mqi_kafka_recover_free(&self.r)
        if self.r.tally != NULL:
            mqi_kafka_tally_free(self.r.tally)
            free(self.r.tally)

    def run(self, int64_t stop, int fd=-1, there=None, /):
        """Process the batches that begin before position `stop`; False: there is nothing left to do.

        fd : of the same log, to read headers from it instead of the buffer, -1: none. Only without checksums.
        there : where the part ends that may be read, None: all may be. It returns (True) before a batch that is not
        whole in it, and with `past_damage` before a bad one.

        Raises
        ------
        OffsetOverflowError, OutOfOrderError, IndexFullError : a broker's recovery fails on this too
        TruncatedFileError, OSError : the file was cut, or cannot be read
        """
        if fd >= 0 and self.r.log.crc32 != NULL:
            raise ValueError("fd: expected none where checksums are compared")
        with cython.critical_section(self):
            if self.busy or self.log is None:
                raise RuntimeError("a Recovered serves one thread at a time")
            self.busy = True
        self.r.fd, self.r.partly = fd, there is not None
        self.r.log.len = min(<int64_t>there, self.r.size) if self.r.partly else self.r.size
        try:
            while True:
                if self.r.state == MQI_RECOVERY_NEEDS_FIRST:  # also a request that ended in an error before
                    self.r.first_offset = self.first_offset(self.r.valid)
                with nogil:
                    mqi_kafka_recover(&self.r, stop)
                still_whole(self.log.range)
                if self.r.state != MQI_RECOVERY_NEEDS_FIRST:
                    break
            if self.r.state == MQI_RECOVERY_RUNS:
                return True
            self.log.release()
            if self.resync is not None:
                self.resync.log.release()
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
                f"the batch's offset is not after the last one in the {index}", path=self.path, at=self.r.valid,
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
            "the log was cut while it was read", path=self.path, at=self.r.valid, expected=f"{self.r.size} bytes")

    cdef bytes _copied(self, const mqi_buffer* what):
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

    cdef const mqi_kafka_damage* _damage(self) noexcept:
        return <const mqi_kafka_damage*>self.r.damage.data

    cdef int64_t _cut(self) noexcept:
        return self._damage().at if self.r.damage.size else self.r.valid

    @property
    def valid_bytes(self):
        """The position after the last of the good batches that follow each other: where a broker cuts the log."""
        return self._cut()

    @property
    def truncated_bytes(self):
        """How many bytes the broker would cut."""
        return self.r.size - self._cut()

    @property
    def end_bytes(self):
        """The position after the last good batch of all: `valid_bytes` where none lies behind damage."""
        return self.r.valid

    @property
    def records(self):
        """How many records good batches have, by their headers; a message of magic 0 or 1, or a wrapper, counts one."""
        return self.r.records

    @property
    def damage(self):
        """Tuples of `(fault, end, batches, records, last_offset, next_offset, passed)`, in the log's order.

        fault : of the bad batch where it begins; end : where the next good batch begins; batches, records : good ones
        before; last_offset : of the batch before, the base offset less 1 where there is none; next_offset : the first
        one behind; passed : lengths of batches lead over it. Only with `past_damage`.
        """
        with cython.critical_section(self):
            if self.busy:
                raise RuntimeError("a Recovered serves one thread at a time")
            rows = self._damage()
            return [
                (fault_of(&rows[n].fault), rows[n].end, rows[n].batches, rows[n].records, rows[n].last_offset,
                 rows[n].next_offset, bool(rows[n].passed))
                for n in range(self.r.damage.size // <int64_t>sizeof(mqi_kafka_damage))
            ]

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
        return fault_of(&self._damage().fault if self.r.damage.size else &self.r.fault)

    @property
    def end_fault(self):
        """The same at `end_bytes`."""
        return fault_of(&self.r.fault)

    @property
    def oddities(self):
        """Tuples of `(kind, count, at, expected, got)`: how many batches of the kind there are, and the first.

        "order" : the base offset is not after the batch before; "base" : it is below the segment's; "magic" : none of
        0, 1 and 2; "count" : more records than offsets (expected: the most that may be), or less than none.
        """
        return [
            (_ODDITIES[n], self.r.odd[n].count, self.r.odd[n].at, self.r.odd[n].expected, self.r.odd[n].got)
            for n in range(MQI_ODDITIES)
            if self.r.odd[n].count
        ]

    @property
    def epochs(self):
        """Packed rows of neighbours with one leader epoch (`RUN` of `mqindex.kafka.partition.leader_epochs`).
        """
        return self._copied(&self.r.epochs)

    @property
    def tally(self):
        """Packed counts, stretches and producers (`mqindex.kafka.log.log_tally`); None: not asked for."""
        cdef mqi_kafka_tally* tally = self.r.tally
        if tally == NULL:
            return None
        with cython.critical_section(self):
            if self.busy:
                raise RuntimeError("a Recovered serves one thread at a time")
            mqi_kafka_tally_settle(tally)
        stretches = self._copied(&tally.stretches)
        counts = (<const char*>&tally.counts)[:sizeof(mqi_batch_counts)]
        return counts, stretches, b"".join([
            (<const char*>&tally.producers[at])[:sizeof(mqi_producer_sum)]
            for at in range(MQI_TALLY_PLACES) if tally.producers[at].sum.batches
        ])


def recover(
    buf, int64_t base_offset, /, *, int64_t index_interval_bytes, int64_t max_index_size, bint check_crc=True,
    first_offset=None, path=None, int64_t stretch=0, bint past_damage=False
):
    """A whole log at once: see `Recovered`.

    first_offset : None, or for the rule up to 1.1 a function of the position of a compressed wrapper that gives the
    offset of the first message in it; entries of the offset index have first offsets then. path : for errors.
    stretch : bytes of the log whose batches are counted together, 0: nothing is counted.
    """
    made = Recovered(
        buf, base_offset, index_interval_bytes=index_interval_bytes, max_index_size=max_index_size,
        check_crc=check_crc, first_offset=first_offset, path=path, stretch=stretch,
        past_damage=past_damage)
    made.run(INT64_MAX)
    return made
