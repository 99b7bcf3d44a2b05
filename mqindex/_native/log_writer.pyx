# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Frames of a commit log from columns, encoded into the bytes that are written."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, int32_t, int64_t, uint8_t

from mqindex._native.crc cimport checksum32, mqi_checksum
from mqindex._native.memory cimport Pinned, target_of
from mqindex._native.pieces cimport Pieces, mqi_piece, mqi_pieces

import os


cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef extern from "mqi_log_encode.h" nogil:
    ctypedef struct mqi_numbers:
        const int64_t* cells
        int64_t step

    ctypedef struct mqi_log_rules:
        int separator
        int append_crc
        int long_topics
        int64_t max_body
        int64_t max_frame

    ctypedef struct mqi_log_rows:
        int64_t n
        mqi_log_rules rules
        mqi_checksum* crc32
        mqi_pieces topic
        mqi_pieces body
        mqi_pieces properties
        mqi_pieces keys
        mqi_pieces tags
        mqi_pieces uniq_key
        mqi_pieces born_host
        mqi_pieces store_host
        mqi_numbers queue_id
        mqi_numbers queue_offset
        mqi_numbers flag
        mqi_numbers sys_flag
        mqi_numbers born_timestamp
        mqi_numbers store_timestamp
        mqi_numbers reconsume_times
        mqi_numbers prepared_transaction_offset

    ctypedef struct mqi_log_refusal:
        int64_t row
        int32_t kind
        int32_t column
        int64_t limit
        int64_t got

    ctypedef struct mqi_log_progress:
        int64_t row
        int64_t phy_offset
        int64_t left
        int roll

    int64_t mqi_log_measure(
        const mqi_log_rows* rows, int32_t* sizes, uint8_t* parts, mqi_log_refusal* why) noexcept
    int64_t mqi_log_encode(
        const mqi_log_rows* rows, const int32_t* sizes, const uint8_t* parts, mqi_log_progress* progress,
        uint8_t* out, int64_t room, int64_t* phy_offsets) noexcept


cdef extern from "mqi_log_append.h" nogil:
    ctypedef struct mqi_log_file:
        int fd
        int64_t start
        uint8_t* buffer
        int64_t room

    enum:
        MQI_LOG_WRITERS

    int mqi_log_append(
        const mqi_log_rows* rows, const int32_t* sizes, const uint8_t* parts, mqi_log_progress* progress,
        const mqi_log_file* file, int64_t most, int64_t* phy_offsets) noexcept


WRITERS = MQI_LOG_WRITERS
TEXTS = ("topic", "body", "properties", "keys", "tags", "uniq_key", "born_host", "store_host")
NUMBERS = (
    "queue_id", "queue_offset", "flag", "sys_flag", "born_timestamp", "store_timestamp", "reconsume_times",
    "prepared_transaction_offset",
)
_COLUMNS = (None, "topic", "body", "properties", "keys", "tags", "uniq_key")
_KINDS = (None, "empty", "long", "separator", "otherwise", "delay")


class RefusedError(Exception):
    """No broker takes a row: (row, kind, column or None, limit, got); kind: one of `_KINDS`."""


cdef int refuse(mqi_log_refusal* why) except -1:
    raise RefusedError(why.row, _KINDS[why.kind], _COLUMNS[why.column], why.limit, why.got)


cdef void set_texts(mqi_log_rows* rows, const mqi_pieces* texts) noexcept:
    rows.crc32 = checksum32
    rows.topic, rows.body, rows.properties = texts[0], texts[1], texts[2]
    rows.keys, rows.tags, rows.uniq_key = texts[3], texts[4], texts[5]
    rows.born_host, rows.store_host = texts[6], texts[7]


cdef void set_numbers(mqi_log_rows* rows, const mqi_numbers* numbers) noexcept:
    rows.queue_id, rows.queue_offset, rows.flag, rows.sys_flag = numbers[0], numbers[1], numbers[2], numbers[3]
    rows.born_timestamp, rows.store_timestamp = numbers[4], numbers[5]
    rows.reconsume_times, rows.prepared_transaction_offset = numbers[6], numbers[7]


