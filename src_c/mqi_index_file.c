#include "mqi_index_file.h"

#include "mqi_run.h"

void mqi_index_read_header(const mqi_index_file *f, mqi_index_header *header) {
    header->index_count = mqi_acquire32(f->base + MQI_INDEX_COUNT);
    header->begin_timestamp = mqi_get64(f->base + MQI_BEGIN_TIMESTAMP);
    header->end_timestamp = mqi_get64(f->base + MQI_END_TIMESTAMP);
    header->begin_phy_offset = mqi_get64(f->base + MQI_BEGIN_PHY_OFFSET);
    header->end_phy_offset = mqi_get64(f->base + MQI_END_PHY_OFFSET);
    header->hash_slot_count = mqi_get32(f->base + MQI_HASH_SLOT_COUNT);
}

void mqi_index_seed(mqi_index_file *f, int64_t end_phy_offset, int64_t end_timestamp) {
    if (end_phy_offset > 0) {
        mqi_set64(f->base + MQI_BEGIN_PHY_OFFSET, end_phy_offset);
        mqi_set64(f->base + MQI_END_PHY_OFFSET, end_phy_offset);
    }
    if (end_timestamp > 0) {
        mqi_set64(f->base + MQI_BEGIN_TIMESTAMP, end_timestamp);
        mqi_set64(f->base + MQI_END_TIMESTAMP, end_timestamp);
    }
}

void mqi_index_flush_header(mqi_index_file *f) {
    if (mqi_acquire32(f->base + MQI_INDEX_COUNT) <= 0) mqi_release32(f->base + MQI_INDEX_COUNT, 1);
}

/* ---- decode and check --------------------------------------------------------------------------------------- */

void mqi_index_entries(const mqi_index_file *f, size_t start, size_t n, int32_t *key_hashes, int64_t *phy_offsets,
                       int32_t *time_diffs, int32_t *prev_indexes) {
    const uint8_t *entry = f->entries + start * MQI_ENTRY_SIZE;
    for (size_t i = 0; i < n; i++, entry += MQI_ENTRY_SIZE) {
        key_hashes[i] = mqi_get32(entry + MQI_ENTRY_KEY_HASH);
        phy_offsets[i] = mqi_get64(entry + MQI_ENTRY_PHY_OFFSET);
        time_diffs[i] = mqi_get32(entry + MQI_ENTRY_TIME_DIFF);
        prev_indexes[i] = mqi_get32(entry + MQI_ENTRY_PREV_INDEX);
    }
}

void mqi_index_slots(const mqi_index_file *f, int32_t *out) {
    for (uint32_t i = 0; i < f->hash_slot_num; i++) out[i] = mqi_get32(mqi_slot_at(f, i));
}

size_t mqi_index_compare_run(const mqi_index_file *f, size_t start, const uint8_t *run, size_t n) {
    const int64_t begin = mqi_get64(f->base + MQI_BEGIN_TIMESTAMP);
    const uint8_t *entry = f->entries + start * MQI_ENTRY_SIZE;
    int64_t known = INT64_MIN; /* neighbours mostly have the same time: divide once */
    int32_t diff = 0;
    for (size_t i = 0; i < n; i++, entry += MQI_ENTRY_SIZE, run += MQI_RUN_SIZE) {
        int64_t timestamp = mqi_native64(run + MQI_RUN_STORE_TIMESTAMP);
        if (timestamp != known) {
            known = timestamp;
            diff = mqi_time_diff(begin, timestamp);
        }
        int same = mqi_native32(run + MQI_RUN_KEY_HASH) == mqi_get32(entry + MQI_ENTRY_KEY_HASH) &&
                   mqi_native64(run + MQI_RUN_PHY_OFFSET) == mqi_get64(entry + MQI_ENTRY_PHY_OFFSET) &&
                   (diff == mqi_get32(entry + MQI_ENTRY_TIME_DIFF) || start + i == 1);
        if (UNLIKELY(!same)) return i;
    }
    return n;
}

void mqi_index_read_order(const mqi_index_file *f, int32_t most, mqi_index_order *order) {
    const int32_t count = mqi_index_next(f);
    mqi_index_order found = {0, 0, INT64_MAX, INT64_MIN};
    uint32_t slot = 0;
    int64_t before = INT64_MIN;
    for (int32_t i = 1; i < count && i <= most; i++) {
        const uint8_t *entry = mqi_entry_at(f, i);
        uint32_t next = mqi_slot_of(f, mqi_get32(entry + MQI_ENTRY_KEY_HASH));
        int32_t prev = (i - 1) & -(int32_t)(next == slot); /* no branch: nobody knows where a slot's entries end */
        if (UNLIKELY((next < slot) | (mqi_get32(entry + MQI_ENTRY_PREV_INDEX) != prev))) break;
        int64_t phy_offset = mqi_get64(entry + MQI_ENTRY_PHY_OFFSET);
        found.moved |= phy_offset < before;
        if (phy_offset < found.first_phy_offset) found.first_phy_offset = phy_offset;
        if (phy_offset > found.last_phy_offset) found.last_phy_offset = phy_offset;
        found.sorted = i;
        slot = next;
        before = phy_offset;
    }
    if (found.sorted == 0) found.first_phy_offset = found.last_phy_offset = 0;
    *order = found;
}

