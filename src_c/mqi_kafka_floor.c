#include <stdlib.h>

#include "mqi_compiler.h"
#include "mqi_kafka_index.h"

#define LEAF 8      /* entries below a key of the lowest layer: of an offset index one cache line */
#define TIME_LEAF 4 /* of a time index rarely more than one */

int mqi_kafka_is_sorted(const mqi_kafka_index *x) {
    int bad = 0;
    if (x->times)
        for (int64_t i = 1; i < x->n; i++) bad |= mqi_kafka_key_at(x->buf, 1, i - 1) >= mqi_kafka_key_at(x->buf, 1, i);
    else
        for (int64_t i = 1; i < x->n; i++) bad |= mqi_kafka_key_at(x->buf, 0, i - 1) >= mqi_kafka_key_at(x->buf, 0, i);
    return !bad;
}

/* ---- the layers ----------------------------------------------------------------------------------------------------- */

static inline int leaf_of(int times) { return times ? TIME_LEAF : LEAF; }

static inline int fan(int times) { return times ? MQI_LINE / 8 : MQI_LINE / 4; }

/* Stands in a layer after its last key, and is no key of it: a search for what is less never leads out. */
static inline int64_t filling(int times) { return times ? INT64_MAX : INT32_MAX; }

static inline int64_t in_layer(const mqi_kafka_tree *tree, int times, int layer, int64_t i) {
    return times ? ((const int64_t *)tree->keys[layer])[i] : ((const int32_t *)tree->keys[layer])[i];
}

/* Whether the keys increase is checked in the layers themselves: the entries may change while the layers are made, and
 * a search must go down copies that are in order, or it could lead out of them. The greatest of all keys, which no
 * broker writes, counts as one out of order. */
int mqi_kafka_tree_grow(mqi_kafka_tree *tree, const mqi_kafka_index *x) {
    int64_t nodes = fan(x->times), count = x->n;
    size_t size = x->times ? 8 : 4, total = MQI_LINE;
    *tree = (mqi_kafka_tree){0};
    if (x->n == 0) return MQI_KAFKA_GROWN;
    do { /* every layer in whole nodes */
        int64_t below = tree->layers == 0 ? leaf_of(x->times) : nodes;
        count = (count + below - 1) / below;
        tree->count[tree->layers++] = count;
        total += (size_t)((count + nodes - 1) / nodes) * MQI_LINE;
    } while (count > nodes);
    tree->memory = malloc(total);
    if (!tree->memory) return MQI_KAFKA_NO_MEMORY;
    int bad = mqi_kafka_key_at(x->buf, x->times, x->n - 1) == filling(x->times);
    uint8_t *next = (uint8_t *)tree->memory + (MQI_LINE - (uintptr_t)tree->memory % MQI_LINE) % MQI_LINE;
    for (int layer = 0; layer < tree->layers; layer++) {
        int64_t room = (tree->count[layer] + nodes - 1) / nodes * nodes;
        tree->keys[layer] = next;
        for (int64_t i = 0; i < room; i++) {
            int64_t key = filling(x->times);
            if (i < tree->count[layer]) {
                key = layer == 0 ? mqi_kafka_key_at(x->buf, x->times, i * leaf_of(x->times))
                                 : in_layer(tree, x->times, layer - 1, i * nodes);
                bad |= key == filling(x->times);
            }
            if (x->times) ((int64_t *)tree->keys[layer])[i] = key;
            else ((int32_t *)tree->keys[layer])[i] = (int32_t)key;
        }
        for (int64_t i = 1; i < tree->count[layer]; i++)
            bad |= in_layer(tree, x->times, layer, i - 1) >= in_layer(tree, x->times, layer, i);
        next += (size_t)room * size;
    }
    if (bad) mqi_kafka_tree_free(tree);
    return bad ? MQI_KAFKA_UNSORTED : MQI_KAFKA_GROWN;
}

void mqi_kafka_tree_free(mqi_kafka_tree *tree) {
    free(tree->memory);
    *tree = (mqi_kafka_tree){0};
}

/* ---- down the layers: for any processor, and for those with integers of 256 or of 512 bits ------------------------------ */

typedef int32_t four __attribute__((vector_size(16)));

