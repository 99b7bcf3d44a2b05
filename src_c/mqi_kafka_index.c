#include "mqi_kafka_index.h"

#include <stdlib.h>
#include <string.h>

#include "mqi_bytes.h"

#define PAGES 8192 /* bytes at the end that the broker searches first: they stay in the page cache */
#define LINE 64
#define LEAF 8 /* entries below a key of the lowest layer: of an offset index one cache line */

static inline int width(int times) { return times ? MQI_TIME_ENTRY_SIZE : MQI_OFFSET_ENTRY_SIZE; }

static inline int64_t key_at(const uint8_t *buf, int times, int64_t i) {
    const uint8_t *p = buf + i * width(times);
    return times ? mqi_get64(p) : mqi_get32(p);
}

int64_t mqi_kafka_key(const mqi_kafka_index *x, int64_t i) { return key_at(x->buf, x->times, i); }

int32_t mqi_kafka_value(const mqi_kafka_index *x, int64_t i) {
    return mqi_get32(x->buf + i * width(x->times) + (x->times ? 8 : 4));
}

/* ---- one look-up -------------------------------------------------------------------------------------------------- */

static inline int64_t column_at(const mqi_kafka_index *x, int column, int64_t i) {
    return column == MQI_KAFKA_KEY ? mqi_kafka_key(x, i) : mqi_kafka_value(x, i);
}

int64_t mqi_kafka_search(const mqi_kafka_index *x, int column, int64_t target, int upper) {
    int64_t warm = PAGES / width(x->times), last = x->n - 1, low, high;
    if (x->n == 0) return -1;
    int64_t hot = last > warm ? last - warm : 0;
    if (column_at(x, column, hot) < target) {
        low = hot;
        high = last;
    } else if (column_at(x, column, 0) > target) {
        return upper ? 0 : -1;
    } else {
        low = 0;
        high = hot;
    }
    while (low < high) {
        int64_t middle = (low + high + 1) / 2, found = column_at(x, column, middle);
        if (found > target)
            high = middle - 1;
        else if (found < target)
            low = middle;
        else
            return middle;
    }
    if (!upper) return low;
    return low == last ? -1 : low + 1;
}

/* ---- many look-ups ------------------------------------------------------------------------------------------------ */

int mqi_kafka_is_sorted(const mqi_kafka_index *x) {
    int bad = 0;
    if (x->times)
        for (int64_t i = 1; i < x->n; i++) bad |= key_at(x->buf, 1, i - 1) >= key_at(x->buf, 1, i);
    else
        for (int64_t i = 1; i < x->n; i++) bad |= key_at(x->buf, 0, i - 1) >= key_at(x->buf, 0, i);
    return !bad;
}

static inline int fan(int times) { return times ? LINE / 8 : LINE / 4; }

int mqi_kafka_tree_grow(mqi_kafka_tree *tree, const mqi_kafka_index *x) {
    int64_t nodes = fan(x->times), count = x->n;
    size_t size = x->times ? 8 : 4, total = LINE;
    *tree = (mqi_kafka_tree){0};
    if (x->n == 0) return 1;
    do { /* every layer in whole nodes */
        int64_t below = tree->layers == 0 ? LEAF : nodes;
        count = (count + below - 1) / below;
        tree->count[tree->layers++] = count;
        total += (size_t)((count + nodes - 1) / nodes) * LINE;
    } while (count > nodes);
    tree->memory = malloc(total);
    if (!tree->memory) return 0;
    uint8_t *next = (uint8_t *)tree->memory + (LINE - (uintptr_t)tree->memory % LINE) % LINE;
    for (int layer = 0; layer < tree->layers; layer++) {
        int64_t room = (tree->count[layer] + nodes - 1) / nodes * nodes;
        tree->keys[layer] = next;
        for (int64_t i = 0; i < room; i++) { /* behind the last a key that is never less */
            int64_t key = INT64_MAX;
            if (i < tree->count[layer])
                key = layer == 0     ? key_at(x->buf, x->times, i * LEAF)
                      : x->times ? ((const int64_t *)tree->keys[layer - 1])[i * nodes]
                                 : ((const int32_t *)tree->keys[layer - 1])[i * nodes];
            if (x->times)
                ((int64_t *)tree->keys[layer])[i] = key;
            else
                ((int32_t *)tree->keys[layer])[i] = key > INT32_MAX ? INT32_MAX : (int32_t)key;
        }
        next += (size_t)room * size;
    }
    return 1;
}

