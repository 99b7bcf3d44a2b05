# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""The key filter of optimised index files, built and searched in buffers."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from posix.time cimport timespec

from mqindex._native.crc cimport checksum32c, mqi_checksum
from mqindex._native.file_watch cimport WATCH_SAME, FileWatch
from mqindex._native.guard cimport mqi_guard_touch, mqi_guard_was_cut, range_of
from mqindex._native.index_entries cimport IndexEntries, mqi_index_file
from mqindex._native.memory cimport Pinned, block_of, integers


cdef extern from "mqi_status.h" nogil:
    cdef enum:
        MQI_OK
        MQI_NO_MEMORY


cdef extern from "mqi_buffer.h" nogil:
    ctypedef struct mqi_buffer:
        uint8_t* data
        long long size


cdef extern from "mqi_key_filter.h" nogil:
    cdef enum:
        MQI_FILTER_BAD

    ctypedef struct mqi_filter_part:
        mqi_buffer rows
        uint32_t* lengths
        int32_t entries

    uint32_t mqi_filter_shift(uint32_t hash_slot_num, int32_t index_num) noexcept
    uint32_t mqi_filter_rows(uint32_t hash_slot_num, uint32_t shift) noexcept
    int mqi_filter_load(
        mqi_key_filter* filter, const uint8_t* data, uint64_t size, uint32_t files, uint32_t hash_slot_num,
        int32_t index_num, uint32_t seed, mqi_checksum* crc32c) noexcept
    void mqi_filter_free(mqi_key_filter* filter) noexcept
    uint32_t mqi_filter_damaged(mqi_key_filter* filter) noexcept
    int mqi_filter_read_ahead(
        mqi_key_filter* filter, const mqi_index_file* f, const int32_t* key_hashes, size_t n) noexcept
    int mqi_filter_build(
        const mqi_index_file* f, int32_t covered, uint32_t shift, uint32_t first, uint32_t stop, uint32_t seed,
        mqi_checksum* crc32c, mqi_filter_part* part) noexcept
    int mqi_filter_weave(
        const mqi_key_column* columns, uint32_t files, uint32_t first, uint32_t stop, uint32_t seed,
        mqi_checksum* crc32c, mqi_filter_part* part) noexcept
    void mqi_filter_ask(
        const mqi_key_filter* filter, const mqi_index_file* f, const int32_t* key_hashes, size_t n, uint32_t first,
        uint32_t files, uint8_t* held) noexcept
    size_t mqi_filter_stride(size_t n) noexcept
    int32_t mqi_filter_missing(const mqi_index_file* f, const mqi_key_column* keys, int32_t covered) noexcept


cdef enum:
    MOST_HELD = 1 << 24  # bytes of bits for all files; above, each is asked by itself


@cython.final
cdef class KeyFilter:
    """The rows of a filter for so many files of this geometry, pinned as long as this lives. `data`: starts, then rows.

    Once somebody has written to the file since `watch` began, it serves no more.
    """

    def __cinit__(
        self, data, *, uint32_t files, uint32_t hash_slot_num, int32_t index_num, uint32_t seed,
        FileWatch watch=None
    ):
        cdef int status
        self.data = Pinned(data)
        self.range = range_of(&self.data.view)
        self.watch = watch
        status = mqi_filter_load(
            &self.filter, <const uint8_t*> self.data.view.buf, self.data.n, files, hash_slot_num, index_num, seed,
            checksum32c)
        if status == MQI_NO_MEMORY:
            raise MemoryError
        if status != MQI_OK:
            raise ValueError("the filter is too short for its rows")
        self.loaded = True

    def __dealloc__(self):
        if self.loaded:
            mqi_filter_free(&self.filter)

    cdef bint is_same(self) except -1:
        """Whether nobody has written to the file since it was opened; once somebody has, it is not for good."""
        cdef timespec[2] now
        if self.watch is not None and self.watch.look(now) != WATCH_SAME:
            self.lost = True
        return not self.lost

    cdef bint is_whole(self) noexcept nogil:
        """Whether all that was read of it is valid: zeros of a cut file are not."""
        mqi_guard_touch(<const uint8_t*> self.data.view.buf + self.data.n - 1)
        return not mqi_guard_was_cut(self.range)

    def damaged_row(self):
        """The first row whose checksum is wrong, or None; such a row may hold everything."""
        cdef uint32_t row
        with nogil:
            row = mqi_filter_damaged(&self.filter)
        return None if row == self.filter.n else row

    def missing_entry(self, uint32_t file, IndexEntries core not None, int32_t covered):
        """The first entry of the file of this number whose hash is not found, or None."""
        cdef int32_t entry
        cdef mqi_key_column keys = [&self.filter, file]
        core.enter(False)
        with nogil:
            entry = mqi_filter_missing(&core.file, &keys, covered)
        core.leave(False)
        return entry or None