/* How many keys of a node are not greater than the target. */
static inline int64_t rank(const void *keys, int times, int64_t node, int64_t target) {
    if (times) {
        const int64_t *k = (const int64_t *)keys + node * (MQI_LINE / 8);
        int64_t found = 0;
        for (int i = 0; i < MQI_LINE / 8; i++) found += k[i] <= target;
        return found;
    }
    const four *k = (const four *)keys + node * (MQI_LINE / 16);
    int32_t t = (int32_t)target;
    const four sought = {t, t, t, t};
    four found = (k[0] <= sought) + (k[1] <= sought) + (k[2] <= sought) + (k[3] <= sought); /* -1 for each */
    return -(int64_t)(found[0] + found[1] + found[2] + found[3]);
}

/* The last entry of a leaf that is not greater; its first is not. Sums, not branches, which would be mispredicted. */
static inline int64_t last_in(const mqi_kafka_index *x, int times, int64_t leaf, int64_t target) {
    int64_t at = leaf * leaf_of(times), last = x->n - 1;
    for (int64_t step = leaf_of(times) / 2; step > 0; step /= 2) {
        int64_t probe = at + step, inside = probe < last ? probe : last;
        at += step & -(int64_t)((mqi_kafka_key_at(x->buf, times, inside) <= target) & (probe <= last));
    }
    return at;
}

#if defined(__x86_64__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx2,bmi")))

WIDE static inline int64_t wide_rank(const void *keys, int times, int64_t node, int64_t target) {
    const __m256i *k = (const __m256i *)((const uint8_t *)keys + node * MQI_LINE);
    unsigned greater;
    if (times) {
        const __m256i sought = _mm256_set1_epi64x(target);
        greater = 1U << 8 | (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(k[0], sought))) |
                  (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(k[1], sought))) << 4;
    } else {
        const __m256i sought = _mm256_set1_epi32((int32_t)target);
        greater = 1U << 16 | (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(k[0], sought))) |
                  (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(k[1], sought))) << 8;
    }
    return __builtin_ctz(greater);
}

/* Both halves of a whole leaf of offset entries: their keys are every other word, the wrong way round. */
WIDE static inline int64_t wide_last_in(const mqi_kafka_index *x, int times, int64_t leaf, int64_t target) {
    if (times || (leaf + 1) * LEAF > x->n) return last_in(x, times, leaf, target);
    const __m256i *entries = (const __m256i *)(x->buf + leaf * LEAF * MQI_OFFSET_ENTRY_SIZE);
    const __m256i swap = _mm256_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1, 0, 7, 6, 5, 4,
                                          11, 10, 9, 8, 15, 14, 13, 12);
    const __m256i sought = _mm256_set1_epi32((int32_t)target);
    __m256i low = _mm256_shuffle_epi8(_mm256_loadu_si256(entries), swap);
    __m256i high = _mm256_shuffle_epi8(_mm256_loadu_si256(entries + 1), swap);
    unsigned greater = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(low, sought))) |
                       (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(high, sought))) << 8;
    return leaf * LEAF + __builtin_ctz((greater & 0x5555) | 1U << 16) / 2 - 1;
}

#define WIDEST __attribute__((target("avx512f,avx512bw,bmi")))

WIDEST static inline int64_t widest_rank(const void *keys, int times, int64_t node, int64_t target) {
    const __m512i k = _mm512_load_si512((const uint8_t *)keys + node * MQI_LINE);
    if (times) return __builtin_ctz(1U << 8 | (unsigned)_mm512_cmpgt_epi64_mask(k, _mm512_set1_epi64(target)));
    return __builtin_ctz(1U << 16 | (unsigned)_mm512_cmpgt_epi32_mask(k, _mm512_set1_epi32((int32_t)target)));
}

