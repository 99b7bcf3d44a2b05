# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""The fence and the key filter of an optimised index file, built and searched in buffers."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy
from posix.stat cimport fstat, struct_stat
from posix.time cimport timespec

from mqindex._native.crc cimport checksum32c, mqi_checksum
from mqindex._native.guard cimport mqi_guard_range, mqi_guard_touch, mqi_guard_was_cut, range_of
from mqindex._native.index_entries cimport ChainHeads, IndexEntries, mqi_index_file
from mqindex._native.memory cimport Pinned, block_of, integers, new_block, target_of


cdef extern from "mqi_status.h" nogil:
    cdef enum:
        MQI_OK
        MQI_NO_MEMORY


cdef extern from *:
    """
    #include <sys/stat.h>
    #ifdef __APPLE__
    #define st_mtim st_mtimespec
    #define st_ctim st_ctimespec
    #endif
    """


cdef extern from "mqi_index_file.h" nogil:
    cdef enum:
        MQI_INDEX_HEADER_SIZE

    uint32_t mqi_slot_of(const mqi_index_file* f, int32_t key_hash) noexcept
    const uint8_t* mqi_entry_at(const mqi_index_file* f, int32_t number) noexcept
    int32_t mqi_get32(const uint8_t* p) noexcept


cdef extern from "mqi_index_fence.h" nogil:
    const uint32_t MQI_NO_PAGE
    cdef enum:
        MQI_FENCE_SLOT_SIZE

    ctypedef struct mqi_fence:
        const uint8_t* first_slots
        uint32_t pages
        int32_t covered

    uint32_t mqi_fence_pages(const mqi_index_file* f, int32_t covered) noexcept
    void mqi_fence_build(const mqi_index_file* f, int32_t covered, uint8_t* first_slots) noexcept
    uint32_t mqi_fence_check(const mqi_index_file* f, const mqi_fence* fence) noexcept
    int mqi_fence_current(const mqi_index_file* f, int32_t covered, const uint8_t* header) noexcept
    uint32_t mqi_fence_find(const mqi_fence* fence, uint32_t slot) noexcept
    int32_t mqi_fence_head(const mqi_index_file* f, const mqi_fence* fence, uint32_t page, uint32_t slot) noexcept


cdef extern from "mqi_key_filter.h" nogil:
    ctypedef struct mqi_key_filter:
        uint32_t n

    ctypedef struct mqi_fingerprints:
        uint8_t* bytes
        size_t size
        uint32_t segment_length, segment_count, seed

    int mqi_filter_load(
        mqi_key_filter* filter, const uint8_t* data, size_t size, uint32_t n, uint32_t hash_slot_num,
        mqi_checksum* crc32c) noexcept
    void mqi_filter_free(mqi_key_filter* filter) noexcept
    void mqi_filter_read_ahead(const mqi_key_filter* filter) noexcept
    bint mqi_filter_may_hold(mqi_key_filter* filter, uint32_t slot, int32_t key_hash) noexcept
    uint32_t mqi_filter_damaged(mqi_key_filter* filter) noexcept
    int32_t mqi_filter_cut(const mqi_index_file* f, int32_t covered, int32_t first) noexcept
    int mqi_filter_build(const mqi_index_file* f, int32_t first, int32_t stop, mqi_fingerprints* made) noexcept
    int32_t mqi_filter_missing(const mqi_index_file* f, mqi_key_filter* filter, int32_t covered) noexcept


cdef extern from "mqi_index_cold.h" nogil:
    size_t mqi_cold_pages(
        const mqi_index_file* f, const mqi_fence* fence, mqi_key_filter* filter, const int32_t* key_hashes, size_t n,
        uint32_t* pages) noexcept
    int mqi_cold_heads(
        const mqi_index_file* f, const mqi_fence* fence, const int32_t* key_hashes, const uint32_t* pages, size_t n,
        size_t wanted, int32_t* heads) noexcept


cdef enum:
    FEW = 1000         # pages that are read one by one, even of a small file
    PART = 4           # a quarter of the pages: from there on reading all of the file costs no more
    WARM = 32768       # look-ups between two checks whether the file is in memory
    COLD = 256         # the same while it is not


