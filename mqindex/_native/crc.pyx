# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""CRC-32 and CRC-32C of any buffer, by the processor's own instructions where it has them.

This module alone compiles them: other kernels are given `checksum32` and `checksum32c`.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t

from mqindex._native.crc cimport mqi_checksum
from mqindex._native.guard cimport give_back


cdef extern from "mqi_crc.h" nogil:
    mqi_checksum mqi_crc32
    mqi_checksum mqi_crc32c
    mqi_checksum mqi_crc32_portable
    mqi_checksum mqi_crc32c_portable
    const char* mqi_crc_kernel() noexcept


checksum32, checksum32c = mqi_crc32, mqi_crc32c


def kernels():
    """Which kernel each checksum uses on this processor."""
    name = mqi_crc_kernel().decode()
    return {"crc32": name, "crc32c": name}


def crc32(data, uint32_t crc=0, /, *, bint portable=False):
    """CRC-32 as zlib's; `crc`: that of what comes before."""
    return _checksum(data, crc, mqi_crc32_portable if portable else mqi_crc32)


def crc32c(data, uint32_t crc=0, /, *, bint portable=False):
    """CRC-32C (Castagnoli); `crc`: that of what comes before."""
    return _checksum(data, crc, mqi_crc32c_portable if portable else mqi_crc32c)


cdef uint32_t _checksum(object data, uint32_t crc, mqi_checksum* kernel) except? 0:
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    with nogil:
        crc = kernel(<const uint8_t*>view.buf, view.len, crc)
    give_back(&view)
    return crc
