# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Entries of RocketMQ's index file in a buffer: put and selected, one key or many, from any number of threads."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stddef cimport size_t
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from mqindex._native.arrays cimport array_of, copy_of
from mqindex._native.guard cimport mqi_guard_touch, range_of, still_whole
from mqindex._native.keys cimport KeyBatch, hash_of
from mqindex._native.memory cimport Pinned, integers, target_of
from mqindex._native.owner cimport Owner, require_owner

from mqindex.errors import ClosedFileError, FileStateError, GeometryError, IndexFullError, ReadOnlyFileError


cdef extern from "mqi_status.h" nogil:
    cdef enum:
        MQI_OK


cdef extern from "mqi_run.h" nogil:
    cdef enum:
        MQI_RUN_SIZE


cdef extern from "mqi_index_file.h" nogil:
    void mqi_index_bind(mqi_index_file* f, uint8_t* base, uint32_t hash_slot_num, int32_t index_num) noexcept
    int32_t mqi_index_next(const mqi_index_file* f) noexcept


cdef extern from "mqi_index_put.h" nogil:
    size_t mqi_index_put_columns(
        mqi_index_file* f, const int32_t* key_hashes, const int64_t* phy_offsets, const int64_t* store_timestamps,
        size_t n) noexcept
    size_t mqi_index_put_run(mqi_index_file* f, const uint8_t* run, size_t n) noexcept


cdef extern from "mqi_index_select.h" nogil:
    ctypedef struct mqi_hits:
        int64_t* values
        size_t room

    void mqi_index_walk_start(
        const mqi_index_file* f, mqi_walk* walk, int32_t key_hash, int64_t max_num, int64_t begin, int64_t end) noexcept
    void mqi_index_walk_from(
        const mqi_index_file* f, mqi_walk* walk, int32_t head, int32_t key_hash, int64_t max_num, int64_t begin,
        int64_t end) noexcept
    size_t mqi_index_walk(const mqi_index_file* f, mqi_walk* walk, int64_t* out, size_t room) noexcept
    size_t mqi_index_pages_missing(
        const mqi_index_file* f, const uint8_t* present, const int32_t* key_hashes, const int32_t* heads,
        const int32_t* limits, int64_t max_num, size_t n, int64_t begin, int64_t end, uint32_t* pages) noexcept
    int mqi_index_select_many(
        const mqi_index_file* f, const int32_t* key_hashes, const int32_t* heads, const int32_t* limits,
        int64_t max_num, size_t n,
        int64_t begin, int64_t end, int64_t* offsets, mqi_hits* hits) noexcept


cdef enum:
    BLOCK = 4096      # keys hashed, then put, together: their hashes stay in the first-level cache
    FEW = 64          # hits of a single look-up that need no memory of their own

cdef int refuse_max_num(int64_t max_num) except -1:
    raise ValueError(f"max_num: expected 0 or more, got {max_num}")


cdef class ChainHeads:
    """Where the chains of a file begin, from another source than its slots: a base class."""

    cdef int32_t head(self, const mqi_index_file* f, int32_t key_hash) except -2:
        """The first entry of a key's chain, 0: there is none, -1: the slot has it."""
        return -1


