# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Columns of text and bytes of any origin, as cells that a kernel reads without the GIL: a pointer and a length.

Nothing is copied: a column keeps its source alive. An absent value has length -1.
"""

cimport cython
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, strcmp, strncmp

from mqindex._native.arrow cimport ArrayStream, ArrowArray, ArrowSchema, HeldArray, arrow_type
from mqindex._native.memory cimport Block, Pinned, new_block
from mqindex._native.pieces cimport (
    MQI_HOST_SIZE_IPV6, Pieces, mqi_log_parse_host, mqi_piece, mqi_pieces,
)


cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


@cython.final
cdef class Pieces:
    """One column: `length` cells, or one for every row (`constant`)."""

    def __cinit__(self, Py_ssize_t n, bint constant=False):
        self.cells = <mqi_piece*> malloc((n if n > 0 else 1) * sizeof(mqi_piece))
        if self.cells == NULL:
            raise MemoryError
        self.length = n
        self.constant = constant
        self.owners = []

    def __dealloc__(self):
        free(self.cells)

    def __len__(self):
        return self.length

    def to_bytes(self, Py_ssize_t row, /):
        """One cell's bytes; empty for an absent value."""
        if not 0 <= row < self.length:
            raise IndexError(f"row {row} of {self.length}")
        return self.cells[row].p[:max(self.cells[row].len, 0)]

    cdef mqi_pieces view(self) noexcept:
        cdef mqi_pieces pieces
        pieces.cells = self.cells
        pieces.step = 0 if self.constant else 1
        return pieces


cdef inline void set_cell(mqi_piece* cell, const void* p, int64_t n) noexcept nogil:
    cell.p = <const uint8_t*> p
    cell.len = n


