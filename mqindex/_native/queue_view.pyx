# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Places of messages for repeated requests to one queue: no Python code opens, lists or looks up anything."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, int64_t, uint8_t

from mqindex._native.arrays cimport int32_array, int64_array
from mqindex._native.consume_queue cimport MQI_UNIT_SIZE, mqi_unit_take, mqi_units_check, mqi_units_take
from mqindex._native.guard cimport Mapping, mqi_guard_was_cut
from mqindex._native.memory cimport Pinned
from mqindex._native.numbers cimport mqi_plain_int


cdef extern from "<unistd.h>" nogil:
    int F_OK
    int access(const char* path, int mode) noexcept

cdef extern from "mqi_clock.h" nogil:
    int64_t mqi_now() noexcept

cdef enum:
    MOST = 1 << 16  # most messages of one answer
    FEW = 64        # queues, and filters, that are remembered


@cython.final
cdef class QueueView:
    """One file of a queue, and the queue's end, as they have just been found.

    file, first : the file's bytes, and the number of its first unit
    places : how many of its units are there at most
    tail, tail_first : the same of the file that has the last unit and the place after it
    low, high : the queue offsets of its first unit and after its last one
    parts : int64[2, m]: where the files of the log begin, ascending, and where their data ends
    first_path : of the queue's first file, which a broker deletes when its messages have expired
    look_again : seconds until it is seen again whether that file is there: it takes as long as an answer
    """

    cdef Mapping file, tail
    cdef Pinned parts
    cdef bytes first_path
    cdef bint void  # the queue was closed, or its minimum moved
    cdef int64_t look_again, until  # ns
    cdef int64_t first, places, low, high, behind  # the last: the position in `tail` after the last unit

    def __cinit__(
        self, Mapping file not None, int64_t first, int64_t places, Mapping tail not None, int64_t tail_first,
        int64_t low, int64_t high, parts, bytes first_path not None, double look_again, /
    ):
        if not (
            0 <= first and 0 <= places <= len(file) // MQI_UNIT_SIZE and 0 <= low < high
            and 0 <= tail_first < high < tail_first + len(tail) // MQI_UNIT_SIZE
        ):
            raise ValueError("expected a file of the queue, and the one that has its last unit and the place after it")
        self.parts = Pinned(parts, sizeof(int64_t))
        self.file, self.first, self.places = file, first, places
        self.tail, self.behind = tail, high - tail_first
        self.low, self.high = low, high
        self.first_path, self.look_again = first_path, <int64_t>(look_again * 1e9)

    def forget(self):
        """From now on the view is not used."""
        self.void = True

    cdef bint is_so(self) noexcept:
        """Whether the queue still begins and ends at the same places."""
        return (
            not self.void
            and mqi_units_check(<const uint8_t*>self.tail.view.buf + self.behind * MQI_UNIT_SIZE, 1) == 0
            and not mqi_guard_was_cut(self.tail.range) and self.begins_there())

    cdef bint begins_there(self) noexcept:
        cdef int64_t now = mqi_now()
        if now >= self.until:
            if access(PyBytes_AS_STRING(self.first_path), F_OK) != 0:
                return False
            self.until = now + self.look_again
        return True


@cython.final
cdef class QueueViews:
    """Views of the queues used last, and answers from them.

    result : the named tuple of an answer: status, next offset, minimum, maximum, columns
    found : the status of every answer from here
    columns : a callable that makes columns of a dict of arrays and the number of their rows
    """

    cdef dict views   # (topic, queue_id) -> the log and the view
    cdef dict hashes  # expression of tags -> int32 in bytes; True: every unit passes
    cdef object result, found, columns
    cdef bint closed

    def __cinit__(self, type result not None, found, columns):
        self.views, self.hashes = {}, {}
        self.result, self.found, self.columns = result, found, columns

    def remember(self, log, tuple name not None, QueueView view not None, tags, hashes, /):
        """A queue (topic, queue_id) as it is now, beside this log.

        hashes : int32[k], of the filter `tags`; None: every unit passes
        """
        if self.closed:
            return
        if len(self.views) >= FEW:
            self.views.clear()
        if len(self.hashes) >= FEW:
            self.hashes.clear()
        self.hashes[tags] = True if hashes is None else hashes.tobytes()
        self.views[name] = log, view

    def close(self):
        """Forget all, and remember nothing from now on."""
        self.closed = True
        self.views.clear()

    def answer(self, log, topic, queue_id, offset, max_msg_nums, tags, columns, /):
        """Places of messages, where a view has them and nothing has changed; None: the queue must be read.

        columns : some of queue_offset, phy_offset and size, in a list or a tuple; others: None
        """
        cdef int64_t first, most
        if not (
            PyUnicode_CheckExact(topic) and PyLong_CheckExact(queue_id) and mqi_plain_int(offset, &first)
            and mqi_plain_int(max_msg_nums, &most) and most > 0 and (tags is None or PyUnicode_CheckExact(tags))
            and (type(columns) is list or type(columns) is tuple)
        ):
            return None
        known, hashes = self.views.get((topic, queue_id)), self.hashes.get(tags)
        if known is None or hashes is None or (<tuple>known)[0] is not log:
            return None
        return self.of(<QueueView>(<tuple>known)[1], first, most, hashes, columns)

    cdef object of(self, QueueView view, int64_t offset, int64_t most, hashes, columns):
        cdef mqi_unit_take to
        cdef const int32_t* wanted = NULL
        cdef int64_t stop = min(view.high, view.first + view.places), n, seen, k = -1
        if not (view.low <= offset and view.first <= offset < stop):
            return None
        to.room = min(most, view.high - offset)
        if to.room > MOST or not view.is_so():
            return None
        offsets = int64_array(to.room, &to.queue_offsets)
        phys = int64_array(to.room, &to.phy_offsets)
        sizes = int32_array(to.room, &to.sizes)
        to.tags_codes, to.found, to.gone = NULL, 0, 0
        to.files = view.parts.n // 2
        to.starts = <const int64_t*>view.parts.view.buf
        to.stops = to.starts + to.files
        if hashes is not True:
            k, wanted = PyBytes_GET_SIZE(hashes) // sizeof(int32_t), <const int32_t*>PyBytes_AS_STRING(hashes)
        with nogil:
            seen = mqi_units_take(
                &to, wanted, k, <const uint8_t*>view.file.view.buf + (offset - view.first) * MQI_UNIT_SIZE,
                stop - offset, offset)
        n = to.found
        if seen < 0 or n == 0 or to.gone > 0 or mqi_guard_was_cut(view.file.range):
            return None
        if n < to.room:
            if stop < view.high:
                return None
            offsets, phys, sizes = offsets[:n], phys[:n], sizes[:n]
        named = {}
        for name in columns:
            if name == "phy_offset":
                named[name] = phys
            elif name == "size":
                named[name] = sizes
            elif name == "queue_offset":
                named[name] = offsets
            else:
                return None
        return tuple.__new__(
            self.result, (self.found, offset + seen, view.low, view.high, self.columns(named, n)))
