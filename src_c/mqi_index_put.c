#include "mqi_index_put.h"

#include "mqi_run.h"

/* Write the entry with the number `count` and publish it; returns 1 when its slot was empty. */
static inline int32_t store_entry(const mqi_index_file *f, uint8_t *slot, uint8_t *entry, int32_t count,
                                  int32_t key_hash, int64_t phy_offset, int32_t time_diff) {
    int32_t head = mqi_acquire32(slot);
    if ((uint32_t)head > (uint32_t)count) /* below 0 too; a head equal to the count is accepted, as by the broker */
        head = 0;
    mqi_set32(entry + MQI_ENTRY_KEY_HASH, key_hash);
    mqi_set64(entry + MQI_ENTRY_PHY_OFFSET, phy_offset);
    mqi_set32(entry + MQI_ENTRY_TIME_DIFF, time_diff);
    mqi_set32(entry + MQI_ENTRY_PREV_INDEX, head);
    mqi_release32(f->base + MQI_INDEX_COUNT, count + 1); /* complete before counted */
    mqi_release32(slot, count);                          /* counted before linked */
    return head == 0;
}

static inline void store_end(const mqi_index_file *f, int32_t used, int64_t phy_offset, int64_t store_timestamp) {
    mqi_set32(f->base + MQI_HASH_SLOT_COUNT, used);
    mqi_set64(f->base + MQI_END_PHY_OFFSET, phy_offset);
    mqi_set64(f->base + MQI_END_TIMESTAMP, store_timestamp);
}

/* The time of the first entry is measured from the seed, which it then replaces: the broker's order, kept for its bytes. */
size_t mqi_index_put(mqi_index_file *f, int32_t key_hash, int64_t phy_offset, int64_t store_timestamp) {
    int32_t count = mqi_index_next(f);
    if (count >= f->index_num) return 0;
    int32_t diff = mqi_time_diff(mqi_get64(f->base + MQI_BEGIN_TIMESTAMP), store_timestamp);
    if (count == 1) {
        mqi_set64(f->base + MQI_BEGIN_PHY_OFFSET, phy_offset);
        mqi_set64(f->base + MQI_BEGIN_TIMESTAMP, store_timestamp);
    }
    uint8_t *slot = mqi_slot_at(f, mqi_slot_of(f, key_hash));
    int32_t fresh = store_entry(f, slot, mqi_entry_at(f, count), count, key_hash, phy_offset, diff);
    store_end(f, mqi_add32(mqi_get32(f->base + MQI_HASH_SLOT_COUNT), fresh), phy_offset, store_timestamp);
    return 1;
}

enum { SOURCE_AHEAD = 128 }; /* records whose values are prefetched: columns come from memory, hashes from the caches */

/* Where the three values of record i are: columns and runs share one loop. */
typedef struct source {
    const uint8_t *key_hash, *phy_offset, *store_timestamp;
    size_t hash_step, offset_step, timestamp_step;
} source;

static inline int32_t source_hash(const source *s, size_t i) { return mqi_native32(s->key_hash + i * s->hash_step); }

static inline int64_t source_offset(const source *s, size_t i) {
    return mqi_native64(s->phy_offset + i * s->offset_step);
}

static inline int64_t source_timestamp(const source *s, size_t i) {
    return mqi_native64(s->store_timestamp + i * s->timestamp_step);
}

static inline uint8_t *source_slot(const mqi_index_file *f, const source *s, size_t i) {
    uint8_t *slot = mqi_slot_at(f, mqi_slot_of(f, source_hash(s, i)));
    __builtin_prefetch(slot, 1, 3);
    return slot;
}

/* mqi_time_diff, with one comparison for times after the begin; `span`: the ms that a time_diff can hold, 0 if the
 * begin is no time. */
