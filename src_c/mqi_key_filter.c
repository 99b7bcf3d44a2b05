#if defined(__linux__)
#define _GNU_SOURCE /* madvise */
#endif
#include "mqi_key_filter.h"

#include <stdlib.h>

#include "mqi_read_ahead.h"

enum {
    BITS = 14, /* of a number: 6 of its group, 8 that are kept */
    LOW = 8,
    GROUP_BITS = BITS - LOW,
};

static inline uint32_t number_of(uint32_t slot, int32_t key_hash, uint32_t shift) {
    uint64_t h = (uint32_t)key_hash; /* the finalizer of MurmurHash3 */
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    uint32_t inside = slot & ((1U << shift) - 1);
    return inside << (BITS - shift) | (uint32_t)(h >> 32) >> (32 - (BITS - shift));
}

static inline uint64_t bucket_size(uint32_t count) {
    return count == 0 ? 0 : (uint64_t)count + (count + MQI_FILTER_GROUPS + 7) / 8;
}

uint32_t mqi_filter_shift(uint32_t hash_slot_num, int32_t index_num) {
    uint32_t shift = GROUP_BITS;
    while (shift > 0 && (uint64_t)index_num << shift > (uint64_t)MQI_FILTER_GROUPS * hash_slot_num) shift--;
    return shift;
}

uint32_t mqi_filter_rows(uint32_t hash_slot_num, uint32_t shift) { return ((hash_slot_num - 1) >> shift) + 1; }

/* ---- reading -------------------------------------------------------------------------------------------------- */

enum { UNSEEN, GOOD, USELESS };

int mqi_filter_load(mqi_key_filter *filter, const uint8_t *data, uint64_t size, uint32_t files, uint32_t hash_slot_num,
                    int32_t index_num, uint32_t seed, mqi_filter_checksum *crc32c) {
    memset(filter, 0, sizeof *filter);
    filter->shift = mqi_filter_shift(hash_slot_num, index_num);
    filter->n = mqi_filter_rows(hash_slot_num, filter->shift);
    const uint64_t table = ((uint64_t)filter->n + 1) * MQI_ROW_START_SIZE;
    if (files < 1 || size < table) return MQI_FILTER_BAD;
    filter->starts = data;
    filter->rows = data + table;
    filter->size = size - table;
    filter->files = files;
    filter->seed = seed;
    filter->crc32c = crc32c;
    filter->states = calloc(filter->n, sizeof *filter->states);
    return filter->states == NULL ? MQI_NO_MEMORY : MQI_OK;
}

void mqi_filter_free(mqi_key_filter *filter) {
    free(filter->states);
    filter->states = NULL;
}

typedef struct span {
    const uint8_t *at;
    uint64_t size;
} span;

/* Where a row is; a size of 0: not in the file, or too short for its counts. */
static inline span row_of(const mqi_key_filter *filter, uint32_t row) {
    const uint8_t *place = filter->starts + (size_t)row * MQI_ROW_START_SIZE;
    uint64_t start = (uint64_t)mqi_get64(place), stop = (uint64_t)mqi_get64(place + MQI_ROW_START_SIZE);
    uint64_t least = MQI_ROW_COUNTS + 2 * (uint64_t)filter->files;
    if (stop > filter->size || start > stop || stop - start < least) return (span){filter->rows, 0};
    return (span){filter->rows + start, stop - start};
}

typedef struct bucket {
    const uint8_t *lows;
    uint32_t count;
    int inside; /* 0: the row is too short for it */
} bucket;

static inline bucket bucket_of(const mqi_key_filter *filter, span row, uint32_t file) {
    const uint8_t *counts = row.at + MQI_ROW_COUNTS;
    uint64_t at = MQI_ROW_COUNTS + 2 * (uint64_t)filter->files;
    for (uint32_t i = 0; i < file; i++) at += bucket_size((uint16_t)mqi_get16(counts + 2 * (size_t)i));
    uint32_t count = (uint16_t)mqi_get16(counts + 2 * (size_t)file);
    return (bucket){row.at + at, count, at + bucket_size(count) <= row.size};
}