typedef struct fault_list {
    mqi_fault *faults;
    size_t room, n;
} fault_list;

static void report(fault_list *list, int32_t kind, int64_t number, int64_t at, int64_t expected, int64_t got) {
    if (list->n < list->room) {
        mqi_fault *fault = &list->faults[list->n];
        fault->kind = kind;
        fault->number = number;
        fault->at = at;
        fault->expected = expected;
        fault->got = got;
    }
    list->n++;
}

/* The time of the last entry: entry 1 counts from the seed, now gone. */
static int ends_at(const mqi_index_header *h, int32_t count, int32_t diff) {
    if (count == 2) return h->end_timestamp == h->begin_timestamp;
    return mqi_time_diff(h->begin_timestamp, h->end_timestamp) == diff;
}

/* Whether one of the entries that were brought together is the log's first, or its last, of the header. */
static void find_ends(const mqi_index_file *f, const mqi_index_header *h, int32_t count, int *begins, int *ends) {
    mqi_index_order order;
    mqi_index_read_order(f, count, &order);
    for (int32_t i = 1; i <= order.sorted && !(*begins && *ends); i++) {
        const uint8_t *entry = mqi_entry_at(f, i);
        int64_t phy_offset = mqi_get64(entry + MQI_ENTRY_PHY_OFFSET);
        *begins |= phy_offset == h->begin_phy_offset;
        *ends |= order.sorted == count - 1 && phy_offset == h->end_phy_offset &&
                 ends_at(h, count, mqi_get32(entry + MQI_ENTRY_TIME_DIFF));
    }
}

static void check_header(const mqi_index_file *f, const mqi_index_header *h, int32_t count, int64_t used,
                         fault_list *list) {
    if (h->index_count < 0 || h->index_count > f->index_num)
        report(list, MQI_FAULT_INDEX_COUNT, -1, MQI_INDEX_COUNT, h->index_count < 0 ? 0 : f->index_num, h->index_count);
    if (h->hash_slot_count != used && h->hash_slot_count != count - 1)
        report(list, MQI_FAULT_HASH_SLOT_COUNT, -1, MQI_HASH_SLOT_COUNT, used, h->hash_slot_count);
    if (count <= 1) return;
    int64_t first = mqi_get64(mqi_entry_at(f, 1) + MQI_ENTRY_PHY_OFFSET);
    int64_t last = mqi_get64(mqi_entry_at(f, count - 1) + MQI_ENTRY_PHY_OFFSET);
    int32_t diff = mqi_get32(mqi_entry_at(f, count - 1) + MQI_ENTRY_TIME_DIFF);
    int begins = h->begin_phy_offset == first;
    int ends = h->end_phy_offset == last && ends_at(h, count, diff);
    if (!begins || !ends) find_ends(f, h, count, &begins, &ends);
    if (!begins) report(list, MQI_FAULT_BEGIN_PHY_OFFSET, -1, MQI_BEGIN_PHY_OFFSET, first, h->begin_phy_offset);
    if (ends) return;
    if (h->end_phy_offset != last)
        report(list, MQI_FAULT_END_PHY_OFFSET, -1, MQI_END_PHY_OFFSET, last, h->end_phy_offset);
    if (!ends_at(h, count, diff)) {
        int64_t expected = mqi_add64(h->begin_timestamp, count == 2 ? 0 : (int64_t)diff * 1000);
        report(list, MQI_FAULT_END_TIMESTAMP, -1, MQI_END_TIMESTAMP, expected, h->end_timestamp);
    }
}

