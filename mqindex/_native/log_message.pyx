# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""One frame as the attributes of an object: without rows, arrays and columns, which cost more than one message does."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject_GenericSetAttr
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memchr, memset

from mqindex._native.commit_log cimport LogBuffer, mqi_log_frame, mqi_log_scan, mqi_log_scan_frames


cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char* text, Py_ssize_t n, const char* errors)
    object PyUnicode_DecodeASCII(const char* text, Py_ssize_t n, const char* errors)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* n) except NULL

cdef extern from "mqi_log_text.h" nogil:
    int mqi_log_host_text(const uint8_t* host, int address_len, char* out) noexcept
    int mqi_log_id(const uint8_t* buf, const mqi_log_frame* frame, char* out) noexcept


cdef tuple _NAMES = (
    "topic", "queue_id", "queue_offset", "phy_offset", "size", "stored_body", "body_crc", "flag", "sys_flag",
    "born_timestamp", "born_host", "store_timestamp", "store_host", "reconsume_times", "prepared_transaction_offset",
    "properties", "msg_id")


def message_at(type kind not None, buf, int64_t file_start, int64_t phy_offset, /):
    """The frame at a phy offset as a new object of a class, its checksum compared.

    Where there is no whole frame: `(fault, blank)` as a `Scanner` has them.
    The object is made without `__init__`, and its attributes are set past `__setattr__`, as frozen classes need it.
    """
    cdef LogBuffer log = LogBuffer(buf, file_start, True)
    cdef mqi_log_frame frame
    cdef mqi_log_scan scan
    cdef int64_t n, stop = log.limit(phy_offset + 1)
    memset(&scan, 0, sizeof(scan))
    scan.at, scan.blank = log.position(phy_offset), -1
    with nogil:
        n = mqi_log_scan_frames(&log.log, &scan, stop, &frame, 1)
    if n == 0:
        log.leave()
        return log.fault(&scan.fault), scan.blank + file_start if scan.blank >= 0 else -1
    message = kind.__new__(kind)
    for name, value in zip(_NAMES, _values(log.log.buf, &frame)):
        PyObject_GenericSetAttr(message, name, value)
    log.leave()
    return message


cdef tuple _values(const uint8_t* buf, const mqi_log_frame* of):
    """In the order of `_NAMES`."""
    cdef const char* text = <const char*>buf
    return (
        PyUnicode_DecodeUTF8(text + of.topic_pos, of.topic_len, "replace"),
        of.queue_id,
        of.queue_offset,
        of.phy_offset,
        of.size,
        PyBytes_FromStringAndSize(text + of.body_pos, of.body_len),
        of.body_crc,
        of.flag,
        of.sys_flag,
        of.born_timestamp,
        _host(buf + of.born_host_pos, of.born_host_len),
        of.store_timestamp,
        _host(buf + of.store_host_pos, of.store_host_len),
        of.reconsume_times,
        of.prepared_transaction_offset,
        _properties(PyUnicode_DecodeUTF8(text + of.properties_pos, of.properties_len, "replace")),
        _msg_id(buf, of),
    )


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
    return _properties(PyUnicode_DecodeUTF8(PyBytes_AS_STRING(block), PyBytes_GET_SIZE(block), "replace"))


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
