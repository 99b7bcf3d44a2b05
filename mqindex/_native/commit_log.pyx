# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Frames of one commit-log file: find and decode. `buf` is always the whole file.

A fault is `(at, kind, field, expected, got)`: the phy offset of the first bad frame, one of "bad-magic", "bad-size",
"bad-length", "foreign" (the frame's stored phy offset is another), "bad-crc", "truncated", "bad-delay"; then texts.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t

from mqindex._native.commit_log cimport (
    LogBuffer,
    mqi_log,
    mqi_log_fault,
    mqi_log_frame,
    mqi_log_scan_frames,
)
from mqindex._native.crc cimport checksum32
from mqindex._native.guard cimport still_whole
from mqindex._native.memory cimport Pinned, Source, target_of


cdef extern from "mqi_log_scan.h" nogil:
    int MQI_LOG_FINE
    int MQI_LOG_BAD_MAGIC
    int MQI_LOG_BAD_CRC
    int MQI_LOG_BAD_DELAY
    int MQI_FIELD_NONE
    int MQI_EXACTLY
    int MQI_AT_LEAST

    void mqi_log_scan_at(
        const mqi_log* log, const int64_t* at, int64_t n, mqi_log_frame* out, uint8_t* valid) noexcept


cdef extern from "mqi_log_find.h" nogil:
    int64_t mqi_log_find(const mqi_log* log, int64_t at, int64_t stop) noexcept
    int64_t mqi_log_last(const mqi_log* log, int64_t at, int64_t stop, int64_t* end) noexcept


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


def frame_dtype():
    """The structured dtype of a decoded frame; `*_pos` are positions in the buffer, `*_len` -1: absent."""
    global _frame_dtype
    if _frame_dtype is None:
        import numpy as np

        dtype = np.dtype(_FRAME)
        assert dtype.itemsize == sizeof(mqi_log_frame)
        _frame_dtype = dtype
    return _frame_dtype


def find_frame(buf, int64_t file_start, int64_t start, int64_t stop, /):
    """The first phy offset in [start, stop) of a frame whose stored phy offset is its own; -1: none.

    A blank record counts if it ends with the file. Only the frames before it can show whether what was found is a frame
    or a copy of one inside a body.
    """
    cdef LogBuffer log = LogBuffer(buf, file_start, False)
    cdef int64_t at = log.position(start), end = log.limit(stop)
    with nogil:
        at = mqi_log_find(&log.log, at, end)
    log.leave()
    return at + file_start if at >= 0 else -1


def last_record(buf, int64_t file_start, int64_t start, int64_t stop, /):
    """[start, end) of the last record that begins below `stop`, found by sizes alone from the one at `start` on.

    The head of the next record was there before a size was read. Start is end: there is no record.
    """
    cdef LogBuffer log = LogBuffer(buf, file_start, False)
    cdef int64_t at = log.position(start), limit = log.limit(stop), end
    with nogil:
        at = mqi_log_last(&log.log, at, limit, &end)
    log.leave()
    return at + file_start, end + file_start


cdef class LogBuffer(Source):
    """A pinned buffer and its phy offset."""

    def __cinit__(self, buf, int64_t file_start, bint check_crc):
        self.pin(buf)
        if file_start < 0 or file_start > INT64_MAX - self.view.len:
            raise ValueError(f"file_start: expected a phy offset, got {file_start}")
        self.log.buf = <const uint8_t*>self.view.buf
        self.log.len = self.view.len
        self.log.start = file_start
        if check_crc:
            self.log.crc32 = checksum32

    cdef int64_t position(self, int64_t phy_offset) except -1:
        if not self.log.start <= phy_offset <= self.log.start + self.log.len:
            expected = f"{self.log.start}..{self.log.start + self.log.len}, the file's phy offsets"
            raise ValueError(f"start: expected {expected}, got {phy_offset}")
        return phy_offset - self.log.start

    cdef int64_t limit(self, int64_t phy_offset) noexcept:
        return min(max(phy_offset, self.log.start) - self.log.start, self.log.len)

    cdef object fault(self, mqi_log_fault* fault):
        cdef int64_t at
        cdef str relation, unit
        if fault.kind == MQI_LOG_FINE:
            return None
        at, kind, field = fault.at + self.log.start, _KINDS[fault.kind], _FIELDS[fault.field]
        if fault.kind == MQI_LOG_BAD_MAGIC:
            return at, kind, field, _MAGICS, f"0x{<uint32_t>fault.got:08X}"
        if fault.kind == MQI_LOG_BAD_CRC:
            return at, kind, field, f"0x{fault.expected:08X}", f"0x{<uint32_t>fault.got:08X}"
        if fault.kind == MQI_LOG_BAD_DELAY:
            return at, kind, field, "a whole number", "other text"
        relation = "" if fault.relation == MQI_EXACTLY else " or more" if fault.relation == MQI_AT_LEAST else " or less"
        unit = " bytes" if field in _BYTES else ""
        return at, kind, field, f"{fault.expected}{unit}{relation}", str(fault.got)


cdef class FrameWalk:
    """A walk over the frames that begin in [start, stop), to be inherited.

    `end`, `blank` and `fault` as in `Extractor`. For one thread at a time.
    """

    def __init__(
        self, buf, int64_t file_start, int64_t start, int64_t stop, /, *, bint check_crc=False,
        int64_t max_frames=65536
    ):
        if self.log is not None:
            raise TypeError("a walk is made once")
        if max_frames < 1:
            raise ValueError(f"max_frames: expected 1 or more, got {max_frames}")
        cdef LogBuffer log = LogBuffer(buf, file_start, check_crc)
        self.scan.at = log.position(start)
        self.scan.blank = -1
        self.stop, self.max_frames = log.limit(stop), max_frames
        self.log, self.start = log, file_start

    def __iter__(self):
        return self

    def __next__(self):
        with cython.critical_section(self):
            if self.busy or self.log is None:
                raise RuntimeError("a walk serves one thread at a time")
            self.busy = True
        try:
            frames = None if self.scan.done else self.next_frames()
            if frames is None:
                if self.log.held:
                    self.log.leave()
                raise StopIteration
            return frames
        finally:
            self.busy = False

    cdef int64_t most(self) noexcept:
        # No frame is shorter than 91 bytes: a short stretch needs no long array.
        return min(self.max_frames, max(self.stop - self.scan.at, 0) // 91 + 1)

    cdef object next_frames(self):
        """What `__next__` gives; None: there are no more."""
        raise NotImplementedError

    @property
    def end(self):
        """The phy offset after the last frame."""
        return self.scan.at + self.start

    @property
    def fault(self):
        """`(at, kind, field, expected, got)` of the first bad frame, or None."""
        return None if self.log is None else self.log.fault(&self.scan.fault)

    @property
    def blank(self):
        """The phy offset of the blank record, or -1."""
        return self.scan.blank + self.start if self.scan.blank >= 0 else -1


@cython.final
cdef class Scanner(FrameWalk):
    """Decoded frames as structured arrays (`frame_dtype()`) of at most `max_frames`."""

    cdef object next_frames(self):
        import numpy as np

        cdef Pinned rows
        cdef int64_t n = self.most()
        frames = np.empty(n, frame_dtype())
        rows = target_of(frames)
        with nogil:
            n = mqi_log_scan_frames(&self.log.log, &self.scan, self.stop, <mqi_log_frame*>rows.view.buf, n)
        still_whole(self.log.range)
        return frames[:n] if n else None


def scan_at(buf, int64_t file_start, phy_offsets, /, *, bint check_crc=False):
    """The frames at given phy offsets of a file: `(frames, valid bool[n])`; what is no whole frame is all zero.

    phy_offsets : int64[n], in any order, also outside the file. frames : structured array of `frame_dtype()`.
    """
    import numpy as np

    cdef LogBuffer log = LogBuffer(buf, file_start, check_crc)
    positions = np.ascontiguousarray(phy_offsets, np.int64) - file_start
    cdef int64_t n = len(positions)
    frames, valid = np.empty(n, frame_dtype()), np.empty(n, np.uint8)
    cdef Pinned at = Pinned(positions, sizeof(int64_t)), rows = target_of(frames), flags = target_of(valid)
    with nogil:
        mqi_log_scan_at(
            &log.log, <const int64_t*>at.view.buf, n, <mqi_log_frame*>rows.view.buf, <uint8_t*>flags.view.buf)
    log.leave()
    return frames, valid.view(np.bool_)
