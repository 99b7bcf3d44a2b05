/* Any bytes as the fence and the key filter of an index file: no read outside them, and what is found is an entry of the
 * slot that is asked for. As they were built they give what the slots give. */
#include "input.h"
#include "mqi_crc.h"
#include "mqi_index_cold.h"
#include "mqi_index_put.h"
#include "mqi_index_select.h"
#include "mqi_index_sort.h"

enum { KEYS = 24, MOST = 700, PARTITIONS = 4 };

typedef struct {
    size_t size;
    uint8_t *bytes;
} buffer;

static mqi_index_file make(tape *t, uint32_t slots, int32_t entries) {
    mqi_index_file f;
    size_t size = MQI_INDEX_HEADER_SIZE + MQI_SLOT_SIZE * (size_t)slots + MQI_ENTRY_SIZE * (size_t)entries;
    mqi_index_bind(&f, fresh(size), slots, entries);
    return tape_byte(t) % 4 ? f : (tape_copy(t, f.base, size), f);
}

/* Sorted where it can be, then perhaps damaged. */
static mqi_index_file ordered(tape *t) {
    uint32_t slots = 1 + (uint32_t)tape_number(t, 2) % 300, turn = tape_byte(t);
    int32_t entries = 2 + (int32_t)(tape_number(t, 2) % MOST);
    mqi_index_file from = make(t, slots, entries), to;
    for (int n = (int)(tape_number(t, 2) % MOST); n > 0; n--)
        mqi_index_put(&from, (int32_t)((turn = turn * 1103515245 + 12345) >> 1), n, n * 1000);
    size_t size = (size_t)(mqi_entry_at(&from, entries) - from.base);
    mqi_index_bind(&to, fresh(size), slots, entries);
    if (mqi_index_sort(&from, &to) != MQI_OK) memcpy(to.base, from.base, size);
    free(from.base);
    for (int n = tape_byte(t) % 3; n > 0; n--) {
        size_t at = tape_number(t, 3) % (size - 3);
        mqi_set32(to.base + at, (int32_t)tape_field(t));
    }
    return to;
}

static buffer built_filter(const mqi_index_file *f, int32_t covered) {
    mqi_fingerprints made;
    HOLDS(mqi_filter_cut(f, covered, 1) == covered + 1);
    HOLDS(mqi_filter_build(f, 1, covered + 1, &made) == MQI_OK);
    buffer b = {MQI_PARTITION_SIZE + made.size, fresh(MQI_PARTITION_SIZE + made.size)};
    mqi_set32(b.bytes + MQI_PARTITION_SEGMENT_LENGTH, (int32_t)made.segment_length);
    mqi_set32(b.bytes + MQI_PARTITION_SEGMENT_COUNT, (int32_t)made.segment_count);
    mqi_set32(b.bytes + MQI_PARTITION_SEED, (int32_t)made.seed);
    mqi_set32(b.bytes + MQI_PARTITION_CHECKSUM, (int32_t)mqi_crc32c(made.bytes, made.size, 0));
    if (made.size) memcpy(b.bytes + MQI_PARTITION_SIZE, made.bytes, made.size);
    free(made.bytes);
    return b;
}

static void damage(tape *t, buffer b) {
    for (int n = tape_byte(t) % 4; n > 0 && b.size > 3; n--)
        mqi_set32(b.bytes + tape_number(t, 2) % (b.size - 3), (int32_t)tape_field(t));
}

