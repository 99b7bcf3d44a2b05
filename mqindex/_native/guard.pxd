# cython: language_level=3


cdef extern from "mqi_guard.h" nogil:
    ctypedef struct mqi_guard_range:
        void* owner

    bint mqi_guard_was_cut(const mqi_guard_range* range) noexcept
    void mqi_guard_touch(const unsigned char* last) noexcept


cdef class Mapping:
    cdef Py_buffer view
    cdef mqi_guard_range* range
    cdef bint held
    cdef object memory
    cdef readonly str path
    cdef readonly bint writable
    cdef readonly bint elsewhere

    cpdef int check(self) except -1
    cdef int refuse(self) except -1


cdef extern from *:
    """
    /* For `__getbuffer__`: Cython has put None into `obj`, which PyBuffer_FillInfo overwrites but does not release. */
    static inline int mqi_fill_view(Py_buffer *view, PyObject *of, void *buf, Py_ssize_t n, int readonly, int flags) {
        Py_CLEAR(view->obj);
        return PyBuffer_FillInfo(view, of, buf, n, readonly, flags);
    }
    """
    int mqi_fill_view(Py_buffer* view, object of, void* buf, Py_ssize_t n, bint readonly, int flags) except -1


# Code that holds a buffer for long looks its range up once, and checks after each call whether it is still whole; code
# that holds it for one call releases it by `give_back`.
cdef const mqi_guard_range* range_of(const Py_buffer* view) noexcept
cdef int refuse(const mqi_guard_range* range) except -1
cdef int give_back(Py_buffer* view) except -1


cdef inline int still_whole(const mqi_guard_range* range) except -1:
    """`TruncatedFileError` where bytes that were read since may be zeros of the guard."""
    if mqi_guard_was_cut(range):
        refuse(range)
    return 0
