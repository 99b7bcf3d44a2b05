/* RocketMQ's IndexFile (store/index/IndexFile.java, all versions) on a mapped buffer: its layout, its header, its checks.
 *
 *   0        40 bytes  header   | 0 begin_timestamp i64 | 8 end_timestamp i64 | 16 begin_phy_offset i64
 *                               | 24 end_phy_offset i64 | 32 hash_slot_count i32 | 36 index_count i32 |
 *   40       4*S       slots    | number of the newest entry of the chain i32, 0: empty |
 *   40+4*S   20*N      entries  | 0 key_hash i32 | 4 phy_offset i64 | 12 time_diff i32, s | 16 prev_index i32 |
 *
 * index_count is the number of the next entry. It starts at 1 (0 or less on disk means 1), entry 0 is never used.
 *
 * Any bytes are safe to read: counts are clamped to the capacity and every walk goes strictly downwards. Writers must
 * exclude each other; readers may run while one writer does: an entry is complete before it is counted and counted
 * before a slot leads to it. hash_slot_count, end_phy_offset and end_timestamp follow: a put of many brings them up to
 * date once a block, so after a kill they may be those of an earlier entry. */
#ifndef MQI_INDEX_FILE_H
#define MQI_INDEX_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "mqi_bytes.h"
#include "mqi_compiler.h"
#include "mqi_slot.h"
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
    MQI_INDEX_PAGE = 4096, /* what is read at once of a file that is not in memory */
};

typedef struct mqi_index_file {
    uint8_t *base; /* the whole file; 4-byte aligned */
    uint8_t *slots;
    uint8_t *entries;
    uint64_t slot_inverse;
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
    f->slot_inverse = mqi_slot_inverse(hash_slot_num);
    f->hash_slot_num = hash_slot_num;
    f->index_num = index_num;
}

/* The number of the next entry as a reader sees it: the one in the file, but at least 1 and at most the capacity. */
static inline int32_t mqi_index_next(const mqi_index_file *f) {
    int32_t count = mqi_acquire32(f->base + MQI_INDEX_COUNT);
    return count < 1 ? 1 : count > f->index_num ? f->index_num : count;
}

/* ---- where slots and entries are, and the time of an entry: shared by the inner loops -------------------------------- */

enum { MQI_AHEAD = 64 }; /* slots prefetched before they are needed; 2^k */

static inline uint32_t mqi_slot_of(const mqi_index_file *f, int32_t key_hash) {
    return mqi_slot(f->slot_inverse, f->hash_slot_num, key_hash);
}

static inline uint8_t *mqi_slot_at(const mqi_index_file *f, uint32_t slot) {
    return f->slots + (size_t)slot * MQI_SLOT_SIZE;
}

static inline uint8_t *mqi_entry_at(const mqi_index_file *f, int32_t number) {
    return f->entries + (size_t)(uint32_t)number * MQI_ENTRY_SIZE;
}

static inline void mqi_prefetch_entry(const uint8_t *entry) { /* 20 bytes may be on two cache lines */
    __builtin_prefetch(entry, 0, 3);
    __builtin_prefetch(entry + MQI_ENTRY_SIZE - 1, 0, 3);
}

/* Whole seconds since the file's begin, clamped to 0 .. INT32_MAX; 64-bit wrap as in Java. */
static inline int32_t mqi_time_diff(int64_t begin, int64_t store_timestamp) {
    int64_t ms = mqi_sub64(store_timestamp, begin);
    if (begin <= 0 || ms <= 0) return 0;
    uint64_t seconds = (uint64_t)ms / 1000;
    return seconds > INT32_MAX ? INT32_MAX : (int32_t)seconds;
}

/* ---- the header ----------------------------------------------------------------------------------------------------- */

void mqi_index_read_header(const mqi_index_file *f, mqi_index_header *header);

/* A rolled file starts where its predecessor ended; a value of 0 or less leaves the field alone. */
void mqi_index_seed(mqi_index_file *f, int64_t end_phy_offset, int64_t end_timestamp);
/* Writes the count that the broker's flush writes for a file without puts: 1. */
void mqi_index_flush_header(mqi_index_file *f);

/* ---- decode and check ----------------------------------------------------------------------------------------------- */

/* Columns of the entries [start, start + n); the caller has clamped the range to [0, index_num). */
void mqi_index_entries(const mqi_index_file *f, size_t start, size_t n, int32_t *key_hashes, int64_t *phy_offsets,
                       int32_t *time_diffs, int32_t *prev_indexes);
void mqi_index_slots(const mqi_index_file *f, int32_t *out);

/* How many of the n records of a run, from the first on, are the entries from `start` on: key hash, phy offset, and
 * time diff but for that of entry 1, which counts from a file before this one. start >= 1, start + n <= index_num. */
size_t mqi_index_compare_run(const mqi_index_file *f, size_t start, const uint8_t *run, size_t n);

/* How far the entries of a file's slots were brought together (mqi_index_sort.h): the entries 1 .. sorted are in the
 * order of their slots, each linked to its neighbour of the same slot. In any file with entries that is one at
 * least. `most`: look at so many entries only. */
typedef struct mqi_index_order {
    int32_t sorted;
    int32_t moved;            /* 1 if the phy offsets of these decrease somewhere: no broker wrote them in this order */
    int64_t first_phy_offset; /* the smallest and the greatest of these; 0 where there is none */
    int64_t last_phy_offset;
} mqi_index_order;

void mqi_index_read_order(const mqi_index_file *f, int32_t most, mqi_index_order *order);

enum mqi_index_fault {
    MQI_FAULT_INDEX_COUNT,      /* below 0 or above the capacity */
    MQI_FAULT_HASH_SLOT_COUNT,  /* neither the used slots nor the entries (brokers up to 4.7.0) */
    MQI_FAULT_BEGIN_PHY_OFFSET, /* not that of the first entry, nor of one that was brought together with others */
    MQI_FAULT_END_PHY_OFFSET,   /* not that of the last entry, likewise */
    MQI_FAULT_END_TIMESTAMP,    /* not within the second of the last entry */
    MQI_FAULT_SLOT,             /* outside 0 .. index_count */
    MQI_FAULT_SLOT_HEAD,        /* not the newest entry of the slot */
    MQI_FAULT_KEY_HASH,         /* negative */
    MQI_FAULT_TIME_DIFF,        /* negative */
    MQI_FAULT_PREV_INDEX,       /* not the entry before it in the same slot */
};

/* All contradictions in one pass; the first `room` go to `faults`, the result is how many there are. `heads` is
 * scratch of hash_slot_num zeroed words. */
size_t mqi_index_check(const mqi_index_file *f, int32_t *heads, mqi_fault *faults, size_t room);

/* 1 if every used slot heads a chain of entries whose hashes choose that slot, else 0. `newest` > 0 checks only
 * so many of the newest entries, and whether their slots lead to them or to newer ones. */
int mqi_index_fits(const mqi_index_file *f, size_t newest);

#endif
