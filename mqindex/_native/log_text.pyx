# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""What frames point to, as columns: pieces of a buffer gathered, hosts and message ids as people read them."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from mqindex._native.commit_log cimport mqi_log_frame
from mqindex._native.memory cimport Pinned, strided, target_of

from mqindex._native.commit_log import frame_dtype


cdef extern from "mqi_log_text.h" nogil:
    int MQI_LOG_TEXT_MAX

    int64_t mqi_log_gather(
        const uint8_t* buf, int64_t len, const uint8_t* pos, int64_t pos_stride, const uint8_t* size,
        int64_t size_stride, int64_t n, int64_t* offsets, uint8_t* out) noexcept
    int64_t mqi_log_host_texts(
        const uint8_t* buf, const mqi_log_frame* frames, int64_t n, int born, int64_t* offsets, char* out) noexcept
    int64_t mqi_log_ids(
        const uint8_t* buf, const mqi_log_frame* frames, int64_t n, int64_t* offsets, char* out) noexcept


def gather(buf, pos, size, /):
    """Pieces of a buffer, one after another: `(data uint8, offsets int64[n + 1], valid bool[n])`.

    `pos` int64 and `size` int32 arrays, strided ones too; a negative size is an absent, empty piece. A piece that is
    not inside the buffer is a ValueError.
    """
    import numpy as np

    cdef Pinned source, at, length, starts, filled
    cdef int64_t n, bad
    if pos.dtype != np.int64 or size.dtype != np.int32 or pos.ndim != 1 or pos.shape != size.shape:
        raise TypeError("pos, size: expected int64 and int32 arrays of one length")
    n = len(pos)
    offsets = np.empty(n + 1, np.int64)
    source, at, length, starts = Pinned(buf), strided(pos), strided(size), target_of(offsets)
    with nogil:
        bad = pieces_to(source, at, length, n, starts, NULL)
    if bad >= 0:
        source.whole()
        raise ValueError(f"pos: piece {bad} is not inside the buffer")
    data = np.empty(offsets[n], np.uint8)
    filled = target_of(data)
    with nogil:
        pieces_to(source, at, length, n, starts, <uint8_t*>filled.view.buf)
    source.whole()
    return data, offsets, size >= 0


cdef int64_t pieces_to(
    Pinned source, Pinned at, Pinned length, int64_t n, Pinned starts, uint8_t* out
) noexcept nogil:
    return mqi_log_gather(
        <const uint8_t*>source.view.buf, source.view.len, <const uint8_t*>at.view.buf, at.view.strides[0],
        <const uint8_t*>length.view.buf, length.view.strides[0], n, <int64_t*>starts.view.buf, out)


def born_hosts(buf, frames, /):
    """The born hosts of a scan's frames as text: `(data uint8, offsets int64[n + 1])`."""
    return _texts(buf, frames, 0)


def store_hosts(buf, frames, /):
    """The same of the store hosts."""
    return _texts(buf, frames, 1)


def msg_ids(buf, frames, /):
    """The message ids that brokers give: store host and phy offset in hex."""
    return _texts(buf, frames, 2)


cdef object _texts(object buf, object frames, int which):
    import numpy as np

    cdef int64_t n = len(frames), total
    if frames.dtype != frame_dtype():
        raise TypeError("frames: expected an array of frames that a Scanner gave")
    frames = np.ascontiguousarray(frames)
    offsets, data = np.empty(n + 1, np.int64), np.empty(n * MQI_LOG_TEXT_MAX, np.uint8)
    cdef Pinned source = Pinned(buf), rows = Pinned(frames, sizeof(mqi_log_frame))
    cdef Pinned starts = target_of(offsets), filled = target_of(data)
    with nogil:
        total = -1
        if _hosts_inside(<const mqi_log_frame*>rows.view.buf, n, source.view.len):
            if which == 2:
                total = mqi_log_ids(
                    <const uint8_t*>source.view.buf, <const mqi_log_frame*>rows.view.buf, n,
                    <int64_t*>starts.view.buf, <char*>filled.view.buf)
            else:
                total = mqi_log_host_texts(
                    <const uint8_t*>source.view.buf, <const mqi_log_frame*>rows.view.buf, n, which == 0,
                    <int64_t*>starts.view.buf, <char*>filled.view.buf)
    source.whole()
    if total < 0:
        raise ValueError("frames: expected those that a scan of this buffer gave")
    return data[:total].copy(), offsets


cdef bint _hosts_inside(const mqi_log_frame* frames, int64_t n, int64_t size) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if not (
            _host_inside(frames[i].born_host_pos, frames[i].born_host_len, size)
            and _host_inside(frames[i].store_host_pos, frames[i].store_host_len, size)
        ):
            return False
    return True


cdef inline bint _host_inside(int64_t pos, int32_t length, int64_t size) noexcept nogil:
    return (length == 4 or length == 16) and 0 <= pos <= size - length - 4
