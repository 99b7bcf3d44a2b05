# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Index entries and consume-queue units of the frames of one commit-log file. `buf` is always the whole file."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from mqindex._native.commit_log cimport LogBuffer, mqi_log, mqi_log_fault
from mqindex._native.guard cimport still_whole
from mqindex._native.memory cimport Block, new_block

from mqindex._java_text import JAVA as _JAVA


cdef extern from "mqi_log_extract.h" nogil:
    ctypedef struct mqi_queue_unit:
        pass

    ctypedef struct mqi_log_queue:
        int32_t queue_id
        int32_t topic_len
        int64_t topic_at

    ctypedef struct mqi_log_queues:
        const int64_t* delay_levels
        int64_t n_delay_levels
        int multi_dispatch
        int lmq
        int system_topics
        int32_t n
        mqi_log_queue* queues
        uint8_t* topics
        int no_memory

    void mqi_log_queues_free(mqi_log_queues* t) noexcept
    int mqi_log_allows_multi_dispatch(const mqi_log_queues* queues, const uint8_t* topic, int32_t n) noexcept

    int MQI_LOG_CURSORS
    int MQI_LOG_RUN_ENTRIES
    int MQI_RUN_SIZE
    int MQI_LOG_RUN_UNITS

    ctypedef struct mqi_log_cursor:
        uint8_t* run
        mqi_queue_unit* units
        int64_t entries
        int64_t n_units

    ctypedef struct mqi_log_extract:
        mqi_log log
        int tags
        mqi_log_queues* queues
        int64_t at
        int64_t stop
        mqi_log_cursor* cursor
        int confirmed
        int done
        int64_t messages
        int64_t entries
        int64_t last_message
        int64_t last_entry
        int64_t blank
        mqi_log_fault fault

    void mqi_log_extract_start(mqi_log_extract* x) noexcept
    void mqi_log_extract_step(mqi_log_extract* x) noexcept


@cython.final
cdef class QueueTable:
    """Numbers the queues that an `Extractor` finds, and has the rules by which dispatch makes units of a message.

    delay_levels : delays in ms, level 1 first; without any a delayed message has the hash of its tags.
    multi_dispatch : units also for the queues that a message names. lmq : `%LMQ%` names of these have only queue 0.
    system_topics : multi-dispatch also of retry topics (1), of those where messages wait (2), of other system topics
    (4). For one Extractor and thread at a time.
    """

    cdef mqi_log_queues table
    cdef Block delays
    cdef bint busy

    def __cinit__(self, delay_levels, *, bint multi_dispatch=True, bint lmq=True, int system_topics=0b111):
        cdef Py_ssize_t i, n = len(delay_levels)
        self.delays = new_block(max(n, 1) * sizeof(int64_t))
        for i in range(n):
            (<int64_t*>self.delays.data)[i] = delay_levels[i]
        self.table.delay_levels, self.table.n_delay_levels = <int64_t*>self.delays.data, n
        self.table.multi_dispatch, self.table.lmq = multi_dispatch, lmq
        self.table.system_topics = system_topics

    def __len__(self):
        return self.table.n

    def allows_multi_dispatch(self, str topic):
        """Whether messages of a topic have units in the queues that they name."""
        cdef bytes name = topic.encode()
        return bool(mqi_log_allows_multi_dispatch(&self.table, name, <int32_t>len(name)))

    def names(self):
        """(topic, queue_id) of every queue so far; its position is its number. Some may have no units."""
        cdef list names = []
        self.enter()
        try:
            for i in range(self.table.n):
                queue = self.table.queues[i]
                topic = (<const char*>self.table.topics)[queue.topic_at:queue.topic_at + queue.topic_len]
                names.append((topic.decode("utf-8", _JAVA), queue.queue_id))
            return names
        finally:
            self.busy = False

    cdef int enter(self) except -1:
        with cython.critical_section(self):
            if self.busy:
                raise RuntimeError("a QueueTable serves one Extractor and thread at a time")
            self.busy = True
        return 0

    def __dealloc__(self):
        mqi_log_queues_free(&self.table)