def constant_piece(bytes value, /):
    """The same bytes in every row; None: nothing."""
    cdef Pieces pieces = Pieces(1, True)
    pieces.owners.append(value)
    if value is None:
        set_cell(pieces.cells, NULL, -1)
    else:
        set_cell(pieces.cells, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
    return pieces


def pieces_of_sequence(str name, object values, /):
    """A list or tuple of str (as UTF-8), bytes and None."""
    cdef tuple kept = tuple(values)
    cdef Py_ssize_t i, size, n = len(kept)
    cdef Pieces pieces = Pieces(n)
    cdef const char* data
    pieces.owners.append(kept)
    for i in range(n):
        value = kept[i]
        if isinstance(value, str):
            try:
                data = PyUnicode_AsUTF8AndSize(value, &size)
                set_cell(pieces.cells + i, data, size)
                continue
            except UnicodeEncodeError:
                value = value.encode(errors="replace")  # a lone surrogate: as Java
                pieces.owners.append(value)
        if isinstance(value, bytes):
            set_cell(pieces.cells + i, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        elif value is None or value != value or type(value).__name__ == "NAType":
            set_cell(pieces.cells + i, NULL, -1)
        elif isinstance(value, (bytearray, memoryview)):
            value = bytes(value)
            pieces.owners.append(value)
            set_cell(pieces.cells + i, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        else:
            raise TypeError(f"{name}: expected str or bytes, got {type(value).__name__} in row {i}")
    return pieces


def pieces_of_offsets(str name, data, offsets, valid, /):
    """Bytes one after another: `data` uint8, `offsets` int64[n + 1], `valid` bool[n] or None."""
    cdef Pinned source = Pinned(data), starts = Pinned(offsets, sizeof(int64_t))
    cdef Pinned there = None if valid is None else Pinned(valid)
    cdef Py_ssize_t i, n = starts.n - 1
    cdef const int64_t* at = <const int64_t*> starts.view.buf
    cdef const uint8_t* flags = NULL if there is None else <const uint8_t*> there.view.buf
    cdef const uint8_t* first = <const uint8_t*> source.view.buf
    cdef Pieces pieces
    if n < 0 or (there is not None and there.view.len != n):
        raise ValueError(f"{name}: expected n flags and one offset more, got n = {n}")
    pieces = Pieces(n)
    pieces.owners.extend((source, starts))
    for i in range(n):
        if at[i] < 0 or at[i] > at[i + 1] or at[i + 1] > source.view.len:
            raise ValueError(f"{name}: row {i} is not inside the column's bytes")
        if flags != NULL and not flags[i]:
            set_cell(pieces.cells + i, NULL, -1)
        else:
            set_cell(pieces.cells + i, first + at[i], at[i + 1] - at[i])
    return pieces


def joined_pieces(list parts, /):
    """Columns one after another."""
    cdef Py_ssize_t total = sum(map(len, parts)), at = 0, i
    cdef Pieces pieces = Pieces(total), part
    for part in parts:
        for i in range(part.length):
            pieces.cells[at + i] = part.cells[i]
        at += part.length
    pieces.owners.extend(parts)
    return pieces


def hosts_of(str name, Pieces texts, bytes default=None, /):
    """`address:port` of every row as the bytes of a frame: 8, or 20 for IPv6; for an absent value, `default`."""
    cdef Block memory = new_block(texts.length * MQI_HOST_SIZE_IPV6)
    cdef Pieces hosts = Pieces(texts.length, texts.constant)
    cdef const mqi_piece* text
    cdef const mqi_piece* before = NULL
    cdef uint8_t* out = memory.data
    cdef Py_ssize_t i
    cdef int n
    hosts.owners.extend((memory, default))
    for i in range(texts.length):
        text = texts.cells + i
        if text.len < 0 and default is not None:
            set_cell(hosts.cells + i, PyBytes_AS_STRING(default), PyBytes_GET_SIZE(default))
            continue
        if (
            before != NULL and before == text - 1 and before.len == text.len
            and memcmp(before.p, text.p, <size_t> text.len) == 0
        ):
            hosts.cells[i] = hosts.cells[i - 1]  # most come from one host
            before = text
            continue
        n = mqi_log_parse_host(text.p, text.len, out)
        if n == 0:
            got = "nothing" if text.len < 0 else repr(text.p[:text.len].decode(errors="replace"))
            raise ValueError(f"{name}: expected address:port, IPv6 as [address]:port, got {got} in row {i}")
        set_cell(hosts.cells + i, out, n)
        out += n
        before = text
    return hosts


# ---- Arrow

def column_of_array(str name, object schema, object array, /):
    """A column of an Arrow array, given as the two capsules of `__arrow_c_array__`: Pieces, or an array of int64."""
    cdef ArrowSchema* of = <ArrowSchema*> PyCapsule_GetPointer(schema, "arrow_schema")
    cdef ArrowArray* source = <ArrowArray*> PyCapsule_GetPointer(array, "arrow_array")
    return _column(name, of, source, 0, source.length, (schema, array))


def batch_of_array(object schema, object array, /):
    """(rows, columns by name) of a record batch, given as the two capsules of `__arrow_c_array__`."""
    cdef ArrowSchema* of = <ArrowSchema*> PyCapsule_GetPointer(schema, "arrow_schema")
    cdef ArrowArray* source = <ArrowArray*> PyCapsule_GetPointer(array, "arrow_array")
    return _batch(of, source, (schema, array))


def columns_of_stream(str name, object capsule, /):
    """The chunks of one column."""
    return _read_stream(capsule, name)


def batches_of_stream(object capsule, /):
    """(rows, columns by name) of every record batch of an Arrow stream."""
    return _read_stream(capsule, None)


cdef list _read_stream(object capsule, str name):
    cdef ArrayStream stream = ArrayStream(capsule, "messages")
    cdef HeldArray held
    cdef list found = []
    while (held := stream.next()) is not None:
        if name is None:
            found.append(_batch(&stream.schema, &held.array, held))
        else:
            found.append(_column(name, &stream.schema, &held.array, 0, held.array.length, held))
    return found


cdef object _batch(ArrowSchema* schema, ArrowArray* array, object owner):
    cdef int64_t i
    if strcmp(schema.format, b"+s") != 0:
        raise TypeError(f"messages: expected record batches, got {arrow_type(schema.format)}")
    columns = {}
    for i in range(schema.n_children):
        name = schema.children[i].name.decode(errors="replace")
        columns[name] = _column(name, schema.children[i], array.children[i], array.offset, array.length, owner)
    return array.length, columns


cdef inline bint is_null(const ArrowArray* array, int64_t i) noexcept nogil:
    cdef const uint8_t* bitmap
    if array.null_count == 0 or array.n_buffers == 0:  # -1: not counted
        return False
    bitmap = <const uint8_t*> array.buffers[0]
    return bitmap != NULL and not (bitmap[i >> 3] >> (i & 7)) & 1


cdef object _column(str name, ArrowSchema* schema, ArrowArray* array, int64_t skip, int64_t n, object owner):
    """Rows [skip, skip + n) of an array."""
    if schema.dictionary != NULL:
        return _of_dictionary(name, schema, array, skip, n, owner)
    if strcmp(schema.format, b"n") == 0:
        return _nothing(n)
    if schema.format[0] in b"uUzZvw":
        return _texts(name, schema, array, array.offset + skip, n, owner)
    return _numbers(name, schema, array, array.offset + skip, n)


cdef Pieces _nothing(int64_t n):
    cdef Pieces pieces = Pieces(n)
    cdef int64_t i
    for i in range(n):
        set_cell(pieces.cells + i, NULL, -1)
    return pieces


cdef Pieces _texts(str name, ArrowSchema* schema, ArrowArray* array, int64_t first, int64_t n, object owner):
    cdef Pieces pieces = Pieces(n)
    cdef const char* form = schema.format
    cdef int64_t i, width = 0
    cdef int64_t at
    cdef const int32_t* views
    pieces.owners.append(owner)
    if strncmp(form, b"w:", 2) == 0:
        width = int(form[2:])
    elif strcmp(form, b"u") != 0 and strcmp(form, b"z") != 0 and strcmp(form, b"U") != 0 \
            and strcmp(form, b"Z") != 0 and strcmp(form, b"vu") != 0 and strcmp(form, b"vz") != 0:
        raise TypeError(f"{name}: expected text or bytes, got {arrow_type(schema.format)}")
    for i in range(n):
        at = first + i
        if is_null(array, at):
            set_cell(pieces.cells + i, NULL, -1)
        elif form[0] in b"uz":
            views = <const int32_t*> array.buffers[1] + at
            set_cell(pieces.cells + i, <const uint8_t*> array.buffers[2] + views[0], views[1] - views[0])
        elif form[0] in b"UZ":
            set_cell(
                pieces.cells + i, <const uint8_t*> array.buffers[2] + (<const int64_t*> array.buffers[1])[at],
                (<const int64_t*> array.buffers[1])[at + 1] - (<const int64_t*> array.buffers[1])[at])
        elif form[0] == b"w":
            set_cell(pieces.cells + i, <const uint8_t*> array.buffers[1] + at * width, width)
        else:  # a view: the length, then up to 12 bytes, or four of them, a buffer and a place in it
            views = <const int32_t*> array.buffers[1] + 4 * at
            if views[0] <= 12:
                set_cell(pieces.cells + i, views + 1, views[0])
            else:
                set_cell(pieces.cells + i, <const uint8_t*> array.buffers[2 + views[2]] + views[3], views[0])
    return pieces


cdef object _of_dictionary(str name, ArrowSchema* schema, ArrowArray* array, int64_t skip, int64_t n, object owner):
    words = _column(name, schema.dictionary, array.dictionary, 0, array.dictionary.length, owner)
    if not isinstance(words, Pieces):
        raise TypeError(f"{name}: expected a dictionary of text, got one of numbers")
    cdef Pieces of = words, pieces = Pieces(n)
    cdef int64_t i, index
    cdef int64_t first = array.offset + skip
    pieces.owners.append(of)
    for i in range(n):
        index = -1 if is_null(array, first + i) else number_at(schema.format[0], array.buffers[1], first + i)
        if index >= of.length:
            raise ValueError(f"{name}: index {index} outside the dictionary in row {i}")
        if index < 0:
            set_cell(pieces.cells + i, NULL, -1)
        else:
            pieces.cells[i] = of.cells[index]
    return pieces


cdef object _numbers(str name, ArrowSchema* schema, ArrowArray* array, int64_t first, int64_t n):
    import numpy as np

    cdef Py_buffer view
    cdef int64_t i
    cdef int64_t* out
    cdef int64_t null = -1
    cdef char kind = schema.format[0]
    cdef object dtype = None
    if kind == b"t" and schema.format[1] == b"s" and schema.format[2] in b"smun" and schema.format[3] == b":":
        kind = b"l"
        unit = schema.format[2:3].decode()
        dtype = f"datetime64[{unit if unit == 's' else unit + 's'}]"
    elif kind == b"L":
        dtype = "uint64"
    elif kind not in b"cCsSiIlL" or schema.format[1] != 0:
        raise TypeError(f"{name}: expected whole numbers, text or bytes, got {arrow_type(schema.format)}")
    numbers = np.empty(n, np.int64)
    PyObject_GetBuffer(numbers, &view, PyBUF_WRITABLE)
    out = <int64_t*> view.buf
    with nogil:
        for i in range(n):
            if is_null(array, first + i):
                null = i
                break
            out[i] = number_at(kind, array.buffers[1], first + i)
    PyBuffer_Release(&view)
    if null >= 0:
        raise ValueError(f"{name}: null in row {null}")
    return numbers if dtype is None else numbers.view(dtype)


cdef inline int64_t number_at(char kind, const void* data, int64_t i) noexcept nogil:
    if kind == b"c":
        return (<const int8_t*> data)[i]
    if kind == b"C":
        return (<const uint8_t*> data)[i]
    if kind == b"s":
        return (<const int16_t*> data)[i]
    if kind == b"S":
        return (<const uint16_t*> data)[i]
    if kind == b"i":
        return (<const int32_t*> data)[i]
    if kind == b"I":
        return (<const uint32_t*> data)[i]
    if kind == b"L":
        return <int64_t> (<const uint64_t*> data)[i]
    return (<const int64_t*> data)[i]
