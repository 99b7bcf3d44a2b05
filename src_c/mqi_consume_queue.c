#include "mqi_consume_queue.h"

#include <stdlib.h>

int64_t mqi_units_group(const mqi_queue_unit *units, int64_t n, int64_t queues, mqi_queue_unit *out,
                        int64_t *offsets) {
    for (int64_t k = 0; k <= queues; k++) offsets[k] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (units[i].queue < 0 || units[i].queue >= queues) return i;
        offsets[units[i].queue + 1]++;
    }
    for (int64_t k = 0; k < queues; k++) offsets[k + 1] += offsets[k];
    /* offsets[k] runs ahead to the end of queue k, which is the start of k + 1: shifted back afterwards */
    for (int64_t i = 0; i < n; i++) out[offsets[units[i].queue]++] = units[i];
    for (int64_t k = queues; k > 0; k--) offsets[k] = offsets[k - 1];
    offsets[0] = 0;
    return -1;
}

static inline void put_unit(uint8_t *p, int64_t phy_offset, int32_t size, int64_t tags_code) {
    mqi_set64(p + MQI_UNIT_PHY_OFFSET, phy_offset);
    mqi_set32(p + MQI_UNIT_MESSAGE_SIZE, size);
    mqi_set64(p + MQI_UNIT_TAGS_CODE, tags_code);
}

/* Java's sum: hostile offsets wrap instead of being undefined. */
static inline int64_t end_of(int64_t phy_offset, int32_t size) {
    return (int64_t)((uint64_t)phy_offset + (uint64_t)(int64_t)size);
}

int64_t mqi_units_encode(mqi_unit_append *end, const mqi_queue_unit *units, int64_t n, uint8_t *out) {
    uint8_t *p = out;
    for (int64_t i = 0; i < n; i++) {
        const mqi_queue_unit *u = units + i;
        int64_t behind = end_of(u->phy_offset, u->size);
        if (behind <= end->max_phy_offset || (u->queue_offset != 0 && u->queue_offset < end->next_offset)) {
            end->repeated++;
            continue;
        }
        end->misplaced += u->queue_offset > end->next_offset;
        put_unit(p, u->phy_offset, u->size, u->tags_code);
        p += MQI_UNIT_SIZE;
        end->max_phy_offset = behind;
        end->next_offset++;
    }
    return (p - out) / MQI_UNIT_SIZE;
}

void mqi_units_decode(const uint8_t *units, int64_t n, int64_t *phy_offsets, int32_t *sizes, int64_t *tags_codes) {
    const uint8_t *p = units;
    for (int64_t i = 0; i < n; i++, p += MQI_UNIT_SIZE) {
        phy_offsets[i] = mqi_get64(p + MQI_UNIT_PHY_OFFSET);
        sizes[i] = mqi_get32(p + MQI_UNIT_MESSAGE_SIZE);
        tags_codes[i] = mqi_get64(p + MQI_UNIT_TAGS_CODE);
    }
}

static inline int64_t code_of(const uint8_t *unit) { return mqi_get64(unit + MQI_UNIT_TAGS_CODE); }

/* Few hashes are compared one by one, without a branch on the outcome; the places that are left over repeat the last. */
#define FEW 4

static int64_t select_few(const uint8_t *units, int64_t n, int64_t first, const int32_t *hashes, int64_t k,
                          int64_t *out) {
    int32_t h[FEW];
    int64_t found = 0;
    for (int64_t j = 0; j < FEW; j++) h[j] = hashes[j < k ? j : k - 1];
    for (int64_t i = 0; i < n; i++) {
        int64_t code = code_of(units + i * MQI_UNIT_SIZE);
        int32_t got = (int32_t)code;
        out[found] = first + i;
        found += (got == h[0]) | (got == h[1]) | (got == h[2]) | (got == h[3]) | (code <= MQI_MAX_EXT_ADDRESS);
    }
    return found;
}

/* An open table at most a quarter full, whose empty places hold a value that is a hash only if `has_empty` says so. */
typedef struct {
    int32_t *places;
    uint32_t mask;
    int has_empty;
} hash_set;

#define EMPTY 0

static inline uint32_t place_of(const hash_set *set, int32_t hash) {
    return ((uint32_t)hash * 0x9E3779B1u >> 7) & set->mask;
}

static int set_make(hash_set *set, const int32_t *hashes, int64_t k) {
    uint64_t room = 64;
    while (room < 4 * (uint64_t)k) room *= 2;
    if (room > (1u << 25) || !(set->places = calloc(room, sizeof *set->places))) return MQI_NO_MEMORY;
    set->mask = (uint32_t)(room - 1);
    set->has_empty = 0;
    for (int64_t j = 0; j < k; j++) {
        uint32_t at = place_of(set, hashes[j]);
        if (hashes[j] == EMPTY) set->has_empty = 1;
        while (set->places[at] != EMPTY && set->places[at] != hashes[j]) at = (at + 1) & set->mask;
        set->places[at] = hashes[j];
    }
    return MQI_OK;
}

static inline int set_holds(const hash_set *set, int32_t hash) {
    uint32_t at = place_of(set, hash);
    if (hash == EMPTY) return set->has_empty;
    while (set->places[at] != EMPTY && set->places[at] != hash) at = (at + 1) & set->mask;
    return set->places[at] == hash;
}

int64_t mqi_units_select(const uint8_t *units, int64_t n, int64_t first, const int32_t *hashes, int64_t k,
                         int64_t *out) {
    hash_set set;
    int64_t found = 0;
    if (n == 0) return 0;
    if (k > 0 && k <= FEW) return select_few(units, n, first, hashes, k, out);
    if (set_make(&set, hashes, k) != MQI_OK) return MQI_NO_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        int64_t code = code_of(units + i * MQI_UNIT_SIZE);
        out[found] = first + i;
        found += code <= MQI_MAX_EXT_ADDRESS || set_holds(&set, (int32_t)code);
    }
    free(set.places);
    return found;
}

int64_t mqi_units_check(const uint8_t *units, int64_t n) {
    const uint8_t *p = units;
    for (int64_t i = 0; i < n; i++, p += MQI_UNIT_SIZE)
        if (mqi_get64(p + MQI_UNIT_PHY_OFFSET) < 0 || mqi_get32(p + MQI_UNIT_MESSAGE_SIZE) <= 0) return i;
    return n;
}

int64_t mqi_units_compare(const uint8_t *queue, int64_t places, int64_t first_offset, const mqi_queue_unit *units,
                          int64_t n, int64_t *out) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const mqi_queue_unit *u = units + i;
        int same = 0;
        /* unsigned: an offset before the first is a large number */
        uint64_t at = (uint64_t)u->queue_offset - (uint64_t)first_offset;
        if (at < (uint64_t)places) {
            const uint8_t *p = queue + at * MQI_UNIT_SIZE;
            same = mqi_get64(p + MQI_UNIT_PHY_OFFSET) == u->phy_offset &&
                   mqi_get32(p + MQI_UNIT_MESSAGE_SIZE) == u->size &&
                   mqi_get64(p + MQI_UNIT_TAGS_CODE) == u->tags_code;
        }
        out[found] = i;
        found += !same;
    }
    return found;
}
