# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""RocketMQ's index file on a buffer: the calls of `mqi_index_file.h`, their locks, and the arrays they answer with."""

cimport cython
from cpython.buffer cimport PyBUF_CONTIG_RO, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from mqindex._native.arrays cimport array_of, copy_of, take
from mqindex._native.guard cimport mqi_guard_touch, range_of, still_whole
from mqindex._native.keys cimport KeyBatch, mqi_key_hash, str_hash
from mqindex._native.owner cimport Owner

from mqindex.errors import ClosedFileError, GeometryError, ReadOnlyFileError


cdef enum:
    BLOCK = 4096      # keys hashed, then put, together: their hashes stay in the first-level cache
    FEW = 64          # hits of a single look-up that need no memory of their own
    FAULTS = 100      # most contradictions that check() names

cdef tuple FAULT_KINDS = (
    "index_count",
    "hash_slot_count",
    "begin_phy_offset",
    "end_phy_offset",
    "end_timestamp",
    "slot",
    "slot_head",
    "key_hash",
    "time_diff",
    "prev_index",
)


cdef inline int32_t hash_of(object key) except -1:
    if not isinstance(key, str):
        raise TypeError(f"key: expected str, got {type(key).__name__}")
    return mqi_key_hash(str_hash(key, 0))


cdef int refuse_max_num(int64_t max_num) except -1:
    raise ValueError(f"max_num: expected 0 or more, got {max_num}")


