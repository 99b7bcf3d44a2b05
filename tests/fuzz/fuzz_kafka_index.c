/* Any bytes as an offset or time index: the searches find what a walk finds, also when the file changes under the
 * layers, and appends take and refuse what a plain list would. */
#include "input.h"
#include "mqi_bytes.h"
#include "mqi_kafka_index.h"

enum { MOST = 1400, TARGETS = 40, APPENDS = 80 }; /* TARGETS: two groups of `floors` and half a one */

static int width(int times) { return times ? MQI_TIME_ENTRY_SIZE : MQI_OFFSET_ENTRY_SIZE; }

TWIN int64_t column_of(const mqi_kafka_index *x, int column, int64_t i) {
    const uint8_t *entry = x->buf + i * (x->times ? MQI_TIME_ENTRY_SIZE : MQI_OFFSET_ENTRY_SIZE);
    if (column == MQI_KAFKA_VALUE) return mqi_get32(entry + (x->times ? 8 : 4));
    return x->times ? mqi_get64(entry) : mqi_get32(entry);
}

static void put_entry(uint8_t *bytes, int times, int64_t i, int64_t key, int32_t value) {
    uint8_t *p = bytes + i * width(times);
    if (times) mqi_set64(p, key);
    else mqi_set32(p, (int32_t)key);
    mqi_set32(p + width(times) - 4, value);
}

/* Most keys ascend; some stand still, fall, or are anything. */
static uint8_t *make(tape *t, int times, int64_t n, int orderly) {
    uint8_t *bytes = fresh((size_t)(n * width(times)));
    int64_t key = tape_byte(t);
    int32_t value = 0;
    for (int64_t i = 0; i < n; i++) {
        uint8_t step = tape_byte(t);
        key =
            orderly || step < 250 ? (int64_t)((uint64_t)key + 1 + step % 5) : tape_field(t); /* past the last: wraps */
        value = step & 64 ? value + 1 : tape_byte(t);
        put_entry(bytes, times, i, key, value);
    }
    return bytes;
}

static int64_t pick(tape *t, const mqi_kafka_index *x) {
    if (x->n == 0 || tape_byte(t) & 1) return tape_field(t);
    int64_t key = mqi_kafka_key(x, (int64_t)(tape_number(t, 2) % (uint64_t)x->n));
    return (int64_t)((uint64_t)key + tape_byte(t) % 3 - 1);
}

/* The last entry whose column is not above the target; with `upper` the first that is not below it. */
TWIN int64_t walk(const mqi_kafka_index *x, int column, int64_t target, int upper) {
    int64_t at = -1;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t key = column_of(x, column, i);
        if (upper && key >= target) return i;
        if (!upper && key <= target) at = i;
    }
    return at;
}

/* The broker's search does not compare the entry that it ends at: above one that equals the target it gives the next. */
static int64_t behind_equal(const mqi_kafka_index *x, int column, int64_t target) {
    int64_t at = walk(x, column, target, 1);
    if (at < 0 || column_of(x, column, at) != target) return at;
    return at + 1 < x->n ? at + 1 : -1;
}

TWIN int ascends(const mqi_kafka_index *x, int column) {
    for (int64_t i = 1; i < x->n; i++)
        if (column_of(x, column, i - 1) >= column_of(x, column, i)) return 0;
    return 1;
}