@cython.final
cdef class _Numbers:
    """An int64 array of one value or n."""

    cdef Pinned array
    cdef mqi_numbers numbers

    def __cinit__(self, str name, array, Py_ssize_t n):
        self.array = Pinned(array, sizeof(int64_t))
        self.numbers.cells = <const int64_t*> self.array.view.buf
        self.numbers.step = 0 if self.array.n == 1 and n != 1 else 1
        if self.array.view.itemsize != 8 or (self.array.n != n and self.array.n != 1):
            raise ValueError(f"{name}: expected 1 or {n} numbers of 64 bits, got {self.array.n}")


@cython.final
cdef class Frames:
    """Messages in columns, measured; `encode` gives their frames piece by piece. For one thread at a time.

    texts, numbers : in the order of TEXTS and NUMBERS; a column has n rows, or one value for all.
    Raises RefusedError for the first row that no broker takes.
    """

    cdef readonly object sizes, phy_offsets
    cdef readonly int64_t total
    cdef mqi_log_rows rows
    cdef list owners
    cdef Pinned size_rows, offset_rows, part_rows
    cdef mqi_log_progress progress
    cdef bint measured, busy

    def __init__(
        self, Py_ssize_t n, tuple texts, tuple numbers, /, *, bint separator, bint append_crc, bint long_topics,
        int64_t max_body, int64_t max_frame
    ):
        import numpy as np

        cdef mqi_pieces text_views[8]
        cdef mqi_numbers number_views[8]
        cdef mqi_log_refusal why
        cdef Pieces text
        cdef _Numbers cells
        cdef Py_ssize_t i
        if self.owners is not None:
            raise TypeError("Frames are made once")
        self.owners = [texts]
        for i in range(8):
            text, cells = texts[i], _Numbers(NUMBERS[i], numbers[i], n)
            if not text.constant and text.length != n:
                raise ValueError(f"{TEXTS[i]}: expected {n} values, got {text.length}")
            text_views[i], number_views[i] = text.view(), cells.numbers
            self.owners.append(cells)
        self.rows.n = n
        self.rows.rules = mqi_log_rules(separator, append_crc, long_topics, max_body, min(max_frame, INT32_MAX))
        set_texts(&self.rows, text_views)
        set_numbers(&self.rows, number_views)
        self.sizes, self.phy_offsets = np.empty(n, np.int32), np.empty(n, np.int64)
        self.size_rows, self.offset_rows = target_of(self.sizes), target_of(self.phy_offsets)
        self.part_rows = target_of(np.empty(n, np.uint8))
        with nogil:
            self.total = mqi_log_measure(
                &self.rows, <int32_t*> self.size_rows.view.buf, <uint8_t*> self.part_rows.view.buf, &why)
        if self.total < 0:
            refuse(&why)
        self.measured = True

    def __len__(self):
        return self.rows.n

    @property
    def encoded(self):
        """Rows so far."""
        return self.progress.row

    def encode(self, out, int64_t phy_offset, int64_t left, /):
        """The next frames into `out`, the first one at that phy offset, `left` bytes before the file's end.

        Returns how many bytes, and whether the next frame must go to another file.
        """
        cdef Pinned target = target_of(out)
        cdef int64_t used
        self._enter()
        try:
            self.progress.phy_offset, self.progress.left = phy_offset, left
            with nogil:
                used = mqi_log_encode(
                    &self.rows, <const int32_t*> self.size_rows.view.buf, <const uint8_t*> self.part_rows.view.buf,
                    &self.progress, <uint8_t*> target.view.buf, target.view.len, <int64_t*> self.offset_rows.view.buf)
            return used, bool(self.progress.roll)
        finally:
            self.busy = False

    cdef int _enter(self) except -1:
        with cython.critical_section(self):
            if self.busy or not self.measured:
                raise RuntimeError("Frames serve one thread at a time")
            self.busy = True
        return 0

    def append(self, int fd, int64_t start, buffer, int64_t phy_offset, int64_t left, int64_t most, /):
        """The next frames into a file that begins at the phy offset `start`; `most` bytes of them, about.

        Each of WRITERS threads encodes into its part of `buffer`, and no frame is longer than one of these. Returns as
        `encode` does; `OSError`: perhaps a part was written.
        """
        cdef Pinned target = target_of(buffer)
        cdef mqi_log_file file = mqi_log_file(
            fd, start, <uint8_t*> target.view.buf, target.view.len // MQI_LOG_WRITERS)
        cdef int failed
        self._enter()
        try:
            self.progress.phy_offset, self.progress.left = phy_offset, left
            with nogil:
                failed = mqi_log_append(
                    &self.rows, <const int32_t*> self.size_rows.view.buf, <const uint8_t*> self.part_rows.view.buf,
                    &self.progress, &file, most, <int64_t*> self.offset_rows.view.buf)
            if failed:
                raise OSError(failed, os.strerror(failed))
            return self.progress.phy_offset - phy_offset, bool(self.progress.roll)
        finally:
            self.busy = False


cdef bytes text_cell(mqi_piece* piece, str text):
    """UTF-8; what has none (lone surrogates) becomes question marks, in bytes that the caller holds."""
    cdef Py_ssize_t n
    if text is None:
        return bytes_cell(piece, None)
    try:
        piece.p = <const uint8_t*> PyUnicode_AsUTF8AndSize(text, &n)
        piece.len = n
        return None
    except UnicodeEncodeError:
        return bytes_cell(piece, text.encode(errors="replace"))


cdef bytes bytes_cell(mqi_piece* piece, bytes data):
    piece.p = NULL if data is None else <const uint8_t*> PyBytes_AS_STRING(data)
    piece.len = -1 if data is None else PyBytes_GET_SIZE(data)
    return data


cdef int64_t int32_of(str name, object value) except? -1:
    cdef int64_t number
    try:
        number = value
    except OverflowError:
        number = INT64_MAX
    if not INT32_MIN <= number <= INT32_MAX:
        raise ValueError(f"{name}: expected a number of 32 bits, got {value}")
    return number


def encode_frame(
    message, bytes properties, bytes born_host, bytes store_host, int64_t queue_offset, int64_t born_timestamp,
    int64_t store_timestamp, int64_t phy_offset, rules, /
):
    """The frame of one message, a `NewMessage`: its properties as a block, and values of open fields, are separate."""
    cdef mqi_log_rows rows
    cdef mqi_log_refusal why
    cdef mqi_log_progress progress
    cdef mqi_piece pieces[8]
    cdef mqi_pieces text_views[8]
    cdef int64_t cells[8]
    cdef mqi_numbers number_views[8]
    cdef int32_t size
    cdef uint8_t parts = 0
    cdef int64_t placed, max_frame = rules.max_frame
    cdef bytes frame
    cdef str topic = message.topic, keys = message.keys, tags = message.tags, uniq_key = message.uniq_key
    cdef tuple _held = (
        text_cell(&pieces[0], topic), bytes_cell(&pieces[1], bytes(message.body)), text_cell(&pieces[3], keys),
        text_cell(&pieces[4], tags), text_cell(&pieces[5], uniq_key),
    )
    bytes_cell(&pieces[2], properties)
    bytes_cell(&pieces[6], born_host)
    bytes_cell(&pieces[7], store_host)
    cells[0], cells[1] = int32_of("queue_id", message.queue_id), queue_offset
    cells[2], cells[3] = int32_of("flag", message.flag), int32_of("sys_flag", message.sys_flag)
    cells[4], cells[5] = born_timestamp, store_timestamp
    cells[6] = int32_of("reconsume_times", message.reconsume_times)
    cells[7] = message.prepared_transaction_offset
    for i in range(8):
        text_views[i] = mqi_pieces(&pieces[i], 0)
        number_views[i] = mqi_numbers(&cells[i], 0)
    rows.n = 1
    rows.rules = mqi_log_rules(
        rules.separator, rules.append_crc, rules.long_topics, rules.max_body, min(max_frame, INT32_MAX))
    set_texts(&rows, text_views)
    set_numbers(&rows, number_views)
    if mqi_log_measure(&rows, &size, &parts, &why) < 0:
        refuse(&why)
    frame = PyBytes_FromStringAndSize(NULL, size)
    progress = mqi_log_progress(0, phy_offset, INT32_MAX * <int64_t> 2, 0)
    mqi_log_encode(&rows, &size, &parts, &progress, <uint8_t*> PyBytes_AS_STRING(frame), size, &placed)
    return frame