@cython.final
cdef class Extractor:
    """Index entries of the frames that begin in [start, stop); `start` must be a frame's start.

    Iterating gives memoryviews of packed run entries (key_hash i32, phy_offset i64, store_timestamp i64, native),
    each valid until the next. With `queues`, `units` are the units of the same frames, and a view may be empty.
    Afterwards `end` is the phy offset after the last frame (the file's end after a blank record,
    the bad frame's where there is a `fault`). For one thread at a time.
    reuse : one that is done with. Its memory is written again, so its views are no longer valid.
    """

    cdef LogBuffer log
    cdef list blocks, unit_blocks
    cdef QueueTable queues
    cdef mqi_log_extract x
    cdef int given
    cdef bint busy

    def __init__(
        self, buf, int64_t file_start, int64_t start, int64_t stop, /, *, bint tags=False, bint check_crc=False,
        QueueTable queues=None, Extractor reuse=None
    ):
        if self.log is not None:
            raise TypeError("an Extractor is made once")
        cdef LogBuffer log = LogBuffer(buf, file_start, check_crc)
        cdef list blocks = None, unit_blocks = None
        if reuse is not None:
            blocks, unit_blocks = reuse._take_memory()
        if blocks is None:
            blocks = [new_block(MQI_LOG_RUN_ENTRIES * MQI_RUN_SIZE) for _ in range(MQI_LOG_CURSORS)]
        self.x.at = log.position(start)
        self.x.stop = log.limit(stop)
        self.x.log = log.log
        self.x.tags = tags
        for i in range(MQI_LOG_CURSORS):
            self.x.cursor[i].run = (<Block>blocks[i]).data
        if queues is not None:
            if unit_blocks is None:
                unit_blocks = [new_block(MQI_LOG_RUN_UNITS * sizeof(mqi_queue_unit)) for _ in range(MQI_LOG_CURSORS)]
            self.unit_blocks = unit_blocks
            self.x.queues = &queues.table
            for i in range(MQI_LOG_CURSORS):
                self.x.cursor[i].units = <mqi_queue_unit*>(<Block>self.unit_blocks[i]).data
        self.log, self.blocks, self.queues = log, blocks, queues
        mqi_log_extract_start(&self.x)

    cdef tuple _take_memory(self):
        """Hand over the blocks; this one gives nothing any more."""
        with cython.critical_section(self):
            if self.busy:
                raise RuntimeError("an Extractor serves one thread at a time")
            memory = self.blocks, self.unit_blocks
            self.log = self.blocks = self.unit_blocks = None
        return memory

    def __iter__(self):
        return self

    def __next__(self):
        with cython.critical_section(self):
            if self.busy or self.log is None:
                raise RuntimeError("an Extractor serves one thread at a time")
            self.busy = True
        try:
            return self._next()
        finally:
            self.busy = False

    cdef object _next(self):
        cdef int cursor
        while True:
            while self.given < self.x.confirmed:
                cursor = self.given
                self.given += 1
                if self.x.cursor[cursor].entries > 0 or self.x.cursor[cursor].n_units > 0:
                    return memoryview(self.blocks[cursor])[:self.x.cursor[cursor].entries * MQI_RUN_SIZE]
            if self.x.done:
                self.log.release()
                raise StopIteration
            self._step()
            still_whole(self.log.range)
            self.given = 0
            if self.queues is not None and self.queues.table.no_memory:
                raise MemoryError

    cdef int _step(self) except -1:
        if self.queues is not None:
            self.queues.enter()
        with nogil:
            mqi_log_extract_step(&self.x)
        if self.queues is not None:
            self.queues.busy = False
        return 0

    @property
    def units(self):
        """The units of the frames of the last view: packed records as `log_entries.UNIT`, valid as long as the view."""
        if self.unit_blocks is None or self.given == 0:
            return memoryview(b"")
        return memoryview(self.unit_blocks[self.given - 1])[
            :self.x.cursor[self.given - 1].n_units * sizeof(mqi_queue_unit)]

    @property
    def end(self):
        """The phy offset after the last frame."""
        return self.x.at + self.x.log.start

    @property
    def fault(self):
        """`(at, kind, field, expected, got)` of the first bad frame, or None."""
        return None if self.log is None else self.log.fault(&self.x.fault)

    @property
    def messages(self):
        """Frames so far, blank records not counted."""
        return self.x.messages

    @property
    def entries(self):
        """Entries so far."""
        return self.x.entries

    @property
    def last_message(self):
        """The phy offset of the last frame, or -1."""
        return self._phy_offset(self.x.last_message)

    @property
    def last_entry(self):
        """The phy offset of the last message that gave an entry, or -1."""
        return self._phy_offset(self.x.last_entry)

    @property
    def blank(self):
        """The phy offset of the blank record, or -1."""
        return self._phy_offset(self.x.blank)

    cdef int64_t _phy_offset(self, int64_t at):
        return at + self.x.log.start if at >= 0 else -1
