# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Look-ups in an optimised index file by its fence and the key filter, and the fence built, in buffers."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcpy
from posix.time cimport timespec

from mqindex._native.file_watch cimport WATCH_CHANGED, WATCH_SAME, FileWatch
from mqindex._native.index_entries cimport ChainHeads, IndexEntries, mqi_index_file
from mqindex._native.key_filter cimport AskedHashes, KeyFilter, mqi_key_column
from mqindex._native.memory cimport Pinned, new_block, target_of


cdef extern from "mqi_status.h" nogil:
    cdef enum:
        MQI_OK
        MQI_NO_MEMORY


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
    bint mqi_filter_may_hold(const mqi_key_column* keys, uint32_t slot, int32_t key_hash) noexcept


cdef extern from "mqi_index_cold.h" nogil:
    size_t mqi_cold_pages(
        const mqi_index_file* f, const mqi_fence* fence, const uint8_t* held, const int32_t* key_hashes, size_t n,
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
    """The fence of a file of this geometry, whose bytes do not change, and its keys in the filter of several files.

    `header` is the file's, of 40 bytes. Where somebody has written to it since `watch` began, `fits` says whether the
    fence is still of it; if not, this serves no more. `in_memory` says whether the file is: then its slots are faster.

    A file elsewhere has `fetch` instead of these three: it is called with the pages that are read next, uint32, counted
    from that of entry 1. `keys` None: the file may hold everything; else it is number `file` in that filter.
    """

    cdef Pinned fence_data
    cdef mqi_fence fence
    cdef KeyFilter filter
    cdef mqi_key_column keys
    cdef uint8_t[MQI_INDEX_HEADER_SIZE] header
    cdef FileWatch watch
    cdef object fits, in_memory, fetch
    cdef uint32_t until_asked
    cdef bint cold, lost

    def __cinit__(
        self, fence, KeyFilter keys, *, uint32_t file, int32_t covered, bytes header not None, FileWatch watch=None,
        fits=None, in_memory=None, fetch=None
    ):
        if len(header) != MQI_INDEX_HEADER_SIZE:
            raise ValueError(f"header: expected {MQI_INDEX_HEADER_SIZE} bytes, got {len(header)}")
        if keys is not None and file >= keys.filter.files:
            raise IndexError(file)
        memcpy(self.header, <const uint8_t*> header, MQI_INDEX_HEADER_SIZE)
        self.watch, self.fits, self.in_memory, self.fetch = watch, fits, in_memory, fetch
        self.fence_data = Pinned(fence)
        self.fence.first_slots = <const uint8_t*> self.fence_data.view.buf
        self.fence.pages = self.fence_data.n // MQI_FENCE_SLOT_SIZE
        self.fence.covered = covered
        self.filter = keys
        if keys is not None:
            self.keys.filter, self.keys.file = &keys.filter, file

    cdef bint has_keys(self) except -1:
        """Whether there is a filter for this file, to which nobody has written."""
        return self.filter is not None and self.filter.is_same()

    cdef bint has_kept_keys(self) except -1:
        """Whether what was just read of the filter is valid: nobody has cut it or written to it meanwhile."""
        return self.filter.is_whole() and self.filter.is_same()

    cdef int look_again(self) except -1:
        """Compare all that binds the fence to the file, where somebody wrote to it since it was good."""
        cdef timespec[2] now
        cdef int changed
        if self.lost or self.fetch is not None:
            return 0
        changed = self.watch.look(now)
        if changed == WATCH_CHANGED and self.fits():
            self.watch.accept(now)
        elif changed != WATCH_SAME:
            self.lost = True
        return 0

    cdef bint serves(self, const mqi_index_file* f) noexcept nogil:
        """Whether all entries of the file are covered. Once it is another file, or has grown, this never serves again.
        """
        if self.lost or not mqi_fence_current(f, self.fence.covered, self.header):
            self.lost = True
            return False
        return self.fence.pages == mqi_fence_pages(f, self.fence.covered)

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
        if not self.is_cold(1):
            return -1
        self.look_again()
        if not self.serves(f):
            return -1
        slot = mqi_slot_of(f, key_hash)
        if self.has_keys() and not mqi_filter_may_hold(&self.keys, slot, key_hash):
            return 0 if self.has_kept_keys() else -1
        page = mqi_fence_find(&self.fence, slot)
        return 0 if page == MQI_NO_PAGE else mqi_fence_head(f, &self.fence, page, slot)

    def heads(self, IndexEntries core not None, AskedHashes asked not None):
        """Where the chain of each hash begins, int32, 0: nowhere; None: the slots must be read.

        So it is if entries were appended, the file was written anew, it is in memory, or reading all of it is faster.
        """
        import numpy as np

        cdef Pinned wanted = asked.pinned, found, places
        cdef const uint8_t* held = NULL
        cdef uint32_t* pages
        cdef size_t some = 0, most = max(<size_t> FEW, <size_t> self.fence.pages // PART)
        cdef int status = MQI_OK
        cdef bint served
        if not self.is_cold(wanted.n):
            return None
        self.look_again()
        listed = np.empty(wanted.n, np.uint32)
        places = target_of(listed)
        pages = <uint32_t*> places.view.buf
        core.enter(False)
        try:
            served = self.serves(&core.file)
            if served and self.has_keys():
                held = asked.held_by(self.filter, self.keys.file, &core.file)
                served = self.has_kept_keys()
            with nogil:
                if served:
                    some = mqi_cold_pages(
                        &core.file, &self.fence, held, <const int32_t*> wanted.view.buf, wanted.n, pages)
        finally:
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
        core.leave(False)
        if status != MQI_OK:
            raise MemoryError
        return made

    def wrong_page(self, IndexEntries core not None):
        """The first page whose slot in the fence is not its first entry's, counted from that of entry 1, or None."""
        cdef uint32_t page
        core.enter(False)
        with nogil:
            page = mqi_fence_check(&core.file, &self.fence)
        core.leave(False)
        return None if page == MQI_NO_PAGE else page


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
