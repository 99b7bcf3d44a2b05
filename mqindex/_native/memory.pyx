# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""The memory that a kernel reads and writes: blocks from malloc, and the buffers of others, pinned and checked."""

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_ND,
    PyBUF_SIMPLE,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

from mqindex._native.guard cimport mqi_fill_view, range_of, still_whole


@cython.final
cdef class Block:
    """Memory from malloc; it lives as long as its last user or view."""

    def __getbuffer__(self, Py_buffer* view, int flags):
        mqi_fill_view(
            view, self, self.data if self.data != NULL else <uint8_t*>b"", self.size, self.readonly, flags)

    def __dealloc__(self):
        free(self.data)


cdef Block new_block(size_t size, bint readonly=True):
    """So many bytes, not yet written."""
    return block_of(malloc(size if size > 0 else 1), size, readonly)


cdef Block block_of(void* data, size_t size, bint readonly):
    """Take over memory from malloc, which is freed even if this fails; NULL: MemoryError, unless `size` is 0."""
    cdef Block block
    if data == NULL and size > 0:
        raise MemoryError
    try:
        block = Block()
    except BaseException:
        free(data)
        raise
    block.data, block.size, block.readonly = <uint8_t*>data, size, readonly
    return block


@cython.final
cdef class Pinned:
    """A buffer for as long as this lives: bytes, or `n` contiguous rows of `itemsize` bytes, read where they are.

    Rows that are not aligned are copied first.
    """

    def __cinit__(self, object exporter, Py_ssize_t itemsize=1, bint writable=False, int flags=PyBUF_ND):
        cdef Py_ssize_t alignment = min(itemsize & -itemsize, <Py_ssize_t>sizeof(int64_t))
        if writable:
            flags |= PyBUF_WRITABLE
        PyObject_GetBuffer(exporter, &self.view, flags)
        self.held = True
        if <size_t>self.view.buf % alignment != 0:
            if writable:
                raise ValueError(f"expected an array aligned to {alignment} bytes, to be written to")
            import numpy

            PyBuffer_Release(&self.view)
            self.held = False
            PyObject_GetBuffer(numpy.array(exporter), &self.view, flags)
            self.held = True
        self.n = self.view.len // itemsize

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef int whole(self) except -1:
        """`TruncatedFileError` if a mapped file was cut while it was pinned."""
        return still_whole(range_of(&self.view))


cdef Pinned integers(object array, Py_ssize_t itemsize):
    """One-dimensional, contiguous, native integers of so many bytes."""
    cdef Pinned pinned = Pinned(array, itemsize, False, PyBUF_ND | PyBUF_FORMAT)
    cdef const char* form = pinned.view.format
    if pinned.view.ndim == 1 and pinned.view.itemsize == itemsize and form != NULL:
        if form[0] == c"@" or form[0] == c"=":
            form += 1
        if form[0] in b"ilq" and form[1] == 0:
            return pinned
    raise TypeError(f"expected a contiguous, one-dimensional array of int{8 * itemsize}")


cdef Pinned target_of(object array):
    """A new array, to be filled."""
    return Pinned(array, 1, True)


cdef Pinned strided(object array):
    """An array with its strides; the caller knows whether it is aligned."""
    return Pinned(array, 1, False, PyBUF_STRIDES | PyBUF_FORMAT)


cdef class Source:
    """A buffer that is read for long, a base class: the range of its mapping is looked up once."""

    cdef int pin(self, object exporter) except -1:
        PyObject_GetBuffer(exporter, &self.view, PyBUF_SIMPLE)
        self.held = True
        self.range = range_of(&self.view)
        return 0

    cdef void release(self) noexcept:
        if self.held:
            self.held = False
            PyBuffer_Release(&self.view)

    cdef int leave(self) except -1:
        """Release the buffer; an error if the file was cut while it was held."""
        try:
            still_whole(self.range)
        finally:
            self.release()
        return 0

    def __dealloc__(self):
        self.release()