static uint32_t checksum_of(mqi_filter_checksum *crc32c, span row, uint32_t seed, uint32_t number) {
    return crc32c(row.at + MQI_ROW_COUNTS, row.size - MQI_ROW_COUNTS, seed ^ number);
}

/* Whether the buckets are as long as the row. */
static int is_filled(const mqi_key_filter *filter, span row) {
    bucket last = bucket_of(filter, row, filter->files - 1);
    return last.inside && last.lows + bucket_size(last.count) == row.at + row.size;
}

static int look_at(const mqi_key_filter *filter, uint32_t number) { /* two threads at once have the same result */
    span row = row_of(filter, number);
    int state = USELESS;
    if (row.size > 0) {
        if (checksum_of(filter->crc32c, row, filter->seed, number) == (uint32_t)mqi_get32(row.at) &&
            is_filled(filter, row))
            state = GOOD;
    }
    atomic_store_explicit(&filter->states[number], (unsigned char)state, memory_order_relaxed);
    return state;
}

static inline int seen(const mqi_key_filter *filter, uint32_t number) {
    return atomic_load_explicit(&filter->states[number], memory_order_relaxed);
}

static inline int state_of(const mqi_key_filter *filter, uint32_t number) {
    int state = seen(filter, number);
    return UNLIKELY(state == UNSEEN) ? look_at(filter, number) : state;
}

enum { WORD = 64 };

/* 64 bits from bit 64 * `word` on, ones after the last of `size` bytes. */
static inline uint64_t word_of(const uint8_t *bits, uint32_t size, uint32_t word) {
    uint8_t bytes[WORD / 8] = {255, 255, 255, 255, 255, 255, 255, 255};
    const uint32_t at = word * (WORD / 8), left = size - at;
    memcpy(bytes, bits + at, left < sizeof bytes ? left : sizeof bytes);
    return __builtin_bswap64((uint64_t)mqi_get64(bytes));
}

/* The place of the bit after the zero number `n`, counted from 1; the end where there are fewer. */
static inline uint32_t after_zero(const uint8_t *bits, uint32_t size, uint32_t n) {
    const uint64_t each = 0x0101010101010101;
    if (n == 0) return 0;
    for (uint32_t word = 0; word * (WORD / 8) < size; word++) {
        const uint64_t zeros = ~word_of(bits, size, word);
        uint64_t sums = zeros - (zeros >> 1 & 0x5555555555555555); /* of pairs of bits, of four, of bytes */
        sums = (sums & 0x3333333333333333) + (sums >> 2 & 0x3333333333333333);
        sums = ((sums + (sums >> 4)) & 0x0f0f0f0f0f0f0f0f) * each; /* byte i: those of the bytes up to i */
        const uint32_t some = (uint32_t)(sums >> 56);
        if (some >= n) {
            const uint64_t reached = ((sums | 0x80 * each) - n * each) & 0x80 * each;
            const uint32_t shift = (uint32_t)__builtin_ctzll(reached) - 7; /* of the first byte with n of them */
            uint32_t rest = (uint32_t)(zeros >> shift) & 0xff;
            for (n -= (uint32_t)(sums << 8 >> shift) & 0xff; n > 1; n--) rest &= rest - 1;
            return word * WORD + shift + (uint32_t)__builtin_ctz(rest) + 1;
        }
        n -= some;
    }
    return 8 * size;
}

static inline int holds(bucket b, uint32_t number) {
    if (b.count == 0 || memchr(b.lows, (uint8_t)number, b.count) == NULL) return 0; /* most keys that are not there */
    const uint8_t *bits = b.lows + b.count;
    const uint32_t group = number >> LOW, size = (b.count + MQI_FILTER_GROUPS + 7) / 8;
    uint32_t at = after_zero(bits, size, group);
    for (; at < 8 * size && (bits[at / 8] >> at % 8 & 1) && at - group < b.count; at++)
        if (b.lows[at - group] == (uint8_t)number) return 1;
    return 0;
}

