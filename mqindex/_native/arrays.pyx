# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Arrays that a kernel returns: NumPy's, made without its headers."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from mqindex._native.memory cimport Block, block_of


cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object) noexcept


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define MQI_HAS_GIL 0
    #else
    #define MQI_HAS_GIL 1
    #endif
    """
    const bint MQI_HAS_GIL


cdef object _numpy = None
cdef object _empty = None
cdef object _int64 = None
cdef object _int32 = None

# A small array through numpy.empty costs three look-ups in the file; NumPy's C API, taken from its capsule at first use
# (no headers, so no NumPy when building), makes it one. Only for ABIs known to have these places in the table.
cdef enum:
    API_ABI_VERSION = 0
    API_ARRAY_TYPE = 2
    API_ARRAY_NEW = 93
    ABI_1 = 0x01000009
    ABI_2 = 0x02000000
    NPY_INT = 5
    NPY_LONG = 7  # int64 where long has 64 bits

ctypedef unsigned int (*abi_version_t)() noexcept
ctypedef object (*array_new_t)(
    void* type, int nd, Py_ssize_t* shape, int number, Py_ssize_t* strides, void* data, int itemsize, int flags,
    void* of)

ctypedef struct ArrayFields:  # PyArrayObject, the same in both ABIs
    PyObject head
    void* data
    int nd
    Py_ssize_t* dimensions
    Py_ssize_t* strides
    PyObject* base
    PyObject* descr
    int flags
    PyObject* weakreflist

cdef array_new_t _array_new = NULL
cdef void* _array_type = NULL

# Making and freeing an array costs 800 instructions, a look-up 300. So all empty answers are one array, and the last
# two answers of one value are used again when nothing refers to them. Two: a loop still holds the answer before.
cdef object _nothing = None
cdef list _singles = [None, None]
cdef int _turn = 0
cdef int _single_flags = 0


cdef int import_numpy() except -1:
    global _numpy, _empty, _int64, _int32
    import numpy

    _empty = numpy.empty
    _int64 = numpy.dtype(numpy.int64)
    _int32 = numpy.dtype(numpy.int32)
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
        make_singles()
    return 0


cdef int make_singles() except -1:
    global _nothing, _single_flags
    _nothing = new_array(0)
    for i in range(2):
        _singles[i] = new_array(1)
    _single_flags = (<ArrayFields*> _singles[0]).flags
    return 0


cdef inline object new_array(Py_ssize_t n, int number=NPY_LONG):
    return _array_new(_array_type, 1, &n, number, NULL, NULL, 0, 0, NULL)


cdef inline bint is_ours(const ArrayFields* array) noexcept:
    """Whether nobody else refers to an array that `new_array(1)` gave, and it is as it was."""
    return (
        Py_REFCNT(<PyObject*> array) == 1 and array.weakreflist == NULL and array.nd == 1 and array.dimensions[0] == 1
        and array.flags == _single_flags and array.descr == <PyObject*> _int64)


cdef object single_of(int64_t value):
    """An int64 array of one value, which belongs to the caller alone."""
    global _turn
    _turn ^= 1
    cdef PyObject* array = PyList_GET_ITEM(_singles, _turn)  # borrowed: another reference would count as a use
    if not is_ours(<ArrayFields*> array):
        _singles[_turn] = new_array(1)
        array = PyList_GET_ITEM(_singles, _turn)
    (<int64_t*> (<ArrayFields*> array).data)[0] = value
    return <object> array


cdef object array_of(int64_t* values, size_t n):
    """An int64 array that owns `values`, which malloc gave and which are freed even if this fails."""
    cdef Block block = block_of(values, n * sizeof(int64_t), False)
    if _numpy is None:
        import_numpy()
    return _numpy.ndarray((n,), _int64, block)


cdef object copy_of(const int64_t* values, size_t n):
    """An int64 array that the caller may change; without values there is nothing to change."""
    cdef Py_buffer view
    if _numpy is None:
        import_numpy()
    if _array_new != NULL:
        if MQI_HAS_GIL and n <= 1:
            return single_of(values[0]) if n == 1 else _nothing
        array = new_array(n)
        memcpy((<ArrayFields*> array).data, values, n * sizeof(int64_t))
        return array
    array = _empty(n, _int64)
    if n > 0:
        PyObject_GetBuffer(array, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
        memcpy(view.buf, values, n * sizeof(int64_t))
        PyBuffer_Release(&view)
    return array


cdef object int64_array(Py_ssize_t n, int64_t** values):
    """An int64 array, and where its values are to be written."""
    if _numpy is None:
        import_numpy()
    return _array(n, NPY_LONG, _int64, <void**> values)


cdef object int32_array(Py_ssize_t n, int32_t** values):
    """An int32 array, and where its values are to be written."""
    if _numpy is None:
        import_numpy()
    return _array(n, NPY_INT, _int32, <void**> values)


cdef object _array(Py_ssize_t n, int number, object dtype, void** values):
    cdef Py_buffer view
    if _array_new != NULL:
        array = new_array(n, number)
        values[0] = (<ArrayFields*> array).data
        return array
    array = _empty(n, dtype)
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    values[0] = view.buf
    PyBuffer_Release(&view)  # the values stay where they are as long as the array is there
    return array
