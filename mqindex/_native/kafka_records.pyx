# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Records of Kafka batches: copied into columns, searched by time. `rows` are packed batches of a `BatchScan` of `buf`.

The caller decompresses compressed batches, and passes the result as `payload`.
"""

cimport cython
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from mqindex._native.memory cimport Block, Pinned, block_of

from mqindex.errors import FormatError


cdef extern from "mqi_kafka_records.h" nogil:
    int MQI_BATCH_OVERHEAD
    int MQI_BATCH_RECORDS
    int MQI_MIN_LENGTH
    int MQI_BATCH_CODEC

    ctypedef struct mqi_kafka_batch:
        int64_t position
        int64_t base_offset
        int32_t size
        int32_t count
        int16_t attributes
        int8_t magic

    ctypedef struct mqi_buffer:
        uint8_t* data
        int64_t size
        int64_t room

    uint8_t* mqi_buffer_give(mqi_buffer* b) noexcept


cdef extern from "mqi_kafka_records.h" nogil:
    ctypedef struct mqi_kafka_records:
        int64_t index
        int fault

    ctypedef struct mqi_kafka_record:
        int64_t offset
        int64_t timestamp

    ctypedef struct mqi_kafka_row:
        int64_t offset
        int64_t timestamp
        int64_t key_end
        int64_t value_end
        int64_t headers_end
        int32_t batch
        int8_t timestamp_type

    ctypedef struct mqi_kafka_header:
        int64_t key_end

    ctypedef struct mqi_kafka_columns:
        int keys
        int values
        int headers_wanted
        mqi_buffer rows
        mqi_buffer key_data
        mqi_buffer value_data
        mqi_buffer headers
        mqi_buffer header_keys
        mqi_buffer header_values

    int MQI_COLUMNS_ENDED
    int MQI_COLUMNS_FULL
    int MQI_COLUMNS_NO_MEMORY

    void mqi_kafka_records_start(
        mqi_kafka_records* x, const mqi_kafka_batch* batch, const uint8_t* payload, int64_t n, int expanded) noexcept
    int mqi_kafka_records_next(mqi_kafka_records* x, mqi_kafka_record* record) noexcept
    int64_t mqi_kafka_message_value(const uint8_t* message, int64_t size, const uint8_t** value) noexcept
    int mqi_kafka_columns_add(
        mqi_kafka_columns* c, mqi_kafka_records* x, int32_t batch, int64_t max_rows, int64_t max_bytes) noexcept
    void mqi_kafka_columns_free(mqi_kafka_columns* c) noexcept


cdef int64_t MOST = <int64_t>1 << 40  # rows or bytes: their product with a row's size must not pass 64 bits

_FAULTS = (
    None, "a field reaches beyond its end", "a number does not end", "its fields do not fill it",
    "not as many as the batch says", "a header has no key", "a compressed message inside another", "nothing inside",
    "the wrapper's offset is below that of a message inside",
)


def row_dtype():
    """The structured dtype of the rows that `RecordColumns.take` gives."""
    import numpy as np

    dtype = np.dtype([
        ("offset", "=i8"), ("timestamp", "=i8"), ("key_end", "=i8"), ("value_end", "=i8"), ("headers_end", "=i8"),
        ("batch", "=i4"), ("timestamp_type", "i1"), ("has_key", "?"), ("has_value", "?"), ("pad", "i1"),
    ])
    assert dtype.itemsize == sizeof(mqi_kafka_row)
    return dtype


def header_dtype():
    """The structured dtype of the headers' rows."""
    import numpy as np

    dtype = np.dtype([("key_end", "=i8"), ("value_end", "=i8"), ("has_value", "?"), ("pad", "V7")])
    assert dtype.itemsize == sizeof(mqi_kafka_header)
    return dtype


cdef Block _given(mqi_buffer* what):
    """Take the memory over."""
    cdef int64_t size = what.size
    return block_of(mqi_buffer_give(what), size, False)


