# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Frames of one commit-log file as columns. `buf` is always the whole file.

A column is an array of numbers, or of texts `(data uint8[b], offsets int64[n + 1], valid bool[n] or None)`.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free

from mqindex._native.commit_log cimport FrameWalk, LogBuffer, mqi_log, mqi_log_scan
from mqindex._native.guard cimport still_whole
from mqindex._native.memory cimport Pinned, block_of, integers, target_of

from mqindex._native.commit_log import frame_dtype


cdef extern from "mqi_buffer.h" nogil:
    uint8_t* mqi_memory_cut(uint8_t* data, int64_t size, int64_t room) noexcept


cdef extern from "mqi_log_columns.h" nogil:
    int MQI_COLUMN_INT32
    int MQI_COLUMN_INT64
    int MQI_COLUMN_TEXT
    int MQI_COLUMN_BORN_HOST
    int MQI_COLUMN_STORE_HOST
    int MQI_COLUMN_MSG_ID

    ctypedef struct mqi_log_column:
        int32_t kind
        int32_t at
        int32_t len_at
        uint8_t* numbers
        int64_t* offsets
        uint8_t* valid
        uint8_t* data
        int64_t room

    ctypedef struct mqi_log_table:
        mqi_log_column* columns
        int64_t count
        int64_t rows
        int64_t max_rows

    int64_t mqi_log_columns_at(
        const mqi_log* log, const int64_t* at, const int32_t* sizes, int64_t n, mqi_log_table* table) noexcept
    int mqi_log_columns_scan(
        const mqi_log* log, mqi_log_scan* scan, int64_t stop, int64_t max_bytes, mqi_log_table* table) noexcept
    void mqi_texts_among(
        const uint8_t* data, int64_t len, const int64_t* offsets, int64_t n, const uint8_t* wanted,
        const int64_t* ends, int64_t n_wanted, uint8_t* out) noexcept


_MADE = {"born_host": MQI_COLUMN_BORN_HOST, "store_host": MQI_COLUMN_STORE_HOST, "msg_id": MQI_COLUMN_MSG_ID}
_OPTIONAL = frozenset(("tags", "keys", "uniq_key"))  # what a frame need not have


@cython.final
cdef class _Table:
    """Columns to be filled, and their memory."""

    cdef mqi_log_table table
    cdef tuple names
    cdef list arrays  # of each column: what it is made of
    cdef list pins

    def __cinit__(self, tuple names, int64_t max_rows):
        self.names, self.arrays, self.pins = names, [], []
        self.table.max_rows = max_rows
        self.table.columns = <mqi_log_column*>calloc(len(names) + 1, sizeof(mqi_log_column))
        if self.table.columns == NULL:
            raise MemoryError
        for name in names:
            self.prepare(name, &self.table.columns[self.table.count])
            self.table.count += 1

    def __dealloc__(self):
        if self.table.columns != NULL:
            for i in range(self.table.count):
                free(self.table.columns[i].data)
        free(self.table.columns)

    cdef int prepare(self, str name, mqi_log_column* column) except -1:
        import numpy as np

        cdef int64_t n = self.table.max_rows
        fields = frame_dtype().fields
        if name in fields:
            dtype, column.at = fields[name]
            column.kind = MQI_COLUMN_INT32 if dtype.itemsize == 4 else MQI_COLUMN_INT64
            numbers = np.empty(n, dtype)
            column.numbers = <uint8_t*>self.pinned(numbers)
            self.arrays.append(numbers)
            return 0
        offsets, valid = np.zeros(n + 1, np.int64), np.empty(n, np.bool_) if name in _OPTIONAL else None
        column.kind = _MADE.get(name, MQI_COLUMN_TEXT)
        if column.kind == MQI_COLUMN_TEXT:
            column.at, column.len_at = fields[f"{name}_pos"][1], fields[f"{name}_len"][1]
        column.offsets = <int64_t*>self.pinned(offsets)
        if valid is not None:
            column.valid = <uint8_t*>self.pinned(valid)
        self.arrays.append((offsets, valid))
        return 0

    cdef void* pinned(self, array) except NULL:
        cdef Pinned pin = target_of(array)
        self.pins.append(pin)
        return pin.view.buf

    cdef dict taken(self):
        """The columns of the rows that were filled; this object must not be used again."""
        self.pins = []
        return {name: self.column(i) for i, name in enumerate(self.names)}

    cdef object column(self, int64_t i):
        import numpy as np

        cdef mqi_log_column* column = &self.table.columns[i]
        cdef int64_t n = self.table.rows, size
        cdef uint8_t* data
        if column.numbers != NULL:
            return self.arrays[i][:n]
        offsets, valid = self.arrays[i]
        size = column.offsets[n]
        if size == 0:
            return np.empty(0, np.uint8), offsets[:n + 1], None if valid is None else valid[:n]
        data = mqi_memory_cut(column.data, size, column.room)
        column.data = NULL
        text = np.frombuffer(block_of(data, size, False), np.uint8)
        return text, offsets[:n + 1], None if valid is None else valid[:n]


