# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Entries of Kafka's offset and time indexes, in a buffer: look up, append, decode.

Entries are (offset, position), or (timestamp, offset) of a time index; offsets are absolute here.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t

from mqindex._native.guard cimport mqi_guard_range, range_of, still_whole
from mqindex._native.memory cimport Pinned, target_of
from mqindex._native.numbers cimport time_of, whole

from mqindex.errors import ClosedFileError


cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass

    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t items)


cdef extern from "mqi_kafka_index.h" nogil:
    int MQI_OFFSET_ENTRY_SIZE
    int MQI_TIME_ENTRY_SIZE
    enum:
        MQI_KAFKA_CHUNK
    int MQI_KAFKA_KEY
    int MQI_KAFKA_VALUE
    int MQI_KAFKA_FINE
    int MQI_KAFKA_FULL
    int MQI_KAFKA_ORDER
    int MQI_KAFKA_GROWN
    int MQI_KAFKA_UNSORTED
    int MQI_KAFKA_NO_MEMORY

    ctypedef struct mqi_kafka_index:
        const uint8_t* buf
        int64_t n
        int times

    ctypedef struct mqi_kafka_tree:
        int layers

    ctypedef struct mqi_kafka_end:
        uint8_t* buf
        int64_t entries
        int64_t max_entries
        int64_t base_offset
        int64_t last_timestamp
        int64_t last_offset
        int64_t done

    int64_t mqi_kafka_key(const mqi_kafka_index* x, int64_t i) noexcept
    int32_t mqi_kafka_value(const mqi_kafka_index* x, int64_t i) noexcept
    int64_t mqi_kafka_search(const mqi_kafka_index* x, int column, int64_t target, int upper) noexcept
    int mqi_kafka_is_sorted(const mqi_kafka_index* x) noexcept
    int mqi_kafka_tree_grow(mqi_kafka_tree* tree, const mqi_kafka_index* x) noexcept
    void mqi_kafka_tree_free(mqi_kafka_tree* tree) noexcept
    ctypedef int64_t mqi_kafka_floor(
        const mqi_kafka_index* x, const mqi_kafka_tree* tree, int64_t target) noexcept nogil
    ctypedef void mqi_kafka_floors(
        const mqi_kafka_index* x, const mqi_kafka_tree* tree, const int64_t* targets, int m, int64_t* at
    ) noexcept nogil

    ctypedef struct mqi_kafka_floor_kernel:
        const char* name
        mqi_kafka_floor* floor
        mqi_kafka_floors* floors

    int mqi_kafka_floor_kernels(const mqi_kafka_floor_kernel** all) noexcept
    int64_t mqi_kafka_settle(const mqi_kafka_index* x, const int64_t* targets, int64_t m, int64_t* at) noexcept
    void mqi_kafka_take_offsets(
        const mqi_kafka_index* x, int64_t base_offset, const int64_t* at, int64_t m, int64_t* offsets,
        int32_t* positions) noexcept
    void mqi_kafka_take_times(
        const mqi_kafka_index* x, int64_t base_offset, const int64_t* at, int64_t m, int64_t* timestamps,
        int64_t* offsets) noexcept
    void mqi_kafka_merge(
        const mqi_kafka_index* x, const int64_t* targets, int64_t m, int64_t first, int64_t* at) noexcept
    int mqi_kafka_append_offsets(
        mqi_kafka_end* end, const int64_t* offsets, const int32_t* positions, int64_t m) noexcept
    int mqi_kafka_append_times(
        mqi_kafka_end* end, const int64_t* timestamps, const int64_t* offsets, int64_t m, int skip) noexcept
    void mqi_kafka_decode(
        const mqi_kafka_index* x, int64_t base_offset, int64_t start, int64_t stop, int64_t* first,
        void* second) noexcept


cdef enum:
    WORTH = 64  # a look-up for so many entries pays for the layers

_WHY = (None, "full", "order", "overflow")

cdef const mqi_kafka_floor_kernel* KERNELS
cdef int N_KERNELS = mqi_kafka_floor_kernels(&KERNELS)


def available():
    """The kernels of look-ups that this processor can run, the slowest first; the last one is used."""
    return [KERNELS[i].name.decode() for i in range(N_KERNELS)]