static inline int32_t diff_within(int64_t begin, uint64_t span, int64_t store_timestamp) {
    uint64_t ms = (uint64_t)mqi_sub64(store_timestamp, begin);
    return LIKELY(ms < span) ? (int32_t)(ms / 1000) : mqi_time_diff(begin, store_timestamp);
}

/* Records [from, stop) into the entries from `count` on, the header's end left alone; returns how many slots were
 * empty. `ahead`: the slots of the next records, in a ring; those up to `last` are prefetched on the way. */
static ALWAYS_INLINE int32_t put_block(const mqi_index_file *f, const source *s, size_t from, size_t stop, size_t last,
                                       int32_t count, uint8_t **ahead) {
    const int64_t begin = mqi_get64(f->base + MQI_BEGIN_TIMESTAMP);
    const uint64_t span = begin > 0 ? UINT64_C(1000) << 31 : 0;
    uint8_t *entry = mqi_entry_at(f, count);
    int32_t fresh = 0;
    for (size_t i = from; i < stop; i++, count++, entry += MQI_ENTRY_SIZE) {
        uint8_t *slot = ahead[i % MQI_AHEAD];
        if (LIKELY(i + MQI_AHEAD < last)) ahead[i % MQI_AHEAD] = source_slot(f, s, i + MQI_AHEAD);
        __builtin_prefetch(s->phy_offset + (i + SOURCE_AHEAD) * s->offset_step);
        __builtin_prefetch(s->store_timestamp + (i + SOURCE_AHEAD) * s->timestamp_step);
        int32_t diff = diff_within(begin, span, source_timestamp(s, i));
        fresh += store_entry(f, slot, entry, count, source_hash(s, i), source_offset(s, i), diff);
    }
    return fresh;
}

/* By blocks: header fields that come from the last entry only are written once a block. */
static ALWAYS_INLINE size_t put_many(mqi_index_file *shared, const source s, size_t n) {
    const mqi_index_file own = *shared, *f = &own; /* so no store below can change it: it stays in registers */
    size_t done = 0;
    if (n > 0 && mqi_index_next(f) <= 1) /* the first entry moves the begin of the file */
        done = mqi_index_put(shared, source_hash(&s, 0), source_offset(&s, 0), source_timestamp(&s, 0));
    int32_t count = mqi_index_next(f);
    size_t room = (size_t)(f->index_num - count);
    size_t stop = n - done < room ? n : done + room;
    uint8_t *ahead[MQI_AHEAD];
    for (size_t i = done; i < stop && i < done + MQI_AHEAD; i++) ahead[i % MQI_AHEAD] = source_slot(f, &s, i);
    while (done < stop) {
        size_t some = stop - done < MQI_PUT_BLOCK ? stop - done : MQI_PUT_BLOCK;
        int32_t fresh = put_block(f, &s, done, done + some, stop, count, ahead);
        done += some;
        count += (int32_t)some;
        store_end(f, mqi_add32(mqi_get32(f->base + MQI_HASH_SLOT_COUNT), fresh), source_offset(&s, done - 1),
                  source_timestamp(&s, done - 1));
    }
    return done;
}

size_t mqi_index_put_columns(mqi_index_file *f, const int32_t *key_hashes, const int64_t *phy_offsets,
                             const int64_t *store_timestamps, size_t n) {
    const source s = {(const uint8_t *)key_hashes, (const uint8_t *)phy_offsets, (const uint8_t *)store_timestamps,
                      sizeof *key_hashes,          sizeof *phy_offsets,          sizeof *store_timestamps};
    return put_many(f, s, n);
}

size_t mqi_index_put_run(mqi_index_file *f, const uint8_t *run, size_t n) {
    const source s = {run + MQI_RUN_KEY_HASH,
                      run + MQI_RUN_PHY_OFFSET,
                      run + MQI_RUN_STORE_TIMESTAMP,
                      MQI_RUN_SIZE,
                      MQI_RUN_SIZE,
                      MQI_RUN_SIZE};
    return put_many(f, s, n);
}