@cython.final
cdef class ColdSearch(ChainHeads):
    """The fence and the filter of a file of this geometry, pinned as long as this lives.

    `header` is the file's, of 40 bytes, and `fd` a descriptor of it: where other bytes take the place of its own,
    `fits` says whether these two are still of it; if not, they serve no more. `in_memory` says whether the file is:
    then its slots are faster.

    A file elsewhere has `fetch` instead of these three: it is called with the pages that are read next, uint32, counted
    from that of entry 1. `filter` None: it may hold everything.
    """

    cdef Pinned fence_data, filter_data
    cdef const mqi_guard_range* fence_range
    cdef const mqi_guard_range* filter_range
    cdef mqi_fence fence
    cdef mqi_key_filter filter
    cdef uint8_t[MQI_INDEX_HEADER_SIZE] header
    cdef int fd
    cdef timespec[2] seen  # when the file was written to and changed, as of the last answer of `fits`
    cdef object fits, in_memory, fetch
    cdef uint32_t checksum, until_asked
    cdef bint loaded, checked, cold, lost

    def __cinit__(
        self, fence, filter, *, int32_t covered, uint32_t checksum, uint32_t partitions, uint32_t hash_slot_num,
        bytes header not None, int fd=-1, fits=None, in_memory=None, fetch=None
    ):
        cdef int status
        if len(header) != MQI_INDEX_HEADER_SIZE:
            raise ValueError(f"header: expected {MQI_INDEX_HEADER_SIZE} bytes, got {len(header)}")
        memcpy(self.header, <const uint8_t*> header, MQI_INDEX_HEADER_SIZE)
        self.fd, self.fits, self.fetch = fd, fits, fetch
        self.fence_data, self.filter_data = Pinned(fence), Pinned(b"" if filter is None else filter)
        self.fence_range, self.filter_range = range_of(&self.fence_data.view), range_of(&self.filter_data.view)
        self.fence.first_slots = <const uint8_t*> self.fence_data.view.buf
        self.fence.pages = self.fence_data.n // MQI_FENCE_SLOT_SIZE
        self.fence.covered = covered
        self.checksum, self.in_memory = checksum, in_memory
        if filter is None:
            return
        status = mqi_filter_load(
            &self.filter, <const uint8_t*> self.filter_data.view.buf, self.filter_data.n, partitions, hash_slot_num,
            checksum32c)
        if status == MQI_NO_MEMORY:
            raise MemoryError
        if status != MQI_OK:
            raise ValueError("the filter's partitions lead outside the file")
        self.loaded = True

    def __dealloc__(self):
        if self.loaded:
            mqi_filter_free(&self.filter)

    cdef bint is_whole(self) noexcept nogil:
        """Whether all that was read of both is valid: zeros of a cut file are not."""
        mqi_guard_touch(<const uint8_t*> self.fence_data.view.buf + self.fence_data.n - 1)
        if self.loaded:
            mqi_guard_touch(<const uint8_t*> self.filter_data.view.buf + self.filter_data.n - 1)
        return not mqi_guard_was_cut(self.fence_range) and not mqi_guard_was_cut(self.filter_range)

    cdef int look_again(self) except -1:
        """Compare all that binds these to the file, where somebody wrote to it since the last time."""
        cdef struct_stat status
        cdef timespec[2] now
        if self.lost or self.fetch is not None:
            return 0
        if fstat(self.fd, &status) != 0:  # closed meanwhile
            self.lost = True
            return 0
        now[0], now[1] = status.st_mtim, status.st_ctim
        if memcmp(now, self.seen, sizeof(now)) != 0:
            if not self.fits():
                self.lost = True
            memcpy(self.seen, now, sizeof(now))
        return 0

    cdef bint serves(self, const mqi_index_file* f) noexcept nogil:
        """Whether all entries of the file are covered, by a fence whose checksum was compared once.

        Once it is another file, or has grown, these never serve again.
        """
        if self.lost or not mqi_fence_current(f, self.fence.covered, self.header):
            self.lost = True
            return False
        if self.fence.pages != mqi_fence_pages(f, self.fence.covered):
            return False
        if not self.checked:
            self.checked = checksum32c(
                self.fence.first_slots, self.fence.pages * MQI_FENCE_SLOT_SIZE, 0) == self.checksum
        return self.checked

    cdef bint is_cold(self, size_t n) except -1:
        """Whether the file is on the disk, for so many look-ups; checked now and then only."""
        if self.fetch is not None:
            return True
        if self.until_asked < n:
            self.cold = not self.in_memory()
            self.until_asked = COLD if self.cold else WARM
        self.until_asked -= min(n, <size_t> self.until_asked)
        return self.cold

    cdef int32_t head(self, const mqi_index_file* f, int32_t key_hash) except -2:
        cdef uint32_t slot, page
        cdef int32_t found = 0
        if not self.is_cold(1):
            return -1
        self.look_again()
        if not self.serves(f):
            return -1
        slot = mqi_slot_of(f, key_hash)
        if not self.loaded or mqi_filter_may_hold(&self.filter, slot, key_hash):
            page = mqi_fence_find(&self.fence, slot)
            if page != MQI_NO_PAGE:
                found = mqi_fence_head(f, &self.fence, page, slot)
        return found if self.is_whole() else -1

    def will_search(self, size_t n):
        """So many look-ups will follow: the filter is read ahead, if they need most of it and the file is cold."""
        if self.loaded and not self.lost and n >= self.filter.n and self.is_cold(n):
            with nogil:
                mqi_filter_read_ahead(&self.filter)

    def heads(self, IndexEntries core not None, object hashes):
        """Where the chain of each hash begins, int32, 0: nowhere; None: the slots must be read.

        So it is if entries were appended, the file was written anew, it is in memory, or reading all of it is faster.
        """
        import numpy as np

        cdef Pinned wanted = integers(hashes, sizeof(int32_t)), found, places
        cdef uint32_t* pages
        cdef size_t some, most = max(<size_t> FEW, <size_t> self.fence.pages // PART)
        cdef int status = MQI_OK
        cdef bint served
        if not self.is_cold(wanted.n):
            return None
        self.look_again()
        listed = np.empty(wanted.n, np.uint32)
        places = target_of(listed)
        pages = <uint32_t*> places.view.buf
        core.enter(False)
        with nogil:
            served = self.serves(&core.file)
            if served:
                some = mqi_cold_pages(
                    &core.file, &self.fence, &self.filter if self.loaded else NULL,
                    <const int32_t*> wanted.view.buf, wanted.n, pages)
        core.leave(False)
        if not served or (some > most and self.fetch is None):
            return None
        if self.fetch is not None:
            self.fetch(listed[listed != MQI_NO_PAGE])
        made = np.empty(wanted.n, np.int32)
        found = target_of(made)
        core.enter(False)
        with nogil:
            status = mqi_cold_heads(
                &core.file, &self.fence, <const int32_t*> wanted.view.buf, pages, wanted.n, some,
                <int32_t*> found.view.buf)
            served = self.is_whole()
        core.leave(False)
        if status != MQI_OK:
            raise MemoryError
        return made if served else None

    def wrong_page(self, IndexEntries core not None):
        """The first page whose slot in the fence is not its first entry's, counted from that of entry 1, or None."""
        cdef uint32_t page
        core.enter(False)
        with nogil:
            page = mqi_fence_check(&core.file, &self.fence)
        core.leave(False)
        return None if page == MQI_NO_PAGE else page

    def damaged_partition(self):
        """The first partition of the filter whose checksum is wrong, or None; it may hold everything."""
        cdef uint32_t partition
        with nogil:
            partition = mqi_filter_damaged(&self.filter)
        return None if partition == self.filter.n else partition

    def missing_entry(self, IndexEntries core not None):
        """The first entry whose hash the filter does not find, or None."""
        cdef int32_t entry
        core.enter(False)
        with nogil:
            entry = mqi_filter_missing(&core.file, &self.filter, self.fence.covered)
        core.leave(False)
        return entry or None


def build_fence(IndexEntries core not None, int32_t covered):
    """The fence of the entries 1 .. covered, as bytes."""
    cdef Pinned target
    made = new_block(<size_t> mqi_fence_pages(&core.file, covered) * MQI_FENCE_SLOT_SIZE, False)
    target = target_of(made)
    core.enter(False)
    with nogil:
        mqi_fence_build(&core.file, covered, <uint8_t*> target.view.buf)
    core.leave(False)
    return made


def filter_cuts(IndexEntries core not None, int32_t covered):
    """The first entry of each partition and its slot: [(entry, slot), ...]; the first slot is 0."""
    cdef int32_t entry = 1
    cdef int32_t stop
    cdef int32_t key_hash
    cuts = []
    core.enter(False)
    while entry <= covered:
        key_hash = mqi_get32(mqi_entry_at(&core.file, entry))
        cuts.append((entry, mqi_slot_of(&core.file, key_hash) if cuts else 0))
        with nogil:
            stop = mqi_filter_cut(&core.file, covered, entry)
        entry = stop
    core.leave(False)
    return cuts


def build_fingerprints(IndexEntries core not None, int32_t first, int32_t stop):
    """For the entries [first, stop): (bytes, segment_length, segment_count, seed); a length of 0: there are none."""
    cdef mqi_fingerprints made
    cdef int status
    core.enter(False)
    with nogil:
        status = mqi_filter_build(&core.file, first, stop, &made)
    core.leave(False)
    if status != MQI_OK:
        raise MemoryError
    return block_of(made.bytes, made.size, True), made.segment_length, made.segment_count, made.seed