/* The bucket of a row; 0: the row is damaged, or somebody writes to the file, and it may hold everything. */
static inline int find_bucket(const mqi_key_column *keys, uint32_t number, bucket *b) {
    const mqi_key_filter *filter = keys->filter;
    if (UNLIKELY(number >= filter->n) || UNLIKELY(state_of(filter, number) == USELESS)) return 0;
    span row = row_of(filter, number);
    if (UNLIKELY(row.size == 0)) return 0;
    *b = bucket_of(filter, row, keys->file);
    return b->inside;
}

int mqi_filter_may_hold(const mqi_key_column *keys, uint32_t slot, int32_t key_hash) {
    const uint32_t shift = keys->filter->shift, number = slot >> shift;
    bucket b;
    if (number < keys->filter->n && seen(keys->filter, number) == UNSEEN) { /* by itself: no neighbour is needed */
        span row = row_of(keys->filter, number);
        mqi_read_ahead(row.at, row.size);
    }
    return !find_bucket(keys, number, &b) || holds(b, number_of(slot, key_hash, shift));
}

/* The bits of one key for the files [first, first + files), each `stride` bytes after the one before. */
static void ask_row(const mqi_key_filter *filter, span row, uint32_t number, uint32_t first, uint32_t files,
                    uint8_t *held, size_t stride, uint8_t bit) {
    const uint8_t *counts = row.at + MQI_ROW_COUNTS;
    uint64_t at = MQI_ROW_COUNTS + 2 * (uint64_t)filter->files;
    for (uint32_t i = 0; i < first + files; i++) {
        const uint32_t count = (uint16_t)mqi_get16(counts + 2 * (size_t)i);
        const uint64_t size = bucket_size(count);
        if (i >= first) {
            bucket b = {row.at + at, count, at + size <= row.size};
            if (!b.inside || holds(b, number)) held[(i - first) * stride] |= bit;
        }
        at += size;
    }
}

void mqi_filter_ask(const mqi_key_filter *filter, const mqi_index_file *f, const int32_t *key_hashes, size_t n,
                    uint32_t first, uint32_t files, uint8_t *held) {
    const size_t stride = mqi_filter_stride(n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t slot = mqi_slot_of(f, key_hashes[i]), at = slot >> filter->shift;
        const uint8_t bit = (uint8_t)(1U << i % 8);
        span row = {filter->rows, 0};
        if (LIKELY(at < filter->n) && LIKELY(state_of(filter, at) != USELESS)) row = row_of(filter, at);
        if (LIKELY(row.size > 0)) {
            ask_row(filter, row, number_of(slot, key_hashes[i], filter->shift), first, files, held + i / 8, stride,
                    bit);
        } else { /* damaged, or somebody writes to the file */
            for (uint32_t file = 0; file < files; file++) held[file * stride + i / 8] |= bit;
        }
    }
}

uint32_t mqi_filter_damaged(mqi_key_filter *filter) {
    uint32_t i = 0;
    while (i < filter->n && look_at(filter, i) == GOOD) i++;
    return i;
}

int mqi_filter_read_ahead(mqi_key_filter *filter, const mqi_index_file *f, const int32_t *key_hashes, size_t n) {
    uint64_t *wanted = calloc(filter->n / WORD + 1, sizeof *wanted);
    if (wanted == NULL) return MQI_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        uint32_t row = mqi_slot_of(f, key_hashes[i]) >> filter->shift;
        if (row < filter->n && seen(filter, row) == UNSEEN) wanted[row / WORD] |= 1ULL << row % WORD;
    }
    span run = {filter->rows, 0};
    for (uint32_t word = 0; word <= filter->n / WORD; word++) {
        for (uint64_t some = wanted[word]; some; some &= some - 1) {
            span row = row_of(filter, word * WORD + (uint32_t)__builtin_ctzll(some));
            if (row.at <= run.at + run.size + MQI_INDEX_PAGE && row.at >= run.at) {
                run.size = (uint64_t)(row.at + row.size - run.at);
            } else {
                mqi_read_ahead(run.at, run.size);
                run = row;
            }
        }
    }
    mqi_read_ahead(run.at, run.size);
    free(wanted);
    return MQI_OK;
}

