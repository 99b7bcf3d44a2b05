#include "mqi_consume_queue.h"

#include <stdlib.h>

#include "mqi_compiler.h"

int64_t mqi_units_count(const mqi_queue_unit *units, int64_t n, int64_t queues, int64_t *offsets) {
    for (int64_t k = 0; k <= queues; k++) offsets[k] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (units[i].queue < 0 || units[i].queue >= queues) return i;
        offsets[units[i].queue + 1]++;
    }
    for (int64_t k = 0; k < queues; k++) offsets[k + 1] += offsets[k];
    return -1;
}

void mqi_units_sort(const mqi_queue_unit *units, int64_t n, int64_t queues, mqi_queue_unit *out, int64_t *offsets) {
    /* offsets[k] runs ahead to the end of queue k, which is the start of k + 1: shifted back afterwards */
    for (int64_t i = 0; i < n; i++) out[offsets[units[i].queue]++] = units[i];
    for (int64_t k = queues; k > 0; k--) offsets[k] = offsets[k - 1];
    offsets[0] = 0;
}

int64_t mqi_units_sound(const mqi_queue_unit *units, int64_t n) {
    int64_t signs = 0;
    for (int64_t i = 0; i < n; i++) signs |= units[i].phy_offset | ((int64_t)units[i].size - 1);
    return signs >= 0;
}

int64_t mqi_units_line(const mqi_queue_unit *units, int64_t n, int64_t phy_offset, int64_t limit) {
    int64_t at = n > 0 ? units[0].queue_offset : 0;
    for (int64_t i = 0; i < n; i++, at++) {
        if (units[i].queue_offset != at || at < 0 || at >= limit || units[i].phy_offset <= phy_offset) return i;
        phy_offset = units[i].phy_offset;
    }
    return n;
}

static inline void put_unit(uint8_t *p, int64_t phy_offset, int32_t size, int64_t tags_code) {
    mqi_set64(p + MQI_UNIT_PHY_OFFSET, phy_offset);
    mqi_set32(p + MQI_UNIT_MESSAGE_SIZE, size);
    mqi_set64(p + MQI_UNIT_TAGS_CODE, tags_code);
}

