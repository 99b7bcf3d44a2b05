#include "mqi_index_put.h"

#include "mqi_run.h"

/* Write entry `count` and publish it; returns 1 when its slot was empty. The time of the first entry is measured
 * from the seed, which it then replaces: the broker's order, kept for its bytes. */
static inline int32_t store_entry(const mqi_index_file *f, uint8_t *slot, int32_t count, int64_t begin,
                                  int32_t key_hash, int64_t phy_offset, int64_t store_timestamp) {
    int32_t head = mqi_acquire32(slot);
    if (head < 0 || head > count) /* a head equal to the count is accepted, as by the broker */
        head = 0;
    uint8_t *entry = mqi_entry_at(f, count);
    mqi_set32(entry + MQI_ENTRY_KEY_HASH, key_hash);
    mqi_set64(entry + MQI_ENTRY_PHY_OFFSET, phy_offset);
    mqi_set32(entry + MQI_ENTRY_TIME_DIFF, mqi_time_diff(begin, store_timestamp));
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

size_t mqi_index_put(mqi_index_file *f, int32_t key_hash, int64_t phy_offset, int64_t store_timestamp) {
    int32_t count = mqi_index_next(f);
    if (count >= f->index_num) return 0;
    int64_t begin = mqi_get64(f->base + MQI_BEGIN_TIMESTAMP);
    uint8_t *slot = mqi_slot_at(f, mqi_slot_of(f, key_hash));
    int32_t fresh = store_entry(f, slot, count, begin, key_hash, phy_offset, store_timestamp);
    store_end(f, mqi_add32(mqi_get32(f->base + MQI_HASH_SLOT_COUNT), fresh), phy_offset, store_timestamp);
    return 1;
}

/* Where the three values of record i lie: columns and runs go through one loop. */
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

static ALWAYS_INLINE size_t put_many(mqi_index_file *f, const source s, size_t n) {
    size_t done = 0;
    if (n > 0 && mqi_index_next(f) <= 1) /* the first entry moves the begin of the file */
        done = mqi_index_put(f, source_hash(&s, 0), source_offset(&s, 0), source_timestamp(&s, 0));
    int32_t count = mqi_index_next(f);
    size_t room = (size_t)(f->index_num - count);
    size_t stop = n - done < room ? n : done + room;
    if (done == stop) return done;
    const int64_t begin = mqi_get64(f->base + MQI_BEGIN_TIMESTAMP);
    int32_t used = mqi_get32(f->base + MQI_HASH_SLOT_COUNT);
    uint8_t *ahead[MQI_AHEAD];
    for (size_t i = done; i < stop && i < done + MQI_AHEAD; i++) {
        uint8_t *slot = mqi_slot_at(f, mqi_slot_of(f, source_hash(&s, i)));
        ahead[i % MQI_AHEAD] = slot;
        __builtin_prefetch(slot, 1, 3);
    }
    for (size_t i = done; i < stop; i++) {
        uint8_t *slot = ahead[i % MQI_AHEAD];
        if (LIKELY(i + MQI_AHEAD < stop)) {
            uint8_t *later = mqi_slot_at(f, mqi_slot_of(f, source_hash(&s, i + MQI_AHEAD)));
            ahead[i % MQI_AHEAD] = later;
            __builtin_prefetch(later, 1, 3);
        }
        int64_t phy_offset = source_offset(&s, i), store_timestamp = source_timestamp(&s, i);
        used = mqi_add32(used, store_entry(f, slot, count, begin, source_hash(&s, i), phy_offset, store_timestamp));
        store_end(f, used, phy_offset, store_timestamp);
        count++;
    }
    return stop;
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
