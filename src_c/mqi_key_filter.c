#if defined(__linux__)
#define _GNU_SOURCE /* madvise */
#endif
#include "mqi_key_filter.h"

#include <stdlib.h>

#include "mqi_read_ahead.h"

enum {
    ARITY = 3,
    LONGEST = 1 << 18, /* segment */
    SEEDS = 64,        /* tried; each fails seldom */
};

static inline uint64_t mix(uint32_t key_hash, uint32_t seed) { /* the finalizer of MurmurHash3 */
    uint64_t h = (uint64_t)seed << 32 | key_hash;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

static inline uint8_t fingerprint_of(uint64_t h) { return (uint8_t)(h ^ h >> 32); }

/* Three places in three neighbouring segments; h decides all. */
static inline void places_of(uint64_t h, uint32_t length, uint32_t count, uint32_t place[ARITY]) {
    uint32_t mask = length - 1;
    place[0] = (uint32_t)((h >> 32) * ((uint64_t)count * length) >> 32);
    place[1] = (place[0] + length) ^ ((uint32_t)(h >> 18) & mask);
    place[2] = (place[0] + 2 * length) ^ ((uint32_t)h & mask);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

enum { UNSEEN, GOOD, USELESS };

static int load_partition(mqi_key_filter *filter, uint32_t i, const uint8_t *record) {
    mqi_partition *p = &filter->partitions[i];
    uint32_t first = (uint32_t)mqi_get32(record + MQI_PARTITION_FIRST_SLOT);
    uint64_t start = (uint64_t)mqi_get64(record + MQI_PARTITION_START);
    p->segment_length = (uint32_t)mqi_get32(record + MQI_PARTITION_SEGMENT_LENGTH);
    p->segment_count = (uint32_t)mqi_get32(record + MQI_PARTITION_SEGMENT_COUNT);
    p->seed = (uint32_t)mqi_get32(record + MQI_PARTITION_SEED);
    p->checksum = (uint32_t)mqi_get32(record + MQI_PARTITION_CHECKSUM);
    filter->first_slots[i] = first;
    if (i == 0 ? first != 0 : first <= filter->first_slots[i - 1]) return 0;
    if (p->segment_length == 0) {
        atomic_init(&p->state, USELESS);
        return 1;
    }
    atomic_init(&p->state, UNSEEN);
    if (p->segment_length > LONGEST || (p->segment_length & (p->segment_length - 1)) != 0) return 0;
    if (p->segment_count < 1 || p->segment_count > INT32_MAX / LONGEST - ARITY) return 0;
    uint64_t size = (uint64_t)(p->segment_count + ARITY - 1) * p->segment_length;
    if (start > filter->size || size > filter->size - start) return 0;
    p->fingerprints = filter->fingerprints + start;
    return 1;
}

int mqi_filter_load(mqi_key_filter *filter, const uint8_t *data, size_t size, uint32_t n, uint32_t hash_slot_num,
                    mqi_filter_checksum *crc32c) {
    memset(filter, 0, sizeof *filter);
    if (n < 1 || n > hash_slot_num || n > size / MQI_PARTITION_SIZE) return MQI_FILTER_BAD;
    const size_t table = (size_t)n * MQI_PARTITION_SIZE;
    filter->n = n;
    filter->fingerprints = data + table;
    filter->size = size - table;
    filter->crc32c = crc32c;
    filter->partitions = malloc(n * sizeof *filter->partitions);
    filter->first_slots = malloc(n * sizeof *filter->first_slots);
    int status = filter->partitions == NULL || filter->first_slots == NULL ? MQI_NO_MEMORY : MQI_OK;
    for (uint32_t i = 0; i < n && status == MQI_OK; i++)
        if (!load_partition(filter, i, data + (size_t)i * MQI_PARTITION_SIZE)) status = MQI_FILTER_BAD;
    if (status != MQI_OK) mqi_filter_free(filter);
    return status;
}

void mqi_filter_free(mqi_key_filter *filter) {
    free(filter->partitions);
    free(filter->first_slots);
    filter->partitions = NULL;
    filter->first_slots = NULL;
    filter->n = 0;
}

static inline mqi_partition *partition_of(const mqi_key_filter *filter, uint32_t slot) {
    uint32_t low = 0;
    for (uint32_t n = filter->n; n > 1;) {
        uint32_t half = n / 2;
        low += filter->first_slots[low + half] <= slot ? half : 0;
        n -= half;
    }
    return &filter->partitions[low];
}

static int look_at(const mqi_key_filter *filter, mqi_partition *p) { /* two threads at once have the same result */
    size_t size = (size_t)(p->segment_count + ARITY - 1) * p->segment_length;
    mqi_read_ahead(p->fingerprints, size);
    int state = filter->crc32c(p->fingerprints, size, 0) == p->checksum ? GOOD : USELESS;
    atomic_store_explicit(&p->state, state, memory_order_relaxed);
    return state;
}

int mqi_filter_may_hold(mqi_key_filter *filter, uint32_t slot, int32_t key_hash) {
    mqi_partition *p = partition_of(filter, slot);
    int state = atomic_load_explicit(&p->state, memory_order_relaxed);
    if (UNLIKELY(state == UNSEEN)) state = look_at(filter, p);
    if (UNLIKELY(state == USELESS)) return 1;
    uint64_t h = mix((uint32_t)key_hash, p->seed);
    uint32_t place[ARITY];
    places_of(h, p->segment_length, p->segment_count, place);
    const uint8_t *bytes = p->fingerprints;
    return (uint8_t)(bytes[place[0]] ^ bytes[place[1]] ^ bytes[place[2]]) == fingerprint_of(h);
}

uint32_t mqi_filter_damaged(mqi_key_filter *filter) {
    uint32_t i = 0;
    while (i < filter->n &&
           (filter->partitions[i].segment_length == 0 || look_at(filter, &filter->partitions[i]) == GOOD))
        i++;
    return i;
}

void mqi_filter_read_ahead(const mqi_key_filter *filter) {
    if (filter->size > 0) mqi_read_ahead(filter->fingerprints, filter->size);
}

/* ---- building ------------------------------------------------------------------------------------------------- */

static inline int32_t hash_at(const mqi_index_file *f, int32_t number) {
    return mqi_get32(mqi_entry_at(f, number) + MQI_ENTRY_KEY_HASH);
}

int32_t mqi_filter_cut(const mqi_index_file *f, int32_t covered, int32_t first) {
    if (covered - first < MQI_FILTER_ENTRIES) return covered + 1;
    int32_t stop = first + MQI_FILTER_ENTRIES;
    uint32_t last = mqi_slot_of(f, hash_at(f, stop - 1));
    while (stop <= covered && mqi_slot_of(f, hash_at(f, stop)) == last) stop++;
    return stop;
}

enum { DIGIT = 11, DIGITS = 3, BUCKETS = 1 << DIGIT };

/* Sorts by three passes of 11 bits; `keys` and `spare` have n places each. The result is in `spare`. */
static void sort_keys(uint32_t *keys, uint32_t *spare, size_t n) {
    for (int digit = 0; digit < DIGITS; digit++) {
        uint32_t at[BUCKETS] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++) at[keys[i] >> (digit * DIGIT) & (BUCKETS - 1)]++;
        for (int b = 0; b < BUCKETS; b++) {
            uint32_t here = at[b];
            at[b] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++) spare[at[keys[i] >> (digit * DIGIT) & (BUCKETS - 1)]++] = keys[i];
        uint32_t *other = keys;
        keys = spare;
        spare = other;
    }
}

/* n >= 1 */
static size_t distinct(uint32_t *keys, size_t n) {
    size_t kept = 1;
    for (size_t i = 1; i < n; i++)
        if (keys[i] != keys[i - 1]) keys[kept++] = keys[i];
    return kept;
}

/* Segments as the paper has them: their length 2^floor(log_3.33(n) + 2.25), and places for n * (0.875 + 0.25 *
 * log(10^6) / log(n)) keys, at least 1.125 * n. */
static void shape(size_t n, mqi_fingerprints *made) {
    uint32_t length = 1;
    double power = 0.0667 * 3.33;
    while (power <= (double)n && length < LONGEST) {
        power *= 3.33;
        length *= 2;
    }
    double bits = 0; /* log2(n), to a line between the powers of two */
    size_t rest = n;
    for (; rest >= 2; rest /= 2) bits++;
    bits += (double)n / (double)((size_t)1 << (unsigned)bits) - 1;
    double factor = bits < 1 ? 1.125 : 0.875 + 0.25 * 19.93 / bits;
    if (factor < 1.125) factor = 1.125;
    size_t segments = ((size_t)((double)n * factor) + length) / length;
    made->segment_length = length;
    made->segment_count = segments > ARITY - 1 ? (uint32_t)segments - (ARITY - 1) : 1;
    made->size = (size_t)(made->segment_count + ARITY - 1) * length;
}

static inline uint32_t segment_of(uint64_t h, const mqi_fingerprints *made) { /* of its first place */
    return (uint32_t)((h >> 32) * made->segment_count >> 32);
}

typedef struct table { /* for each place: the keys that have it, combined */
    uint64_t *hashes;  /* exclusive or of their h */
    uint8_t *counts;   /* 4 * number, and the exclusive or of which of its three places this one is for each */
    uint32_t *alone;   /* places that only one key has */
    uint64_t *order;   /* h of the keys: by segment, then in the order in which they were taken out */
    uint8_t *which;    /* the place that is theirs alone then */
    uint32_t *starts;  /* for each segment where its keys begin in `order` */
} table;

/* Neighbours in `order` have places near each other, which are then in the cache. */
static void order_by_segment(const uint32_t *keys, size_t n, const mqi_fingerprints *made, const table *t) {
    memset(t->starts, 0, made->segment_count * sizeof *t->starts);
    for (size_t i = 0; i < n; i++) t->starts[segment_of(mix(keys[i], made->seed), made)]++;
    uint32_t sum = 0;
    for (uint32_t segment = 0; segment < made->segment_count; segment++) {
        uint32_t here = t->starts[segment];
        t->starts[segment] = sum;
        sum += here;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t h = mix(keys[i], made->seed);
        t->order[t->starts[segment_of(h, made)]++] = h;
    }
}

/* Removes the keys one by one, each at a place where it is the only one left; 0: some remain, try another seed. */
static int peel(const uint32_t *keys, size_t n, const mqi_fingerprints *made, const table *t) {
    uint32_t place[ARITY];
    memset(t->hashes, 0, made->size * sizeof *t->hashes);
    memset(t->counts, 0, made->size);
    order_by_segment(keys, n, made, t);
    for (size_t i = 0; i < n; i++) {
        uint64_t h = t->order[i];
        places_of(h, made->segment_length, made->segment_count, place);
        for (unsigned j = 0; j < ARITY; j++) {
            t->hashes[place[j]] ^= h;
            if (UNLIKELY(t->counts[place[j]] >= 252)) return 0;
            t->counts[place[j]] = (uint8_t)((t->counts[place[j]] + 4) ^ j);
        }
    }
    size_t waiting = 0, taken = 0;
    for (size_t i = 0; i < made->size; i++) {
        t->alone[waiting] = (uint32_t)i;
        waiting += t->counts[i] >> 2 == 1;
    }
    while (waiting > 0 && taken < n) {
        uint32_t at = t->alone[--waiting];
        if (t->counts[at] >> 2 != 1) continue; /* its key was removed by another of its places */
        uint64_t h = t->hashes[at];
        unsigned own = t->counts[at] & 3;
        t->order[taken] = h;
        t->which[taken++] = (uint8_t)own;
        places_of(h, made->segment_length, made->segment_count, place);
        for (unsigned j = 0; j < ARITY; j++) {
            uint32_t other = place[j];
            t->hashes[other] ^= h;
            t->counts[other] = (uint8_t)((t->counts[other] - 4) ^ j);
            t->alone[waiting] = other;
            waiting += t->counts[other] >> 2 == 1;
        }
    }
    return taken == n;
}

/* The last key removed is written first: no key before it needs the place that is its own. */
static void write_fingerprints(const table *t, size_t n, mqi_fingerprints *made) {
    uint32_t place[ARITY];
    memset(made->bytes, 0, made->size);
    while (n-- > 0) {
        places_of(t->order[n], made->segment_length, made->segment_count, place);
        uint8_t *b = made->bytes;
        uint8_t rest = (uint8_t)(b[place[0]] ^ b[place[1]] ^ b[place[2]]); /* its own is still 0 */
        b[place[t->which[n]]] = fingerprint_of(t->order[n]) ^ rest;
    }
}

static int fuse(const uint32_t *keys, size_t n, mqi_fingerprints *made) {
    table t = {0};
    shape(n, made);
    made->bytes = malloc(made->size);
    t.hashes = malloc(made->size * sizeof *t.hashes);
    t.counts = malloc(made->size);
    t.alone = malloc((made->size + ARITY) * sizeof *t.alone);
    t.order = calloc(n, sizeof *t.order); /* zeros, as an analyzer does not see that every place is written */
    t.which = malloc(n);
    t.starts = malloc(made->segment_count * sizeof *t.starts);
    int peeled = 0, enough = made->bytes && t.hashes && t.counts && t.alone && t.order && t.which && t.starts;
    for (made->seed = 0; enough && made->seed < SEEDS && !peeled; made->seed += !peeled)
        peeled = peel(keys, n, made, &t);
    if (peeled) write_fingerprints(&t, n, made);
    free(t.hashes), free(t.counts), free(t.alone), free(t.order), free(t.which), free(t.starts);
    if (peeled) return MQI_OK;
    free(made->bytes);
    memset(made, 0, sizeof *made);
    return enough ? MQI_OK : MQI_NO_MEMORY;
}

int mqi_filter_build(const mqi_index_file *f, int32_t first, int32_t stop, mqi_fingerprints *made) {
    const size_t n = first < stop ? (size_t)(stop - first) : 0;
    memset(made, 0, sizeof *made);
    if (n == 0) return MQI_OK;
    uint32_t *keys = malloc(2 * n * sizeof *keys);
    if (keys == NULL) return MQI_NO_MEMORY;
    for (size_t i = 0; i < n; i++) keys[i] = (uint32_t)hash_at(f, first + (int32_t)i);
    sort_keys(keys, keys + n, n);
    size_t some = distinct(keys + n, n);
    int status = some <= MQI_FILTER_MOST ? fuse(keys + n, some, made) : MQI_OK;
    free(keys);
    return status;
}

int32_t mqi_filter_missing(const mqi_index_file *f, mqi_key_filter *filter, int32_t covered) {
    for (int32_t i = 1; i <= covered; i++) {
        int32_t hash = hash_at(f, i);
        if (!mqi_filter_may_hold(filter, mqi_slot_of(f, hash), hash)) return i;
    }
    return 0;
}