int64_t mqi_units_encode(mqi_unit_append *end, const mqi_queue_unit *units, int64_t n, uint8_t *out) {
    uint8_t *p = out;
    for (int64_t i = 0; i < n; i++) {
        const mqi_queue_unit *u = units + i;
        int64_t frame_end = mqi_add64(u->phy_offset, u->size);
        if (frame_end <= end->max_phy_offset || (u->queue_offset != 0 && u->queue_offset < end->next_offset)) {
            end->repeated++;
            continue;
        }
        end->misplaced += u->queue_offset > end->next_offset;
        put_unit(p, u->phy_offset, u->size, u->tags_code);
        p += MQI_UNIT_SIZE;
        end->max_phy_offset = frame_end;
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

/* Few hashes are compared one by one, without a branch on the outcome; unused places repeat the last one. */
#define FEW 4

/* More hashes are in an open table at most a quarter full, whose empty places hold a value that is a hash only if
 * `has_empty` is set. */
typedef struct {
    enum { ALL, PAIR, SOME, MANY } kind;
    int32_t few[FEW];
    int32_t *places;
    uint32_t mask;
    int has_empty;
} filter;

#define EMPTY 0

static inline uint32_t place_of(const filter *f, int32_t hash) { return ((uint32_t)hash * 0x9E3779B1u >> 7) & f->mask; }

static int fill_table(filter *f, const int32_t *hashes, int64_t k) {
    uint64_t room = 64;
    while (room < 4 * (uint64_t)k) room *= 2;
    if (room <= 1u << 25) f->places = calloc(room, sizeof *f->places);
    if (!f->places) return MQI_NO_MEMORY;
    f->mask = (uint32_t)(room - 1);
    for (int64_t j = 0; j < k; j++) {
        uint32_t at = place_of(f, hashes[j]);
        if (hashes[j] == EMPTY) f->has_empty = 1;
        while (f->places[at] != EMPTY && f->places[at] != hashes[j]) at = (at + 1) & f->mask;
        f->places[at] = hashes[j];
    }
    return MQI_OK;
}

/* k below 0: everything passes. `free(f->places)` frees its memory. */
static int filter_make(filter *f, const int32_t *hashes, int64_t k) {
    *f = (filter){.kind = k < 0 ? ALL : k > FEW || k == 0 ? MANY : k > 2 ? SOME : PAIR};
    if (f->kind == MANY) return fill_table(f, hashes, k);
    for (int64_t j = 0; f->kind != ALL && j < FEW; j++) f->few[j] = hashes[j < k ? j : k - 1];
    return MQI_OK;
}

static inline int table_holds(const filter *f, int32_t hash) {
    uint32_t at = place_of(f, hash);
    if (hash == EMPTY) return f->has_empty;
    while (f->places[at] != EMPTY && f->places[at] != hash) at = (at + 1) & f->mask;
    return f->places[at] == hash;
}

/* `kind` is the filter's; a constant where it is called, so that each kind has a loop of its own. */
static ALWAYS_INLINE int passes(const filter *f, int kind, int64_t code) {
    int32_t hash = (int32_t)code;
    if (kind == ALL) return 1; /* GCOVR_EXCL_BR_LINE: a constant in each copy */
    /* GCOVR_EXCL_BR_START: the same */
    if (kind == MANY) return code <= MQI_MAX_EXT_ADDRESS || table_holds(f, hash);
    int found = (hash == f->few[0]) | (hash == f->few[1]) | (code <= MQI_MAX_EXT_ADDRESS);
    return kind == PAIR ? found : found | (hash == f->few[2]) | (hash == f->few[3]);
    /* GCOVR_EXCL_BR_STOP */
}

static ALWAYS_INLINE int64_t select_kind(const filter *f, int kind, const uint8_t *units, int64_t n, int64_t first,
                                         int64_t *out) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        out[found] = first + i;
        found += passes(f, kind, code_of(units + i * MQI_UNIT_SIZE));
    }
    return found;
}

int64_t mqi_units_select(const uint8_t *units, int64_t n, int64_t first, const int32_t *hashes, int64_t k,
                         int64_t *out) {
    filter f;
    if (n == 0) return 0;
    if (filter_make(&f, hashes, k) != MQI_OK) return MQI_NO_MEMORY;
    int64_t found = f.kind == PAIR   ? select_kind(&f, PAIR, units, n, first, out)
                    : f.kind == SOME ? select_kind(&f, SOME, units, n, first, out)
                                     : select_kind(&f, MANY, units, n, first, out);
    free(f.places);
    return found;
}

/* The file of the log that was used last: messages in [start, stop) are in it. */
typedef struct {
    int64_t start, stop;
} log_part;

static inline int lies_in(log_part part, int64_t phy_offset, int32_t size) {
    return (size > 0) & (phy_offset >= part.start) & (phy_offset <= part.stop - size);
}

/* The last file that begins at `phy_offset` or before it. */
static __attribute__((noinline)) log_part part_of(const mqi_unit_take *t, int64_t phy_offset) {
    int64_t low = 0, high = t->files;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (t->starts[middle] <= phy_offset) low = middle + 1;
        else high = middle;
    }
    return low ? (log_part){t->starts[low - 1], t->stops[low - 1]} : (log_part){INT64_MAX, 0};
}

