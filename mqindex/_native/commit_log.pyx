# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Frames of one commit-log file: find, decode, extract index entries. `buf` is always the whole file.

A fault is `(at, kind, field, expected, got)`: the phy offset of the first bad frame, one of "bad-magic", "bad-size",
"bad-length", "foreign" (the frame says that it stands elsewhere), "bad-crc", "truncated", "bad-delay"; then texts.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_SIMPLE,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    PyBuffer_FillInfo,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc


cdef extern from "mqi_crc.h" nogil:
    void mqi_crc_choose() noexcept
    uint32_t mqi_crc32(const uint8_t* p, size_t n, uint32_t crc) noexcept
    uint32_t mqi_crc32c(const uint8_t* p, size_t n, uint32_t crc) noexcept
    uint32_t mqi_crc32_portable(const uint8_t* p, size_t n, uint32_t crc) noexcept
    uint32_t mqi_crc32c_portable(const uint8_t* p, size_t n, uint32_t crc) noexcept
    const char* mqi_crc_kernel() noexcept


cdef extern from "mqi_log_queues.h" nogil:
    ctypedef struct mqi_log_unit:
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


cdef extern from "mqi_commit_log.h" nogil:
    ctypedef struct mqi_log:
        const uint8_t* buf
        int64_t len
        int64_t start
        int check_crc

    int MQI_LOG_FINE
    int MQI_LOG_BAD_MAGIC
    int MQI_LOG_BAD_CRC
    int MQI_LOG_BAD_DELAY
    int MQI_FIELD_NONE
    int MQI_EXACTLY
    int MQI_AT_LEAST
    int MQI_LOG_CURSORS
    int MQI_LOG_RUN_ENTRIES
    int MQI_LOG_ENTRY_SIZE
    int MQI_LOG_RUN_UNITS

    ctypedef struct mqi_log_fault:
        int64_t at
        int32_t kind
        int32_t field
        int32_t relation
        int64_t expected
        int64_t got

    ctypedef struct mqi_log_frame:
        int64_t born_host_pos
        int64_t store_host_pos
        int32_t born_host_len
        int32_t store_host_len

    int MQI_LOG_TEXT_MAX

    ctypedef struct mqi_log_scan:
        int64_t at
        int64_t blank
        int done
        mqi_log_fault fault

    ctypedef struct mqi_log_cursor:
        uint8_t* run
        mqi_log_unit* units
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

    int64_t mqi_log_find(const mqi_log* log, int64_t at, int64_t stop) noexcept
    int64_t mqi_log_scan_frames(
        const mqi_log* log, mqi_log_scan* scan, int64_t stop, mqi_log_frame* out, int64_t max) noexcept
    void mqi_log_scan_at(
        const mqi_log* log, const int64_t* at, int64_t n, mqi_log_frame* out, uint8_t* valid) noexcept
    int64_t mqi_log_gather(
        const uint8_t* buf, int64_t len, const uint8_t* pos, int64_t pos_stride, const uint8_t* size,
        int64_t size_stride, int64_t n, int64_t* offsets, uint8_t* out) noexcept
    int mqi_log_host_text(const uint8_t* host, int address_len, char* out) noexcept
    int64_t mqi_log_host_texts(
        const uint8_t* buf, const mqi_log_frame* frames, int64_t n, int born, int64_t* offsets, char* out) noexcept
    int64_t mqi_log_ids(
        const uint8_t* buf, const mqi_log_frame* frames, int64_t n, int64_t* offsets, char* out) noexcept
    void mqi_log_extract_start(mqi_log_extract* x) noexcept
    void mqi_log_extract_step(mqi_log_extract* x) noexcept


_KINDS = (None, "bad-magic", "bad-size", "bad-length", "foreign", "bad-crc", "truncated", "bad-delay")
_FIELDS = (None, "total_size", "magic_code", "phy_offset", "body_len", "topic_len", "body_crc", "DELAY")
_BYTES = ("total_size", "body_len", "topic_len", None)
_MAGICS = "0xDAA320A7 or 0xDAA320AB, or at the end of a file 0xCBD43194"

_POSITIONS = ("born_host", "store_host", "body", "topic", "properties", "keys", "tags", "uniq_key")
_FRAME = [
    *((name, "=i8") for name in (
        "phy_offset", "queue_offset", "stored_phy_offset", "born_timestamp", "store_timestamp",
        "prepared_transaction_offset")),
    *((f"{name}_pos", "=i8") for name in _POSITIONS),
    *((name, "=i4") for name in ("size", "magic", "body_crc", "queue_id", "flag", "sys_flag", "reconsume_times")),
    *((f"{name}_len", "=i4") for name in _POSITIONS),
    ("entry_count", "=i4"),
]
_frame_dtype = None

