#include "mqi_index_file.h"

#include <stdlib.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline uint32_t slot_of(const mqi_index_file *f, int32_t key_hash) {
    return (uint32_t)key_hash % f->hash_slot_num; /* unsigned: a negative hash, which no broker writes, stays inside */
}

static inline uint8_t *slot_at(const mqi_index_file *f, uint32_t slot) {
    return f->slots + (size_t)slot * MQI_SLOT_SIZE;
}

static inline uint8_t *entry_at(const mqi_index_file *f, int32_t number) {
    return f->entries + (size_t)(uint32_t)number * MQI_ENTRY_SIZE;
}

static inline void prefetch_entry(const uint8_t *entry) { /* 20 bytes may lie on two cache lines */
    __builtin_prefetch(entry, 0, 3);
    __builtin_prefetch(entry + MQI_ENTRY_SIZE - 1, 0, 3);
}

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
    if (mqi_acquire32(f->base + MQI_INDEX_COUNT) <= 0) {
        mqi_release32(f->base + MQI_INDEX_COUNT, 1);
    }
}

/* ---- put ---------------------------------------------------------------------------------------------------- */

/* Whole seconds since the file's begin, clamped to 0 .. INT32_MAX; 64-bit wrap as in Java. */
static inline int32_t time_diff(int64_t begin, int64_t store_timestamp) {
    int64_t ms = (int64_t)((uint64_t)store_timestamp - (uint64_t)begin);
    if (begin <= 0 || ms <= 0) {
        return 0;
    }
    uint64_t seconds = (uint64_t)ms / 1000;
    return seconds > INT32_MAX ? INT32_MAX : (int32_t)seconds;
}

/* Write entry `count` and publish it; returns 1 when its slot was empty. The time of the first entry is measured
 * from the seed, which it then replaces: the broker's order, kept for its bytes. */
static inline int32_t store_entry(const mqi_index_file *f, uint8_t *slot, int32_t count, int64_t begin,
                                  int32_t key_hash, int64_t phy_offset, int64_t store_timestamp) {
    int32_t head = mqi_acquire32(slot);
    if (head < 0 || head > count) { /* a head equal to the count is accepted, as by the broker */
        head = 0;
    }
    uint8_t *entry = entry_at(f, count);
    mqi_set32(entry + MQI_ENTRY_KEY_HASH, key_hash);
    mqi_set64(entry + MQI_ENTRY_PHY_OFFSET, phy_offset);
    mqi_set32(entry + MQI_ENTRY_TIME_DIFF, time_diff(begin, store_timestamp));
    mqi_set32(entry + MQI_ENTRY_PREV_INDEX, head);
    if (UNLIKELY(count <= 1)) {
        mqi_set64(f->base + MQI_BEGIN_PHY_OFFSET, phy_offset);
        mqi_set64(f->base + MQI_BEGIN_TIMESTAMP, store_timestamp);
    }
    mqi_release32(f->base + MQI_INDEX_COUNT, count + 1); /* complete before counted */
    mqi_release32(slot, count);                          /* counted before linked */
    return head == 0;
}

static inline void store_end(const mqi_index_file *f, int32_t used, int64_t phy_offset, int64_t store_timestamp) {
    mqi_set32(f->base + MQI_HASH_SLOT_COUNT, used);
    mqi_set64(f->base + MQI_END_PHY_OFFSET, phy_offset);
    mqi_set64(f->base + MQI_END_TIMESTAMP, store_timestamp);
}

