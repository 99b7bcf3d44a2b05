/* Kafka's offset index and time index: arrays of 8- and 12-byte entries, big-endian, perhaps with zeros after them.
 *
 *   offset index   | 0 relative_offset i32 | 4 position i32 |
 *   time index     | 0 timestamp i64 | 8 relative_offset i32 |
 *
 * The key is an entry's first field. Nothing outside the n entries at `buf` is read, whatever the bytes are. */
#ifndef MQI_KAFKA_INDEX_H
#define MQI_KAFKA_INDEX_H

#include <stdint.h>

#include "mqi_bytes.h"

enum {
    MQI_OFFSET_ENTRY_SIZE = 8,
    MQI_OFFSET_ENTRY_POSITION = 4,
    MQI_TIME_ENTRY_SIZE = 12,
    MQI_TIME_ENTRY_OFFSET = 8,
};

typedef struct {
    const uint8_t *buf;
    int64_t n;
    int times; /* 0: an offset index */
} mqi_kafka_index;

/* ---- one look-up -------------------------------------------------------------------------------------------------- */

enum mqi_kafka_column { MQI_KAFKA_KEY = 0, MQI_KAFKA_VALUE };

static inline int mqi_kafka_width(int times) { return times ? MQI_TIME_ENTRY_SIZE : MQI_OFFSET_ENTRY_SIZE; }

/* `times` is an argument of its own: where it is a constant, a loop has a copy for each kind. */
static inline int64_t mqi_kafka_key_at(const uint8_t *buf, int times, int64_t i) {
    const uint8_t *entry = buf + i * mqi_kafka_width(times);
    return times ? mqi_get64(entry) : mqi_get32(entry);
}

/* Relative offset or timestamp. */
static inline int64_t mqi_kafka_key(const mqi_kafka_index *x, int64_t i) {
    return mqi_kafka_key_at(x->buf, x->times, i);
}

/* Position or relative offset. */
static inline int32_t mqi_kafka_value(const mqi_kafka_index *x, int64_t i) {
    const uint8_t *entry = x->buf + i * mqi_kafka_width(x->times);
    return mqi_get32(entry + (x->times ? MQI_TIME_ENTRY_OFFSET : MQI_OFFSET_ENTRY_POSITION));
}

/* The entry that the broker's search gives, also where the column is not sorted: the last with column <= target, or
 * with `upper` the first with column >= target; -1: none. */
int64_t mqi_kafka_search(const mqi_kafka_index *x, int column, int64_t target, int upper);

/* ---- many look-ups ------------------------------------------------------------------------------------------------ */

/* Layers of keys above the entries: each has the first key of every node of the layer below, a node is a cache line.
 * Only for keys that strictly increase, where the broker's search is the plain floor. */
#define MQI_KAFKA_LAYERS 12

typedef struct {
    int layers;                   /* of keys; 0: no entries */
    void *keys[MQI_KAFKA_LAYERS]; /* int32 of an offset index, int64 of a time index; [0] is the lowest */
    int64_t count[MQI_KAFKA_LAYERS];
    void *memory;
} mqi_kafka_tree;

int mqi_kafka_is_sorted(const mqi_kafka_index *x);
/* The layers are a copy of keys that strictly increase: even if the file changes meanwhile, a search ends inside it. */
enum mqi_kafka_growth { MQI_KAFKA_GROWN = 0, MQI_KAFKA_UNSORTED, MQI_KAFKA_NO_MEMORY };
int mqi_kafka_tree_grow(mqi_kafka_tree *tree, const mqi_kafka_index *x);
void mqi_kafka_tree_free(mqi_kafka_tree *tree);

/* The entry number for a target, -1: none; and for m targets, at most MQI_KAFKA_CHUNK at a time, so that the entries
 * found are still in the nearest cache when they are decoded. */
#define MQI_KAFKA_CHUNK 256
typedef int64_t mqi_kafka_floor(const mqi_kafka_index *x, const mqi_kafka_tree *tree, int64_t target);
typedef void mqi_kafka_floors(const mqi_kafka_index *x, const mqi_kafka_tree *tree, const int64_t *targets, int m,
                              int64_t *at);

/* "portable" and the others that this processor can run, the slowest first: the last one is to be used. */
typedef struct {
    const char *name;
    mqi_kafka_floor *floor;
    mqi_kafka_floors *floors;
} mqi_kafka_floor_kernel;

int mqi_kafka_floor_kernels(const mqi_kafka_floor_kernel **all);

/* The same for targets that never decrease; `from`: an entry that is not after the first answer. */
void mqi_kafka_merge(const mqi_kafka_index *x, const int64_t *targets, int64_t m, int64_t from, int64_t *at);

/* The fields of the m entries found, -1: those of the entry before all. */
void mqi_kafka_take_offsets(const mqi_kafka_index *x, int64_t base_offset, const int64_t *at, int64_t m,
                            int64_t *offsets, int32_t *positions);
void mqi_kafka_take_times(const mqi_kafka_index *x, int64_t base_offset, const int64_t *at, int64_t m,
                          int64_t *timestamps, int64_t *offsets);

/* Compares answers with the entries as they are now; where they do not fit, the file was changed since, and the
 * broker's search is used. Returns how many. */
int64_t mqi_kafka_settle(const mqi_kafka_index *x, const int64_t *targets, int64_t m, int64_t *at);

/* ---- append and decode --------------------------------------------------------------------------------------------- */

enum mqi_kafka_append { MQI_KAFKA_FINE = 0, MQI_KAFKA_FULL, MQI_KAFKA_ORDER, MQI_KAFKA_OVERFLOW };

typedef struct {
    uint8_t *buf;
    int64_t entries, max_entries, base_offset;
    int64_t last_timestamp, last_offset; /* of a time index; an offset index has only the offset */
    int64_t done;                        /* how many of those given were taken, ignored ones included */
} mqi_kafka_end;

/* Appends until the first that the broker would refuse; returns why. */
int mqi_kafka_append_offsets(mqi_kafka_end *end, const int64_t *offsets, const int32_t *positions, int64_t m);
int mqi_kafka_append_times(mqi_kafka_end *end, const int64_t *timestamps, const int64_t *offsets, int64_t m,
                           int skip_full_check);

void mqi_kafka_decode(const mqi_kafka_index *x, int64_t base_offset, int64_t start, int64_t stop, int64_t *first,
                      void *second); /* second: int32 positions, or int64 offsets */

#endif