@cython.final
cdef class Layers:
    """Layers above the entries as they were; look-ups that still run keep them."""

    cdef mqi_kafka_tree tree
    cdef int64_t entries  # from which they are made, -1: not made yet
    cdef bint sorted  # else there are no layers, and the broker's search is used

    def __cinit__(self):
        self.entries = -1

    def __dealloc__(self):
        mqi_kafka_tree_free(&self.tree)

    cdef bint grow(self, const mqi_kafka_index* index) noexcept nogil:
        """False: no memory."""
        cdef int how = mqi_kafka_tree_grow(&self.tree, index) if mqi_kafka_is_sorted(index) else MQI_KAFKA_UNSORTED
        self.entries, self.sorted = index.n, how == MQI_KAFKA_GROWN
        return how != MQI_KAFKA_NO_MEMORY


@cython.final
cdef class Entries:
    """The entries of one index file, and where its next one goes. `buf` None: a file of no bytes.

    kind : the NamedTuple that a look-up gives. Look-ups from several threads are safe, also while one appends;
    closing while a call runs is safe too. Changes by others meanwhile may change answers, for every kind of look-up
    alike, but never lead out of the buffer.
    """

    cdef Py_buffer view
    cdef const mqi_guard_range* range
    cdef bint held
    cdef mqi_kafka_index index
    cdef Layers layers  # None: none yet
    cdef int64_t asked  # look-ups that were searched without them, or in vain with them
    cdef int64_t base_offset, max_entries
    cdef object kind, path

    def __cinit__(self, object buf, bint times, int64_t base_offset, object kind, bint writable, str path):
        self.path, self.kind = path, kind
        if not issubclass(kind, tuple) or kind.__basicsize__ != tuple.__basicsize__:
            raise TypeError(f"kind: expected a NamedTuple, got {kind!r}")
        self.base_offset = base_offset
        self.index.times = times
        if not 0 <= base_offset <= INT64_MAX - INT32_MAX:
            raise ValueError(f"base_offset: expected 0..{INT64_MAX - INT32_MAX}, got {base_offset}")
        if buf is not None:
            PyObject_GetBuffer(buf, &self.view, PyBUF_WRITABLE if writable else PyBUF_SIMPLE)
            self.held = True
            self.range = range_of(&self.view)
            self.index.buf = <const uint8_t*>self.view.buf
            self.max_entries = self.view.len // (MQI_TIME_ENTRY_SIZE if times else MQI_OFFSET_ENTRY_SIZE)
            self.index.n = self.max_entries
        else:
            self.held = True

    def __dealloc__(self):
        self._release()

    cdef void _release(self) noexcept:
        if self.held:
            self.held = False
            if self.index.buf != NULL:
                PyBuffer_Release(&self.view)

    def release(self):
        """Release the buffer; every later call is a `ClosedFileError`."""
        with cython.critical_section(self):
            self.index.n = 0
            self._release()

    cdef int _require(self) except -1:
        if not self.held:
            raise ClosedFileError("the index is closed", path=self.path)
        return 0

    cdef Pinned _pin(self, mqi_kafka_index* index):
        """The entries as they are now, valid as long as the result lives, even if the file is closed meanwhile."""
        with cython.critical_section(self):
            self._require()
            index[0] = self.index
            return Pinned(self.view.obj if index.buf != NULL else b"")

    @property
    def entries(self):
        """How many there are."""
        return self.index.n

    @property
    def room(self):
        """How many the buffer holds."""
        return self.max_entries

    def keep(self, int64_t entries, /):
        """Keep only the first so many; the bytes of all stay."""
        with cython.critical_section(self):
            self._require()
            if not 0 <= entries <= self.index.n:
                raise ValueError(f"entries: expected 0..{self.index.n}, got {entries}")
            self.index.n = entries
            self._changed()

    cdef void _changed(self) noexcept:
        self.layers, self.asked = None, 0

    cdef object _made(self, int64_t at):
        """Entry number `at`, -1: the one before all; made directly, without a plain tuple first."""
        cdef int64_t key = mqi_kafka_key(&self.index, at) if at >= 0 else -1 if self.index.times else 0
        cdef int64_t value = mqi_kafka_value(&self.index, at) if at >= 0 else 0
        still_whole(self.range)  # all bytes for this entry were read before
        # From here on a garbage collection may run any code, `release` too.
        cdef object first = key if self.index.times else self.base_offset + key
        cdef object second = self.base_offset + value if self.index.times else value
        cdef object made = PyType_GenericAlloc(<PyTypeObject*>self.kind, 2)
        Py_INCREF(first)
        PyTuple_SET_ITEM(made, 0, first)
        Py_INCREF(second)
        PyTuple_SET_ITEM(made, 1, second)
        return made

    def entry(self, int64_t at, /):
        """Entry number `at`; the one before all where there is none of that number."""
        with cython.critical_section(self):
            self._require()
            return self._made(at if 0 <= at < self.index.n else -1)

    cdef int64_t _relative(self, int64_t offset) noexcept:
        if self.index.times:
            return offset
        return offset - self.base_offset if offset >= INT64_MIN + self.base_offset else INT64_MIN

    def lookup(self, target):
        """The entry with the greatest key that is not greater than `target`, as the broker's search finds it."""
        cdef int64_t at
        cdef int64_t relative = self._relative(
            time_of(target, "target") if self.index.times else whole(target, "target"))
        with cython.critical_section(self):
            self._require()
            if self.layers is None:
                self._grow(1)
            if self.layers is not None and self.layers.sorted:
                at = KERNELS[N_KERNELS - 1].floor(&self.index, &self.layers.tree, relative)
                if mqi_kafka_settle(&self.index, &relative, 1, &at):
                    self._grow(1)
            else:
                at = mqi_kafka_search(&self.index, MQI_KAFKA_KEY, relative, 0)
            return self._made(at)

    cdef int _grow(self, int64_t asked) except -1:
        """Make layers above the entries, after so many look-ups that it is worth while.

        Where another program has put the entries out of order, the old ones are kept: an answer must not depend on
        whether it is noticed.
        """
        self.asked += asked
        if self.asked * WORTH >= self.index.n:
            self.asked = 0
            layers = Layers()
            if not layers.grow(&self.index):
                raise MemoryError
            if layers.sorted or self.layers is None:
                self.layers = layers
        return 0

    def search(self, int column, int64_t target, bint upper, /):
        """The number of the entry that the broker's search finds; -1: none. column 0: the first field as stored."""
        cdef int64_t at
        with cython.critical_section(self):
            self._require()
            at = mqi_kafka_search(&self.index, column, target, upper)
            still_whole(self.range)
            return at

    def lookup_many(self, targets, /, *, kernel=None):
        """`lookup` of each: two arrays as the fields of an entry. `kernel`: one of `available()`, for tests."""
        import numpy as np

        cdef mqi_kafka_index index
        cdef bint many, merged = False, fine = True
        cdef int64_t moved = 0
        cdef Layers layers
        cdef mqi_kafka_floors* floors = KERNELS[N_KERNELS - 1 if kernel is None else available().index(kernel)].floors
        wanted = np.ascontiguousarray(targets, np.int64)
        if wanted.ndim != 1:
            raise ValueError(f"targets: expected one dimension, got {wanted.ndim}")
        one = np.empty(len(wanted), np.int64)
        other = np.empty(len(wanted), np.int64 if self.index.times else np.int32)
        cdef Pinned asked = Pinned(wanted, sizeof(int64_t))
        cdef Pinned first = target_of(one), second = target_of(other)
        cdef Pinned held = self._pin(&index)
        layers = self._layers_of(&index)
        with nogil:
            many = asked.n >= index.n // WORTH
            if many and is_increasing(<const int64_t*>asked.view.buf, asked.n):
                merged = mqi_kafka_is_sorted(&index) != 0
            if many and not merged and layers.entries < 0:
                fine = layers.grow(&index)
            if fine:
                moved = look_up_all(
                    &index, &layers.tree, merged, layers.sorted, self.base_offset, <const int64_t*>asked.view.buf,
                    asked.n, <int64_t*>first.view.buf, second.view.buf, floors)
        held.whole()
        if not fine:
            raise MemoryError
        self._keep_layers(layers, moved)
        return one, other

    cdef Layers _layers_of(self, const mqi_kafka_index* index):
        """The existing layers; else new ones that are still to be made."""
        with cython.critical_section(self):
            if self.layers is not None and self.layers.entries == index.n:
                return self.layers
        return Layers()

    cdef int _keep_layers(self, Layers layers, int64_t moved) except -1:
        """Keep new layers for the next calls. `moved`: answers that did not fit the entries."""
        with cython.critical_section(self):
            if self.layers is None and layers.entries == self.index.n:
                self.layers = layers
            if moved:
                self._grow(moved)
        return 0

    def append_offsets(self, offsets, positions, int64_t last_offset, /):
        """Append (offset, position) until the first that is refused: `(how many, why)`; why None: all were taken."""
        return self._append(offsets, positions, 0, last_offset, False)

    def append_times(self, timestamps, offsets, int64_t last_timestamp, int64_t last_offset, bint skip_full_check, /):
        """The same for (timestamp, offset); those that are no later than the last entry are skipped."""
        return self._append(timestamps, offsets, last_timestamp, last_offset, skip_full_check)

    cdef tuple _append(
        self, object first, object second, int64_t last_timestamp, int64_t last_offset, bint skip_full_check
    ):
        cdef mqi_kafka_index index
        cdef mqi_kafka_end end
        cdef Pinned one = Pinned(first, sizeof(int64_t))
        cdef Pinned other = Pinned(second, sizeof(int64_t) if self.index.times else sizeof(int32_t))
        cdef Pinned held = self._pin(&index)
        cdef int64_t m = min(one.n, other.n)
        cdef int why
        end.buf, end.entries, end.max_entries = <uint8_t*>index.buf, index.n, self.max_entries
        end.base_offset, end.last_timestamp, end.last_offset = self.base_offset, last_timestamp, last_offset
        with nogil:
            if index.times:
                why = mqi_kafka_append_times(
                    &end, <const int64_t*>one.view.buf, <const int64_t*>other.view.buf, m, skip_full_check)
            else:
                why = mqi_kafka_append_offsets(
                    &end, <const int64_t*>one.view.buf, <const int32_t*>other.view.buf, m)
        held.whole()
        with cython.critical_section(self):
            if self.held and end.entries != self.index.n:
                self.index.n = end.entries
                self._changed()
        return end.done, _WHY[why]

    def decode(self, int64_t start, int64_t stop, /):
        """The fields of the entries [start, stop) as two arrays."""
        import numpy as np

        cdef mqi_kafka_index index
        cdef Pinned held = self._pin(&index)
        if not 0 <= start <= stop <= index.n:
            raise ValueError(f"start, stop: expected 0..{index.n} in order, got {start} and {stop}")
        one = np.empty(stop - start, np.int64)
        other = np.empty(stop - start, np.int64 if index.times else np.int32)
        cdef Pinned first = target_of(one), second = target_of(other)
        mqi_kafka_decode(&index, self.base_offset, start, stop, <int64_t*>first.view.buf, second.view.buf)
        held.whole()
        return one, other