def columns_at(buf, int64_t file_start, phy_offsets, sizes, tuple names, /):
    """Columns of the frames at given phy offsets of a file: `(columns by name, number of rows)`.

    phy_offsets : int64[n], in any order, also outside the file. sizes : int32[n], what each frame must have.
    Fewer rows than n: the next one is no whole frame, or not of its size, and the columns must not be used.
    """
    import numpy as np

    cdef LogBuffer log = LogBuffer(buf, file_start, False)
    positions = np.asarray(phy_offsets, np.int64) - file_start
    cdef Pinned at = integers(positions, sizeof(int64_t))
    cdef Pinned expected = integers(np.ascontiguousarray(sizes, np.int32), sizeof(int32_t))
    if at.n != expected.n:
        raise ValueError("phy_offsets, sizes: expected arrays of one length")
    cdef _Table table = _Table(names, at.n)
    cdef int64_t n
    with nogil:
        n = mqi_log_columns_at(
            &log.log, <const int64_t*>at.view.buf, <const int32_t*>expected.view.buf, at.n, &table.table)
    log.leave()
    if n < 0:
        raise MemoryError
    return table.taken(), n


@cython.final
cdef class ColumnScanner(FrameWalk):
    """Frames as columns: `(columns by name, number of rows)` at a time.

    A batch has at most `max_frames` rows, and at most so many as begin in `max_bytes`.
    """

    cdef tuple names
    cdef int64_t max_bytes

    def __init__(
        self, buf, int64_t file_start, int64_t start, int64_t stop, tuple names, /, *, bint check_crc=False,
        int64_t max_frames=65536, int64_t max_bytes
    ):
        if max_bytes < 1:
            raise ValueError(f"max_bytes: expected 1 or more, got {max_bytes}")
        self.names, self.max_bytes = names, max_bytes
        FrameWalk.__init__(self, buf, file_start, start, stop, check_crc=check_crc, max_frames=max_frames)

    cdef object next_frames(self):
        cdef _Table table = _Table(self.names, self.most())
        cdef int done
        with nogil:
            done = mqi_log_columns_scan(&self.log.log, &self.scan, self.stop, self.max_bytes, &table.table)
        still_whole(self.log.range)
        if not done:
            raise MemoryError
        return (table.taken(), table.table.rows) if table.table.rows else None


def texts_among(data, offsets, tuple wanted, /):
    """Which texts of a column are among those wanted, as bytes: bool[n]."""
    import numpy as np

    cdef Pinned source = Pinned(data), starts = integers(offsets, sizeof(int64_t)), texts, ends, filled
    cdef int64_t n = starts.n - 1
    if n < 0:
        raise ValueError("offsets: expected those of a column of texts")
    texts = Pinned(b"".join(wanted))
    ends = integers(np.cumsum([len(text) for text in wanted], dtype=np.int64), sizeof(int64_t))
    found = np.empty(n, np.bool_)
    filled = target_of(found)
    with nogil:
        mqi_texts_among(
            <const uint8_t*>source.view.buf, source.view.len, <const int64_t*>starts.view.buf, n,
            <const uint8_t*>texts.view.buf, <const int64_t*>ends.view.buf, ends.n, <uint8_t*>filled.view.buf)
    return found