/* A file that is read page by page, as look-ups ask for them, gives the answers of the whole one. */
static void select_in_part(const mqi_index_file *f, const int32_t *hashes, const int32_t *heads, tape *t) {
    const size_t size = (size_t)(mqi_entry_at(f, f->index_num) - f->base);
    const size_t pages = (size + MQI_INDEX_PAGE - 1) / MQI_INDEX_PAGE;
    const int64_t begin = tape_byte(t) * 500, end = tape_byte(t) % 2 ? INT64_MAX : begin + 100000;
    const int64_t max_num = tape_byte(t) % 4 ? 64 : tape_byte(t) % 3;
    uint8_t *present = fresh(pages);
    uint32_t missing[KEYS];
    int64_t some[KEYS + 1], all[KEYS + 1];
    mqi_hits in_part = {0}, whole = {0};
    mqi_index_file part;
    mqi_index_bind(&part, fresh(size), f->hash_slot_num, f->index_num);
    size_t n = 1, rounds = 0;
    for (missing[0] = 0; n > 0; rounds++) {
        for (size_t i = 0; i < n; i++) {
            const size_t at = (size_t)missing[i] * MQI_INDEX_PAGE;
            HOLDS(missing[i] < pages);
            memcpy(part.base + at, f->base + at, size - at < MQI_INDEX_PAGE ? size - at : MQI_INDEX_PAGE);
            present[missing[i]] = 1;
        }
        n = mqi_index_pages_missing(&part, present, hashes, heads, NULL, max_num, KEYS, begin, end, missing);
        for (size_t i = 0; i < n; i++) HOLDS(!present[missing[i]]);
    }
    HOLDS(rounds <= pages);
    HOLDS(mqi_index_select_many(f, hashes, heads, NULL, max_num, KEYS, begin, end, all, &whole) == MQI_OK);
    HOLDS(mqi_index_select_many(&part, hashes, heads, NULL, max_num, KEYS, begin, end, some, &in_part) == MQI_OK);
    HOLDS(memcmp(all, some, sizeof all) == 0);
    HOLDS(all[KEYS] == 0 || memcmp(whole.values, in_part.values, (size_t)all[KEYS] * sizeof *whole.values) == 0);
    free(whole.values), free(in_part.values), free(part.base), free(present);
}

static void look_up(const mqi_index_file *f, const mqi_fence *fence, mqi_key_filter *filter, tape *t) {
    int32_t hashes[KEYS], heads[KEYS];
    uint32_t pages[KEYS];
    for (int i = 0; i < KEYS; i++) {
        int32_t number = (int32_t)(tape_number(t, 2) % (uint64_t)f->index_num);
        hashes[i] = i % 2 ? mqi_get32(mqi_entry_at(f, number)) : (int32_t)tape_field(t);
    }
    size_t wanted = mqi_cold_pages(f, fence, filter, hashes, KEYS, pages);
    HOLDS(mqi_cold_heads(f, fence, hashes, pages, KEYS, wanted, heads) == MQI_OK);
    for (int i = 0; i < KEYS; i++) {
        uint32_t slot = mqi_slot_of(f, hashes[i]), page = mqi_fence_find(fence, slot);
        HOLDS(page == MQI_NO_PAGE || page < fence->pages);
        if (!mqi_filter_may_hold(filter, slot, hashes[i])) page = MQI_NO_PAGE;
        int32_t head = page == MQI_NO_PAGE ? 0 : mqi_fence_head(f, fence, page, slot);
        HOLDS(page == pages[i] && head == heads[i]);
        HOLDS(head >= 0 && head <= fence->covered);
        HOLDS(head == 0 || mqi_slot_of(f, mqi_get32(mqi_entry_at(f, head))) == slot);
    }
    select_in_part(f, hashes, NULL, t);
    select_in_part(f, hashes, heads, t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tape t = {data, data + size};
    mqi_index_file f = ordered(&t);
    int32_t covered = mqi_index_next(&f) - 1;
    mqi_fence_current(&f, covered, f.base);
    if (covered > 0) {
        uint32_t pages = mqi_fence_pages(&f, covered);
        buffer slots = {(size_t)pages * MQI_FENCE_SLOT_SIZE, fresh((size_t)pages * MQI_FENCE_SLOT_SIZE)};
        buffer keys = built_filter(&f, covered);
        mqi_fence_build(&f, covered, slots.bytes);
        mqi_fence fence = {slots.bytes, pages, covered};
        mqi_key_filter filter;
        HOLDS(mqi_fence_check(&f, &fence) == MQI_NO_PAGE);
        HOLDS(mqi_filter_load(&filter, keys.bytes, keys.size, 1, f.hash_slot_num, mqi_crc32c) == MQI_OK);
        HOLDS(mqi_filter_missing(&f, &filter, covered) == 0 && mqi_filter_damaged(&filter) == 1);
        look_up(&f, &fence, &filter, &t);
        mqi_filter_free(&filter);
        damage(&t, slots);
        damage(&t, keys);
        uint32_t n = tape_byte(&t) % PARTITIONS;
        mqi_fence_check(&f, &fence);
        if (mqi_filter_load(&filter, keys.bytes, keys.size, n, f.hash_slot_num, mqi_crc32c) == MQI_OK) {
            look_up(&f, &fence, &filter, &t);
            HOLDS(mqi_filter_damaged(&filter) <= n);
            mqi_filter_missing(&f, &filter, covered);
            mqi_filter_free(&filter);
        }
        free(slots.bytes), free(keys.bytes);
    }
    free(f.base);
    return 0;
}