cdef class IndexCore:
    """One index file in a buffer, pinned until `close`.

    Any number of threads may read and put; puts exclude each other. Closing while a call runs is safe: the buffer is
    let go when the last one ends.
    """

    def __cinit__(
        self, object buffer, Py_ssize_t hash_slot_num, Py_ssize_t index_num, bint writable, object path=None
    ):
        self.path, self.owner = path, Owner(path)
        if hash_slot_num < 1 or index_num < 1 or hash_slot_num > INT32_MAX or index_num > INT32_MAX:
            got = f"{hash_slot_num} and {index_num}"
            raise GeometryError("no such geometry", path=path, expected="1 or more of each", got=got)
        if pthread_mutex_init(&self.writers, NULL) != 0:
            raise MemoryError
        self.has_mutex = True
        PyObject_GetBuffer(buffer, &self.view, PyBUF_WRITABLE if writable else PyBUF_SIMPLE)
        self.exported = True
        self.range = range_of(&self.view)
        cdef Py_ssize_t size = MQI_INDEX_HEADER_SIZE + MQI_SLOT_SIZE * hash_slot_num + MQI_ENTRY_SIZE * index_num
        if self.view.len != size:
            raise GeometryError(
                "the buffer has not the size of this geometry", path=path, expected=size, got=self.view.len,
                hint="pass the hash_slot_num= and index_num= that the file was made with")
        mqi_index_bind(&self.file, <uint8_t*> self.view.buf, hash_slot_num, index_num)
        self.writable = writable
        self.open = True

    def __dealloc__(self):
        if self.exported:
            PyBuffer_Release(&self.view)
        if self.has_mutex:
            pthread_mutex_destroy(&self.writers)

    def close(self):
        """Let the buffer go; may be called twice and changes no byte."""
        with cython.critical_section(self):
            self.open = False
            self.leave_buffer()

    @property
    def closed(self):
        """True after `close`."""
        return not self.open

    # ---- who is inside

    cdef int leave_buffer(self) except -1:
        if self.exported and not self.open and self.running == 0:
            self.exported = False
            PyBuffer_Release(&self.view)
        return 0

    cdef int want_open(self) except -1:
        if not self.open:
            raise ClosedFileError("the index file is closed", path=self.path)
        return 0

    cdef int want_writable(self) except -1:
        self.want_open()
        if not self.writable:
            raise ReadOnlyFileError("the file is read-only", path=self.path, hint="open it with writable=True")
        self.owner.require()
        return 0

    cdef int enter(self, bint writing) except -1:
        """Pin the buffer for a call that drops the GIL; every `enter` has its `leave`."""
        with cython.critical_section(self):
            if writing:
                self.want_writable()
            else:
                self.want_open()
            self.running += 1
            self.putting += writing
        return 0

    cdef int leave(self, bint writing) except -1:
        with cython.critical_section(self):
            self.running -= 1
            self.putting -= writing
            try:
                still_whole(self.range)
            finally:
                self.leave_buffer()
        return 0

    # ---- one key

    cdef object put_key(self, object key, int64_t phy_offset, int64_t store_timestamp):
        cdef int32_t h = hash_of(key)
        cdef size_t stored
        with cython.critical_section(self):
            self.want_writable()
            if MQI_HAS_GIL and self.putting == 0:  # then the GIL is mutex enough
                stored = mqi_index_put(&self.file, h, phy_offset, store_timestamp)
                still_whole(self.range)
                return stored == 1
            if pthread_mutex_trylock(&self.writers) == 0:
                stored = mqi_index_put(&self.file, h, phy_offset, store_timestamp)
                pthread_mutex_unlock(&self.writers)
                still_whole(self.range)
                return stored == 1
        return self.put_waiting(h, phy_offset, store_timestamp)

    cdef object put_waiting(self, int32_t h, int64_t phy_offset, int64_t store_timestamp):
        """Another thread puts many: wait without the GIL."""
        cdef size_t stored
        self.enter(True)
        with nogil:
            pthread_mutex_lock(&self.writers)
            stored = mqi_index_put(&self.file, h, phy_offset, store_timestamp)
            pthread_mutex_unlock(&self.writers)
        self.leave(True)
        return stored == 1

    cdef object select_phy_offset(self, object key, int64_t max_num, int64_t begin, int64_t end):
        cdef int64_t few[FEW]
        cdef mqi_walk walk
        cdef size_t found
        cdef int32_t h = hash_of(key)
        if max_num < 0:
            refuse_max_num(max_num)
        with cython.critical_section(self):
            self.want_open()
            mqi_index_walk_start(&self.file, &walk, h, max_num, begin, end)
            found = mqi_index_walk(&self.file, &walk, few, FEW)
            if found == 0:  # a slot or a chain's head may be zeros that were cut off
                mqi_guard_touch(<const uint8_t*> self.view.buf + self.view.len - 1)
            still_whole(self.range)
            if walk.cur == 0:
                return copy_of(few, found)
            return self.select_more(&walk, few)

    cdef object select_more(self, mqi_walk* walk, const int64_t* few):
        cdef size_t found = FEW
        cdef size_t room = 4 * FEW
        cdef int64_t* grown
        cdef int64_t* values = <int64_t*> malloc(room * sizeof(int64_t))
        if values == NULL:
            raise MemoryError
        memcpy(values, few, FEW * sizeof(int64_t))
        while walk.cur != 0:
            if found == room:
                room *= 2
                grown = <int64_t*> realloc(values, room * sizeof(int64_t))
                if grown == NULL:
                    free(values)
                    raise MemoryError
                values = grown
            found += mqi_index_walk(&self.file, walk, values + found, room - found)
        made = array_of(values, found)
        still_whole(self.range)
        return made

    # ---- many keys

    def put_keys(self, KeyBatch batch not None, object phy_offsets, object store_timestamps, Py_ssize_t start=0):
        """Append an entry for each key of the batch from `start` on; returns how many had room."""
        cdef Py_buffer offsets, timestamps
        cdef size_t stored
        take(phy_offsets, &offsets, sizeof(int64_t))
        try:
            take(store_timestamps, &timestamps, sizeof(int64_t))
        except BaseException:
            PyBuffer_Release(&offsets)
            raise
        try:
            if offsets.shape[0] != len(batch) or timestamps.shape[0] != len(batch) or not 0 <= start <= len(batch):
                raise ValueError(
                    f"keys, phy_offsets, store_timestamps: expected one length, got {len(batch)}, "
                    f"{offsets.shape[0]}, {timestamps.shape[0]}")
            self.enter(True)
            with nogil:
                pthread_mutex_lock(&self.writers)
                stored = put_batch(
                    &self.file, batch, <const int64_t*> offsets.buf, <const int64_t*> timestamps.buf, start)
                pthread_mutex_unlock(&self.writers)
            self.leave(True)
        finally:
            PyBuffer_Release(&offsets)
            PyBuffer_Release(&timestamps)
        return stored

    def put_run(self, object run):
        """Append the packed records of a run; returns how many had room."""
        cdef Py_buffer view
        cdef size_t stored
        PyObject_GetBuffer(run, &view, PyBUF_CONTIG_RO)
        try:
            if view.len % MQI_RUN_SIZE != 0:
                raise ValueError(f"run: expected a multiple of {MQI_RUN_SIZE} bytes, got {view.len}")
            self.enter(True)
            with nogil:
                pthread_mutex_lock(&self.writers)
                stored = mqi_index_put_run(&self.file, <const uint8_t*> view.buf, view.len // MQI_RUN_SIZE)
                pthread_mutex_unlock(&self.writers)
            self.leave(True)
        finally:
            PyBuffer_Release(&view)
        return stored

    def compare_run(self, int64_t start, object run):
        """How many packed records of a run, from the first on, are the entries from number `start` on."""
        cdef Py_buffer view
        cdef size_t same, n
        PyObject_GetBuffer(run, &view, PyBUF_CONTIG_RO)
        try:
            if view.len % MQI_RUN_SIZE != 0:
                raise ValueError(f"run: expected a multiple of {MQI_RUN_SIZE} bytes, got {view.len}")
            if not 1 <= start:
                raise ValueError(f"start: expected 1 or more, got {start}")
            self.enter(False)
            n = min(view.len // MQI_RUN_SIZE, max(<int64_t> self.file.index_num - start, 0))
            with nogil:
                same = mqi_index_compare_run(&self.file, start, <const uint8_t*> view.buf, n)
            self.leave(False)
        finally:
            PyBuffer_Release(&view)
        return same

    def select_hashes(self, object hashes, object limits, int64_t begin, int64_t end):
        """Hits of many hashes: (values, offsets). `limits` is one max_num, or an int32 for each."""
        cdef Py_buffer wanted, per_key
        cdef const int32_t* limit = NULL
        cdef int64_t max_num = 0
        take(hashes, &wanted, sizeof(int32_t))
        try:
            if isinstance(limits, int):
                max_num = limits
                if max_num < 0:
                    refuse_max_num(max_num)
                return self.select_many(<const int32_t*> wanted.buf, NULL, max_num, wanted.shape[0], begin, end)
            take(limits, &per_key, sizeof(int32_t))
            try:
                if per_key.shape[0] != wanted.shape[0]:
                    raise ValueError(f"limits: expected {wanted.shape[0]}, got {per_key.shape[0]}")
                limit = <const int32_t*> per_key.buf
                return self.select_many(<const int32_t*> wanted.buf, limit, 0, wanted.shape[0], begin, end)
            finally:
                PyBuffer_Release(&per_key)
        finally:
            PyBuffer_Release(&wanted)

    cdef object select_many(
        self, const int32_t* hashes, const int32_t* limits, int64_t max_num, Py_ssize_t n, int64_t begin, int64_t end
    ):
        cdef mqi_hits hits
        cdef int64_t* offsets
        cdef int64_t* fitted
        cdef int status
        hits.room = n if limits != NULL or max_num > 0 else 0
        hits.values = <int64_t*> malloc((hits.room + 1) * sizeof(int64_t))
        offsets = <int64_t*> malloc((n + 1) * sizeof(int64_t))
        if hits.values == NULL or offsets == NULL:
            free(hits.values)
            free(offsets)
            raise MemoryError
        try:
            self.enter(False)
        except BaseException:
            free(hits.values)
            free(offsets)
            raise
        with nogil:
            status = mqi_index_select_many(&self.file, hashes, limits, max_num, n, begin, end, offsets, &hits)
        try:
            self.leave(False)
            if status != MQI_OK:
                raise MemoryError
        except BaseException:
            free(hits.values)
            free(offsets)
            raise
        fitted = <int64_t*> realloc(hits.values, (offsets[n] + 1) * sizeof(int64_t))
        if fitted != NULL:
            hits.values = fitted
        return array_of(hits.values, offsets[n]), array_of(offsets, n + 1)

    # ---- the whole file

    def header(self):
        """The six fields of the header as they are in the file."""
        cdef mqi_index_header h
        with cython.critical_section(self):
            self.want_open()
            mqi_index_read_header(&self.file, &h)
            still_whole(self.range)
        return (
            h.begin_timestamp, h.end_timestamp, h.begin_phy_offset, h.end_phy_offset, h.hash_slot_count, h.index_count)

    def is_write_full(self):
        """True when there is no room for another entry."""
        with cython.critical_section(self):
            self.want_open()
            full = mqi_index_next(&self.file) >= self.file.index_num
            still_whole(self.range)
            return full

    def entries(self, Py_ssize_t start=1, stop=None):
        """Four columns of the entries [start, stop), clamped to those that exist."""
        import numpy as np

        cdef Py_buffer views[4]
        cdef Py_ssize_t n, last
        self.enter(False)
        try:
            last = mqi_index_next(&self.file)
            if stop is not None and stop < last:
                last = max(stop, 0)
            start = max(start, 1)
            n = max(last - start, 0)
            columns = tuple([np.empty(n, dtype) for dtype in ("i4", "i8", "i4", "i4")])
            for i in range(4):
                PyObject_GetBuffer(columns[i], &views[i], PyBUF_CONTIG_RO | PyBUF_WRITABLE)
            with nogil:
                mqi_index_entries(
                    &self.file, start, n, <int32_t*> views[0].buf, <int64_t*> views[1].buf, <int32_t*> views[2].buf,
                    <int32_t*> views[3].buf)
            for i in range(4):
                PyBuffer_Release(&views[i])
        finally:
            self.leave(False)
        return columns

    def slots(self):
        """The value of every slot."""
        import numpy as np

        cdef Py_buffer view
        self.enter(False)
        try:
            values = np.empty(self.file.hash_slot_num, "i4")
            PyObject_GetBuffer(values, &view, PyBUF_CONTIG_RO | PyBUF_WRITABLE)
            with nogil:
                mqi_index_slots(&self.file, <int32_t*> view.buf)
            PyBuffer_Release(&view)
        finally:
            self.leave(False)
        return values

    def seed(self, int64_t end_phy_offset, int64_t end_timestamp):
        """Start a rolled file where its predecessor ended; values of 0 or less change nothing."""
        with cython.critical_section(self):
            self.want_writable()
            mqi_index_seed(&self.file, end_phy_offset, end_timestamp)
            still_whole(self.range)

    def flush_header(self):
        """Write the count of a file without puts as the broker's flush does: 1."""
        self.enter(True)
        with nogil:
            pthread_mutex_lock(&self.writers)
            mqi_index_flush_header(&self.file)
            pthread_mutex_unlock(&self.writers)
        self.leave(True)

    def check(self):
        """The first 100 contradictions inside the file: (kind, number, at, expected, got) each."""
        cdef mqi_fault faults[FAULTS]
        cdef size_t found
        cdef int32_t* heads
        cdef size_t i
        self.enter(False)
        try:
            heads = <int32_t*> calloc(self.file.hash_slot_num, sizeof(int32_t))
            if heads == NULL:
                raise MemoryError
            with nogil:
                found = mqi_index_check(&self.file, heads, faults, FAULTS)
            free(heads)
        finally:
            self.leave(False)
        listed = []
        for i in range(min(found, <size_t> FAULTS)):
            kind = FAULT_KINDS[faults[i].kind]
            listed.append((kind, faults[i].number, faults[i].at, faults[i].expected, faults[i].got))
        return listed

    def fits(self, newest=None):
        """Whether every used slot heads a chain of entries of that slot; `newest`: look only at so many entries."""
        cdef size_t some = 0 if newest is None else newest
        cdef int fitting
        self.enter(False)
        with nogil:
            fitting = mqi_index_fits(&self.file, some)
        self.leave(False)
        return fitting == 1


cdef size_t put_batch(
    mqi_index_file* f, KeyBatch batch, const int64_t* offsets, const int64_t* timestamps, Py_ssize_t start
) noexcept nogil:
    cdef int32_t hashes[BLOCK]
    cdef Py_ssize_t at = start
    cdef Py_ssize_t some
    cdef size_t stored
    while at < batch.length:
        some = min(batch.length - at, BLOCK)
        batch.fill(at, some, hashes)
        stored = mqi_index_put_columns(f, hashes, offsets + at, timestamps + at, some)
        at += stored
        if <Py_ssize_t> stored < some:
            break
    return at - start