cdef object _broken(const mqi_kafka_batch* batch, const mqi_kafka_records* x, object path):
    return FormatError(
        f"record {x.index} of the batch is broken: {_FAULTS[x.fault]}", path=path, at=batch.position, field="records")


cdef const mqi_kafka_batch* _batch(Pinned rows, int64_t number) except NULL:
    if not 0 <= number < rows.n:
        raise IndexError(f"number: expected one of the rows, got {number}")
    return <const mqi_kafka_batch*>rows.view.buf + number


cdef const uint8_t* _bytes_of(Pinned log, const mqi_kafka_batch* batch) except NULL:
    cdef int64_t least = MQI_BATCH_RECORDS if batch.magic >= 2 else MQI_BATCH_OVERHEAD + MQI_MIN_LENGTH
    if batch.position < 0 or batch.size < least or batch.position > log.view.len - batch.size:
        raise ValueError("rows: expected those that a scan of this log gave")
    return <const uint8_t*>log.view.buf + batch.position


def compressed_part(buf, rows, int64_t number, /, *, path=None):
    """Where the compressed bytes of a batch are: positions [start, stop) of the log.

    Raises
    ------
    FormatError : a message of magic 0 or 1 that has no value, or none that is whole.
    """
    cdef Pinned log = Pinned(buf), batches = Pinned(rows, sizeof(mqi_kafka_batch))
    cdef const mqi_kafka_batch* batch = _batch(batches, number)
    cdef const uint8_t* p = _bytes_of(log, batch)
    cdef const uint8_t* value = NULL
    cdef int64_t n
    if batch.magic >= 2:
        return batch.position + MQI_BATCH_RECORDS, batch.position + batch.size
    n = mqi_kafka_message_value(p, batch.size, &value)
    log.whole()
    if n < 0:
        raise FormatError(
            "the compressed message has no value", path=path, at=batch.position, field="value",
            expected="0 bytes or more", got="null" if n == -1 else "fewer than its length says")
    return batch.position + (value - p), batch.position + (value - p) + n


cdef int _start(
    mqi_kafka_records* x, Pinned source, const mqi_kafka_batch* batch, bint expanded
) except -1:
    cdef const uint8_t* p
    cdef int64_t n
    if expanded:
        p, n = <const uint8_t*>source.view.buf, source.view.len
    else:
        p, n = _bytes_of(source, batch), batch.size
        if batch.magic >= 2:
            p += MQI_BATCH_RECORDS
            n -= MQI_BATCH_RECORDS
    mqi_kafka_records_start(x, batch, p, n, expanded)
    return 0


def find_record(buf, payload, rows, int64_t number, int64_t timestamp, int64_t min_offset, bint exact, /, *, path=None):
    """The first record of a batch whose timestamp is not less than `timestamp` (`exact`: equal), from an offset on.

    payload : what a compressed batch decompresses to, else None. Gives `(timestamp, offset)`, or None.
    """
    cdef bint expanded = payload is not None
    cdef Pinned source = Pinned(payload if expanded else buf), batches = Pinned(rows, sizeof(mqi_kafka_batch))
    cdef const mqi_kafka_batch* batch = _batch(batches, number)
    cdef mqi_kafka_records x
    cdef mqi_kafka_record record
    cdef bint found = False
    _start(&x, source, batch, expanded)
    with nogil:
        while not found and mqi_kafka_records_next(&x, &record):
            found = record.offset >= min_offset and (
                record.timestamp == timestamp if exact else record.timestamp >= timestamp)
    source.whole()
    if found:
        return record.timestamp, record.offset
    if x.fault:
        raise _broken(batch, &x, path)
    return None


