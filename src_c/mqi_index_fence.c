#if defined(__linux__)
#define _GNU_SOURCE /* madvise */
#endif
#include "mqi_index_fence.h"

#include "mqi_read_ahead.h"

static inline uint64_t entries_at(const mqi_index_file *f) { return (uint64_t)(f->entries - f->base); }

/* The page of the file that an entry begins in. */
static inline uint64_t page_of(const mqi_index_file *f, int32_t number) {
    return (entries_at(f) + (uint64_t)(uint32_t)number * MQI_ENTRY_SIZE) / MQI_INDEX_PAGE;
}

/* The first entry that begins in a page of the file, or after it; entry 0 is none. */
static inline int64_t first_in(const mqi_index_file *f, uint64_t page) {
    uint64_t start = page * MQI_INDEX_PAGE;
    if (start <= entries_at(f) + MQI_ENTRY_SIZE) return 1;
    return (int64_t)((start - entries_at(f) + MQI_ENTRY_SIZE - 1) / MQI_ENTRY_SIZE);
}

static inline uint32_t slot_of_entry(const mqi_index_file *f, int32_t number) {
    return mqi_slot_of(f, mqi_get32(mqi_entry_at(f, number) + MQI_ENTRY_KEY_HASH));
}

static inline uint32_t first_slot(const mqi_fence *fence, uint32_t page) {
    return (uint32_t)mqi_get32(fence->first_slots + (size_t)page * MQI_FENCE_SLOT_SIZE);
}

uint32_t mqi_fence_pages(const mqi_index_file *f, int32_t covered) {
    return covered < 1 ? 0 : (uint32_t)(page_of(f, covered) - page_of(f, 1) + 1);
}

void mqi_fence_build(const mqi_index_file *f, int32_t covered, uint8_t *first_slots) {
    const uint64_t first = page_of(f, 1);
    const uint32_t pages = mqi_fence_pages(f, covered);
    for (uint32_t i = 0; i < pages; i++)
        mqi_set32(first_slots + (size_t)i * MQI_FENCE_SLOT_SIZE,
                  (int32_t)slot_of_entry(f, (int32_t)first_in(f, first + i)));
}

uint32_t mqi_fence_check(const mqi_index_file *f, const mqi_fence *fence) {
    const uint64_t first = page_of(f, 1);
    for (uint32_t i = 0; i < fence->pages; i++)
        if (first_slot(fence, i) != slot_of_entry(f, (int32_t)first_in(f, first + i))) return i;
    return MQI_NO_PAGE;
}

int mqi_fence_current(const mqi_index_file *f, int32_t covered, const uint8_t *header) {
    static const uint8_t none[MQI_ENTRY_SIZE];
    if (mqi_acquire32(f->base + MQI_INDEX_COUNT) != covered + 1) return 0;
    if (memcmp(f->base, header, MQI_INDEX_HEADER_SIZE) != 0) return 0;
    return covered + 1 >= f->index_num || memcmp(mqi_entry_at(f, covered + 1), none, sizeof none) == 0;
}

uint32_t mqi_fence_find(const mqi_fence *fence, uint32_t slot) {
    uint32_t low = 0, n = fence->pages; /* how many pages from `low` on are not ruled out */
    if (n == 0 || first_slot(fence, 0) > slot) return MQI_NO_PAGE;
    while (n > 1) {
        uint32_t half = n / 2;
        low += first_slot(fence, low + half) <= slot ? half : 0;
        n -= half;
    }
    return low;
}

int32_t mqi_fence_head(const mqi_index_file *f, const mqi_fence *fence, uint32_t page, uint32_t slot) {
    const uint64_t at = page_of(f, 1) + page;
    const int64_t first = first_in(f, at), end = (int64_t)fence->covered + 1;
    int64_t stop = first_in(f, at + 1);
    if (stop > end) stop = end;
    for (int64_t number = stop - 1; number >= first; number--)
        if (slot_of_entry(f, (int32_t)number) == slot) return (int32_t)number;
    return first < stop && first_slot(fence, page) == slot ? (int32_t)first : 0;
}

void mqi_fence_read_ahead(const mqi_index_file *f, const uint32_t *pages, size_t n) {
    const uint64_t first = page_of(f, 1);
    for (size_t i = 0; i < n;) {
        size_t run = i + 1;
        while (run < n && pages[run] - pages[run - 1] <= 1) run++;
        size_t size = (size_t)(pages[run - 1] - pages[i] + 1) * MQI_INDEX_PAGE;
        mqi_read_ahead(f->base + (first + pages[i]) * MQI_INDEX_PAGE, size);
        i = run;
    }
}
