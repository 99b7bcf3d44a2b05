/* Any bytes as the fence and the key filter of an index file: no read outside them, and what is found is an entry of the
 * slot that is asked for. As they were built they give what the slots give. */
#include "input.h"
#include "mqi_crc.h"
#include "mqi_index_cold.h"
#include "mqi_index_put.h"
#include "mqi_index_select.h"
#include "mqi_index_sort.h"
#include "mqi_key_filter.h"

enum { KEYS = 24, MOST = 700, FILES = 3 };

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

/* A filter's bytes after its header: the places of the rows, then these. */
static buffer filter_of(const mqi_filter_part *part, uint32_t rows) {
    const size_t table = (size_t)MQI_ROW_START_SIZE * (rows + 1);
    buffer b = {table + (size_t)part->rows.size, fresh(table + (size_t)part->rows.size)};
    int64_t at = 0;
    for (uint32_t i = 0; i < rows; at += part->lengths[i++]) mqi_set64(b.bytes + (size_t)MQI_ROW_START_SIZE * i, at);
    mqi_set64(b.bytes + table - MQI_ROW_START_SIZE, at);
    HOLDS(at == part->rows.size);
    if (at > 0) memcpy(b.bytes + table, part->rows.data, (size_t)at);
    return b;
}

static void free_part(mqi_filter_part *part) { mqi_buffer_free(&part->rows), free(part->lengths); }

static buffer built_filter(const mqi_index_file *f, int32_t covered, uint32_t seed, int sorted) {
    const uint32_t shift = mqi_filter_shift(f->hash_slot_num, f->index_num);
    const uint32_t rows = mqi_filter_rows(f->hash_slot_num, shift);
    mqi_filter_part part;
    int status = mqi_filter_build(f, covered, shift, 0, rows, seed, mqi_crc32c, &part);
    HOLDS(status == MQI_OK || (status == MQI_FILTER_BAD && !sorted));
    HOLDS(status == MQI_FILTER_BAD || (part.entries == covered) || !sorted);
    buffer b = {0};
    if (status == MQI_OK) b = filter_of(&part, rows);
    free_part(&part);
    return b;
}