mqi_crc_choose()


def frame_dtype():
    """The structured dtype of a decoded frame; `*_pos` are positions in the buffer, `*_len` -1: absent."""
    global _frame_dtype
    if _frame_dtype is None:
        import numpy as np

        dtype = np.dtype(_FRAME)
        assert dtype.itemsize == sizeof(mqi_log_frame)
        _frame_dtype = dtype
    return _frame_dtype


def kernels():
    """Which kernel each checksum uses on this processor."""
    name = mqi_crc_kernel().decode()
    return {"crc32": name, "crc32c": name}


def crc32(data, uint32_t crc=0, /, *, bint portable=False):
    """CRC-32 as zlib's; `crc`: that of what stands before."""
    return _checksum(data, crc, mqi_crc32_portable if portable else mqi_crc32)


def crc32c(data, uint32_t crc=0, /, *, bint portable=False):
    """CRC-32C (Castagnoli); `crc`: that of what stands before."""
    return _checksum(data, crc, mqi_crc32c_portable if portable else mqi_crc32c)


cdef uint32_t _checksum(
    object data, uint32_t crc, uint32_t (*kernel)(const uint8_t*, size_t, uint32_t) noexcept nogil
) except? 0:
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    with nogil:
        crc = kernel(<const uint8_t*>view.buf, view.len, crc)
    PyBuffer_Release(&view)
    return crc


def find_frame(buf, int64_t file_start, int64_t start, int64_t stop, /):
    """The first phy offset in [start, stop) where a frame stands that names this very place; -1: none.

    A blank record counts if it ends with the file. Whether what was found is a frame or the image of one inside a
    body, only the frames before it can tell.
    """
    cdef _Log log = _Log(buf, file_start, False)
    cdef int64_t at = _position(log, start), end = _limit(log, stop)
    with nogil:
        at = mqi_log_find(&log.log, at, end)
    log.release()
    return at + file_start if at >= 0 else -1


@cython.final
cdef class _Log:
    """A pinned buffer and its phy offset."""

    cdef Py_buffer view
    cdef mqi_log log
    cdef bint held

    def __cinit__(self, buf, int64_t file_start, bint check_crc):
        PyObject_GetBuffer(buf, &self.view, PyBUF_SIMPLE)
        self.held = True
        if file_start < 0 or file_start > INT64_MAX - self.view.len:
            raise ValueError(f"file_start: expected a phy offset, got {file_start}")
        self.log.buf = <const uint8_t*>self.view.buf
        self.log.len = self.view.len
        self.log.start = file_start
        self.log.check_crc = check_crc

    cdef void release(self) noexcept:
        if self.held:
            self.held = False
            PyBuffer_Release(&self.view)

    def __dealloc__(self):
        self.release()


cdef int64_t _position(_Log log, int64_t phy_offset) except -1:
    if not log.log.start <= phy_offset <= log.log.start + log.log.len:
        raise ValueError(
            f"start: expected {log.log.start}..{log.log.start + log.log.len}, the file's phy offsets, got {phy_offset}")
    return phy_offset - log.log.start


cdef int64_t _limit(_Log log, int64_t phy_offset) noexcept:
    return min(max(phy_offset, log.log.start) - log.log.start, log.log.len)


cdef object _fault(mqi_log_fault* fault, int64_t start):
    cdef str relation, unit
    if fault.kind == MQI_LOG_FINE:
        return None
    kind, field = _KINDS[fault.kind], _FIELDS[fault.field]
    if fault.kind == MQI_LOG_BAD_MAGIC:
        return fault.at + start, kind, field, _MAGICS, f"0x{<uint32_t>fault.got:08X}"
    if fault.kind == MQI_LOG_BAD_CRC:
        return fault.at + start, kind, field, f"0x{fault.expected:08X}", f"0x{<uint32_t>fault.got:08X}"
    if fault.kind == MQI_LOG_BAD_DELAY:
        return fault.at + start, kind, field, "a whole number", "other text"
    relation = "" if fault.relation == MQI_EXACTLY else " or more" if fault.relation == MQI_AT_LEAST else " or less"
    unit = " bytes" if field in _BYTES else ""
    return fault.at + start, kind, field, f"{fault.expected}{unit}{relation}", str(fault.got)