size_t mqi_index_check(const mqi_index_file *f, int32_t *heads, mqi_fault *faults, size_t room) {
    fault_list list = {faults, room, 0};
    mqi_index_header header;
    mqi_index_read_header(f, &header);
    const int32_t count = mqi_index_next(f);
    const size_t entries = MQI_INDEX_HEADER_SIZE + (size_t)MQI_SLOT_SIZE * f->hash_slot_num;
    for (int32_t i = 1; i < count; i++) { /* replay: the head that each entry must have found */
        const uint8_t *entry = mqi_entry_at(f, i);
        if (LIKELY(count - i > MQI_AHEAD)) {
            int32_t later = mqi_get32(entry + MQI_AHEAD * MQI_ENTRY_SIZE + MQI_ENTRY_KEY_HASH);
            __builtin_prefetch(&heads[mqi_slot_of(f, later)], 1, 3);
        }
        int32_t hash = mqi_get32(entry + MQI_ENTRY_KEY_HASH);
        int32_t diff = mqi_get32(entry + MQI_ENTRY_TIME_DIFF);
        int32_t prev = mqi_get32(entry + MQI_ENTRY_PREV_INDEX);
        int32_t *head = &heads[mqi_slot_of(f, hash)];
        if (UNLIKELY(hash < 0 || diff < 0 || prev != *head)) {
            int64_t at = (int64_t)(entries + (size_t)i * MQI_ENTRY_SIZE);
            if (hash < 0) report(&list, MQI_FAULT_KEY_HASH, i, at + MQI_ENTRY_KEY_HASH, 0, hash);
            if (diff < 0) report(&list, MQI_FAULT_TIME_DIFF, i, at + MQI_ENTRY_TIME_DIFF, 0, diff);
            if (prev != *head) report(&list, MQI_FAULT_PREV_INDEX, i, at + MQI_ENTRY_PREV_INDEX, *head, prev);
        }
        *head = i;
    }
    int64_t used = 0;
    for (uint32_t slot = 0; slot < f->hash_slot_num; slot++) {
        int32_t value = mqi_get32(mqi_slot_at(f, slot));
        used += heads[slot] != 0;
        if (UNLIKELY(value != heads[slot])) {
            int outside = value < 0 || value > count;
            report(&list, outside ? MQI_FAULT_SLOT : MQI_FAULT_SLOT_HEAD, slot,
                   MQI_INDEX_HEADER_SIZE + (int64_t)slot * MQI_SLOT_SIZE, heads[slot], value);
        }
    }
    check_header(f, &header, count, used, &list);
    return list.n;
}

/* A head leads to an entry of its slot. One equal to the count is a put that a kill, or this very moment, cut short. */
static inline int head_fits(const mqi_index_file *f, uint32_t slot, int32_t head, int32_t count) {
    if (head < 0 || head >= f->index_num) return 0;
    /* GCOVR_EXCL_BR_START: the second differs from the first only where a put has come in between */
    if (head > count && head > mqi_acquire32(f->base + MQI_INDEX_COUNT)) return 0;
    /* GCOVR_EXCL_BR_STOP */
    int32_t hash = mqi_get32(mqi_entry_at(f, head) + MQI_ENTRY_KEY_HASH);
    return hash >= 0 && mqi_slot_of(f, hash) == slot;
}

static int newest_fit(const mqi_index_file *f, int32_t count, size_t newest) {
    int32_t stop = (size_t)(count - 1) > newest ? count - (int32_t)newest : 1;
    for (int32_t i = count - 1; i >= stop; i--) {
        int32_t hash = mqi_get32(mqi_entry_at(f, i) + MQI_ENTRY_KEY_HASH);
        uint32_t slot = mqi_slot_of(f, hash);
        int32_t head = mqi_acquire32(mqi_slot_at(f, slot));
        if (hash < 0 || head < i || !head_fits(f, slot, head, count)) return 0;
    }
    return 1;
}

int mqi_index_fits(const mqi_index_file *f, size_t newest) {
    const int32_t count = mqi_index_next(f);
    if (newest > 0) return newest_fit(f, count, newest);
    for (uint32_t slot = 0; slot < f->hash_slot_num; slot++) {
        if (LIKELY(f->hash_slot_num - slot > MQI_AHEAD)) {
            uint32_t later = (uint32_t)mqi_get32(mqi_slot_at(f, slot + MQI_AHEAD));
            if (LIKELY(later < (uint32_t)count)) mqi_prefetch_entry(mqi_entry_at(f, (int32_t)later));
        }
        int32_t head = mqi_acquire32(mqi_slot_at(f, slot));
        if (head != 0 && !head_fits(f, slot, head, count)) return 0;
    }
    for (int32_t i = count - 1; i >= 1; i--) { /* each link stays in its slot, so each chain does */
        const uint8_t *entry = mqi_entry_at(f, i);
        if (LIKELY(i > MQI_AHEAD)) {
            uint32_t later = (uint32_t)mqi_get32(entry - MQI_AHEAD * MQI_ENTRY_SIZE + MQI_ENTRY_PREV_INDEX);
            if (LIKELY(later < (uint32_t)count)) mqi_prefetch_entry(mqi_entry_at(f, (int32_t)later));
        }
        int32_t prev = mqi_get32(entry + MQI_ENTRY_PREV_INDEX);
        if (prev == 0) continue;
        int32_t hash = mqi_get32(entry + MQI_ENTRY_KEY_HASH);
        if (prev < 0 || prev >= i || mqi_slot_of(f, hash) != mqi_slot_of(f, mqi_get32(mqi_entry_at(f, prev)))) return 0;
    }
    return 1;
}