@cython.final
cdef class AskedHashes:
    """Key hashes, int32, that are looked up in one file (`alone`) or in several; a filter is asked once for all."""

    def __cinit__(self, hashes, *, bint alone=False):
        self.hashes, self.alone = hashes, alone
        self.pinned = integers(hashes, sizeof(int32_t))

    cdef const uint8_t* held_by(self, KeyFilter filter, uint32_t file, const mqi_index_file* f) except? NULL:
        """A bit for each hash: whether the file of this number may hold it. The file is open, and stays so."""
        cdef size_t n = self.pinned.n, stride = mqi_filter_stride(n)
        cdef const int32_t* hashes = <const int32_t*> self.pinned.view.buf
        if self.asked is not filter or not self.first <= file < self.first + self.files:
            self.first, self.files = file, 1
            if not self.alone and filter.filter.files * stride <= MOST_HELD:
                self.first, self.files = 0, filter.filter.files
            self.held = bytearray(max(self.files * stride, 1))
            self.asked = filter
            with nogil:
                if n > 1:  # advice only: without memory for it the rows are read one by one
                    mqi_filter_read_ahead(&filter.filter, f, hashes, n)
                mqi_filter_ask(&filter.filter, f, hashes, n, self.first, self.files, &self.held[0])
        return &self.held[(file - self.first) * stride]


def filter_shape(uint32_t hash_slot_num, int32_t index_num):
    """(rows, shift) of a filter for files of this geometry: row r is for the slots from r << shift on."""
    cdef uint32_t shift = mqi_filter_shift(hash_slot_num, index_num)
    return mqi_filter_rows(hash_slot_num, shift), shift


cdef object taken(int status, mqi_filter_part* part, uint32_t rows):
    """(the rows, their lengths: uint32), which own their memory."""
    if status != MQI_OK:
        free(part.rows.data)
        free(part.lengths)
        if status == MQI_FILTER_BAD:
            raise ValueError("a row is damaged, or an entry is not in the order of its slot")
        raise MemoryError
    lengths = block_of(part.lengths, rows * sizeof(uint32_t), True)
    return block_of(part.rows.data, part.rows.size, True), memoryview(lengths).cast("I")


def build_rows(
    IndexEntries core not None, int32_t covered, uint32_t shift, uint32_t first, uint32_t stop, uint32_t seed
):
    """The rows [first, stop) of a filter of one file: (bytes, lengths, how many of its entries are in them).

    ValueError: these are not in the order of their slots.
    """
    cdef mqi_filter_part part
    cdef int status
    core.enter(False)
    with nogil:
        status = mqi_filter_build(&core.file, covered, shift, first, stop, seed, checksum32c, &part)
    try:
        return *taken(status, &part, stop - first), part.entries
    finally:
        core.leave(False)


def weave_rows(columns, uint32_t first, uint32_t stop, uint32_t seed):
    """The rows [first, stop) of one filter for the files of several: (bytes, lengths). ValueError: a row is damaged.

    `columns`: (KeyFilter, number of the file in it) of each file.
    """
    cdef mqi_filter_part part
    cdef int status
    cdef KeyFilter one
    cdef uint32_t i, files = len(columns)
    cdef Pinned pinned
    memory = bytearray(files * sizeof(mqi_key_column))
    pinned = Pinned(memory, 1, True)
    cdef mqi_key_column* made = <mqi_key_column*> pinned.view.buf
    for i in range(files):
        one, number = columns[i]
        made[i].filter, made[i].file = &one.filter, number
        if made[i].file >= one.filter.files:
            raise IndexError(number)
    with nogil:
        status = mqi_filter_weave(made, files, first, stop, seed, checksum32c, &part)
    for one, _ in columns:
        if not one.is_whole():
            status = MQI_FILTER_BAD
    return taken(status, &part, stop - first)