WIDEST static inline int64_t widest_last_in(const mqi_kafka_index *x, int times, int64_t leaf, int64_t target) {
    if (times || (leaf + 1) * LEAF > x->n) return last_in(x, times, leaf, target);
    const __m512i swap = _mm512_broadcast_i32x4(_mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
    const __m512i keys = _mm512_shuffle_epi8(_mm512_loadu_si512(x->buf + leaf * LEAF * MQI_OFFSET_ENTRY_SIZE), swap);
    unsigned greater = (unsigned)_mm512_mask_cmpgt_epi32_mask(0x5555, keys, _mm512_set1_epi32((int32_t)target));
    return leaf * LEAF + __builtin_ctz(greater | 1U << 16) / 2 - 1;
}
#endif

static inline int bounded(int k, int m) { return k < 0 ? 0 : k < m ? k : m; }

static inline int64_t narrowed(int times, int64_t target) {
    return target < filling(times) ? target : filling(times) - 1;
}

/* Targets in groups side by side, and three groups a layer apart: while lines of one are fetched, the others work. */
#define GROUP 16

/* One layer down, for the targets [from, to). */
#define DOWN(name, attribute, rank_of)                                                                                 \
    attribute static inline void name(const mqi_kafka_index *x, const int times, const mqi_kafka_tree *tree,           \
                                      const int layer, const int64_t *wanted, int from, int to, int64_t *at) {         \
        const void *keys = tree->keys[layer];                                                                          \
        const int64_t size = layer ? MQI_LINE : leaf_of(times) * mqi_kafka_width(times);                               \
        const uint8_t *below = layer ? (const uint8_t *)tree->keys[layer - 1] : x->buf;                                \
        for (int k = from; k < to; k++) {                                                                              \
            at[k] = at[k] * fan(times) + rank_of(keys, times, at[k], wanted[k]) - 1;                                   \
            __builtin_prefetch(below + at[k] * size);                                                                  \
            if (times && !layer) __builtin_prefetch(below + at[k] * size + TIME_LEAF * MQI_TIME_ENTRY_SIZE - 1);       \
        }                                                                                                              \
    }

#define FLOOR(one, attribute, down, last_of)                                                                           \
    attribute static inline int64_t one(const mqi_kafka_index *x, const int times, const mqi_kafka_tree *tree,         \
                                        const int64_t target) {                                                        \
        const int64_t first = in_layer(tree, times, 0, 0); /* not the file's: it may be another by now */              \
        const int64_t wanted = narrowed(times, target < first ? first : target);                                       \
        int64_t at = 0;                                                                                                \
        for (int layer = tree->layers - 1; layer >= 0; layer--) down(x, times, tree, layer, &wanted, 0, 1, &at);       \
        return target < first ? -1 : last_of(x, times, at, wanted);                                                    \
    }

#define FLOORS(many, attribute, down, last_of)                                                                         \
    attribute static inline void many(const mqi_kafka_index *x, const int times, const mqi_kafka_tree *tree,           \
                                      const int64_t *targets, const int m, int64_t *at) {                              \
        const int64_t first = in_layer(tree, times, 0, 0);                                                             \
        int64_t wanted[MQI_KAFKA_CHUNK];                                                                               \
        for (int k = 0; k < m; k++) {                                                                                  \
            wanted[k] = narrowed(times, targets[k] < first ? first : targets[k]);                                      \
            at[k] = 0;                                                                                                 \
        }                                                                                                              \
        for (int g = 0; g < m + 2 * GROUP; g += GROUP) {                                                               \
            for (int layer = tree->layers - 1; layer > 0; layer--)                                                     \
                down(x, times, tree, layer, wanted, g, bounded(g + GROUP, m), at);                                     \
            down(x, times, tree, 0, wanted, bounded(g - GROUP, m), bounded(g, m), at);                                 \
            for (int k = bounded(g - 2 * GROUP, m); k < bounded(g - GROUP, m); k++) {                                  \
                int64_t found = last_of(x, times, at[k], wanted[k]);                                                   \
                if (!times) __builtin_prefetch(x->buf + (found + 1) * MQI_OFFSET_ENTRY_SIZE); /* for `settle` */       \
                at[k] = targets[k] < first ? -1 : found;                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }

#define EITHER_FLOOR(name, attribute)                                                                                  \
    attribute static int64_t name##_floor(const mqi_kafka_index *x, const mqi_kafka_tree *tree, int64_t target) {      \
        if (tree->layers == 0) return -1;                                                                              \
        return x->times ? name##_one(x, 1, tree, target) : name##_one(x, 0, tree, target);                             \
    }

#define EITHER_FLOORS(name, attribute)                                                                                 \
    attribute static void name##_floors(const mqi_kafka_index *x, const mqi_kafka_tree *tree, const int64_t *targets,  \
                                        int m, int64_t *at) {                                                          \
        if (tree->layers == 0)                                                                                         \
            for (int k = 0; k < m; k++) at[k] = -1;                                                                    \
        else if (x->times) name##_many(x, 1, tree, targets, m, at);                                                    \
        else name##_many(x, 0, tree, targets, m, at);                                                                  \
    }

#define KERNEL(name, attribute, rank_of, last_of)                                                                      \
    DOWN(name##_down, attribute, rank_of)                                                                              \
    FLOOR(name##_one, attribute, name##_down, last_of)                                                                 \
    FLOORS(name##_many, attribute, name##_down, last_of)                                                               \
    EITHER_FLOOR(name, attribute)                                                                                      \
    EITHER_FLOORS(name, attribute)

KERNEL(portable, , rank, last_in)

static mqi_kafka_floor_kernel kernels[3] = {{"portable", portable_floor, portable_floors}};
static int n_kernels = 1;

#if defined(__x86_64__)
KERNEL(avx2, WIDE, wide_rank, wide_last_in)
KERNEL(avx512, WIDEST, widest_rank, widest_last_in)

__attribute__((constructor)) static void choose_when_loaded(void) {
    __builtin_cpu_init();
    /* GCOVR_EXCL_BR_START: the processor is as it is */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi")) return;
    /* GCOVR_EXCL_BR_STOP */
    kernels[n_kernels++] = (mqi_kafka_floor_kernel){"avx2", avx2_floor, avx2_floors};
    /* GCOVR_EXCL_BR_START: the processor is as it is */
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) return;
    /* GCOVR_EXCL_BR_STOP */
    kernels[n_kernels++] = (mqi_kafka_floor_kernel){"avx512", avx512_floor, avx512_floors};
}
#endif

int mqi_kafka_floor_kernels(const mqi_kafka_floor_kernel **all) {
    *all = kernels;
    return n_kernels;
}

static inline int64_t settle(const mqi_kafka_index *x, int times, const int64_t *targets, int64_t m, int64_t *at) {
    const uint8_t *buf = x->buf;
    int64_t moved = 0, last = x->n - 1;
    for (int64_t k = 0; k < m; k++) {
        int fits = (at[k] < 0 || mqi_kafka_key_at(buf, times, at[k]) <= targets[k]) &&
                   (at[k] >= last || mqi_kafka_key_at(buf, times, at[k] + 1) > targets[k]);
        if (LIKELY(fits)) continue;
        at[k] = mqi_kafka_search(x, MQI_KAFKA_KEY, targets[k], 0);
        moved++;
    }
    return moved;
}

int64_t mqi_kafka_settle(const mqi_kafka_index *x, const int64_t *targets, int64_t m, int64_t *at) {
    return x->times ? settle(x, 1, targets, m, at) : settle(x, 0, targets, m, at);
}

void mqi_kafka_take_offsets(const mqi_kafka_index *x, int64_t base_offset, const int64_t *at, int64_t m,
                            int64_t *offsets, int32_t *positions) {
    for (int64_t k = 0; k < m; k++) {
        int64_t i = at[k] * MQI_OFFSET_ENTRY_SIZE; /* of none, no address is made: there may be no buffer */
        offsets[k] = base_offset + (i < 0 ? 0 : mqi_get32(x->buf + i));
        positions[k] = i < 0 ? 0 : mqi_get32(x->buf + i + MQI_OFFSET_ENTRY_POSITION);
    }
}

void mqi_kafka_take_times(const mqi_kafka_index *x, int64_t base_offset, const int64_t *at, int64_t m,
                          int64_t *timestamps, int64_t *offsets) {
    for (int64_t k = 0; k < m; k++) {
        int64_t i = at[k] * MQI_TIME_ENTRY_SIZE;
        timestamps[k] = i < 0 ? -1 : mqi_get64(x->buf + i);
        offsets[k] = base_offset + (i < 0 ? 0 : mqi_get32(x->buf + i + MQI_TIME_ENTRY_OFFSET));
    }
}

/* ---- sorted targets --------------------------------------------------------------------------------------------------- */

static inline void merge(const mqi_kafka_index *x, int times, const int64_t *targets, int64_t m, int64_t from,
                         int64_t *at) {
    int64_t low = from; /* entries before it are not greater than the target */
    for (int64_t k = 0; k < m; k++) {
        int64_t target = targets[k], high = x->n;
        for (int64_t step = 1; low < x->n; step *= 2) { /* in leaps that double */
            int64_t probe = low + step - 1 < x->n ? low + step - 1 : x->n - 1;
            if (mqi_kafka_key_at(x->buf, times, probe) > target) {
                high = probe;
                break;
            }
            low = probe + 1;
        }
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (mqi_kafka_key_at(x->buf, times, middle) <= target) low = middle + 1;
            else high = middle;
        }
        at[k] = low - 1;
    }
}

void mqi_kafka_merge(const mqi_kafka_index *x, const int64_t *targets, int64_t m, int64_t from, int64_t *at) {
    if (x->times) merge(x, 1, targets, m, from, at);
    else merge(x, 0, targets, m, from, at);
}