static inline int32_t add_wrapping(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

size_t mqi_index_put(mqi_index_file *f, int32_t key_hash, int64_t phy_offset, int64_t store_timestamp) {
    int32_t count = mqi_index_next(f);
    if (count >= f->index_num) {
        return 0;
    }
    int64_t begin = mqi_get64(f->base + MQI_BEGIN_TIMESTAMP);
    uint8_t *slot = slot_at(f, slot_of(f, key_hash));
    int32_t fresh = store_entry(f, slot, count, begin, key_hash, phy_offset, store_timestamp);
    store_end(f, add_wrapping(mqi_get32(f->base + MQI_HASH_SLOT_COUNT), fresh), phy_offset, store_timestamp);
    return 1;
}

/* Where the three values of record i lie: columns and runs go through one loop. */
typedef struct source {
    const uint8_t *key_hash, *phy_offset, *store_timestamp;
    size_t hash_step, offset_step, timestamp_step;
} source;

static inline int32_t source_hash(const source *s, size_t i) {
    int32_t v;
    memcpy(&v, s->key_hash + i * s->hash_step, sizeof v);
    return v;
}

static inline int64_t source_offset(const source *s, size_t i) {
    int64_t v;
    memcpy(&v, s->phy_offset + i * s->offset_step, sizeof v);
    return v;
}

static inline int64_t source_timestamp(const source *s, size_t i) {
    int64_t v;
    memcpy(&v, s->store_timestamp + i * s->timestamp_step, sizeof v);
    return v;
}

enum { PUT_AHEAD = 64 }; /* slots asked for before they are needed; 2^k */

static inline __attribute__((always_inline)) size_t put_many(mqi_index_file *f, const source s, size_t n) {
    size_t done = 0;
    if (n > 0 && mqi_index_next(f) <= 1) { /* the first entry moves the begin of the file */
        done = mqi_index_put(f, source_hash(&s, 0), source_offset(&s, 0), source_timestamp(&s, 0));
    }
    int32_t count = mqi_index_next(f);
    size_t room = (size_t)(f->index_num - count);
    size_t stop = n - done < room ? n : done + room;
    if (done == stop) {
        return done;
    }
    const int64_t begin = mqi_get64(f->base + MQI_BEGIN_TIMESTAMP);
    int32_t used = mqi_get32(f->base + MQI_HASH_SLOT_COUNT);
    uint8_t *ahead[PUT_AHEAD];
    for (size_t i = done; i < stop && i < done + PUT_AHEAD; i++) {
        uint8_t *slot = slot_at(f, slot_of(f, source_hash(&s, i)));
        ahead[i % PUT_AHEAD] = slot;
        __builtin_prefetch(slot, 1, 3);
    }
    for (size_t i = done; i < stop; i++) {
        uint8_t *slot = ahead[i % PUT_AHEAD];
        if (LIKELY(i + PUT_AHEAD < stop)) {
            uint8_t *later = slot_at(f, slot_of(f, source_hash(&s, i + PUT_AHEAD)));
            ahead[i % PUT_AHEAD] = later;
            __builtin_prefetch(later, 1, 3);
        }
        int64_t phy_offset = source_offset(&s, i), store_timestamp = source_timestamp(&s, i);
        used = add_wrapping(used, store_entry(f, slot, count, begin, source_hash(&s, i), phy_offset, store_timestamp));
        store_end(f, used, phy_offset, store_timestamp);
        count++;
    }
    return stop;
}

size_t mqi_index_put_columns(mqi_index_file *f, const int32_t *key_hashes, const int64_t *phy_offsets,
                             const int64_t *store_timestamps, size_t n) {
    const source s = {(const uint8_t *)key_hashes, (const uint8_t *)phy_offsets, (const uint8_t *)store_timestamps,
                      sizeof *key_hashes, sizeof *phy_offsets, sizeof *store_timestamps};
    return put_many(f, s, n);
}

size_t mqi_index_put_run(mqi_index_file *f, const uint8_t *run, size_t n) {
    const source s = {run + MQI_RUN_KEY_HASH, run + MQI_RUN_PHY_OFFSET, run + MQI_RUN_STORE_TIMESTAMP,
                      MQI_RUN_SIZE,           MQI_RUN_SIZE,             MQI_RUN_SIZE};
    return put_many(f, s, n);
}

/* ---- select ------------------------------------------------------------------------------------------------- */

/* A slot's value as the start of a walk, 0 where there is none. `count` is the header's, `cap` the capacity: the
 * broker accepts a head equal to the count (a put that a kill cut short), but nothing lies behind the capacity. */
static inline int32_t chain_head(int32_t value, int32_t count, int32_t cap) {
    return count > 1 && value > 0 && value <= count && value < cap ? value : 0;
}

/* Read entry *cur: 1 and its phy_offset when it matches, else 0; *cur moves on, to 0 at the end of the walk. */
static inline int visit(const uint8_t *entry, int32_t *cur, int32_t key_hash, int64_t begin_timestamp, int64_t begin,
                        int64_t end, int64_t *phy_offset) {
    int32_t diff = mqi_get32(entry + MQI_ENTRY_TIME_DIFF);
    int32_t prev = mqi_get32(entry + MQI_ENTRY_PREV_INDEX);
    int32_t hash = mqi_get32(entry + MQI_ENTRY_KEY_HASH);
    *phy_offset = mqi_get64(entry + MQI_ENTRY_PHY_OFFSET);
    if (UNLIKELY(diff < 0)) {
        *cur = 0;
        return 0;
    }
    int64_t t = (int64_t)((uint64_t)begin_timestamp + (uint64_t)diff * 1000u);
    *cur = prev > 0 && prev < *cur && t >= begin ? prev : 0;
    return hash == key_hash && begin <= t && t <= end;
}

void mqi_index_walk_start(const mqi_index_file *f, mqi_walk *walk, int32_t key_hash, int64_t max_num, int64_t begin,
                          int64_t end) {
    int32_t value = mqi_acquire32(slot_at(f, slot_of(f, key_hash)));
    walk->count = mqi_acquire32(f->base + MQI_INDEX_COUNT); /* after the slot: at least as new */
    walk->cur = chain_head(value, walk->count, f->index_num);
    walk->begin_timestamp = mqi_get64(f->base + MQI_BEGIN_TIMESTAMP);
    walk->begin = begin;
    walk->end = end;
    walk->left = max_num;
    walk->key_hash = key_hash;
}

size_t mqi_index_walk(const mqi_index_file *f, mqi_walk *walk, int64_t *out, size_t room) {
    size_t found = 0;
    while (walk->cur != 0 && walk->left > 0 && found < room) {
        int64_t phy_offset;
        if (visit(entry_at(f, walk->cur), &walk->cur, walk->key_hash, walk->begin_timestamp, walk->begin, walk->end,
                  &phy_offset)) {
            out[found++] = phy_offset;
            walk->left--;
        }
    }
    if (walk->left <= 0) {
        walk->cur = 0;
    }
    return found;
}

/* Many look-ups. What can be done once a batch or once a hit is not done once an entry: the time window is turned into
 * the entries' own seconds, hashes are compared and offsets logged as they lie in the file. With 16-byte lanes that
 * is 4-8 % faster than the single walk's code in the same ring; selecting instead of branching is slower: the next
 * prefetch then waits for the entry before it. */

enum {
    BLOCK = 4096,    /* keys whose hits are put in order together */
    RING = 32,       /* look-ups in flight */
    SLOTS_AHEAD = 32 /* slot words asked for before they are needed; 2^k */
};

typedef struct hit {
    uint64_t raw_offset; /* as in the file */
    uint32_t key; /* in its block */
} hit;

typedef struct hit_log { /* the hits of one block in the order they were found: per key that is newest first */
    hit *hits;
    size_t n, room;
} hit_log;

static int reserve_log(hit_log *log, size_t more) {
    if (LIKELY(log->room - log->n >= more)) {
        return MQI_OK;
    }
    size_t room = 2 * log->room + more;
    hit *hits = realloc(log->hits, room * sizeof *hits);
    if (hits == NULL) {
        return MQI_NO_MEMORY;
    }
    log->hits = hits;
    log->room = room;
    return MQI_OK;
}

typedef struct lane { /* a look-up that waits, or is in flight */
    int32_t cur;
    uint32_t raw_hash; /* as in the file */
    uint32_t key;
    int32_t left;
} lane;

/* t = begin_timestamp + 1000 * time_diff lies in [begin, end] if time_diff lies in [first, last], and is not before
 * begin if first <= time_diff. */
typedef struct window {
    int32_t first, last;
    int32_t count;
} window;

static int64_t floor_seconds(int64_t from, int64_t to) { /* floor((to - from) / 1000), kept within -1 .. 2^31 */
    if (to < from) {
        return -1;
    }
    uint64_t seconds = ((uint64_t)to - (uint64_t)from) / 1000;
    return seconds > (uint64_t)INT32_MAX + 1 ? (int64_t)INT32_MAX + 1 : (int64_t)seconds;
}

/* 0: the times of this file pass the end of 64 bits, so no such window exists. */
static int make_window(const mqi_index_file *f, int64_t begin, int64_t end, window *w) {
    w->count = mqi_acquire32(f->base + MQI_INDEX_COUNT);
    int64_t zero = mqi_get64(f->base + MQI_BEGIN_TIMESTAMP);
    if (zero > INT64_MAX - 1000 * (int64_t)INT32_MAX) {
        return 0;
    }
    int64_t first = begin <= zero ? 0 : floor_seconds(zero, begin - 1) + 1;
    int64_t last = floor_seconds(zero, end);
    w->first = first > INT32_MAX ? INT32_MAX : (int32_t)first;
    w->last = last > INT32_MAX ? INT32_MAX : (int32_t)last;
    return first <= INT32_MAX;
}

/* Chain heads of a block; keys without a chain or with a limit below 1 are dropped. Returns how many are left. */
static size_t find_heads(const mqi_index_file *f, const int32_t *key_hashes, const int32_t *limits, int32_t max_num,
                         size_t n, lane *lanes) {
    const uint8_t *ahead[SLOTS_AHEAD];
    for (size_t i = 0; i < n && i < SLOTS_AHEAD; i++) {
        ahead[i] = slot_at(f, slot_of(f, key_hashes[i]));
        __builtin_prefetch(ahead[i], 0, 3);
    }
    size_t kept = 0;
    const int32_t cap = f->index_num;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *slot = ahead[i % SLOTS_AHEAD];
        if (LIKELY(i + SLOTS_AHEAD < n)) {
            const uint8_t *later = slot_at(f, slot_of(f, key_hashes[i + SLOTS_AHEAD]));
            ahead[i % SLOTS_AHEAD] = later;
            __builtin_prefetch(later, 0, 3);
        }
        int32_t value = mqi_acquire32(slot);
        lane *l = &lanes[kept];
        l->cur = value;
        l->raw_hash = MQI_SWAP32((uint32_t)key_hashes[i]);
        l->key = (uint32_t)i;
        l->left = limits == NULL ? max_num : limits[i];
        kept += (size_t)((value > 0) & (value < cap) & (l->left > 0));
    }
    return kept;
}

