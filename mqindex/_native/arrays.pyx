# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Arrays for the kernels: NumPy's, made without its headers, and whatever is given, checked before it is read."""

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_ND,
    PyBUF_SIMPLE,
    PyBUF_WRITABLE,
    PyBuffer_FillInfo,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdlib cimport free
from libc.string cimport memcpy

from mqindex._native.guard cimport range_of, still_whole


cdef object _numpy = None
cdef object _empty = None
cdef object _int64 = None

# A small array through numpy.empty costs three look-ups in the file; NumPy's C API, taken from its capsule at first use
# (no headers, so no NumPy when building), makes it one. Only for ABIs known to have these places in the table.
cdef enum:
    API_ABI_VERSION = 0
    API_ARRAY_TYPE = 2
    API_ARRAY_NEW = 93
    ABI_1 = 0x01000009
    ABI_2 = 0x02000000
    NPY_LONG = 7  # int64 where long has 64 bits

ctypedef unsigned int (*abi_version_t)() noexcept
ctypedef object (*array_new_t)(
    void* type, int nd, Py_ssize_t* shape, int number, Py_ssize_t* strides, void* data, int itemsize, int flags,
    void* of)

ctypedef struct ArrayFields:  # the start of PyArrayObject, the same in both ABIs
    PyObject head
    void* data

cdef array_new_t _array_new = NULL
cdef void* _array_type = NULL


cdef int import_numpy() except -1:
    global _numpy, _empty, _int64
    import numpy

    _empty = numpy.empty
    _int64 = numpy.dtype(numpy.int64)
    find_array_new(numpy)
    _numpy = numpy
    return 0


cdef int find_array_new(numpy) except -1:
    global _array_new, _array_type
    cdef void** api
    home = getattr(numpy, "_core", None) or getattr(numpy, "core", None)
    capsule = getattr(getattr(home, "_multiarray_umath", None), "_ARRAY_API", None)
    if sizeof(long) != 8 or capsule is None:
        return 0
    api = <void**> PyCapsule_GetPointer(capsule, NULL)
    if (<abi_version_t> api[API_ABI_VERSION])() in (ABI_1, ABI_2):
        _array_type = api[API_ARRAY_TYPE]
        _array_new = <array_new_t> api[API_ARRAY_NEW]
    return 0


cdef class _Block:
    """Memory that malloc gave: an array made on top of it owns it, nothing is copied."""

    cdef void* data
    cdef Py_ssize_t size

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 0, flags)


cdef object array_of(int64_t* values, size_t n):
    """An int64 array that owns `values`, which malloc gave and which are freed even if this fails."""
    cdef _Block block
    try:
        if _numpy is None:
            import_numpy()
        block = _Block()
    except BaseException:
        free(values)
        raise
    block.data = values
    block.size = n * sizeof(int64_t)
    return _numpy.ndarray((n,), _int64, block)


cdef object copy_of(const int64_t* values, size_t n):
    """An int64 array of its own."""
    cdef Py_buffer view
    cdef Py_ssize_t shape = n
    if _numpy is None:
        import_numpy()
    if _array_new != NULL:
        array = _array_new(_array_type, 1, &shape, NPY_LONG, NULL, NULL, 0, 0, NULL)
        memcpy((<ArrayFields*> array).data, values, n * sizeof(int64_t))
        return array
    array = _empty(n, _int64)
    if n > 0:
        PyObject_GetBuffer(array, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
        memcpy(view.buf, values, n * sizeof(int64_t))
        PyBuffer_Release(&view)
    return array


cdef int hold(object exporter, Py_buffer* view, int flags, Py_ssize_t itemsize) except -1:
    """A buffer of numbers or rows that a kernel reads where they lie: those that are not aligned are copied first."""
    cdef Py_ssize_t alignment = min(itemsize & -itemsize, <Py_ssize_t> sizeof(int64_t))
    PyObject_GetBuffer(exporter, view, flags)
    if <size_t> view.buf % alignment == 0:
        return 0
    PyBuffer_Release(view)
    if flags & PyBUF_WRITABLE:
        raise ValueError(f"expected an array aligned to {alignment} bytes, to be written to")
    if _numpy is None:
        import_numpy()
    PyObject_GetBuffer(_numpy.array(exporter), view, flags)
    return 0


@cython.final
cdef class Pinned:
    """A buffer for as long as this lives: bytes, or `n` contiguous rows of `itemsize` bytes, or as many integers."""

    def __cinit__(self, object exporter, Py_ssize_t itemsize=1, bint writable=False, bint integers=False):
        if integers:
            take(exporter, &self.view, itemsize, writable)
        else:
            hold(exporter, &self.view, PyBUF_ND | (PyBUF_WRITABLE if writable else 0), itemsize)
        self.held = True
        self.n = self.view.len // itemsize

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef int whole(self) except -1:
        """`TruncatedFileError` where bytes of a mapped file were taken away while it was pinned."""
        return still_whole(range_of(&self.view))


cdef int take(object array, Py_buffer* view, Py_ssize_t itemsize, bint writable=False) except -1:
    """One-dimensional, contiguous, native integers of the wanted width."""
    cdef const char* form
    hold(array, view, PyBUF_ND | PyBUF_FORMAT | (PyBUF_WRITABLE if writable else 0), itemsize)
    form = view.format
    if view.ndim == 1 and view.itemsize == itemsize and form != NULL:
        if form[0] == c"@" or form[0] == c"=":
            form += 1
        if form[0] in b"ilq" and form[1] == 0:
            return 0
    PyBuffer_Release(view)
    raise TypeError(f"expected a contiguous, one-dimensional array of int{8 * itemsize}")