@cython.final
cdef class _Block:
    """Memory that lives as long as the last view of it."""

    cdef uint8_t* data
    cdef Py_ssize_t size

    def __cinit__(self, Py_ssize_t size):
        self.data = <uint8_t*>malloc(size)
        if self.data == NULL:
            raise MemoryError
        self.size = size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 1, flags)

    def __dealloc__(self):
        free(self.data)


@cython.final
cdef class QueueTable:
    """Numbers the queues that an `Extractor` meets, and says what dispatch does with a message.

    delay_levels : delays in ms, level 1 first; without any a delayed message has the hash of its tags.
    multi_dispatch : units also for the queues that a message names. lmq : of those, `%LMQ%` names have only queue 0.
    system_topics : multi-dispatch also of retry, system and schedule topics. For one Extractor and thread at a time.
    """

    cdef mqi_log_queues table
    cdef _Block delays

    def __cinit__(self, delay_levels, *, bint multi_dispatch=True, bint lmq=True, bint system_topics=True):
        cdef Py_ssize_t i, n = len(delay_levels)
        self.delays = _Block(max(n, 1) * sizeof(int64_t))
        for i in range(n):
            (<int64_t*>self.delays.data)[i] = delay_levels[i]
        self.table.delay_levels, self.table.n_delay_levels = <int64_t*>self.delays.data, n
        self.table.multi_dispatch, self.table.lmq = multi_dispatch, lmq
        self.table.system_topics = system_topics

    def __len__(self):
        return self.table.n

    def names(self):
        """(topic, queue_id) of every queue so far; its position is its number. Some may have no units."""
        cdef list names = []
        for i in range(self.table.n):
            queue = self.table.queues[i]
            topic = (<const char*>self.table.topics)[queue.topic_at:queue.topic_at + queue.topic_len]
            names.append((topic.decode("utf-8", "replace"), queue.queue_id))
        return names

    def __dealloc__(self):
        mqi_log_queues_free(&self.table)


@cython.final
cdef class Extractor:
    """Index entries of the frames that begin in [start, stop); `start` must be a frame's start.

    Iterating gives memoryviews of packed run entries (key_hash i32, phy_offset i64, store_timestamp i64, native),
    each valid until the next. With `queues`, `units` are the units of the same frames, and a view may be empty.
    Afterwards `end` is the phy offset behind the last frame (the file's end behind a blank
    record, the bad frame's place where there is a `fault`). For one thread at a time.
    """

    cdef _Log log
    cdef list blocks, unit_blocks
    cdef QueueTable queues
    cdef mqi_log_extract x
    cdef int given
    cdef bint busy

    def __init__(
        self, buf, int64_t file_start, int64_t start, int64_t stop, /, *, bint tags=False, bint check_crc=False,
        QueueTable queues=None
    ):
        if self.log is not None:
            raise TypeError("an Extractor is made once")
        cdef _Log log = _Log(buf, file_start, check_crc)
        cdef list blocks = [_Block(MQI_LOG_RUN_ENTRIES * MQI_LOG_ENTRY_SIZE) for _ in range(MQI_LOG_CURSORS)]
        self.x.at = _position(log, start)
        self.x.stop = _limit(log, stop)
        self.x.log = log.log
        self.x.tags = tags
        for i in range(MQI_LOG_CURSORS):
            self.x.cursor[i].run = (<_Block>blocks[i]).data
        if queues is not None:
            self.unit_blocks = [_Block(MQI_LOG_RUN_UNITS * sizeof(mqi_log_unit)) for _ in range(MQI_LOG_CURSORS)]
            self.x.queues = &queues.table
            for i in range(MQI_LOG_CURSORS):
                self.x.cursor[i].units = <mqi_log_unit*>(<_Block>self.unit_blocks[i]).data
        self.log, self.blocks, self.queues = log, blocks, queues
        mqi_log_extract_start(&self.x)

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
                    return memoryview(self.blocks[cursor])[:self.x.cursor[cursor].entries * MQI_LOG_ENTRY_SIZE]
            if self.x.done:
                self.log.release()
                raise StopIteration
            with nogil:
                mqi_log_extract_step(&self.x)
            self.given = 0
            if self.queues is not None and self.queues.table.no_memory:
                raise MemoryError

    @property
    def units(self):
        """The units of the frames that the last view is of: packed records as `log_entries.UNIT`, valid as long."""
        if self.unit_blocks is None or self.given == 0:
            return memoryview(b"")
        return memoryview(self.unit_blocks[self.given - 1])[
            :self.x.cursor[self.given - 1].n_units * sizeof(mqi_log_unit)]

    @property
    def end(self):
        """The phy offset behind the last frame."""
        return self.x.at + self.x.log.start

    @property
    def fault(self):
        """`(at, kind, field, expected, got)` of the first bad frame, or None."""
        return _fault(&self.x.fault, self.x.log.start)

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