/* The count was read after all slots, so it is at least as new as they are: heads beyond it lead nowhere. */
static size_t drop_uncounted(lane *lanes, size_t n, int32_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        lanes[kept] = lanes[i];
        kept += (size_t)((count > 1) & (lanes[i].cur <= count));
    }
    return kept;
}

/* Walk all chains of a block, RING at a time, each lane refilled as soon as its walk ends. */
static int walk_block(const mqi_index_file *f, const lane *queue, size_t n, const window w, hit_log *log) {
    lane ring[RING];
    size_t next = 0, live = 0;
    for (; live < RING && next < n; live++, next++) {
        ring[live] = queue[next];
        prefetch_entry(entry_at(f, ring[live].cur));
    }
    while (live > 0) {
        if (reserve_log(log, RING) != MQI_OK) {
            return MQI_NO_MEMORY;
        }
        for (size_t i = 0; i < live;) {
            lane *l = &ring[i];
            const uint8_t *entry = entry_at(f, l->cur);
            int32_t diff = mqi_get32(entry + MQI_ENTRY_TIME_DIFF);
            int32_t prev = mqi_get32(entry + MQI_ENTRY_PREV_INDEX);
            uint32_t raw_hash;
            memcpy(&raw_hash, entry + MQI_ENTRY_KEY_HASH, sizeof raw_hash);
            hit *h = &log->hits[log->n];
            memcpy(&h->raw_offset, entry + MQI_ENTRY_PHY_OFFSET, sizeof h->raw_offset);
            h->key = l->key;
            int32_t matches = (raw_hash == l->raw_hash) & (diff >= w.first) & (diff <= w.last);
            log->n += (size_t)matches;
            l->left -= matches;
            if ((diff >= w.first) & ((uint32_t)prev - 1u < (uint32_t)l->cur - 1u) & (l->left > 0)) {
                l->cur = prev;
            } else if (LIKELY(next < n)) {
                *l = queue[next++];
            } else {
                *l = ring[--live]; /* the queue is empty: the last lane takes this place */
                continue;
            }
            prefetch_entry(entry_at(f, l->cur));
            i++;
        }
    }
    return MQI_OK;
}

