/* Any bytes as an index file: no read or write outside it, every walk ends, and the bulk kernels do what the single
 * ones do. */
#include "input.h"
#include "mqi_index_file.h"
#include "mqi_index_put.h"
#include "mqi_index_select.h"
#include "mqi_index_sort.h"
#include "mqi_run.h"

enum { KEYS = 24, PUTS = 12, ROOM = 16 };

typedef struct {
    uint32_t slots;
    int32_t entries;
    size_t size;
    uint8_t *bytes;
} file;

static file copy_of(const file *f) {
    file c = *f;
    c.bytes = fresh(f->size);
    memcpy(c.bytes, f->bytes, f->size);
    return c;
}

static mqi_index_file bound(const file *f) {
    mqi_index_file b;
    mqi_index_bind(&b, f->bytes, f->slots, f->entries);
    return b;
}

/* A third of the inputs is a file that was built by puts and then damaged: random bytes alone rarely make chains. */
static file make(tape *t) {
    file f = {.slots = 1 + tape_byte(t) % 16u, .entries = 1 + tape_byte(t) % 40};
    f.size = MQI_INDEX_HEADER_SIZE + MQI_SLOT_SIZE * (size_t)f.slots + MQI_ENTRY_SIZE * (size_t)f.entries;
    f.bytes = fresh(f.size);
    uint8_t kind = tape_byte(t);
    if (kind % 3 == 0) {
        tape_copy(t, f.bytes, f.size);
        return f;
    }
    mqi_index_file b = bound(&f);
    if (kind & 64) mqi_index_seed(&b, tape_field(t), tape_field(t));
    for (int n = tape_byte(t) % 64; n > 0; n--) mqi_index_put(&b, tape_byte(t) % 32, tape_field(t), tape_field(t));
    for (int n = kind % 3 == 1 ? 0 : tape_byte(t) % 8; n > 0; n--) {
        size_t at = tape_number(t, 2) % (f.size - 3);
        mqi_set32(f.bytes + at, (int32_t)tape_field(t));
    }
    return f;
}

static void select_all(const mqi_index_file *b, tape *t) {
    int32_t hashes[KEYS], limits[KEYS];
    int64_t offsets[KEYS + 1], begin = tape_field(t), end = tape_field(t), max_num = tape_field(t);
    for (int i = 0; i < KEYS; i++) {
        hashes[i] = (int32_t)(tape_byte(t) % 40);
        limits[i] = (int32_t)tape_field(t);
    }
    for (int limited = 0; limited < 2; limited++) {
        mqi_hits hits = {0};
        int status =
            mqi_index_select_many(b, hashes, NULL, limited ? limits : NULL, max_num, KEYS, begin, end, offsets, &hits);
        HOLDS(status == MQI_OK && offsets[0] == 0);
        for (int i = 0; i < KEYS; i++) {
            mqi_walk walk;
            int64_t out[ROOM];
            int64_t at = offsets[i];
            mqi_index_walk_start(b, &walk, hashes[i], limited ? limits[i] : max_num, begin, end);
            for (size_t n; (n = mqi_index_walk(b, &walk, out, ROOM)) > 0;) {
                HOLDS(at + (int64_t)n <= offsets[i + 1]);
                HOLDS(memcmp(out, hits.values + at, n * sizeof *out) == 0);
                at += (int64_t)n;
            }
            HOLDS(at == offsets[i + 1]);
            HOLDS(at - offsets[i] <= b->index_num);
        }
        free(hits.values);
    }
}