static void search_all(const mqi_kafka_index *x, tape *t) {
    for (int column = MQI_KAFKA_KEY; column <= MQI_KAFKA_VALUE; column++) {
        int sorted = ascends(x, column);
        HOLDS(column != MQI_KAFKA_KEY || sorted == mqi_kafka_is_sorted(x));
        for (int upper = 0; upper < 2; upper++) {
            int64_t target = pick(t, x), at = mqi_kafka_search(x, column, target, upper);
            HOLDS(at >= -1 && at < x->n);
            HOLDS(!sorted || at == walk(x, column, target, upper) || (upper && at == behind_equal(x, column, target)));
        }
    }
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Layers above keys that increase, unless the last one is the greatest of all. */
static int has_layers(mqi_kafka_tree *tree, const mqi_kafka_index *x) {
    int greatest = x->n > 0 && mqi_kafka_key_at(x->buf, x->times, x->n - 1) == (x->times ? INT64_MAX : INT32_MAX);
    HOLDS(mqi_kafka_tree_grow(tree, x) == (greatest ? MQI_KAFKA_UNSORTED : MQI_KAFKA_GROWN));
    return !greatest;
}

static void floor_all(const mqi_kafka_index *x, tape *t) {
    mqi_kafka_tree tree;
    const mqi_kafka_floor_kernel *kernels;
    int64_t targets[TARGETS], found[TARGETS], merged[TARGETS];
    if (!has_layers(&tree, x)) return;
    for (int k = 0; k < TARGETS; k++) targets[k] = pick(t, x);
    for (int n = mqi_kafka_floor_kernels(&kernels) - 1; n >= 0; n--) {
        kernels[n].floors(x, &tree, targets, TARGETS, found);
        for (int k = 0; k < TARGETS; k++) {
            int64_t at = walk(x, MQI_KAFKA_KEY, targets[k], 0);
            HOLDS(found[k] == at && kernels[n].floor(x, &tree, targets[k]) == at);
        }
    }
    qsort(targets, TARGETS, sizeof *targets, compare);
    qsort(found, TARGETS, sizeof *found, compare); /* floors ascend with their targets */
    mqi_kafka_merge(x, targets, TARGETS, found[0] > 0 ? found[0] : 0, merged);
    for (int k = 0; k < TARGETS; k++) HOLDS(merged[k] == found[k]);
    mqi_kafka_tree_free(&tree);
}

/* Its owner truncates the file and fills it anew between two look-ups. */
static void floor_changed(const mqi_kafka_index *x, uint8_t *bytes, tape *t) {
    mqi_kafka_tree tree;
    const mqi_kafka_floor_kernel *kernels;
    int64_t targets[TARGETS], found[TARGETS];
    if (!has_layers(&tree, x)) return;
    for (int64_t n = tape_byte(t) % 8; x->n > 0 && n >= 0; n--)
        put_entry(bytes, x->times, (int64_t)(tape_number(t, 2) % (uint64_t)x->n), tape_field(t), 0);
    if (x->n > 0 && tape_byte(t) & 1) put_entry(bytes, x->times, 0, tape_field(t), 0);
    for (int k = 0; k < TARGETS; k++) targets[k] = pick(t, x);
    for (int n = mqi_kafka_floor_kernels(&kernels) - 1; n >= 0; n--) {
        kernels[n].floors(x, &tree, targets, TARGETS, found);
        for (int k = 0; k < TARGETS; k++) HOLDS(found[k] >= -1 && found[k] < x->n);
    }
    mqi_kafka_settle(x, targets, TARGETS, found);
    for (int k = 0; k < TARGETS; k++)
        HOLDS(!ascends(x, MQI_KAFKA_KEY) || found[k] == walk(x, MQI_KAFKA_KEY, targets[k], 0));
    qsort(targets, TARGETS, sizeof *targets, compare);
    mqi_kafka_merge(x, targets, TARGETS, 0, found);
    for (int k = 0; k < TARGETS; k++) HOLDS(found[k] >= -1 && found[k] < x->n);
    mqi_kafka_tree_free(&tree);
}

/* ---- appends ------------------------------------------------------------------------------------------------------ */

typedef struct {
    int times, skip_full_check;
    int64_t base, capacity, n;
    int64_t key[APPENDS + 1], offset[APPENDS + 1]; /* from the first entry of all on */
} list;

static int add(list *l, mqi_kafka_end *last, int64_t key, int64_t offset) {
    int64_t room = l->times && !l->skip_full_check ? l->capacity - 1 : l->capacity;
    int64_t relative = (int64_t)((uint64_t)offset - (uint64_t)l->base);
    int full = l->n >= room;
    if (!l->times) {
        if (full) return MQI_KAFKA_FULL;
        if (l->n > 0 && offset <= last->last_offset) return MQI_KAFKA_ORDER;
    } else {
        if (full && !l->skip_full_check) return MQI_KAFKA_FULL;
        if (l->n > 0 && (offset < last->last_offset || key < last->last_timestamp)) return MQI_KAFKA_ORDER;
        if (key <= last->last_timestamp) return MQI_KAFKA_FINE;
        if (full) return MQI_KAFKA_FULL;
    }
    if (relative < 0 || relative > INT32_MAX) return MQI_KAFKA_OVERFLOW;
    l->key[l->n] = key;
    l->offset[l->n++] = offset;
    last->last_timestamp = key;
    last->last_offset = offset;
    return MQI_KAFKA_FINE;
}

static void append_all(tape *t, int times) {
    list l = {.times = times, .skip_full_check = tape_byte(t) & 1, .base = tape_byte(t) & 1 ? (int64_t)1 << 40 : 0};
    l.capacity = tape_byte(t) % (APPENDS + 1);
    int64_t keys[APPENDS], offsets[APPENDS], key = tape_byte(t), offset = l.base;
    int32_t positions[APPENDS];
    for (int i = 0; i < APPENDS; i++) {
        uint8_t step = tape_byte(t);
        key = step == 255 ? tape_field(t) : (int64_t)((uint64_t)key + step % 4);
        offset = step == 254 ? tape_field(t) : (int64_t)((uint64_t)offset + step / 4 % 4);
        keys[i] = key, offsets[i] = offset, positions[i] = i;
    }
    uint8_t *bytes = fresh((size_t)(l.capacity * width(times)));
    mqi_kafka_end end = {
        .buf = bytes, .max_entries = l.capacity, .base_offset = l.base, .last_timestamp = -1, .last_offset = l.base};
    mqi_kafka_end slow = end;
    int why = MQI_KAFKA_FINE, done = 0;
    while (done < APPENDS && (why = add(&l, &slow, times ? keys[done] : positions[done], offsets[done])) == 0) done++;
    int got = times ? mqi_kafka_append_times(&end, keys, offsets, APPENDS, l.skip_full_check)
                    : mqi_kafka_append_offsets(&end, offsets, positions, APPENDS);
    HOLDS(got == why && end.done == done && end.entries == l.n);
    HOLDS(l.n == 0 || end.last_offset == slow.last_offset);
    mqi_kafka_index x = {bytes, l.n, times};
    for (int64_t i = 0; i < l.n; i++) {
        int64_t relative = l.offset[i] - l.base;
        HOLDS(mqi_kafka_key(&x, i) == (times ? l.key[i] : relative));
        HOLDS(mqi_kafka_value(&x, i) == (times ? relative : l.key[i]));
    }
    free(bytes);
}

static void decode_all(const mqi_kafka_index *x, int64_t base) {
    int64_t *first = fresh((size_t)x->n * 8);
    void *second = fresh((size_t)x->n * (x->times ? 8 : 4));
    mqi_kafka_decode(x, base, 0, x->n, first, second);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t key = mqi_kafka_key(x, i), value = mqi_kafka_value(x, i);
        HOLDS(first[i] == (x->times ? key : base + key));
        HOLDS(x->times ? ((int64_t *)second)[i] == base + value : ((int32_t *)second)[i] == value);
    }
    free(first), free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tape t = {data, data + size};
    uint8_t flags = tape_byte(&t);
    int times = flags & 1;
    int64_t n = tape_byte(&t) % (flags & 2 ? 120 : 20);
    if ((flags & 0xF0) == 0xF0) n += MOST - 120; /* beyond the pages that the broker searches first */
    uint8_t *bytes = make(&t, times, n, flags & 4);
    mqi_kafka_index x = {bytes, n, times};
    search_all(&x, &t);
    if (mqi_kafka_is_sorted(&x)) {
        floor_all(&x, &t);
        floor_changed(&x, bytes, &t);
    }
    decode_all(&x, flags & 8 ? (int64_t)1 << 62 : 0);
    append_all(&t, times);
    free(bytes);
    return 0;
}
