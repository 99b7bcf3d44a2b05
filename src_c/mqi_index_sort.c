#include "mqi_index_sort.h"

#include <stdlib.h>

/* Writing 20 bytes at a random place of 400 MB misses every cache. So the slots are cut into stretches: entries are
 * first brought into the region of their stretch, a thousand streams that each go forwards, then each region is
 * sorted by slot in a buffer that stays in the second-level cache. */

enum {
    STRETCHES = 1024,
    BUFFERED = (32 << 20) / (MQI_ENTRY_SIZE + 4), /* entries: a stretch with more is read from the source again */
};

typedef struct sorting {
    const mqi_index_file *from;
    mqi_index_file *to;
    int32_t count; /* of the source; its entries are below it */
    uint32_t shift;
    int32_t ends[STRETCHES]; /* one after the last entry of each stretch */
    int32_t used;
    int32_t *next;   /* for each slot of a stretch where its next entry goes */
    uint8_t *buffer; /* entries of a stretch */
    uint32_t *slots; /* theirs, counted from the stretch's first */
} sorting;

static inline uint32_t slot_of(const sorting *s, const uint8_t *entry) {
    return mqi_slot_of(s->to, mqi_get32(entry + MQI_ENTRY_KEY_HASH));
}

static void size_stretches(sorting *s) {
    int32_t sizes[STRETCHES] = {0};
    for (int32_t i = 1; i < s->count; i++) sizes[slot_of(s, mqi_entry_at(s->from, i)) >> s->shift]++;
    int32_t end = 1;
    for (uint32_t stretch = 0; stretch < STRETCHES; stretch++) s->ends[stretch] = end += sizes[stretch];
}

static inline int32_t start_of(const sorting *s, uint32_t stretch) { return stretch == 0 ? 1 : s->ends[stretch - 1]; }

static int bring_to_stretches(const sorting *s) {
    int32_t next[STRETCHES];
    for (uint32_t stretch = 0; stretch < STRETCHES; stretch++) next[stretch] = start_of(s, stretch);
    for (int32_t i = 1; i < s->count; i++) {
        uint8_t entry[MQI_ENTRY_SIZE]; /* read once, so that the decision is about the bytes that are written */
        memcpy(entry, mqi_entry_at(s->from, i), sizeof entry);
        uint32_t stretch = slot_of(s, entry) >> s->shift;
        if (UNLIKELY(next[stretch] == s->ends[stretch])) return MQI_INDEX_CHANGED;
        memcpy(mqi_entry_at(s->to, next[stretch]++), entry, sizeof entry);
    }
    return MQI_OK;
}

/* Counts become the places of each slot's first entry; returns the place after the last one. */
static int32_t sum_up(int32_t *counts, uint32_t width, int32_t start) {
    for (uint32_t slot = 0; slot < width; slot++) {
        int32_t here = counts[slot];
        counts[slot] = start;
        start += here;
    }
    return start;
}

static inline void place(const sorting *s, const uint8_t *entry, int32_t at) {
    uint8_t *target = mqi_entry_at(s->to, at);
    memcpy(target, entry, MQI_ENTRY_PREV_INDEX);
    mqi_set32(target + MQI_ENTRY_PREV_INDEX, at - 1);
}

static int sort_buffered(const sorting *s, int32_t start, int32_t stop, uint32_t first, uint32_t width) {
    size_t n = (size_t)(stop - start);
    memcpy(s->buffer, mqi_entry_at(s->to, start), n * MQI_ENTRY_SIZE);
    for (size_t i = 0; i < n; i++) {
        uint32_t slot = slot_of(s, s->buffer + i * MQI_ENTRY_SIZE) - first;
        if (UNLIKELY(slot >= width)) return MQI_INDEX_CHANGED;
        s->slots[i] = slot;
        s->next[slot]++;
    }
    sum_up(s->next, width, start);
    for (size_t i = 0; i < n; i++) place(s, s->buffer + i * MQI_ENTRY_SIZE, s->next[s->slots[i]]++);
    return MQI_OK;
}

/* A stretch that is too big for the buffer: few slots have most entries. Whoever changes the source meanwhile may have
 * other entries counted than are placed: neither may be more or fewer than the stretch has places. */