void mqi_kafka_tree_free(mqi_kafka_tree *tree) {
    free(tree->memory);
    *tree = (mqi_kafka_tree){0};
}

typedef int32_t four __attribute__((vector_size(16)));

/* How many keys of node `node` are not greater than the target. */
static inline int64_t rank_in(const void *keys, int times, int64_t node, int64_t target) {
    if (times) {
        const int64_t *k = (const int64_t *)keys + node * (LINE / 8);
        int64_t rank = 0;
        for (int i = 0; i < LINE / 8; i++) rank += k[i] <= target;
        return rank;
    }
    const four *k = (const four *)keys + node * (LINE / 16);
    int32_t t = (int32_t)target;
    const four want = {t, t, t, t};
    four found = (k[0] <= want) + (k[1] <= want) + (k[2] <= want) + (k[3] <= want); /* -1 for each */
    return -(int64_t)(found[0] + found[1] + found[2] + found[3]);
}

/* From node `node` of layer `from` down to the entry of the layer `to`, which is a node of the layer below it. */
static inline int64_t descend(const mqi_kafka_tree *tree, int times, int from, int to, int64_t node, int64_t target) {
    for (int layer = from; layer >= to; layer--) {
        int64_t at = node * fan(times) + rank_in(tree->keys[layer], times, node, target) - 1;
        node = at < tree->count[layer] ? at : tree->count[layer] - 1; /* a target like the filling */
    }
    return node;
}

/* The last entry of node `node` that is not greater; its first is not. Sums, not branches: they would be guesses. */
static inline int64_t floor_in(const mqi_kafka_index *x, int times, int64_t node, int64_t target) {
    int64_t at = node * LEAF, last = x->n - 1;
    for (int64_t step = LEAF / 2; step > 0; step /= 2) {
        int64_t probe = at + step, inside = probe < last ? probe : last;
        at += step & -(int64_t)((key_at(x->buf, times, inside) <= target) & (probe <= last));
    }
    return at;
}

static inline int64_t narrowed(int times, int64_t target) {
    if (times) return target;
    return target > INT32_MAX ? INT32_MAX : target;
}

static inline int below_all(const mqi_kafka_index *x, int times, int64_t target) {
    return x->n == 0 || key_at(x->buf, times, 0) > target;
}

int64_t mqi_kafka_floor(const mqi_kafka_index *x, const mqi_kafka_tree *tree, int64_t target) {
    if (below_all(x, x->times, target)) return -1;
    target = narrowed(x->times, target);
    return floor_in(x, x->times, descend(tree, x->times, tree->layers - 1, 0, 0, target), target);
}

static inline void floors(const mqi_kafka_index *x, int times, const mqi_kafka_tree *tree, const int64_t *targets, int m,
                          int64_t *at) {
    const int top = tree->layers - 1;
    const int64_t first = key_at(x->buf, times, 0);
    for (int k = 0; k < m; k++) { /* the upper layers live in the nearest caches */
        int64_t target = narrowed(times, targets[k] < first ? first : targets[k]);
        at[k] = descend(tree, times, top, 1, 0, target);
        __builtin_prefetch((const uint8_t *)tree->keys[0] + at[k] * LINE);
    }
    for (int k = 0; k < m; k++) {
        int64_t target = narrowed(times, targets[k] < first ? first : targets[k]);
        at[k] = descend(tree, times, 0, 0, at[k], target);
        const uint8_t *leaf = x->buf + at[k] * LEAF * width(times);
        __builtin_prefetch(leaf);
        if (times) __builtin_prefetch(leaf + LINE);
    }
    for (int k = 0; k < m; k++) {
        int64_t target = narrowed(times, targets[k] < first ? first : targets[k]);
        at[k] = targets[k] < first ? -1 : floor_in(x, times, at[k], target);
    }
}

void mqi_kafka_floors(const mqi_kafka_index *x, const mqi_kafka_tree *tree, const int64_t *targets, int m, int64_t *at) {
    if (x->n == 0)
        for (int k = 0; k < m; k++) at[k] = -1;
    else if (x->times)
        floors(x, 1, tree, targets, m, at);
    else
        floors(x, 0, tree, targets, m, at);
}

