/* Where slots and entries are, and the time of an entry: what put, select and check share in their inner loops. */
#ifndef MQI_INDEX_INLINE_H
#define MQI_INDEX_INLINE_H

#include "mqi_index_file.h"

enum { MQI_AHEAD = 64 }; /* slots asked for before they are needed; 2^k */

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline uint32_t slot_of(const mqi_index_file *f, int32_t key_hash) {
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): the geometry of an open file has slots */
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

/* Whole seconds since the file's begin, clamped to 0 .. INT32_MAX; 64-bit wrap as in Java. */
static inline int32_t time_diff(int64_t begin, int64_t store_timestamp) {
    int64_t ms = (int64_t)((uint64_t)store_timestamp - (uint64_t)begin);
    if (begin <= 0 || ms <= 0) return 0;
    uint64_t seconds = (uint64_t)ms / 1000;
    return seconds > INT32_MAX ? INT32_MAX : (int32_t)seconds;
}

#endif
