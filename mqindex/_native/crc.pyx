# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""CRC-32 and CRC-32C of any buffer, by the processor's own instructions where it has them."""

from cpython.buffer cimport PyBUF_SIMPLE, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t

from mqindex._native.guard cimport give_back


cdef extern from "mqi_crc.h" nogil:
    uint32_t mqi_crc32(const uint8_t* p, size_t n, uint32_t crc) noexcept
    uint32_t mqi_crc32c(const uint8_t* p, size_t n, uint32_t crc) noexcept
    uint32_t mqi_crc32_portable(const uint8_t* p, size_t n, uint32_t crc) noexcept
    uint32_t mqi_crc32c_portable(const uint8_t* p, size_t n, uint32_t crc) noexcept
    const char* mqi_crc_kernel() noexcept


def kernels():
    """Which kernel each checksum uses on this processor."""
    name = mqi_crc_kernel().decode()
    return {"crc32": name, "crc32c": name}


def crc32(data, uint32_t crc=0, /, *, bint portable=False):
    """CRC-32 as zlib's; `crc`: that of what stands before."""
    return _checksum(data, crc, mqi_crc32_portable if portable else mqi_crc32)


def crc32c(data, uint32_t crc=0, /, *, bint portable=False):
    """CRC-32C (Castagnoli); `crc`: that of what stands before."""
    return _checksum(data, crc, mqi_crc32c_portable if portable else mqi_crc32c)


cdef uint32_t _checksum(
    object data, uint32_t crc, uint32_t (*kernel)(const uint8_t*, size_t, uint32_t) noexcept nogil
) except? 0:
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    with nogil:
        crc = kernel(<const uint8_t*>view.buf, view.len, crc)
    give_back(&view)
    return crc
