# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""One frame as the attributes of an object: without rows, arrays and columns, which cost more than one message does."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memcmp, memcpy, memset, strlen

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
    object PyUnicode_New(Py_ssize_t n, uint32_t largest)
    void* PyUnicode_DATA(object text)
    object PyType_GenericAlloc(type kind, Py_ssize_t n)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* n) except NULL

cdef extern from "mqi_bytes.h" nogil:
    bint mqi_is_ascii(const uint8_t* p, int64_t n) noexcept

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
        cdef LogBuffer log = LogBuffer.__new__(LogBuffer, buf, file_start, True)
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
        message = PyType_GenericAlloc(self.kind, 0)
        self.set(message, 0, _text(text + of.topic_pos, of.topic_len))
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
        self.set(message, 15, _properties(text + of.properties_pos, of.properties_len))
        self.set(message, 16, _msg_id(buf, of))
        return message

    cdef inline void set(self, object message, int which, object value) noexcept:
        """The slot of a new object is empty."""
        Py_INCREF(value)
        (<PyObject**> (<char*> <PyObject*> message + self.at[which]))[0] = <PyObject*> value


# Names that most messages have: the same objects for all.
cdef tuple _USUAL = ("KEYS", "TAGS", "UNIQ_KEY", "WAIT", "CLUSTER", "MSG_REGION", "TRACE_ON")
cdef enum:
    N_USUAL = 7
cdef const char* USUAL[N_USUAL]
for _number in range(N_USUAL):
    USUAL[_number] = PyUnicode_AsUTF8AndSize(_USUAL[_number], NULL)


cdef str _ascii(const char* text, Py_ssize_t n):
    made = PyUnicode_New(n, 127)
    memcpy(PyUnicode_DATA(made), text, n)
    return made


cdef str _text(const char* text, Py_ssize_t n):
    """Most text is ASCII, for which there is a shorter way."""
    return _ascii(text, n) if mqi_is_ascii(<const uint8_t*> text, n) else PyUnicode_DecodeUTF8(text, n, ERRORS)


cdef str _host(const uint8_t* host, int32_t address_len):
    cdef char text[64]
    return _ascii(text, mqi_log_host_text(host, address_len, text))


cdef str _msg_id(const uint8_t* buf, const mqi_log_frame* of):
    cdef char text[64]
    return _ascii(text, mqi_log_id(buf, of, text))


def parse_properties(bytes block not None, /):
    """Names and values of a properties block: neither may be empty, a later duplicate wins.

    >>> parse_properties(b"KEYS\\x01a b\\x02TAGS\\x01\\x02X\\x01y")
    {'KEYS': 'a b', 'X': 'y'}
    """
    return _properties(PyBytes_AS_STRING(block), PyBytes_GET_SIZE(block))


cdef dict _properties(const char* block, Py_ssize_t n):
    """Separators are no part of a longer character, so the bytes of UTF-8 may be cut at them."""
    cdef str decoded
    if mqi_is_ascii(<const uint8_t*> block, n):
        return _cut(block, n)
    decoded = PyUnicode_DecodeUTF8(block, n, ERRORS)
    block = PyUnicode_AsUTF8AndSize(decoded, &n)
    return _cut(block, n)


cdef dict _cut(const char* at, Py_ssize_t n):
    cdef dict found = {}
    cdef const char* end = at + n
    cdef const char* stop
    cdef const char* middle
    while at < end:
        stop = <const char*>memchr(at, 2, end - at)
        if stop == NULL:
            stop = end
        middle = <const char*>memchr(at, 1, stop - at)
        if middle != NULL and middle > at and middle + 1 < stop:
            found[_name(at, middle - at)] = _text(middle + 1, stop - middle - 1)
        at = stop + 1
    return found


cdef str _name(const char* text, Py_ssize_t n):
    cdef int i
    for i in range(N_USUAL):
        if text[0] == USUAL[i][0] and strlen(USUAL[i]) == <size_t> n and memcmp(text, USUAL[i], n) == 0:
            return <str> _USUAL[i]
    return _text(text, n)
