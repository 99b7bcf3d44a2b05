# cython: language_level=3

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "Python.h":
    int PyUnicode_READY(object text) except -1
    int PyUnicode_KIND(object text) noexcept
    void* PyUnicode_DATA(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept


cdef extern from "mqi_hash.h" nogil:
    uint32_t mqi_hash_latin1(const uint8_t* p, size_t n, uint32_t seed) noexcept
    uint32_t mqi_hash_ucs2(const uint16_t* p, size_t n, uint32_t seed) noexcept
    uint32_t mqi_hash_ucs4(const uint32_t* p, size_t n, uint32_t seed) noexcept
    int32_t mqi_key_hash(uint32_t h) noexcept


cdef inline uint32_t str_hash(object text, uint32_t seed) except? 0xFFFFFFFF:
    """Java's hash of a str, straight from its code units; a lone surrogate is one of them."""
    PyUnicode_READY(text)
    cdef int kind = PyUnicode_KIND(text)
    cdef const void* data = PyUnicode_DATA(text)
    cdef size_t n = <size_t> PyUnicode_GET_LENGTH(text)
    if kind == 1:
        return mqi_hash_latin1(<const uint8_t*> data, n, seed)
    if kind == 2:
        return mqi_hash_ucs2(<const uint16_t*> data, n, seed)
    return mqi_hash_ucs4(<const uint32_t*> data, n, seed)


cdef int refuse_key(object key) except -1


cdef inline int32_t hash_of(object key) except -1:
    """The key hash of a whole `topic#key`."""
    if not isinstance(key, str):
        refuse_key(key)
    return mqi_key_hash(str_hash(key, 0))


cdef struct Chunk:
    int kind
    Py_ssize_t start        # number of its first key in the batch
    Py_ssize_t n
    const void* data        # characters, views, indices or finished hashes
    const void* offsets     # of the characters; for indices: the hashes of the dictionary
    const void* buffers     # of views
    Py_ssize_t step         # of fixed-width text
    Py_ssize_t width


cdef class KeyBatch:
    cdef Chunk* chunks
    cdef Py_ssize_t n_chunks
    cdef Py_ssize_t room
    cdef Py_ssize_t length
    cdef readonly uint32_t seed
    cdef list owners

    cdef int add(self, Chunk chunk) except -1
    cdef int32_t* add_hashes(self, Py_ssize_t n) except NULL
    cdef void fill(self, Py_ssize_t start, Py_ssize_t n, int32_t* out) noexcept nogil