static inline void merge(const mqi_kafka_index *x, int times, const int64_t *targets, int64_t m, int64_t from,
                         int64_t *at) {
    int64_t low = from; /* entries before it are not greater than the target */
    for (int64_t k = 0; k < m; k++) {
        int64_t target = targets[k], high = x->n;
        for (int64_t step = 1; low < x->n; step *= 2) { /* in leaps that double */
            int64_t probe = low + step - 1 < x->n ? low + step - 1 : x->n - 1;
            if (key_at(x->buf, times, probe) > target) {
                high = probe;
                break;
            }
            low = probe + 1;
        }
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (key_at(x->buf, times, middle) <= target)
                low = middle + 1;
            else
                high = middle;
        }
        at[k] = low - 1;
    }
}

void mqi_kafka_merge(const mqi_kafka_index *x, const int64_t *targets, int64_t m, int64_t from, int64_t *at) {
    if (x->times)
        merge(x, 1, targets, m, from, at);
    else
        merge(x, 0, targets, m, from, at);
}

/* ---- append and decode --------------------------------------------------------------------------------------------- */

/* How many may be appended before the first that is refused, and why that is. */
static int64_t count_good(const mqi_kafka_end *end, const int64_t *offsets, int64_t m, int *why) {
    int64_t room = end->max_entries - end->entries, limit = m < room ? m : room;
    int64_t last = end->entries > 0 ? end->last_offset : INT64_MIN;
    uint64_t base = (uint64_t)end->base_offset;
    for (int64_t i = 0; i < limit; i++) {
        if (offsets[i] <= last && !(end->entries + i == 0)) {
            *why = MQI_KAFKA_ORDER;
            return i;
        }
        if ((uint64_t)offsets[i] - base > INT32_MAX) {
            *why = MQI_KAFKA_OVERFLOW;
            return i;
        }
        last = offsets[i];
    }
    *why = limit < m ? MQI_KAFKA_FULL : MQI_KAFKA_FINE;
    return limit;
}

int mqi_kafka_append_offsets(mqi_kafka_end *end, const int64_t *offsets, const int32_t *positions, int64_t m) {
    int why;
    int64_t good = count_good(end, offsets, m, &why);
    uint8_t *p = end->buf + end->entries * MQI_OFFSET_ENTRY_SIZE;
    for (int64_t i = 0; i < good; i++, p += MQI_OFFSET_ENTRY_SIZE) {
        uint64_t relative = (uint64_t)offsets[i] - (uint64_t)end->base_offset;
        mqi_set64(p, (int64_t)(relative << 32 | (uint32_t)positions[i]));
    }
    if (good > 0) end->last_offset = offsets[good - 1];
    end->entries += good;
    end->done = good;
    return why;
}

int mqi_kafka_append_times(mqi_kafka_end *end, const int64_t *timestamps, const int64_t *offsets, int64_t m,
                           int skip_full_check) {
    uint64_t base = (uint64_t)end->base_offset;
    int64_t full = skip_full_check ? end->max_entries : end->max_entries - 1;
    for (end->done = 0; end->done < m; end->done++) {
        int64_t timestamp = timestamps[end->done], offset = offsets[end->done];
        if (!skip_full_check && end->entries >= full) return MQI_KAFKA_FULL;
        if (end->entries > 0 && (offset < end->last_offset || timestamp < end->last_timestamp)) return MQI_KAFKA_ORDER;
        if (timestamp <= end->last_timestamp) continue;
        if (end->entries >= full) return MQI_KAFKA_FULL;
        if ((uint64_t)offset - base > INT32_MAX) return MQI_KAFKA_OVERFLOW;
        uint8_t *p = end->buf + end->entries * MQI_TIME_ENTRY_SIZE;
        mqi_set64(p, timestamp);
        mqi_set32(p + 8, (int32_t)((uint64_t)offset - base));
        end->entries++;
        end->last_timestamp = timestamp;
        end->last_offset = offset;
    }
    return MQI_KAFKA_FINE;
}

void mqi_kafka_decode(const mqi_kafka_index *x, int64_t base_offset, int64_t start, int64_t stop, int64_t *first,
                      void *second) {
    for (int64_t i = start; i < stop; i++) {
        const uint8_t *p = x->buf + i * width(x->times);
        if (x->times) {
            first[i - start] = mqi_get64(p);
            ((int64_t *)second)[i - start] = base_offset + mqi_get32(p + 8);
        } else {
            first[i - start] = base_offset + mqi_get32(p);
            ((int32_t *)second)[i - start] = mqi_get32(p + 4);
        }
    }
}
