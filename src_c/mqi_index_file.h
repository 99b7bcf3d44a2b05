/* RocketMQ's IndexFile (store/index/IndexFile.java, all versions): put, select, decode, check, on a mapped buffer.
 *
 *   0        40 bytes  header   | 0 begin_timestamp i64 | 8 end_timestamp i64 | 16 begin_phy_offset i64
 *                               | 24 end_phy_offset i64 | 32 hash_slot_count i32 | 36 index_count i32 |
 *   40       4*S       slots    | number of the newest entry of the chain i32, 0: empty |
 *   40+4*S   20*N      entries  | 0 key_hash i32 | 4 phy_offset i64 | 12 time_diff i32, s | 16 prev_index i32 |
 *
 * index_count is the number of the next entry. It starts at 1 (0 or less on disk means 1), entry 0 is never used.
 *
 * Any bytes are safe to read: counts are clamped to the capacity and every walk goes strictly downwards. Writers must
 * exclude each other; readers may run beside one writer: an entry is complete before it is counted and counted before
 * a slot leads to it. */
#ifndef MQI_INDEX_FILE_H
#define MQI_INDEX_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "mqi_bytes.h"
#include "mqi_status.h"

enum {
    MQI_BEGIN_TIMESTAMP = 0,
    MQI_END_TIMESTAMP = 8,
    MQI_BEGIN_PHY_OFFSET = 16,
    MQI_END_PHY_OFFSET = 24,
    MQI_HASH_SLOT_COUNT = 32,
    MQI_INDEX_COUNT = 36,
    MQI_INDEX_HEADER_SIZE = 40,
    MQI_SLOT_SIZE = 4,
    MQI_ENTRY_SIZE = 20,
    MQI_ENTRY_KEY_HASH = 0,
    MQI_ENTRY_PHY_OFFSET = 4,
    MQI_ENTRY_TIME_DIFF = 12,
    MQI_ENTRY_PREV_INDEX = 16,
    /* A run is an array of packed 20-byte records in native byte order: scratch between two stages of a build. */
    MQI_RUN_SIZE = 20,
    MQI_RUN_KEY_HASH = 0,
    MQI_RUN_PHY_OFFSET = 4,
    MQI_RUN_STORE_TIMESTAMP = 12,
};

typedef struct mqi_index_file {
    uint8_t *base; /* the whole file; 4-byte aligned */
    uint8_t *slots;
    uint8_t *entries;
    uint32_t hash_slot_num;
    int32_t index_num;
} mqi_index_file;

typedef struct mqi_index_header {
    int64_t begin_timestamp, end_timestamp, begin_phy_offset, end_phy_offset;
    int32_t hash_slot_count, index_count;
} mqi_index_header;

static inline void mqi_index_bind(mqi_index_file *f, uint8_t *base, uint32_t hash_slot_num, int32_t index_num) {
    f->base = base;
    f->slots = base + MQI_INDEX_HEADER_SIZE;
    f->entries = f->slots + (size_t)MQI_SLOT_SIZE * hash_slot_num;
    f->hash_slot_num = hash_slot_num;
    f->index_num = index_num;
}

/* The number of the next entry as a reader sees it: what lies on disk, but at least 1 and at most the capacity. */
static inline int32_t mqi_index_next(const mqi_index_file *f) {
    int32_t count = mqi_acquire32(f->base + MQI_INDEX_COUNT);
    return count < 1 ? 1 : count > f->index_num ? f->index_num : count;
}

void mqi_index_read_header(const mqi_index_file *f, mqi_index_header *header);

/* A rolled file starts where its predecessor ended; a value of 0 or less leaves the field alone. */
void mqi_index_seed(mqi_index_file *f, int64_t end_phy_offset, int64_t end_timestamp);
/* What the broker's flush makes of a file without puts: the logical count, 1. */
void mqi_index_flush_header(mqi_index_file *f);

/* Return how many were stored, in order from the first; fewer than n: the file is full. */
size_t mqi_index_put(mqi_index_file *f, int32_t key_hash, int64_t phy_offset, int64_t store_timestamp);
size_t mqi_index_put_columns(mqi_index_file *f, const int32_t *key_hashes, const int64_t *phy_offsets,
                             const int64_t *store_timestamps, size_t n);
size_t mqi_index_put_run(mqi_index_file *f, const uint8_t *run, size_t n);

/* One look-up, resumable: `found` counts down from max_num, `cur` is 0 when the walk has ended. */
typedef struct mqi_walk {
    int64_t begin_timestamp, begin, end;
    int64_t left;
    int32_t key_hash, count, cur;
} mqi_walk;

void mqi_index_walk_start(const mqi_index_file *f, mqi_walk *walk, int32_t key_hash, int64_t max_num, int64_t begin,
                          int64_t end);
/* Fill `out` with up to `room` physical offsets, newest first; return how many. */
size_t mqi_index_walk(const mqi_index_file *f, mqi_walk *walk, int64_t *out, size_t room);

/* Many look-ups with a ring of them in flight. Hits of key i: values[offsets[i] .. offsets[i+1]). `limits` gives each
 * key its own max_num, or is NULL: then max_num for all. `values` is malloc'ed and grows; the caller frees it, also
 * after MQI_NO_MEMORY. */
typedef struct mqi_hits {
    int64_t *values;
    size_t room;
} mqi_hits;

int mqi_index_select_many(const mqi_index_file *f, const int32_t *key_hashes, const int32_t *limits, int64_t max_num,
                          size_t n, int64_t begin, int64_t end, int64_t *offsets, mqi_hits *hits);

/* Columns of the entries [start, start + n); the caller has clamped the range to [0, index_num). */
void mqi_index_entries(const mqi_index_file *f, size_t start, size_t n, int32_t *key_hashes, int64_t *phy_offsets,
                       int32_t *time_diffs, int32_t *prev_indexes);
void mqi_index_slots(const mqi_index_file *f, int32_t *out);

/* How many of the n records of a run, from the first on, are the entries from `start` on: key hash, phy offset, and time
 * diff but for that of entry 1, which counts from a file before this one. start >= 1, start + n <= index_num. */
size_t mqi_index_compare_run(const mqi_index_file *f, size_t start, const uint8_t *run, size_t n);

enum mqi_index_fault {
    MQI_FAULT_INDEX_COUNT,      /* below 0 or above the capacity */
    MQI_FAULT_HASH_SLOT_COUNT,  /* neither the used slots nor the entries (brokers up to 4.7.0) */
    MQI_FAULT_BEGIN_PHY_OFFSET, /* not that of the first entry */
    MQI_FAULT_END_PHY_OFFSET,   /* not that of the last entry */
    MQI_FAULT_END_TIMESTAMP,    /* not within the second that the last entry says */
    MQI_FAULT_SLOT,             /* outside 0 .. index_count */
    MQI_FAULT_SLOT_HEAD,        /* not the newest entry of the slot */
    MQI_FAULT_KEY_HASH,         /* negative */
    MQI_FAULT_TIME_DIFF,        /* negative */
    MQI_FAULT_PREV_INDEX,       /* not the entry before it in the same slot */
};

/* All contradictions in one pass; the first `room` go to `faults`, the result is how many there are. `heads` is
 * scratch of hash_slot_num zeroed words. */
size_t mqi_index_check(const mqi_index_file *f, int32_t *heads, mqi_fault *faults, size_t room);

/* 1 if every used slot heads a chain of entries whose hashes choose that slot, else 0. `newest` > 0 looks only at
 * so many of the newest entries, and whether their slots lead to them or to newer ones. */
int mqi_index_fits(const mqi_index_file *f, size_t newest);

#endif