cdef class IndexEntries:
    """One index file in a buffer, pinned until `close`.

    Any number of threads may read and put; puts exclude each other. Closing while a call runs is safe: the buffer is
    released when the last one ends.
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
                "the buffer's size does not match this geometry", path=path, expected=size, got=self.view.len,
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
        """Release the buffer; may be called twice, and changes no byte except for a writer's accepted entries."""
        try:
            self.store_lent(True)
        finally:
            with cython.critical_section(self):
                self.open = False
                self.leave_buffer()

    @property
    def closed(self):
        """True after `close`."""
        return not self.open

    def use_heads(self, ChainHeads heads):
        """Single look-ups use `heads` first; None: only the slots."""
        self.heads = heads

    # ---- calls that use the buffer

    cdef int leave_buffer(self) except -1:
        if self.exported and not self.open and self.running == 0:
            self.exported = False
            self.heads = None  # with the key filter that it asks, which is mapped
            PyBuffer_Release(&self.view)
        return 0

    cdef int require_open(self) except -1:
        if not self.open:
            raise ClosedFileError("the index file is closed", path=self.path)
        return 0

    cdef int require_writable(self) except -1:
        self.require_open()
        if not self.writable:
            if self.waiting is not None:
                raise FileStateError(
                    "a writer of the file is open", path=self.path, hint="put through the writer, or close it first")
            raise ReadOnlyFileError("the file is read-only", path=self.path, hint="open it with writable=True")
        require_owner(self.owner)
        return 0

    cdef int enter(self, bint writing) except -1:
        """Pin the buffer for a call that drops the GIL; every `enter` has its `leave`."""
        with cython.critical_section(self):
            if writing:
                self.require_writable()
            else:
                self.require_open()
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

    # ---- a writer that stores by blocks

    cdef int lend(self, object store) except -1:
        """Let only one writer put, until `take_back`; `store(last)` makes it store what it has accepted."""
        with cython.critical_section(self):
            self.require_writable()
            if self.putting > 0:
                raise FileStateError("another thread is putting at this moment", path=self.path)
            self.waiting, self.writable = store, False
        return 0

    cdef int take_back(self) except -1:
        with cython.critical_section(self):
            self.waiting, self.writable = None, True
        return 0

    def store_lent(self, bint last=False):
        """Make an open writer store what it has accepted; `last`: it accepts no more."""
        store = self.waiting
        if store is not None and self.open and self.owner.here:
            store(last)

    cdef Py_ssize_t room(self) except -1:
        """Entries that still fit."""
        with cython.critical_section(self):
            self.require_open()
            left = self.file.index_num - mqi_index_next(&self.file)
            still_whole(self.range)
        return left

    cdef int put_lent(
        self, const int32_t* hashes, const int64_t* phy_offsets, const int64_t* store_timestamps, Py_ssize_t n
    ) except -1:
        """Store a block of the writer, which has checked that it fits."""
        cdef size_t stored
        with cython.critical_section(self):
            self.require_open()
            require_owner(self.owner)
            stored = mqi_index_put_columns(&self.file, hashes, phy_offsets, store_timestamps, n)
            still_whole(self.range)
        if <Py_ssize_t> stored < n:
            raise IndexFullError(
                "somebody else has put into the file meanwhile", path=self.path, expected=n, got=stored)
        return 0

    # ---- one key

    cdef bint put_waiting(self, int32_t h, int64_t phy_offset, int64_t store_timestamp) except -1:
        """Another thread puts many: wait without the GIL."""
        cdef size_t stored
        self.enter(True)
        with nogil:
            pthread_mutex_lock(&self.writers)
            stored = mqi_index_put(&self.file, h, phy_offset, store_timestamp)
            pthread_mutex_unlock(&self.writers)
        self.leave(True)
        return stored == 1

    cdef int32_t head_of(self, int32_t key_hash) except -2:
        """As `ChainHeads.head`, which may run Python code: another thread may close the file meanwhile."""
        cdef int32_t head
        self.enter(False)
        try:
            head = self.heads.head(&self.file, key_hash)
        finally:
            self.leave(False)
        self.require_open()
        return head

    cdef object select_phy_offset(self, object key, int64_t max_num, int64_t begin, int64_t end):
        cdef int64_t few[FEW]
        cdef mqi_walk walk
        cdef size_t found
        cdef int32_t head
        cdef int32_t h = hash_of(key)
        if max_num < 0:
            refuse_max_num(max_num)
        with cython.critical_section(self):
            self.require_open()
            head = -1 if self.heads is None else self.head_of(h)
            if head < 0:
                mqi_index_walk_start(&self.file, &walk, h, max_num, begin, end)
            else:
                mqi_index_walk_from(&self.file, &walk, head, h, max_num, begin, end)
            found = mqi_index_walk(&self.file, &walk, few, FEW)
            if found == 0:  # a slot or a chain's head may be zeros of a cut file
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
        cdef Pinned offsets = integers(phy_offsets, sizeof(int64_t))
        cdef Pinned timestamps = integers(store_timestamps, sizeof(int64_t))
        cdef size_t stored
        if offsets.n != len(batch) or timestamps.n != len(batch) or not 0 <= start <= len(batch):
            raise ValueError(
                f"keys, phy_offsets, store_timestamps: expected one length, got {len(batch)}, "
                f"{offsets.n}, {timestamps.n}")
        self.enter(True)
        with nogil:
            pthread_mutex_lock(&self.writers)
            stored = put_batch(
                &self.file, batch, <const int64_t*> offsets.view.buf, <const int64_t*> timestamps.view.buf, start)
            pthread_mutex_unlock(&self.writers)
        self.leave(True)
        return stored

    def put_run(self, object run):
        """Append the packed records of a run; returns how many had room."""
        cdef Pinned records = run_of(run)
        cdef size_t stored
        self.enter(True)
        with nogil:
            pthread_mutex_lock(&self.writers)
            stored = mqi_index_put_run(&self.file, <const uint8_t*> records.view.buf, records.n)
            pthread_mutex_unlock(&self.writers)
        self.leave(True)
        return stored

    def select_hashes(self, object hashes, object limits, int64_t begin, int64_t end, object heads=None):
        """Hits of many hashes: (values, offsets). `limits` is one max_num, or an int32 for each.

        `heads`: where each one's chain begins, int32, if that is known; 0: nowhere.
        """
        cdef Pinned wanted = integers(hashes, sizeof(int32_t)), per_key, known = None
        cdef const int32_t* first = NULL
        cdef int64_t max_num
        if heads is not None:
            known = integers(heads, sizeof(int32_t))
            if known.n != wanted.n:
                raise ValueError(f"heads: expected {wanted.n}, got {known.n}")
            first = <const int32_t*> known.view.buf
        if isinstance(limits, int):
            max_num = limits
            if max_num < 0:
                refuse_max_num(max_num)
            return self.select_many(<const int32_t*> wanted.view.buf, first, NULL, max_num, wanted.n, begin, end)
        per_key = integers(limits, sizeof(int32_t))
        if per_key.n != wanted.n:
            raise ValueError(f"limits: expected {wanted.n}, got {per_key.n}")
        return self.select_many(
            <const int32_t*> wanted.view.buf, first, <const int32_t*> per_key.view.buf, 0, wanted.n, begin, end)

    def pages_missing(
        self, object present, object hashes, object limits, int64_t begin, int64_t end, object heads=None
    ):
        """The pages that `select_hashes` needs next of a file that is there in part, uint32; none: it has all it needs.

        `present`: a byte for each page of the file, 0 where it was not read yet; that of the header is there. The same
        page may come twice.
        """
        import numpy as np

        cdef Pinned wanted = integers(hashes, sizeof(int32_t)), there = Pinned(present), found
        cdef Pinned per_key = None, known = None
        cdef const int32_t* first = NULL
        cdef const int32_t* limit = NULL
        cdef int64_t max_num = 0
        cdef size_t missing
        cdef size_t pages_of_file = (self.view.len + MQI_INDEX_PAGE - 1) // MQI_INDEX_PAGE
        if there.n != pages_of_file or (<const uint8_t*> there.view.buf)[0] == 0:
            raise ValueError("present: expected a byte for each page, that of the first set")
        if heads is not None:
            known = integers(heads, sizeof(int32_t))
            first = <const int32_t*> known.view.buf
        if isinstance(limits, int):
            max_num = limits
        else:
            per_key = integers(limits, sizeof(int32_t))
            limit = <const int32_t*> per_key.view.buf
        if first != NULL and known.n != wanted.n or limit != NULL and per_key.n != wanted.n:
            raise ValueError(f"heads, limits: expected {wanted.n} of each")
        pages = np.empty(wanted.n, np.uint32)
        found = target_of(pages)
        self.enter(False)
        with nogil:
            missing = mqi_index_pages_missing(
                &self.file, <const uint8_t*> there.view.buf, <const int32_t*> wanted.view.buf, first, limit, max_num,
                wanted.n, begin, end, <uint32_t*> found.view.buf)
        self.leave(False)
        return pages[:missing]

    cdef object select_many(
        self, const int32_t* hashes, const int32_t* heads, const int32_t* limits, int64_t max_num, Py_ssize_t n,
        int64_t begin, int64_t end
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
            status = mqi_index_select_many(
                &self.file, hashes, heads, limits, max_num, n, begin, end, offsets, &hits)
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


cdef Pinned run_of(object run):
    """The packed records of a run."""
    cdef Pinned records = Pinned(run)
    if records.n % MQI_RUN_SIZE != 0:
        raise ValueError(f"run: expected a multiple of {MQI_RUN_SIZE} bytes, got {records.n}")
    records.n //= MQI_RUN_SIZE
    return records


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