/* One filter of the same file several times, from filters of it. */
static buffer woven_filter(const mqi_key_column *columns, uint32_t files, uint32_t seed, int good) {
    const uint32_t rows = columns[0].filter->n, half = rows / 2;
    mqi_filter_part part, tail;
    int status = mqi_filter_weave(columns, files, 0, rows, seed, mqi_crc32c, &part);
    int again = mqi_filter_weave(columns, files, half, rows, seed, mqi_crc32c, &tail);
    HOLDS(!good || (status == MQI_OK && again == MQI_OK));
    buffer b = {0};
    if (status == MQI_OK && again == MQI_OK) {
        b = filter_of(&part, rows);
        HOLDS(memcmp(part.lengths + half, tail.lengths, (rows - half) * sizeof *tail.lengths) == 0);
        HOLDS(memcmp(part.rows.data + part.rows.size - tail.rows.size, tail.rows.data, (size_t)tail.rows.size) == 0);
    }
    free_part(&part), free_part(&tail);
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

static void look_up(const mqi_index_file *f, const mqi_fence *fence, const mqi_key_column *keys, tape *t) {
    int32_t hashes[KEYS], heads[KEYS];
    uint32_t pages[KEYS];
    for (int i = 0; i < KEYS; i++) {
        int32_t number = (int32_t)(tape_number(t, 2) % (uint64_t)f->index_num);
        hashes[i] = i % 2 ? mqi_get32(mqi_entry_at(f, number)) : (int32_t)tape_field(t);
    }
    uint8_t held[(KEYS + 7) / 8] = {0};
    mqi_filter_ask(keys->filter, f, hashes, KEYS, keys->file, 1, held);
    for (int i = 0; i < KEYS; i++)
        HOLDS((held[i / 8] >> i % 8 & 1) == mqi_filter_may_hold(keys, mqi_slot_of(f, hashes[i]), hashes[i]));
    size_t wanted = mqi_cold_pages(f, fence, held, hashes, KEYS, pages);
    HOLDS(mqi_cold_heads(f, fence, hashes, pages, KEYS, wanted, heads) == MQI_OK);
    for (int i = 0; i < KEYS; i++) {
        uint32_t slot = mqi_slot_of(f, hashes[i]), page = mqi_fence_find(fence, slot);
        HOLDS(page == MQI_NO_PAGE || page < fence->pages);
        if (!mqi_filter_may_hold(keys, slot, hashes[i])) page = MQI_NO_PAGE;
        int32_t head = page == MQI_NO_PAGE ? 0 : mqi_fence_head(f, fence, page, slot);
        HOLDS(page == pages[i] && head == heads[i]);
        HOLDS(head >= 0 && head <= fence->covered);
        if (head != 0) /* of its slot, or damaged since the fence was made */
            HOLDS(mqi_slot_of(f, mqi_get32(mqi_entry_at(f, head))) == slot ||
                  (uint32_t)mqi_get32(fence->first_slots + (size_t)page * MQI_FENCE_SLOT_SIZE) == slot);
    }
    select_in_part(f, hashes, NULL, t);
    select_in_part(f, hashes, heads, t);
}

static int load(mqi_key_filter *filter, buffer b, uint32_t files, const mqi_index_file *f, uint32_t seed) {
    return mqi_filter_load(filter, b.bytes, b.size, files, f->hash_slot_num, f->index_num, seed, mqi_crc32c);
}

/* As they were built: alone, and one of several. */
static void search_good(const mqi_index_file *f, const mqi_fence *fence, buffer alone, tape *t) {
    mqi_key_filter one, many;
    HOLDS(load(&one, alone, 1, f, 7) == MQI_OK && mqi_filter_damaged(&one) == one.n);
    mqi_key_column columns[FILES], own = {&one, 0};
    for (int i = 0; i < FILES; i++) columns[i] = own;
    HOLDS(mqi_filter_missing(f, &own, fence->covered) == 0);
    look_up(f, fence, &own, t);
    buffer woven = woven_filter(columns, FILES, 9, 1);
    HOLDS(load(&many, woven, FILES, f, 9) == MQI_OK && mqi_filter_damaged(&many) == many.n);
    int32_t hashes[KEYS];
    uint8_t held[FILES][(KEYS + 7) / 8] = {0};
    for (int n = 0; n < KEYS; n++) hashes[n] = (int32_t)tape_field(t);
    mqi_filter_ask(&many, f, hashes, KEYS, 0, FILES, held[0]);
    for (uint32_t i = 0; i < FILES; i++) {
        mqi_key_column column = {&many, i};
        HOLDS(mqi_filter_missing(f, &column, fence->covered) == 0);
        for (int n = 0; n < KEYS; n++) {
            uint32_t slot = mqi_slot_of(f, hashes[n]);
            HOLDS(mqi_filter_may_hold(&column, slot, hashes[n]) == mqi_filter_may_hold(&own, slot, hashes[n]));
            HOLDS((held[i][n / 8] >> n % 8 & 1) == mqi_filter_may_hold(&own, slot, hashes[n]));
        }
    }
    mqi_filter_free(&one), mqi_filter_free(&many);
    free(woven.bytes);
}

/* Damaged, and given the right checksums, as an enemy would: any answer, and nothing outside is read. */
static void search_damaged(const mqi_index_file *f, const mqi_fence *fence, buffer b, tape *t) {
    mqi_key_filter filter;
    uint32_t files = 1 + tape_byte(t) % FILES;
    damage(t, b);
    if (load(&filter, b, files, f, 7) != MQI_OK) return;
    for (uint32_t i = 0; i < filter.n && tape_byte(t) % 2; i++) {
        uint64_t start = (uint64_t)mqi_get64(filter.starts + 8 * (size_t)i);
        uint64_t stop = (uint64_t)mqi_get64(filter.starts + 8 * (size_t)i + 8);
        if (start > stop || stop > filter.size || stop - start < MQI_ROW_COUNTS) continue;
        uint8_t *row = b.bytes + (b.size - filter.size) + start;
        mqi_set32(row, (int32_t)mqi_crc32c(row + MQI_ROW_COUNTS, stop - start - MQI_ROW_COUNTS, 7 ^ i));
    }
    mqi_key_column keys = {&filter, tape_byte(t) % files}, columns[FILES];
    for (int i = 0; i < FILES; i++) columns[i] = keys;
    look_up(f, fence, &keys, t);
    HOLDS(mqi_filter_damaged(&filter) <= filter.n);
    mqi_filter_missing(f, &keys, fence->covered);
    free(woven_filter(columns, FILES, 9, 0).bytes);
    mqi_filter_free(&filter);
}

/* ---- what no input changes ---------------------------------------------------------------------------------------- */

enum { SLOTS = 100, ENTRIES = 900 };

static mqi_index_file plain_file(uint32_t slots) {
    const size_t size = MQI_INDEX_HEADER_SIZE + MQI_SLOT_SIZE * (size_t)slots + MQI_ENTRY_SIZE * (size_t)ENTRIES;
    mqi_index_file from, to;
    mqi_index_bind(&from, fresh(size), slots, ENTRIES);
    mqi_index_bind(&to, fresh(size), slots, ENTRIES);
    for (int32_t n = 1; n < ENTRIES - 1; n++) HOLDS(mqi_index_put(&from, n * 7919, n, 1000));
    HOLDS(mqi_index_sort(&from, &to) == MQI_OK);
    free(from.base);
    return to;
}

/* A filter of some of the entries finds a first one that it has not; one of more entries lacks none. */
static void filter_of_other_entries(const mqi_index_file *f, mqi_key_filter *filter) {
    const int32_t covered = ENTRIES - 2;
    const mqi_key_column keys = {filter, 0};
    HOLDS(mqi_filter_missing(f, &keys, covered - 1) == 0);
    int found = 0;
    for (int32_t i = 1; i < 20; i++) { /* of its slot, so that the order stays; one of 256 is taken for the other */
        uint8_t *hash = mqi_entry_at(f, i) + MQI_ENTRY_KEY_HASH;
        const int32_t before = mqi_get32(hash);
        mqi_set32(hash, before + SLOTS * (i + 1));
        found += mqi_filter_missing(f, &keys, covered) == i;
        mqi_set32(hash, before);
    }
    HOLDS(found > 10);
}

/* Rows with right checksums, in whose groups no group ends. */
static void groups_without_end(const mqi_index_file *f, buffer b, mqi_key_filter *filter) {
    for (uint32_t i = 0; i < filter->n; i++) {
        const int64_t start = mqi_get64(filter->starts + 8 * (size_t)i);
        const int64_t stop = mqi_get64(filter->starts + 8 * (size_t)i + 8);
        uint8_t *row = b.bytes + (b.size - filter->size) + start;
        const size_t count = (uint16_t)mqi_get16(row + MQI_ROW_COUNTS), head = MQI_ROW_COUNTS + 2;
        memset(row + head + count, 255, (size_t)(stop - start) - head - count);
        mqi_set32(row, (int32_t)mqi_crc32c(row + MQI_ROW_COUNTS, (size_t)(stop - start) - MQI_ROW_COUNTS, 7 ^ i));
    }
    HOLDS(mqi_filter_damaged(filter) == filter->n);
    const mqi_key_column keys = {filter, 0};
    int held = 0;
    for (int32_t i = 1; i < ENTRIES - 1; i++) {
        const int32_t hash = mqi_get32(mqi_entry_at(f, i) + MQI_ENTRY_KEY_HASH);
        held += mqi_filter_may_hold(&keys, mqi_slot_of(f, hash), hash);
    }
    HOLDS(held < ENTRIES - 2);
}

/* What a filter has no row for it may hold; no filter is made of rows that are not there. */
static void filter_of_fewer_slots(mqi_key_filter *filter) {
    const mqi_index_file large = plain_file(SLOTS * 100);
    const mqi_key_column keys = {filter, 0};
    const int32_t hash = SLOTS * 100 - 1;
    uint8_t held = 0;
    HOLDS(mqi_filter_may_hold(&keys, mqi_slot_of(&large, hash), hash));
    mqi_filter_ask(filter, &large, &hash, 1, 0, 1, &held);
    HOLDS(held == 1 && mqi_filter_read_ahead(filter, &large, &hash, 1) == MQI_OK);
    mqi_filter_part part;
    HOLDS(mqi_filter_weave(&keys, 1, 0, filter->n + 1, 9, mqi_crc32c, &part) == MQI_FILTER_BAD);
    free_part(&part), free(large.base);
}

static void fence_of_another_time(const mqi_index_file *f) {
    const int32_t covered = ENTRIES - 2;
    uint8_t header[MQI_INDEX_HEADER_SIZE];
    memcpy(header, f->base, sizeof header);
    HOLDS(mqi_fence_current(f, covered, header) && !mqi_fence_current(f, covered - 1, header));
    header[0] ^= 1;
    HOLDS(!mqi_fence_current(f, covered, header));
    header[0] ^= 1;
    mqi_entry_at(f, covered + 1)[7] = 1; /* a put began */
    HOLDS(!mqi_fence_current(f, covered, header));
    mqi_entry_at(f, covered + 1)[7] = 0;
    const mqi_fence none = {header, 0, covered};
    HOLDS(mqi_fence_pages(f, 0) == 0 && mqi_fence_find(&none, 1) == MQI_NO_PAGE);
}

static void known_cases(void) {
    mqi_index_file f = plain_file(SLOTS);
    mqi_key_filter filter;
    buffer b = built_filter(&f, ENTRIES - 2, 7, 1);
    HOLDS(load(&filter, b, 0, &f, 7) == MQI_FILTER_BAD);
    HOLDS(load(&filter, (buffer){3, b.bytes}, 1, &f, 7) == MQI_FILTER_BAD);
    HOLDS(load(&filter, b, 1, &f, 7) == MQI_OK);
    filter_of_other_entries(&f, &filter);
    filter_of_fewer_slots(&filter);
    fence_of_another_time(&f);
    groups_without_end(&f, b, &filter);
    mqi_filter_free(&filter);
    free(b.bytes), free(f.base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int begun;
    tape t = {data, data + size};
    if (!begun++) known_cases();
    mqi_index_file f = ordered(&t);
    int32_t covered = mqi_index_next(&f) - 1;
    mqi_fence_current(&f, covered, f.base);
    if (covered > 0) {
        uint32_t pages = mqi_fence_pages(&f, covered);
        buffer slots = {(size_t)pages * MQI_FENCE_SLOT_SIZE, fresh((size_t)pages * MQI_FENCE_SLOT_SIZE)};
        mqi_index_order order;
        mqi_index_read_order(&f, covered, &order);
        buffer keys = built_filter(&f, covered, 7, order.sorted == covered);
        mqi_fence_build(&f, covered, slots.bytes);
        mqi_fence fence = {slots.bytes, pages, covered};
        HOLDS(mqi_fence_check(&f, &fence) == MQI_NO_PAGE);
        if (order.sorted == covered) search_good(&f, &fence, keys, &t);
        damage(&t, slots);
        mqi_fence_check(&f, &fence);
        if (keys.size > 0) search_damaged(&f, &fence, keys, &t);
        free(slots.bytes), free(keys.bytes);
    }
    free(f.base);
    return 0;
}
