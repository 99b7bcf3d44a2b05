# cython: language_level=3

cimport cython
from libc.stdint cimport int64_t


cdef extern from "mqi_arrow.h" nogil:
    cdef enum:
        ARROW_FLAG_NULLABLE

    cdef struct ArrowSchema:
        const char* format
        const char* name
        const char* metadata
        int64_t flags
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept
        void* private_data

    cdef struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept
        void* private_data

    cdef struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema* out) noexcept
        int (*get_next)(ArrowArrayStream*, ArrowArray* out) noexcept
        const char* (*get_last_error)(ArrowArrayStream*) noexcept
        void (*release)(ArrowArrayStream*) noexcept
        void* private_data


@cython.final
cdef class HeldArray:
    cdef ArrowArray array


@cython.final
cdef class ArrayStream:
    cdef ArrowArrayStream* stream
    cdef ArrowSchema schema
    cdef object capsule
    cdef str what

    cdef int check(self, int code) except -1
    cdef HeldArray next(self)


cdef str arrow_type(const char* form)