cdef int64_t look_up_all(
    const mqi_kafka_index* x, const mqi_kafka_tree* tree, bint merged, bint layered, int64_t base_offset,
    const int64_t* targets, int64_t m, int64_t* first, void* second, mqi_kafka_floors* floors
) noexcept nogil:
    """How many answers did not fit the entries: others changed them meanwhile."""
    cdef int64_t at[MQI_KAFKA_CHUNK]
    cdef int64_t relative[MQI_KAFKA_CHUNK]
    cdef int64_t done = 0, n, i, before = 0, moved = 0
    while done < m:
        n = min(m - done, MQI_KAFKA_CHUNK)
        for i in range(n):
            relative[i] = targets[done + i]
            if not x.times:
                relative[i] = (
                    INT64_MIN if relative[i] < INT64_MIN + base_offset else relative[i] - base_offset)
        if merged:
            mqi_kafka_merge(x, relative, n, before, at)
            before = max(at[n - 1], 0)
        elif layered:
            floors(x, tree, relative, <int>n, at)
        else:
            for i in range(n):
                at[i] = mqi_kafka_search(x, MQI_KAFKA_KEY, relative[i], 0)
        if merged or layered:
            moved += mqi_kafka_settle(x, relative, n, at)
        if x.times:
            mqi_kafka_take_times(x, base_offset, at, n, first + done, <int64_t*>second + done)
        else:
            mqi_kafka_take_offsets(x, base_offset, at, n, first + done, <int32_t*>second + done)
        done += n
    return moved


cdef bint is_increasing(const int64_t* targets, int64_t m) noexcept nogil:
    cdef int64_t i
    for i in range(1, m):
        if targets[i] < targets[i - 1]:
            return False
    return True