static void read_all(const mqi_index_file *b) {
    size_t n = (size_t)b->index_num, used = (size_t)b->hash_slot_num;
    int32_t *heads = fresh(used * 4), *a = fresh(n * 4), *c = fresh(n * 4), *d = fresh(n * 4), *slots = fresh(used * 4);
    int64_t *offsets = fresh(n * 8);
    mqi_fault faults[4];
    mqi_index_header header;
    mqi_index_read_header(b, &header);
    mqi_index_entries(b, 0, n, a, offsets, c, d);
    mqi_index_slots(b, slots);
    size_t found = mqi_index_check(b, heads, faults, 4);
    for (size_t i = 0; i < found && i < 4; i++) {
        size_t size = MQI_INDEX_HEADER_SIZE + MQI_SLOT_SIZE * used + MQI_ENTRY_SIZE * n;
        HOLDS(faults[i].at >= 0 && (size_t)faults[i].at < size);
    }
    int fits = mqi_index_fits(b, 0);
    HOLDS(fits == 0 || fits == 1);
    mqi_index_fits(b, 1);
    mqi_index_fits(b, 16);
    free(heads), free(a), free(c), free(d), free(slots), free(offsets);
}

static void put_all(const file *f, tape *t) {
    file one = copy_of(f), columns = copy_of(f), run = copy_of(f);
    mqi_index_file a = bound(&one), b = bound(&columns), c = bound(&run);
    int32_t hashes[PUTS];
    int64_t offsets[PUTS], times[PUTS];
    uint8_t *records = fresh(PUTS * MQI_RUN_SIZE);
    size_t stored = 0;
    int full = 0;
    for (int i = 0; i < PUTS; i++) {
        hashes[i] = tape_byte(t) % 40;
        offsets[i] = tape_field(t);
        times[i] = tape_field(t);
        memcpy(records + MQI_RUN_SIZE * i + MQI_RUN_KEY_HASH, &hashes[i], 4);
        memcpy(records + MQI_RUN_SIZE * i + MQI_RUN_PHY_OFFSET, &offsets[i], 8);
        memcpy(records + MQI_RUN_SIZE * i + MQI_RUN_STORE_TIMESTAMP, &times[i], 8);
        if (!full && !mqi_index_put(&a, hashes[i], offsets[i], times[i])) full = 1;
        stored += !full;
    }
    HOLDS(mqi_index_put_columns(&b, hashes, offsets, times, 0) == 0);
    HOLDS(mqi_index_put_columns(&b, hashes, offsets, times, PUTS) == stored);
    HOLDS(mqi_index_put_run(&c, records, PUTS) == stored);
    HOLDS(memcmp(one.bytes, columns.bytes, f->size) == 0);
    HOLDS(memcmp(one.bytes, run.bytes, f->size) == 0);
    read_all(&a);
    free(one.bytes), free(columns.bytes), free(run.bytes), free(records);
}

/* Brought together, the entries are all there, in order, in a file that says nothing against itself. */
static void sort_all(const mqi_index_file *b, tape *t) {
    file f = {.slots = 1 + tape_byte(t) % 2000u, .entries = b->index_num + tape_byte(t) % 4};
    f.size = MQI_INDEX_HEADER_SIZE + MQI_SLOT_SIZE * (size_t)f.slots + MQI_ENTRY_SIZE * (size_t)f.entries;
    f.bytes = fresh(f.size);
    mqi_index_file to = bound(&f);
    int32_t *heads = fresh(4 * (size_t)f.slots);
    mqi_index_order order;
    mqi_fault fault;
    HOLDS(mqi_index_sort(b, &to) == MQI_OK);
    mqi_index_read_order(&to, INT32_MAX, &order);
    HOLDS(order.sorted == mqi_index_next(b) - 1);
    for (size_t n = mqi_index_check(&to, heads, &fault, 1); n > 0; n = 0)
        HOLDS(fault.kind < MQI_FAULT_SLOT || fault.kind == MQI_FAULT_KEY_HASH || fault.kind == MQI_FAULT_TIME_DIFF);
    free(heads), free(f.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tape t = {data, data + size};
    file f = make(&t);
    mqi_index_file b = bound(&f);
    uint8_t *before = fresh(f.size);
    memcpy(before, f.bytes, f.size);
    read_all(&b);
    select_all(&b, &t);
    HOLDS(memcmp(before, f.bytes, f.size) == 0); /* reading changes nothing */
    put_all(&f, &t);
    sort_all(&b, &t);
    free(before), free(f.bytes);
    return 0;
}
