# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""CRC-32 and CRC-32C of any buffer, by the processor's own instructions where it has them.

Only this module compiles them: other kernels get `checksum32` and `checksum32c` as arguments.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t

from mqindex._native.crc cimport mqi_checksum
from mqindex._native.guard cimport give_back


cdef extern from "mqi_crc.h" nogil:
    ctypedef struct mqi_crc_kernel:
        const char* name
        mqi_checksum* crc32
        mqi_checksum* crc32c

    mqi_checksum mqi_crc32
    mqi_checksum mqi_crc32c
    int mqi_crc_kernels(const mqi_crc_kernel** all) noexcept


checksum32, checksum32c = mqi_crc32, mqi_crc32c


def available():
    """The kernels that this processor can run, the slowest first; the last one is used."""
    cdef const mqi_crc_kernel* all
    cdef int n = mqi_crc_kernels(&all)
    return [all[i].name.decode() for i in range(n)]


def kernels():
    """Which kernel each checksum uses on this processor."""
    *_, name = available()
    return {"crc32": name, "crc32c": name}


def crc32(data, uint32_t crc=0, /, *, kernel=None):
    """CRC-32 as zlib's; `crc`: that of what comes before. `kernel`: one of `available()`, for tests."""
    return _checksum(data, crc, mqi_crc32 if kernel is None else _named(kernel).crc32)


def crc32c(data, uint32_t crc=0, /, *, kernel=None):
    """CRC-32C (Castagnoli); `crc`: that of what comes before. `kernel`: as for `crc32`."""
    return _checksum(data, crc, mqi_crc32c if kernel is None else _named(kernel).crc32c)


cdef const mqi_crc_kernel* _named(str name) except NULL:
    cdef const mqi_crc_kernel* all
    cdef int number = available().index(name)
    mqi_crc_kernels(&all)
    return all + number


cdef uint32_t _checksum(object data, uint32_t crc, mqi_checksum* kernel) except? 0:
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    with nogil:
        crc = kernel(<const uint8_t*>view.buf, view.len, crc)
    give_back(&view)
    return crc
