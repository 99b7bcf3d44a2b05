# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""One frame as the attributes of an object: without rows, arrays and columns, which cost more than one message does."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memchr, memset

from mqindex._native.commit_log cimport LogBuffer, mqi_log_frame, mqi_log_scan, mqi_log_scan_frames
from mqindex._native.guard cimport Mapping

from types import MemberDescriptorType as _SLOT

from mqindex._java_text import JAVA as _JAVA


cdef extern from "structmember.h":
    ctypedef struct PyMemberDef:
        Py_ssize_t offset

    ctypedef struct PyMemberDescrObject:
        PyMemberDef* d_member

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char* text, Py_ssize_t n, const char* errors)
    object PyUnicode_DecodeASCII(const char* text, Py_ssize_t n, const char* errors)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* n) except NULL

cdef extern from "mqi_log_text.h" nogil:
    int mqi_log_host_text(const uint8_t* host, int address_len, char* out) noexcept
    int mqi_log_id(const uint8_t* buf, const mqi_log_frame* frame, char* out) noexcept


cdef bytes _ERRORS = _JAVA.encode()
cdef const char* ERRORS = _ERRORS

# The attributes of an object of the class, in the order in which they are set.
cdef tuple _NAMES = (
    "topic", "queue_id", "queue_offset", "phy_offset", "size", "stored_body", "body_crc", "flag", "sys_flag",
    "born_timestamp", "born_host", "store_timestamp", "store_host", "reconsume_times", "prepared_transaction_offset",
    "properties", "msg_id")
cdef enum:
    N_NAMES = 17


@cython.final
cdef class MessageMaker:
    """Makes objects of a class with slots, past `__init__` and `__setattr__`: a frozen class spends its time in these.

    `kind` has a slot of each of the names above; TypeError: it has not.
    """

    cdef type kind
    cdef Py_ssize_t at[N_NAMES]  # where in an object each slot is

    def __cinit__(self, type kind not None, /):
        for i, name in enumerate(_NAMES):
            slot = kind.__dict__.get(name)
            if type(slot) is not _SLOT:
                raise TypeError(f"{kind.__name__}: expected a class with the slot {name}")
            self.at[i] = (<PyMemberDescrObject*> slot).d_member.offset
        self.kind = kind

    def message_at(self, buf, int64_t file_start, int64_t phy_offset, /):
        """The frame at a phy offset as a new object, its checksum compared.

        Where there is no whole frame: `(fault, blank)` as a `Scanner` has them.
        """
        cdef LogBuffer log = LogBuffer(buf, file_start, True)
        cdef mqi_log_frame frame
        cdef mqi_log_scan scan
        cdef uint8_t last
        cdef int64_t n, stop = log.limit(phy_offset + 1)
        memset(&scan, 0, sizeof(scan))
        scan.at, scan.blank = log.position(phy_offset), -1
        with nogil:
            n = mqi_log_scan_frames(&log.log, &scan, stop, &frame, 1)
        if n == 0:
            log.leave()
            return log.fault(&scan.fault), scan.blank + file_start if scan.blank >= 0 else -1
        message = self.make(log.log.buf, &frame)
        last = log.log.buf[scan.at - 1]
        log.leave()
        if last == 0 and isinstance(buf, Mapping):  # a file that was cut inside a page is zeros up to the page's end
            (<Mapping> buf).check()
        return message

    cdef object make(self, const uint8_t* buf, const mqi_log_frame* of):
        cdef const char* text = <const char*>buf
        message = self.kind.__new__(self.kind)
        self.set(message, 0, PyUnicode_DecodeUTF8(text + of.topic_pos, of.topic_len, ERRORS))
        self.set(message, 1, of.queue_id)
        self.set(message, 2, of.queue_offset)
        self.set(message, 3, of.phy_offset)
        self.set(message, 4, of.size)
        self.set(message, 5, PyBytes_FromStringAndSize(text + of.body_pos, of.body_len))
        self.set(message, 6, of.body_crc)
        self.set(message, 7, of.flag)
        self.set(message, 8, of.sys_flag)
        self.set(message, 9, of.born_timestamp)
        self.set(message, 10, _host(buf + of.born_host_pos, of.born_host_len))
        self.set(message, 11, of.store_timestamp)
        self.set(message, 12, _host(buf + of.store_host_pos, of.store_host_len))
        self.set(message, 13, of.reconsume_times)
        self.set(message, 14, of.prepared_transaction_offset)
        self.set(
            message, 15, _properties(PyUnicode_DecodeUTF8(text + of.properties_pos, of.properties_len, ERRORS)))
        self.set(message, 16, _msg_id(buf, of))
        return message

    cdef inline void set(self, object message, int which, object value) noexcept:
        """The slot of a new object is empty."""
        Py_INCREF(value)
        (<PyObject**> (<char*> <PyObject*> message + self.at[which]))[0] = <PyObject*> value


cdef str _host(const uint8_t* host, int32_t address_len):
    cdef char text[64]
    return PyUnicode_DecodeASCII(text, mqi_log_host_text(host, address_len, text), NULL)


cdef str _msg_id(const uint8_t* buf, const mqi_log_frame* of):
    cdef char text[64]
    return PyUnicode_DecodeASCII(text, mqi_log_id(buf, of, text), NULL)


def parse_properties(bytes block not None, /):
    """Names and values of a properties block: neither may be empty, a later duplicate wins.

    >>> parse_properties(b"KEYS\\x01a b\\x02TAGS\\x01\\x02X\\x01y")
    {'KEYS': 'a b', 'X': 'y'}
    """
    return _properties(PyUnicode_DecodeUTF8(PyBytes_AS_STRING(block), PyBytes_GET_SIZE(block), ERRORS))


cdef dict _properties(str block):
    """Separators are no part of a longer character, so the bytes of UTF-8 may be cut at them."""
    cdef dict found = {}
    cdef Py_ssize_t left
    cdef const char* at = PyUnicode_AsUTF8AndSize(block, &left)
    cdef const char* end = at + left
    cdef const char* stop
    cdef const char* middle
    while at < end:
        stop = <const char*>memchr(at, 2, end - at)
        if stop == NULL:
            stop = end
        middle = <const char*>memchr(at, 1, stop - at)
        if middle != NULL and middle > at and middle + 1 < stop:
            name = PyUnicode_DecodeUTF8(at, middle - at, NULL)
            found[name] = PyUnicode_DecodeUTF8(middle + 1, stop - middle - 1, NULL)
        at = stop + 1
    return found