def first_offset(payload, rows, int64_t number, /, *, path=None):
    """The offset of the first record of a compressed batch."""
    cdef Pinned source = Pinned(payload), batches = Pinned(rows, sizeof(mqi_kafka_batch))
    cdef const mqi_kafka_batch* batch = _batch(batches, number)
    cdef mqi_kafka_records x
    cdef mqi_kafka_record record
    _start(&x, source, batch, True)
    if not mqi_kafka_records_next(&x, &record):
        if x.fault:
            raise _broken(batch, &x, path)
        return batch.base_offset
    return record.offset


@cython.final
cdef class RecordColumns:
    """Copies records into columns, which `take` returns. For one thread at a time.

    keys, values, headers : which of them to copy. max_rows, max_bytes : when it is full.
    """

    cdef mqi_kafka_columns columns
    cdef mqi_kafka_records x
    cdef Pinned source  # of the batch that is not finished
    cdef int64_t max_rows, max_bytes
    cdef object path
    cdef bint busy

    def __cinit__(
        self, *, bint keys=True, bint values=True, bint headers=True, int64_t max_rows=65536,
        int64_t max_bytes=1 << 26, path=None
    ):
        if not (1 <= max_rows <= MOST and 1 <= max_bytes <= MOST):
            raise ValueError(f"max_rows, max_bytes: expected 1..{MOST}, got {max_rows} and {max_bytes}")
        self.columns.keys, self.columns.values, self.columns.headers_wanted = keys, values, headers
        self.max_rows, self.max_bytes, self.path = max_rows, max_bytes, path

    def __dealloc__(self):
        mqi_kafka_columns_free(&self.columns)

    def __len__(self):
        return self.columns.rows.size // <int64_t>sizeof(mqi_kafka_row)

    def add(self, buf, rows, int64_t number, /):
        """Copy the records of the batches from `number` on: `(number, full)`, the first that is not finished.

        It stops at a compressed batch, which is for `add_payload`, and when the columns are full: after `take` continue
        with the same arguments but the number that was returned.
        """
        cdef Pinned log = Pinned(buf), batches = Pinned(rows, sizeof(mqi_kafka_batch))
        cdef int64_t n = batches.n
        cdef const mqi_kafka_batch* batch
        while number < n:
            batch = _batch(batches, number)
            if batch.attributes & MQI_BATCH_CODEC:
                break
            if not self._add(log, batch, number, False):
                return number, True
            number += 1
        return number, False

    def add_payload(self, payload, rows, int64_t number, /):
        """Copy the records of one compressed batch; False: the columns are full, call it again after `take`."""
        cdef Pinned batches = Pinned(rows, sizeof(mqi_kafka_batch))
        return self._add(Pinned(payload), _batch(batches, number), number, True)

    cdef bint _add(self, Pinned source, const mqi_kafka_batch* batch, int64_t number, bint expanded) except -1:
        cdef int state
        self._enter()
        try:
            if self.source is None:
                _start(&self.x, source, batch, expanded)
                self.source = source
            with nogil:
                state = mqi_kafka_columns_add(&self.columns, &self.x, <int32_t>number, self.max_rows, self.max_bytes)
            source.whole()
            if state == MQI_COLUMNS_FULL:
                return False
            self.source = None
            if state == MQI_COLUMNS_NO_MEMORY:
                raise MemoryError
            if self.x.fault:
                raise _broken(batch, &self.x, self.path)
            return True
        finally:
            self.busy = False

    cdef int _enter(self) except -1:
        with cython.critical_section(self):
            if self.busy:
                raise RuntimeError("a RecordColumns serves one thread at a time")
            self.busy = True
        return 0

    def take(self):
        """What was copied, to begin anew: buffers of rows, keys, values, header rows, header keys, header values.

        Rows are of `row_dtype`; ends count from the begin of the data of each kind.
        """
        self._enter()
        try:
            return (
                _given(&self.columns.rows), _given(&self.columns.key_data), _given(&self.columns.value_data),
                _given(&self.columns.headers), _given(&self.columns.header_keys), _given(&self.columns.header_values))
        finally:
            self.busy = False