static int reserve_hits(mqi_hits *hits, size_t needed) {
    if (needed <= hits->room) {
        return MQI_OK;
    }
    size_t room = hits->room * 2 > needed ? hits->room * 2 : needed;
    if (room > SIZE_MAX / sizeof *hits->values) {
        return MQI_NO_MEMORY;
    }
    int64_t *values = realloc(hits->values, room * sizeof *values);
    if (values == NULL) {
        return MQI_NO_MEMORY;
    }
    hits->values = values;
    hits->room = room;
    return MQI_OK;
}

/* Counting sort of a block's hits by key; offsets[0] is set, offsets[1 .. n] follow. */
static int place_hits(const hit_log *log, size_t n, int64_t *offsets, mqi_hits *hits) {
    int64_t total = offsets[0];
    if (reserve_hits(hits, (size_t)total + log->n) != MQI_OK) {
        return MQI_NO_MEMORY;
    }
    memset(offsets + 1, 0, n * sizeof *offsets);
    for (size_t i = 0; i < log->n; i++) {
        offsets[log->hits[i].key + 1]++;
    }
    for (size_t i = 1; i <= n; i++) { /* offsets[i] becomes the start of key i-1, and below its end */
        int64_t here = offsets[i];
        offsets[i] = total;
        total += here;
    }
    for (size_t i = 0; i < log->n; i++) {
        hits->values[offsets[log->hits[i].key + 1]++] = (int64_t)MQI_SWAP64(log->hits[i].raw_offset);
    }
    return MQI_OK;
}