/* What is read in the loop is copied: the compiler cannot know that no column overlaps it. */
static ALWAYS_INLINE int64_t take_kind(mqi_unit_take *t, const filter f, int kind, const uint8_t *units, int64_t n,
                                       int64_t first) {
    const mqi_unit_take to = *t;
    int64_t i = 0, found = to.found;
    log_part part = {INT64_MAX, 0};
    while (i < n && found < to.room) {
        int64_t stop = n - i <= to.room - found ? n : i + to.room - found; /* so many fit if all of them pass */
        for (; i < stop; i++) {
            const uint8_t *unit = units + i * MQI_UNIT_SIZE;
            int64_t phy_offset = mqi_get64(unit + MQI_UNIT_PHY_OFFSET), code = code_of(unit);
            int32_t size = mqi_get32(unit + MQI_UNIT_MESSAGE_SIZE);
            int passing = passes(&f, kind, code);
            if (UNLIKELY(passing & !lies_in(part, phy_offset, size))) {
                part = part_of(&to, phy_offset);
                if (!lies_in(part, phy_offset, size)) size = 0, t->gone++;
            }
            to.queue_offsets[found] = first + i;
            to.phy_offsets[found] = phy_offset;
            to.sizes[found] = size;
            if (to.tags_codes) to.tags_codes[found] = code;
            found += passing;
        }
    }
    t->found = found;
    return i;
}

int64_t mqi_units_take(mqi_unit_take *t, const int32_t *hashes, int64_t k, const uint8_t *units, int64_t n,
                       int64_t first) {
    filter f;
    if (filter_make(&f, hashes, k) != MQI_OK) return MQI_NO_MEMORY;
    int64_t seen = f.kind == ALL    ? take_kind(t, f, ALL, units, n, first)
                   : f.kind == PAIR ? take_kind(t, f, PAIR, units, n, first)
                   : f.kind == SOME ? take_kind(t, f, SOME, units, n, first)
                                    : take_kind(t, f, MANY, units, n, first);
    free(f.places);
    return seen;
}

int64_t mqi_units_check(const uint8_t *units, int64_t n) {
    const uint8_t *p = units;
    for (int64_t i = 0; i < n; i++, p += MQI_UNIT_SIZE)
        if (mqi_get64(p + MQI_UNIT_PHY_OFFSET) < 0 || mqi_get32(p + MQI_UNIT_MESSAGE_SIZE) <= 0) return i;
    return n;
}

static inline int is_unit(const uint8_t *p, const mqi_queue_unit *u) {
    return mqi_get64(p + MQI_UNIT_PHY_OFFSET) == u->phy_offset && mqi_get32(p + MQI_UNIT_MESSAGE_SIZE) == u->size &&
           mqi_get64(p + MQI_UNIT_TAGS_CODE) == u->tags_code;
}

int64_t mqi_units_compare(const uint8_t *queue, int64_t places, int64_t first_offset, const mqi_queue_unit *units,
                          int64_t n, int64_t *out) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const mqi_queue_unit *u = units + i;
        /* unsigned: an offset before the first is a large number */
        uint64_t at = (uint64_t)u->queue_offset - (uint64_t)first_offset;
        int same = at < (uint64_t)places && is_unit(queue + at * MQI_UNIT_SIZE, u);
        out[found] = i;
        found += !same;
    }
    return found;
}

int64_t mqi_units_match(mqi_unit_line *lines, int64_t queues, const mqi_queue_unit *units, int64_t n,
                        mqi_queue_unit *rest, int64_t *found) {
    int64_t i, left = 0;
    for (i = 0; i < n; i++) {
        const mqi_queue_unit *u = units + i;
        if (UNLIKELY(u->queue < 0 || u->queue >= queues)) break;
        mqi_unit_line *line = lines + u->queue;
        if (UNLIKELY(line->left == 0)) break;
        if (LIKELY(line->left > 0 && u->queue_offset == line->next && u->phy_offset > line->phy_offset &&
                   is_unit(line->unit, u))) {
            line->unit += MQI_UNIT_SIZE;
            line->left--;
            line->next++;
            line->phy_offset = u->phy_offset;
            line->last_end = mqi_add64(u->phy_offset, u->size);
        } else {
            line->left = -1;
            rest[left++] = *u;
        }
    }
    *found = left;
    return i;
}