static int sort_again(const sorting *s, int32_t start, int32_t stop, uint32_t first, uint32_t width) {
    for (int32_t i = 1; i < s->count; i++) {
        uint32_t slot = slot_of(s, mqi_entry_at(s->from, i)) - first;
        if (slot < width) s->next[slot]++;
    }
    if (UNLIKELY(sum_up(s->next, width, start) != stop)) return MQI_INDEX_CHANGED;
    int32_t left = stop - start;
    for (int32_t i = 1; i < s->count; i++) {
        uint8_t entry[MQI_ENTRY_SIZE];
        memcpy(entry, mqi_entry_at(s->from, i), sizeof entry);
        uint32_t slot = slot_of(s, entry) - first;
        if (slot >= width) continue;
        if (UNLIKELY(s->next[slot] >= stop || left-- == 0)) return MQI_INDEX_CHANGED;
        place(s, entry, s->next[slot]++);
    }
    return left == 0 ? MQI_OK : MQI_INDEX_CHANGED;
}

/* Each slot leads to its last entry, and its first one to none. Afterwards next[slot] is where the next slot starts. */
static void link_slots(sorting *s, int32_t start, uint32_t first, uint32_t width) {
    for (uint32_t slot = 0; slot < width; start = s->next[slot++]) {
        if (s->next[slot] == start) continue;
        mqi_set32(mqi_entry_at(s->to, start) + MQI_ENTRY_PREV_INDEX, 0);
        mqi_set32(mqi_slot_at(s->to, first + slot), s->next[slot] - 1);
        s->used++;
    }
}

static int sort_stretches(sorting *s) {
    for (uint32_t stretch = 0; stretch < STRETCHES; stretch++) {
        int32_t start = start_of(s, stretch), stop = s->ends[stretch];
        if (start == stop) continue;
        uint32_t first = stretch << s->shift, width = s->to->hash_slot_num - first;
        if (width > 1u << s->shift) width = 1u << s->shift;
        memset(s->next, 0, width * sizeof *s->next);
        int status = stop - start <= BUFFERED ? sort_buffered(s, start, stop, first, width)
                                              : sort_again(s, start, stop, first, width);
        if (status != MQI_OK) return status;
        link_slots(s, start, first, width);
    }
    return MQI_OK;
}

static int reserve(sorting *s) {
    size_t most = 1;
    for (uint32_t stretch = 0; stretch < STRETCHES; stretch++) {
        size_t n = (size_t)(s->ends[stretch] - start_of(s, stretch));
        if (n <= BUFFERED && n > most) most = n;
    }
    s->next = malloc(sizeof *s->next << s->shift);
    s->buffer = malloc(most * MQI_ENTRY_SIZE);
    s->slots = malloc(most * sizeof *s->slots);
    return s->next == NULL || s->buffer == NULL || s->slots == NULL ? MQI_NO_MEMORY : MQI_OK;
}

/* A broker that writes counts an entry before it writes the entry's offset and time to the header. */
static int read_steady_header(const mqi_index_file *f, mqi_index_header *header) {
    for (int attempt = 0; attempt < 1000; attempt++) {
        mqi_index_header again;
        mqi_index_read_header(f, header);
        mqi_index_read_header(f, &again);
        if (memcmp(header, &again, sizeof again) == 0) return MQI_OK;
    }
    return MQI_INDEX_CHANGED; /* GCOVR_EXCL_LINE: no test changes it a thousand times */
}

static void write_header(const sorting *s, const mqi_index_header *h) {
    uint8_t *base = s->to->base;
    mqi_set64(base + MQI_BEGIN_TIMESTAMP, h->begin_timestamp);
    mqi_set64(base + MQI_END_TIMESTAMP, h->end_timestamp);
    mqi_set64(base + MQI_BEGIN_PHY_OFFSET, h->begin_phy_offset);
    mqi_set64(base + MQI_END_PHY_OFFSET, h->end_phy_offset);
    mqi_set32(base + MQI_HASH_SLOT_COUNT,
              s->from->hash_slot_num == s->to->hash_slot_num ? h->hash_slot_count : s->used);
    mqi_set32(base + MQI_INDEX_COUNT, h->index_count > s->count ? s->count : h->index_count);
}

int mqi_index_sort(const mqi_index_file *from, mqi_index_file *to) {
    mqi_index_header header;
    sorting s = {.from = from, .to = to};
    int status = read_steady_header(from, &header);
    if (status != MQI_OK) return status;
    s.count = header.index_count < 1 ? 1 : header.index_count > from->index_num ? from->index_num : header.index_count;
    if (s.count > to->index_num) return MQI_INDEX_CHANGED; /* it did fit when the caller checked */
    while ((to->hash_slot_num - 1) >> s.shift >= STRETCHES) s.shift++;
    size_stretches(&s);
    status = reserve(&s);
    if (status == MQI_OK) status = bring_to_stretches(&s);
    if (status == MQI_OK) status = sort_stretches(&s);
    if (status == MQI_OK) write_header(&s, &header);
    free(s.slots);
    free(s.buffer);
    free(s.next);
    return status;
}