/* The keys of a block one after the other: for the files that `make_window` has no window for. */
static int walk_singly(const mqi_index_file *f, const int32_t *key_hashes, const lane *lanes, size_t n, int64_t begin,
                       int64_t end, hit_log *log) {
    for (size_t i = 0; i < n; i++) {
        mqi_walk walk;
        int64_t found[RING];
        mqi_index_walk_start(f, &walk, key_hashes[lanes[i].key], lanes[i].left, begin, end);
        while (walk.cur != 0) {
            size_t some = mqi_index_walk(f, &walk, found, RING);
            if (reserve_log(log, some) != MQI_OK) {
                return MQI_NO_MEMORY;
            }
            for (size_t j = 0; j < some; j++) {
                log->hits[log->n].raw_offset = MQI_SWAP64((uint64_t)found[j]);
                log->hits[log->n++].key = lanes[i].key;
            }
        }
    }
    return MQI_OK;
}

int mqi_index_select_many(const mqi_index_file *f, const int32_t *key_hashes, const int32_t *limits, int64_t max_num,
                          size_t n, int64_t begin, int64_t end, int64_t *offsets, mqi_hits *hits) {
    const int32_t most = max_num < 0 ? 0 : max_num > INT32_MAX ? INT32_MAX : (int32_t)max_num; /* no file holds more */
    const size_t block = n < BLOCK ? n : BLOCK;
    hit_log log = {.hits = malloc((block + RING) * sizeof(hit)), .n = 0, .room = block + RING};
    lane *lanes = malloc((block + 1) * sizeof *lanes); /* one more: a dropped key is written before it is dropped */
    int status = log.hits == NULL || lanes == NULL ? MQI_NO_MEMORY : MQI_OK;
    offsets[0] = 0;
    for (size_t start = 0; start < n && status == MQI_OK; start += block) {
        const int32_t *hashes = key_hashes + start;
        size_t some = n - start < block ? n - start : block;
        size_t kept = find_heads(f, hashes, limits == NULL ? NULL : limits + start, most, some, lanes);
        window w;
        log.n = 0;
        if (LIKELY(make_window(f, begin, end, &w))) {
            status = walk_block(f, lanes, drop_uncounted(lanes, kept, w.count), w, &log);
        } else {
            status = walk_singly(f, hashes, lanes, kept, begin, end, &log);
        }
        if (status == MQI_OK) {
            status = place_hits(&log, some, offsets + start, hits);
        }
    }
    free(lanes);
    free(log.hits);
    return status;
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
    for (uint32_t i = 0; i < f->hash_slot_num; i++) {
        out[i] = mqi_get32(slot_at(f, i));
    }
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

static void check_header(const mqi_index_file *f, const mqi_index_header *h, int32_t count, int64_t used,
                         fault_list *list) {
    if (h->index_count < 0 || h->index_count > f->index_num) {
        report(list, MQI_FAULT_INDEX_COUNT, -1, MQI_INDEX_COUNT, h->index_count < 0 ? 0 : f->index_num,
               h->index_count);
    }
    if (h->hash_slot_count != used && h->hash_slot_count != count - 1) {
        report(list, MQI_FAULT_HASH_SLOT_COUNT, -1, MQI_HASH_SLOT_COUNT, used, h->hash_slot_count);
    }
    if (count <= 1) {
        return;
    }
    int64_t first = mqi_get64(entry_at(f, 1) + MQI_ENTRY_PHY_OFFSET);
    int64_t last = mqi_get64(entry_at(f, count - 1) + MQI_ENTRY_PHY_OFFSET);
    if (h->begin_phy_offset != first) {
        report(list, MQI_FAULT_BEGIN_PHY_OFFSET, -1, MQI_BEGIN_PHY_OFFSET, first, h->begin_phy_offset);
    }
    if (h->end_phy_offset != last) {
        report(list, MQI_FAULT_END_PHY_OFFSET, -1, MQI_END_PHY_OFFSET, last, h->end_phy_offset);
    }
    int32_t diff = mqi_get32(entry_at(f, count - 1) + MQI_ENTRY_TIME_DIFF);
    int64_t end = count == 2 ? h->begin_timestamp : h->end_timestamp; /* entry 1 counts from the seed, now gone */
    if (count == 2 ? h->end_timestamp != end : time_diff(h->begin_timestamp, end) != diff) {
        int64_t expected = (int64_t)((uint64_t)h->begin_timestamp + (count == 2 ? 0 : (uint64_t)diff * 1000u));
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
        const uint8_t *entry = entry_at(f, i);
        if (LIKELY(count - i > PUT_AHEAD)) {
            int32_t later = mqi_get32(entry + PUT_AHEAD * MQI_ENTRY_SIZE + MQI_ENTRY_KEY_HASH);
            __builtin_prefetch(&heads[slot_of(f, later)], 1, 3);
        }
        int32_t hash = mqi_get32(entry + MQI_ENTRY_KEY_HASH);
        int32_t diff = mqi_get32(entry + MQI_ENTRY_TIME_DIFF);
        int32_t prev = mqi_get32(entry + MQI_ENTRY_PREV_INDEX);
        int32_t *head = &heads[slot_of(f, hash)];
        if (UNLIKELY(hash < 0 || diff < 0 || prev != *head)) {
            int64_t at = (int64_t)(entries + (size_t)i * MQI_ENTRY_SIZE);
            if (hash < 0) {
                report(&list, MQI_FAULT_KEY_HASH, i, at + MQI_ENTRY_KEY_HASH, 0, hash);
            }
            if (diff < 0) {
                report(&list, MQI_FAULT_TIME_DIFF, i, at + MQI_ENTRY_TIME_DIFF, 0, diff);
            }
            if (prev != *head) {
                report(&list, MQI_FAULT_PREV_INDEX, i, at + MQI_ENTRY_PREV_INDEX, *head, prev);
            }
        }
        *head = i;
    }
    int64_t used = 0;
    for (uint32_t slot = 0; slot < f->hash_slot_num; slot++) {
        int32_t value = mqi_get32(slot_at(f, slot));
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
    if (head < 0 || head >= f->index_num || (head > count && head > mqi_acquire32(f->base + MQI_INDEX_COUNT))) {
        return 0;
    }
    int32_t hash = mqi_get32(entry_at(f, head) + MQI_ENTRY_KEY_HASH);
    return hash >= 0 && slot_of(f, hash) == slot;
}

static int newest_fit(const mqi_index_file *f, int32_t count, size_t newest) {
    int32_t stop = (size_t)(count - 1) > newest ? count - (int32_t)newest : 1;
    for (int32_t i = count - 1; i >= stop; i--) {
        int32_t hash = mqi_get32(entry_at(f, i) + MQI_ENTRY_KEY_HASH);
        uint32_t slot = slot_of(f, hash);
        int32_t head = mqi_acquire32(slot_at(f, slot));
        if (hash < 0 || head < i || !head_fits(f, slot, head, count)) {
            return 0;
        }
    }
    return 1;
}

int mqi_index_fits(const mqi_index_file *f, size_t newest) {
    const int32_t count = mqi_index_next(f);
    if (newest > 0) {
        return newest_fit(f, count, newest);
    }
    for (uint32_t slot = 0; slot < f->hash_slot_num; slot++) {
        if (LIKELY(f->hash_slot_num - slot > PUT_AHEAD)) {
            uint32_t later = (uint32_t)mqi_get32(slot_at(f, slot + PUT_AHEAD));
            if (LIKELY(later < (uint32_t)count)) {
                prefetch_entry(entry_at(f, (int32_t)later));
            }
        }
        int32_t head = mqi_acquire32(slot_at(f, slot));
        if (head != 0 && !head_fits(f, slot, head, count)) {
            return 0;
        }
    }
    for (int32_t i = count - 1; i >= 1; i--) { /* each link stays in its slot, so each chain does */
        const uint8_t *entry = entry_at(f, i);
        if (LIKELY(i > PUT_AHEAD)) {
            uint32_t later = (uint32_t)mqi_get32(entry - PUT_AHEAD * MQI_ENTRY_SIZE + MQI_ENTRY_PREV_INDEX);
            if (LIKELY(later < (uint32_t)count)) {
                prefetch_entry(entry_at(f, (int32_t)later));
            }
        }
        int32_t prev = mqi_get32(entry + MQI_ENTRY_PREV_INDEX);
        if (prev == 0) {
            continue;
        }
        int32_t hash = mqi_get32(entry + MQI_ENTRY_KEY_HASH);
        if (prev < 0 || prev >= i || slot_of(f, hash) != slot_of(f, mqi_get32(entry_at(f, prev)))) {
            return 0;
        }
    }
    return 1;
}