/* ---- building ------------------------------------------------------------------------------------------------- */

static inline int32_t hash_at(const mqi_index_file *f, int32_t number) {
    return mqi_get32(mqi_entry_at(f, number) + MQI_ENTRY_KEY_HASH);
}

/* The first entry of this slot or of a later one. */
static int32_t first_of(const mqi_index_file *f, int32_t covered, uint64_t slot) {
    int32_t low = 1;
    for (int32_t n = covered; n > 0;) {
        int32_t half = n / 2;
        if (mqi_slot_of(f, hash_at(f, low + half)) < slot) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

enum {
    WORDS = MQI_FILTER_NUMBERS / WORD,
    GROUP_WORDS = WORDS / MQI_FILTER_GROUPS,
    MOST_IN_BUCKET = MQI_FILTER_NUMBERS * 9 / 8 + MQI_FILTER_GROUPS / 8, /* bytes */
};

typedef struct numbers { /* of one row */
    uint64_t bits[WORDS];
    uint64_t used[WORDS / WORD]; /* of these words those that are not 0 */
} numbers;

static inline void add_number(numbers *set, uint32_t number) {
    const uint32_t word = number / WORD;
    set->bits[word] |= 1ULL << number % WORD;
    set->used[word / WORD] |= 1ULL << word % WORD;
}

/* Writes a bucket of the numbers of so many entries, and empties the set; returns how many these were. */
static uint32_t write_bucket(numbers *set, int32_t entries, uint8_t out[MOST_IN_BUCKET]) {
    const uint32_t most = entries < MQI_FILTER_NUMBERS ? (uint32_t)entries : MQI_FILTER_NUMBERS;
    uint32_t count = 0;
    uint8_t groups[(MQI_FILTER_NUMBERS + MQI_FILTER_GROUPS) / 8];
    memset(groups, 0, (most + MQI_FILTER_GROUPS + 7) / 8);
    for (uint32_t i = 0; i < WORDS / WORD; i++) {
        for (uint64_t used = set->used[i]; used; used &= used - 1) {
            const uint32_t word = i * WORD + (uint32_t)__builtin_ctzll(used);
            uint64_t some = set->bits[word];
            do { /* mostly once */
                const uint32_t bit = count + word / GROUP_WORDS;
                groups[bit / 8] |= (uint8_t)(1U << bit % 8);
                out[count++] = (uint8_t)(word % GROUP_WORDS * WORD + (uint32_t)__builtin_ctzll(some));
            } while (some &= some - 1);
            set->bits[word] = 0;
        }
        set->used[i] = 0;
    }
    if (count > 0) memcpy(out + count, groups, (count + MQI_FILTER_GROUPS + 7) / 8);
    return count;
}

/* The checksum of a row that ends where the buffer does, and its length. */
static void end_row(mqi_filter_part *part, int64_t start, uint32_t first, uint32_t number, uint32_t seed,
                    mqi_filter_checksum *crc32c) {
    span row = {part->rows.data + start, (uint64_t)(part->rows.size - start)};
    mqi_set32(part->rows.data + start, (int32_t)checksum_of(crc32c, row, seed, number));
    part->lengths[number - first] = (uint32_t)row.size;
}

static int begin_part(mqi_filter_part *part, uint32_t rows) {
    memset(part, 0, sizeof *part);
    part->lengths = malloc((rows > 0 ? rows : 1) * sizeof *part->lengths);
    return part->lengths != NULL;
}

int mqi_filter_build(const mqi_index_file *f, int32_t covered, uint32_t shift, uint32_t first, uint32_t stop,
                     uint32_t seed, mqi_filter_checksum *crc32c, mqi_filter_part *part) {
    enum { HEAD = MQI_ROW_COUNTS + 2 };
    if (!begin_part(part, stop - first)) return MQI_NO_MEMORY;
    numbers set = {0};
    int32_t entry = first_of(f, covered, (uint64_t)first << shift);
    uint32_t last = 0;
    const int32_t begin = entry;
    for (uint32_t number = first; number < stop; number++) {
        const int64_t start = part->rows.size;
        const int32_t before = entry;
        for (; entry <= covered; entry++) {
            const int32_t hash = hash_at(f, entry);
            const uint32_t slot = mqi_slot_of(f, hash);
            if (slot >> shift > number) break;
            if (UNLIKELY(slot < last)) return MQI_FILTER_BAD;
            last = slot;
            add_number(&set, number_of(slot, hash, shift));
        }
        if (!mqi_buffer_reserve(&part->rows, HEAD + MOST_IN_BUCKET)) return MQI_NO_MEMORY;
        uint8_t *row = part->rows.data + start;
        uint32_t count = write_bucket(&set, entry - before, row + HEAD);
        mqi_set16(row + MQI_ROW_COUNTS, (int16_t)count);
        part->rows.size += (int64_t)(HEAD + bucket_size(count));
        end_row(part, start, first, number, seed, crc32c);
    }
    part->entries = entry - begin;
    return MQI_OK;
}

int mqi_filter_weave(const mqi_key_column *columns, uint32_t files, uint32_t first, uint32_t stop, uint32_t seed,
                     mqi_filter_checksum *crc32c, mqi_filter_part *part) {
    const int64_t head = MQI_ROW_COUNTS + 2 * (int64_t)files;
    if (!begin_part(part, stop - first)) return MQI_NO_MEMORY;
    for (uint32_t number = first; number < stop; number++) {
        const int64_t start = part->rows.size;
        if (!mqi_buffer_reserve(&part->rows, head)) return MQI_NO_MEMORY;
        part->rows.size += head;
        for (uint32_t i = 0; i < files; i++) {
            const mqi_key_filter *from = columns[i].filter;
            if (number >= from->n || state_of(from, number) != GOOD) return MQI_FILTER_BAD;
            span row = row_of(from, number);
            bucket b = row.size > 0 ? bucket_of(from, row, columns[i].file) : (bucket){0};
            if (!b.inside) return MQI_FILTER_BAD;
            const size_t size = bucket_size(b.count);
            if (size > 0 && !mqi_buffer_reserve(&part->rows, (int64_t)size)) return MQI_NO_MEMORY;
            uint8_t *data = part->rows.data;
            mqi_set16(data + start + MQI_ROW_COUNTS + 2 * (int64_t)i, (int16_t)b.count);
            if (size > 0) memcpy(data + part->rows.size, b.lows, size);
            part->rows.size += (int64_t)size;
        }
        end_row(part, start, first, number, seed, crc32c);
    }
    return MQI_OK;
}

int32_t mqi_filter_missing(const mqi_index_file *f, const mqi_key_column *keys, int32_t covered) {
    const uint32_t shift = keys->filter->shift;
    numbers set = {0};
    uint8_t own[MOST_IN_BUCKET];
    for (int32_t entry = 1; entry <= covered;) {
        const int32_t begin = entry;
        const uint32_t number = mqi_slot_of(f, hash_at(f, begin)) >> shift;
        for (; entry <= covered; entry++) {
            const uint32_t slot = mqi_slot_of(f, hash_at(f, entry));
            if (slot >> shift != number) break;
            add_number(&set, number_of(slot, hash_at(f, entry), shift));
        }
        const uint32_t count = write_bucket(&set, entry - begin, own);
        bucket b;
        if (!find_bucket(keys, number, &b)) continue;
        if (count == b.count && memcmp(own, b.lows, bucket_size(count)) == 0) continue;
        for (int32_t i = begin; i < entry; i++) /* it may still hold them */
            if (!holds(b, number_of(mqi_slot_of(f, hash_at(f, i)), hash_at(f, i), shift))) return i;
    }
    return 0;
}
