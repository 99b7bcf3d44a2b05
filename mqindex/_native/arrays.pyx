# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Arrays that a kernel gives: NumPy's, made without its headers."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.string cimport memcpy

from mqindex._native.memory cimport Block, block_of


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


cdef object array_of(int64_t* values, size_t n):
    """An int64 array that owns `values`, which malloc gave and which are freed even if this fails."""
    cdef Block block = block_of(values, n * sizeof(int64_t), False)
    if _numpy is None:
        import_numpy()
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