@cython.final
cdef class Scanner:
    """Decoded frames that begin in [start, stop), as structured arrays (`frame_dtype()`) of at most `max_frames`.

    `end`, `blank` and `fault` as in `Extractor`. For one thread at a time.
    """

    cdef _Log log
    cdef mqi_log_scan scan
    cdef int64_t stop, max_frames
    cdef bint busy

    def __init__(
        self, buf, int64_t file_start, int64_t start, int64_t stop, /, *, bint check_crc=False,
        int64_t max_frames=65536
    ):
        if self.log is not None:
            raise TypeError("a Scanner is made once")
        if max_frames < 1:
            raise ValueError(f"max_frames: expected 1 or more, got {max_frames}")
        cdef _Log log = _Log(buf, file_start, check_crc)
        self.scan.at = _position(log, start)
        self.scan.blank = -1
        self.stop, self.max_frames = _limit(log, stop), max_frames
        self.log = log

    def __iter__(self):
        return self

    def __next__(self):
        with cython.critical_section(self):
            if self.busy or self.log is None:
                raise RuntimeError("a Scanner serves one thread at a time")
            self.busy = True
        try:
            frames = None if self.scan.done else self._next()
        finally:
            self.busy = False
        if frames is None or len(frames) == 0:
            self.log.release()
            raise StopIteration
        return frames

    cdef object _next(self):
        import numpy as np

        cdef Py_buffer view
        cdef int64_t n
        # No frame is shorter than 91 bytes: a short stretch needs no long array.
        n = min(self.max_frames, max(self.stop - self.scan.at, 0) // 91 + 1)
        frames = np.empty(n, frame_dtype())
        PyObject_GetBuffer(frames, &view, PyBUF_WRITABLE)
        with nogil:
            n = mqi_log_scan_frames(&self.log.log, &self.scan, self.stop, <mqi_log_frame*>view.buf, n)
        PyBuffer_Release(&view)
        return frames[:n]

    @property
    def end(self):
        """The phy offset behind the last frame."""
        return self.scan.at + self.log.log.start

    @property
    def fault(self):
        """`(at, kind, field, expected, got)` of the first bad frame, or None."""
        return _fault(&self.scan.fault, self.log.log.start)

    @property
    def blank(self):
        """The phy offset of the blank record, or -1."""
        return self.scan.blank + self.log.log.start if self.scan.blank >= 0 else -1


def scan_at(buf, int64_t file_start, phy_offsets, /, *, bint check_crc=False):
    """The frames at given phy offsets of a file: `(frames, valid bool[n])`; what is no whole frame is all zero.

    phy_offsets : int64[n], in any order, also outside the file. frames : structured array of `frame_dtype()`.
    """
    import numpy as np

    cdef Py_buffer at, rows, flags
    cdef _Log log = _Log(buf, file_start, check_crc)
    positions = np.ascontiguousarray(phy_offsets, np.int64) - file_start
    cdef int64_t n = len(positions)
    frames, valid = np.empty(n, frame_dtype()), np.empty(n, np.uint8)
    PyObject_GetBuffer(positions, &at, PyBUF_SIMPLE)
    PyObject_GetBuffer(frames, &rows, PyBUF_WRITABLE)
    PyObject_GetBuffer(valid, &flags, PyBUF_WRITABLE)
    with nogil:
        mqi_log_scan_at(&log.log, <const int64_t*>at.buf, n, <mqi_log_frame*>rows.buf, <uint8_t*>flags.buf)
    PyBuffer_Release(&flags)
    PyBuffer_Release(&rows)
    PyBuffer_Release(&at)
    log.release()
    return frames, valid.view(np.bool_)


def gather(buf, pos, size, /):
    """Pieces of a buffer, one after another: `(data uint8, offsets int64[n + 1], valid bool[n])`.

    `pos` int64 and `size` int32 arrays, strided ones too; a negative size is an absent, empty piece. A piece that is
    not inside the buffer is a ValueError.
    """
    import numpy as np

    cdef Py_buffer source, at, length, starts, target
    cdef int64_t n, bad
    if pos.dtype != np.int64 or size.dtype != np.int32 or pos.ndim != 1 or pos.shape != size.shape:
        raise TypeError("pos, size: expected int64 and int32 arrays of one length")
    n = len(pos)
    offsets = np.empty(n + 1, np.int64)
    valid = size >= 0
    PyObject_GetBuffer(buf, &source, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(pos, &at, PyBUF_STRIDES | PyBUF_FORMAT)
        try:
            PyObject_GetBuffer(size, &length, PyBUF_STRIDES | PyBUF_FORMAT)
            try:
                PyObject_GetBuffer(offsets, &starts, PyBUF_WRITABLE)
                with nogil:
                    bad = mqi_log_gather(
                        <const uint8_t*>source.buf, source.len, <const uint8_t*>at.buf, at.strides[0],
                        <const uint8_t*>length.buf, length.strides[0], n, <int64_t*>starts.buf, NULL)
                if bad < 0:
                    data = np.empty(offsets[n], np.uint8)
                    PyObject_GetBuffer(data, &target, PyBUF_WRITABLE)
                    with nogil:
                        mqi_log_gather(
                            <const uint8_t*>source.buf, source.len, <const uint8_t*>at.buf, at.strides[0],
                            <const uint8_t*>length.buf, length.strides[0], n, <int64_t*>starts.buf,
                            <uint8_t*>target.buf)
                    PyBuffer_Release(&target)
                PyBuffer_Release(&starts)
            finally:
                PyBuffer_Release(&length)
        finally:
            PyBuffer_Release(&at)
    finally:
        PyBuffer_Release(&source)
    if bad >= 0:
        raise ValueError(f"pos: piece {bad} is not inside the buffer")
    return data, offsets, valid


def host_text(bytes host, /):
    """An address of 4 or 16 bytes and its port as `address:port`, the address as Java writes it, IPv6 in brackets.

    >>> host_text(bytes([10, 0, 0, 2, 0, 0, 42, 159])), host_text(bytes(15) + bytes([1, 0, 0, 42, 159]))
    ('10.0.0.2:10911', '[0:0:0:0:0:0:0:1]:10911')
    """
    cdef char text[64]
    cdef Py_ssize_t length = len(host) - 4
    if length not in (4, 16):
        raise ValueError(f"host: expected 8 or 20 bytes, got {len(host)}")
    return text[:mqi_log_host_text(<const uint8_t*><const char*>host, <int>length, text)].decode("ascii")


def born_hosts(buf, frames, /):
    """The born hosts of a scan's frames as text: `(data uint8, offsets int64[n + 1])`."""
    return _texts(buf, frames, 0)


def store_hosts(buf, frames, /):
    """The same of the store hosts."""
    return _texts(buf, frames, 1)


def msg_ids(buf, frames, /):
    """The message ids that brokers give: store host and phy offset in hex."""
    return _texts(buf, frames, 2)


cdef object _texts(object buf, object frames, int which):
    import numpy as np

    cdef Py_buffer source, rows, starts, target
    cdef int64_t n = len(frames), total
    if frames.dtype != frame_dtype():
        raise TypeError("frames: expected an array of frames that a Scanner gave")
    frames = np.ascontiguousarray(frames)
    offsets, data = np.empty(n + 1, np.int64), np.empty(n * MQI_LOG_TEXT_MAX, np.uint8)
    PyObject_GetBuffer(buf, &source, PyBUF_SIMPLE)
    PyObject_GetBuffer(frames, &rows, PyBUF_SIMPLE)
    PyObject_GetBuffer(offsets, &starts, PyBUF_WRITABLE)
    PyObject_GetBuffer(data, &target, PyBUF_WRITABLE)
    with nogil:
        total = -1
        if _hosts_inside(<const mqi_log_frame*>rows.buf, n, source.len):
            if which == 2:
                total = mqi_log_ids(
                    <const uint8_t*>source.buf, <const mqi_log_frame*>rows.buf, n, <int64_t*>starts.buf,
                    <char*>target.buf)
            else:
                total = mqi_log_host_texts(
                    <const uint8_t*>source.buf, <const mqi_log_frame*>rows.buf, n, which == 0, <int64_t*>starts.buf,
                    <char*>target.buf)
    PyBuffer_Release(&target)
    PyBuffer_Release(&starts)
    PyBuffer_Release(&rows)
    PyBuffer_Release(&source)
    if total < 0:
        raise ValueError("frames: expected those that a scan of this buffer gave")
    return data[:total].copy(), offsets


cdef bint _hosts_inside(const mqi_log_frame* frames, int64_t n, int64_t size) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if not (
            _host_inside(frames[i].born_host_pos, frames[i].born_host_len, size)
            and _host_inside(frames[i].store_host_pos, frames[i].store_host_len, size)
        ):
            return False
    return True


cdef inline bint _host_inside(int64_t pos, int32_t length, int64_t size) noexcept nogil:
    return (length == 4 or length == 16) and 0 <= pos <= size - length - 4
