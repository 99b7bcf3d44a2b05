/* The n-th allocation fails, for every n: each kernel says so, gives back what it had, and the same call made again
 * answers as if nothing had been. The linker leads the kernels' allocations here (--wrap). */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "input.h"
#include "mqi_bytes.h"
#include "mqi_consume_queue.h"
#include "mqi_crc.h"
#include "mqi_group_commit.h"
#include "mqi_guard.h"
#include "mqi_index_cold.h"
#include "mqi_index_file.h"
#include "mqi_index_put.h"
#include "mqi_index_select.h"
#include "mqi_index_sort.h"
#include "mqi_kafka_index.h"
#include "mqi_kafka_log.h"
#include "mqi_kafka_records.h"
#include "mqi_kafka_recovery.h"
#include "mqi_key_filter.h"
#include "mqi_log_columns.h"
#include "mqi_log_queues.h"
#include "mqi_log_scan.h"
#include "mqi_status.h"
#include "mqi_unit_tally.h"

enum { KEYS = 40, BYTES = 3000 };

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t each);
void *__real_realloc(void *p, size_t n);
void *__real_mmap(void *p, size_t n, int access, int flags, int fd, off_t at);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_mmap(void *p, size_t n, int access, int flags, int fd, off_t at);

static int64_t countdown; /* 0: none fails */
static int struck, never; /* the last: from now on each fails */

static int strikes(void) {
    if (never) return 1;
    if (countdown == 0 || --countdown > 0) return 0;
    struck = 1;
    return 1;
}

void *__wrap_malloc(size_t n) { return strikes() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t each) { return strikes() ? NULL : __real_calloc(n, each); }
void *__wrap_realloc(void *p, size_t n) { return strikes() ? NULL : __real_realloc(p, n); }
void *__wrap_mmap(void *p, size_t n, int access, int flags, int fd, off_t at) {
    return strikes() ? MAP_FAILED : __real_mmap(p, n, access, flags, fd, at);
}

/* Runs `call` with the first allocation failing, then the second, and so on, until none is left to fail. */
#define EVERY(call, refused, fine)                                                                                     \
    for (int64_t nth = 1, more = 1; more; nth++) {                                                                     \
        struck = 0, countdown = nth;                                                                                   \
        int64_t status = (call);                                                                                       \
        countdown = 0, more = struck;                                                                                  \
        if (struck) HOLDS(refused);                                                                                    \
        else HOLDS(fine);                                                                                              \
    }

/* ---- index files -------------------------------------------------------------------------------------------------- */

static int select_once(const mqi_index_file *f, const int32_t *hashes, int64_t *offsets, mqi_hits *hits) {
    free(hits->values);
    *hits = (mqi_hits){0};
    return mqi_index_select_many(f, hashes, NULL, NULL, 64, KEYS, 0, INT64_MAX, offsets, hits);
}

static void index_file(tape *t) {
    enum { SLOTS = 5, ENTRIES = 64 };
    size_t size = MQI_INDEX_HEADER_SIZE + MQI_SLOT_SIZE * SLOTS + MQI_ENTRY_SIZE * ENTRIES;
    uint8_t *bytes = fresh(size);
    mqi_index_file f;
    mqi_index_bind(&f, bytes, SLOTS, ENTRIES);
    for (int n = tape_byte(t) % 64; n > 0; n--) mqi_index_put(&f, tape_byte(t) % 16, n, 1000);
    int32_t hashes[KEYS];
    int64_t offsets[KEYS + 1], wanted[KEYS + 1];
    mqi_hits hits = {0}, plain = {0};
    for (int i = 0; i < KEYS; i++) hashes[i] = tape_byte(t) % 16;
    HOLDS(select_once(&f, hashes, wanted, &plain) == MQI_OK);
    EVERY(select_once(&f, hashes, offsets, &hits), status == MQI_NO_MEMORY, status == MQI_OK);
    HOLDS(memcmp(offsets, wanted, sizeof wanted) == 0);
    HOLDS(wanted[KEYS] == 0 || memcmp(hits.values, plain.values, (size_t)wanted[KEYS] * 8) == 0);
    free(hits.values), free(plain.values), free(bytes);
}

/* Times that pass the end of 64 bits: such files are read in another way. */
static void late_index_file(void) {
    enum { SLOTS = 5, ENTRIES = 64 };
    uint8_t *bytes = fresh(MQI_INDEX_HEADER_SIZE + MQI_SLOT_SIZE * SLOTS + MQI_ENTRY_SIZE * ENTRIES);
    mqi_index_file f;
    mqi_index_bind(&f, bytes, SLOTS, ENTRIES);
    for (int n = 1; n < ENTRIES; n++) HOLDS(mqi_index_put(&f, 1, n, INT64_MAX - 5));
    int32_t hashes[KEYS];
    int64_t offsets[KEYS + 1];
    mqi_hits hits = {0};
    for (int i = 0; i < KEYS; i++) hashes[i] = 1;
    EVERY(select_once(&f, hashes, offsets, &hits), status == MQI_NO_MEMORY, status == MQI_OK);
    HOLDS(offsets[KEYS] == KEYS * (ENTRIES - 1));
    free(hits.values), free(bytes);
}

/* ---- optimised index files ---------------------------------------------------------------------------------------- */

enum { SLOTS = 4000, ENTRIES = 9000, FILES = 3 }; /* rows of a filter that one buffer does not hold at once */

static int sort_once(const mqi_index_file *from, mqi_index_file *to) {
    memset(to->base, 0, (size_t)(mqi_entry_at(to, ENTRIES) - to->base));
    return mqi_index_sort(from, to);
}

static void free_part(mqi_filter_part *part) {
    mqi_buffer_free(&part->rows);
    free(part->lengths);
    part->lengths = NULL;
}

static int build_once(const mqi_index_file *f, uint32_t shift, uint32_t rows, mqi_filter_part *part) {
    free_part(part);
    return mqi_filter_build(f, ENTRIES - 1, shift, 0, rows, 7, mqi_crc32c, part);
}

static int weave_once(const mqi_key_column *columns, uint32_t rows, mqi_filter_part *part) {
    free_part(part);
    return mqi_filter_weave(columns, FILES, 0, rows, 9, mqi_crc32c, part);
}

static int load_once(mqi_key_filter *filter, const uint8_t *bytes, size_t size) {
    mqi_filter_free(filter);
    return mqi_filter_load(filter, bytes, size, 1, SLOTS, ENTRIES, 7, mqi_crc32c);
}

/* A filter of the file as `mqi_filter_load` reads it; its size goes to *size. */
static uint8_t *rows_with_starts(const mqi_filter_part *part, uint32_t rows, size_t *size) {
    const size_t table = (size_t)MQI_ROW_START_SIZE * (rows + 1);
    *size = table + (size_t)part->rows.size;
    uint8_t *bytes = fresh(*size);
    int64_t at = 0;
    for (uint32_t i = 0; i < rows; at += part->lengths[i++]) mqi_set64(bytes + (size_t)MQI_ROW_START_SIZE * i, at);
    mqi_set64(bytes + table - MQI_ROW_START_SIZE, at);
    memcpy(bytes + table, part->rows.data, (size_t)at);
    return bytes;
}

static void filters(const mqi_index_file *f, const int32_t *hashes) {
    const uint32_t shift = mqi_filter_shift(SLOTS, ENTRIES), rows = mqi_filter_rows(SLOTS, shift);
    mqi_filter_part part = {.lengths = NULL}, woven = {.lengths = NULL};
    EVERY(build_once(f, shift, rows, &part), status == MQI_NO_MEMORY, status == MQI_OK);
    HOLDS(part.entries == ENTRIES - 1);
    size_t size;
    uint8_t *bytes = rows_with_starts(&part, rows, &size);
    mqi_key_filter filter = {.states = NULL};
    EVERY(load_once(&filter, bytes, size), status == MQI_NO_MEMORY, status == MQI_OK);
    EVERY(mqi_filter_read_ahead(&filter, f, hashes, KEYS), status == MQI_NO_MEMORY, status == MQI_OK);
    mqi_key_column columns[FILES];
    for (int i = 0; i < FILES; i++) columns[i] = (mqi_key_column){&filter, 0};
    EVERY(weave_once(columns, rows, &woven), status == MQI_NO_MEMORY, status == MQI_OK);
    HOLDS(mqi_filter_damaged(&filter) == filter.n && mqi_filter_missing(f, columns, ENTRIES - 1) == 0);
    mqi_filter_free(&filter);
    free_part(&part), free_part(&woven), free(bytes);
}

static void cold_look_ups(const mqi_index_file *f, const int32_t *hashes) {
    const uint32_t n = mqi_fence_pages(f, ENTRIES - 1);
    uint8_t *first_slots = fresh((size_t)n * MQI_FENCE_SLOT_SIZE);
    mqi_fence_build(f, ENTRIES - 1, first_slots);
    const mqi_fence fence = {first_slots, n, ENTRIES - 1};
    uint32_t pages[KEYS];
    int32_t heads[KEYS];
    const size_t wanted = mqi_cold_pages(f, &fence, NULL, hashes, KEYS, pages);
    EVERY(mqi_cold_heads(f, &fence, hashes, pages, KEYS, wanted, heads), status == MQI_NO_MEMORY, status == MQI_OK);
    for (int i = 0; i < KEYS; i++) HOLDS(heads[i] == mqi_get32(mqi_slot_at(f, mqi_slot_of(f, hashes[i]))));
    free(first_slots);
}

static void optimised_file(void) {
    const size_t size = MQI_INDEX_HEADER_SIZE + (size_t)MQI_SLOT_SIZE * SLOTS + (size_t)MQI_ENTRY_SIZE * ENTRIES;
    mqi_index_file from, to;
    mqi_index_bind(&from, fresh(size), SLOTS, ENTRIES);
    mqi_index_bind(&to, fresh(size), SLOTS, ENTRIES);
    uint32_t turn = 1;
    for (int n = 1; n < ENTRIES; n++)
        HOLDS(mqi_index_put(&from, (int32_t)((turn = turn * 1103515245 + 12345) >> 1), n, 1000));
    EVERY(sort_once(&from, &to), status == MQI_NO_MEMORY, status == MQI_OK);
    int32_t hashes[KEYS];
    for (int i = 0; i < KEYS; i++) hashes[i] = mqi_get32(mqi_entry_at(&to, 1 + 200 * i) + MQI_ENTRY_KEY_HASH);
    filters(&to, hashes);
    cold_look_ups(&to, hashes);
    free(from.base), free(to.base);
}

/* ---- queues ------------------------------------------------------------------------------------------------------- */

static int number_all(mqi_log_queues *queues, const uint8_t *names, int32_t *numbers) {
    mqi_log_queues_free(queues);
    *queues = (mqi_log_queues){0};
    for (int i = 0; i < KEYS * 4; i++) numbers[i] = mqi_log_queue_number(queues, names, i % 30, i / 30);
    return queues->no_memory;
}

static void queue_table(tape *t) {
    uint8_t names[32];
    int32_t numbers[KEYS * 4];
    mqi_log_queues queues = {0};
    tape_copy(t, names, sizeof names);
    EVERY(number_all(&queues, names, numbers), status == 1, status == 0);
    for (int i = 0; i < KEYS * 4; i++) HOLDS(numbers[i] == i);
    mqi_log_queues_free(&queues);
}

/* Queues of one hash, which the secret makes too rare to meet: here it is none. */
static void queues_alike(void) {
    static const struct {
        const char *topic;
        int32_t n, queue_id;
    } alike[] = {{"aaaaX", 5, 0}, {"aaaaY", 5, 0}, {"baaaXX", 6, 0}, {"baaaXX", 5, 1}};
    mqi_log_queues queues = {.secret = {0, 1}};
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 4; i++)
            HOLDS(mqi_log_queue_number(&queues, (const uint8_t *)alike[i].topic, alike[i].n, alike[i].queue_id) == i);
    mqi_log_queues_free(&queues);
}

static void tags_filter(tape *t) {
    uint8_t units[MQI_UNIT_SIZE * KEYS];
    int32_t hashes[KEYS];
    int64_t numbers[KEYS];
    tape_copy(t, units, sizeof units);
    for (int i = 0; i < KEYS; i++) hashes[i] = (int32_t)tape_field(t);
    EVERY(mqi_units_select(units, KEYS, 7, hashes, KEYS, numbers), status == MQI_NO_MEMORY, status >= 0);
}

/* Units of ever more queues, all of them kept. */
static int64_t tally_once(const mqi_queue_unit *units, int64_t n) {
    mqi_unit_tally t = mqi_unit_tally_begin(1, 0);
    int64_t done = mqi_unit_tally_add(&t, units, n);
    mqi_unit_tally_free(&t);
    return done;
}

static void tally_of_units(void) {
    mqi_queue_unit units[8 * KEYS] = {0};
    for (int32_t i = 0; i < 8 * KEYS; i++) units[i].queue = 3 * i;
    EVERY(tally_once(units, 8 * KEYS), status == MQI_NO_MEMORY, status == 8 * KEYS);
}

static mqi_log_table begin_column(mqi_log_column *column, int kind, int64_t *offsets) {
    free(column->data);
    *column = (mqi_log_column){.kind = kind, .offsets = offsets};
    column->at = offsetof(mqi_log_frame, topic_pos), column->len_at = offsetof(mqi_log_frame, topic_len);
    return (mqi_log_table){.columns = column, .count = 1, .max_rows = KEYS};
}

/* One column of all frames, which grows. */
static int column_once(const mqi_log *log, mqi_log_column *column, int kind, int64_t *offsets) {
    mqi_log_scan scan = {.blank = -1};
    mqi_log_table table = begin_column(column, kind, offsets);
    return mqi_log_columns_scan(log, &scan, log->len, log->len, &table) ? (int)table.rows : -1;
}

static int64_t column_at_once(const mqi_log *log, mqi_log_column *column, int kind, int64_t *offsets) {
    int64_t at[KEYS];
    int32_t sizes[KEYS];
    for (int i = 0; i < KEYS; i++) at[i] = log->len / KEYS * i, sizes[i] = (int32_t)(log->len / KEYS);
    mqi_log_table table = begin_column(column, kind, offsets);
    return mqi_log_columns_at(log, at, sizes, KEYS, &table);
}

static void columns_of_a_log(void) {
    enum { SIZE = MQI_HEAD_SIZE + 3 }; /* no body, no topic, no properties */
    uint8_t *bytes = fresh((size_t)SIZE * KEYS);
    int64_t offsets[KEYS + 1] = {0};
    mqi_log log = {.buf = bytes, .len = SIZE * KEYS};
    mqi_log_column column = {0};
    memset(bytes, 0, (size_t)SIZE * KEYS);
    for (int i = 0; i < KEYS; i++) {
        mqi_set32(bytes + SIZE * i + MQI_FRAME_TOTAL_SIZE, SIZE);
        mqi_set32(bytes + SIZE * i + MQI_FRAME_MAGIC_CODE, MQI_MAGIC_1);
        mqi_set64(bytes + SIZE * i + MQI_FRAME_PHY_OFFSET, SIZE * i);
    }
    for (int kind = MQI_COLUMN_TEXT; kind <= MQI_COLUMN_MSG_ID; kind++) { /* the ids come last */
        EVERY(column_at_once(&log, &column, kind, offsets), status == -1, status == KEYS);
        EVERY(column_once(&log, &column, kind, offsets), status == -1, status == KEYS);
    }
    HOLDS(offsets[KEYS] == 32 * KEYS && memcmp(column.data + 32 + 16, "000000000000005B", 16) == 0);
    free(column.data), free(bytes);
}

/* ---- Kafka -------------------------------------------------------------------------------------------------------- */

static int grow(mqi_kafka_tree *tree, const mqi_kafka_index *x) {
    mqi_kafka_tree_free(tree);
    return mqi_kafka_tree_grow(tree, x);
}

static void layers(tape *t) {
    uint8_t bytes[12 * 200];
    int64_t target = tape_field(t), at = -1;
    mqi_kafka_index x = {bytes, 200, 1};
    mqi_kafka_tree tree = {0};
    for (int64_t i = 0; i < x.n; i++) mqi_set64(bytes + 12 * i, 3 * i), mqi_set32(bytes + 12 * i + 8, (int32_t)i);
    for (int64_t i = 0; i < x.n && 3 * i <= target; i++) at = i;
    EVERY(grow(&tree, &x), status == MQI_KAFKA_NO_MEMORY, status == MQI_KAFKA_GROWN);
    const mqi_kafka_floor_kernel *kernels;
    mqi_kafka_floor_kernels(&kernels);
    HOLDS(kernels[0].floor(&x, &tree, target) == at);
    mqi_kafka_tree_free(&tree);
}

/* One of magic 1 with nothing compressed: it is one record. */
static int64_t message(uint8_t *out, int64_t offset, int32_t n) {
    mqi_set64(out, offset);
    mqi_set32(out + 8, 22 + n);
    out[16] = 1;
    mqi_set64(out + 18, 1001 + offset);
    mqi_set32(out + 26, -1);
    mqi_set32(out + 30, n);
    return 34 + n;
}

/* The head of a batch of magic 2, of a producer's transaction: a recovery asks for no more. */
static int64_t transactional(uint8_t *out, int64_t offset, int32_t n) {
    mqi_set64(out, offset);
    mqi_set32(out + 8, 49 + n);
    out[16] = 2;
    out[22] = 0x10;
    mqi_set64(out + 35, 1001 + offset);
    mqi_set32(out + 57, 1);
    return 61 + n;
}

static int64_t make_batches(tape *t, uint8_t *out) {
    int64_t at = 0;
    memset(out, 0, BYTES);
    for (int64_t offset = 0; at < BYTES - 300; offset++) {
        int32_t n = tape_byte(t) % 60;
        at += offset % 4 == 3 ? transactional(out + at, offset, n) : message(out + at, offset, n);
    }
    return at;
}

static int recover_once(mqi_kafka_recovery *r, const mqi_kafka_log *log) {
    mqi_kafka_recover_free(r);
    *r = (mqi_kafka_recovery){.log = *log, .size = log->len, .fd = -1, .index_interval = 64, .max_index_size = 1 << 20};
    mqi_kafka_recover_start(r);
    mqi_kafka_recover(r, log->len);
    return r->state;
}

/* As every checksum in these batches. */
static uint32_t no_sum(const uint8_t *p, size_t n, uint32_t crc) {
    (void)p, (void)n, (void)crc;
    return 0;
}

/* With all that a recovery may be asked beside: what is behind damage, and what the log consists of. */
static int recover_all_once(mqi_kafka_recovery *r, const mqi_kafka_log *log, mqi_kafka_tally *tally) {
    mqi_kafka_recover_free(r);
    mqi_kafka_tally_free(tally);
    *tally = (mqi_kafka_tally){.stretch = 16};
    *r = (mqi_kafka_recovery){.log = *log, .size = log->len, .behind = log, .index_interval = 64, .tally = tally};
    r->max_index_size = 1 << 20;
    mqi_kafka_recover_start(r);
    mqi_kafka_recover(r, log->len);
    return r->state;
}

static void damaged_segment(void) {
    enum { SIZE = 61, BATCHES = 100 };
    static mqi_kafka_tally tally;
    uint8_t bytes[SIZE * BATCHES] = {0};
    for (int64_t i = 0; i < BATCHES; i++) transactional(bytes + SIZE * i, i, 0);
    bytes[SIZE * 50 + 20] = 1; /* a wrong checksum */
    mqi_kafka_log log = {bytes, sizeof bytes, no_sum, no_sum, NULL};
    mqi_kafka_recovery r = {0};
    EVERY(recover_all_once(&r, &log, &tally), status == MQI_RECOVERY_NO_MEMORY, status == MQI_RECOVERY_DONE);
    HOLDS(r.batches == BATCHES - 1 && r.damage.size == sizeof(mqi_kafka_damage));
    mqi_kafka_recover_free(&r);
    mqi_kafka_tally_free(&tally);
}

/* More producers than there are places for; some of them meet at one place. */
static void many_producers(void) {
    enum { SIZE = 61, MANY = MQI_TALLY_PRODUCERS + 20 };
    static mqi_kafka_tally tally = {.stretch = 1 << 20};
    uint8_t batch[SIZE] = {0};
    transactional(batch, 0, 0);
    const mqi_batch_head head = {.size = SIZE, .magic = 2};
    for (int64_t i = 0; i < MANY; i++) {
        mqi_set64(batch + MQI_BATCH_PRODUCER_ID, i);
        HOLDS(mqi_kafka_tally_add(&tally, batch, &head, SIZE * i, 0));
    }
    mqi_kafka_tally_settle(&tally);
    HOLDS(tally.n_producers == MQI_TALLY_PRODUCERS);
    HOLDS(tally.counts.other_producers.batches == MANY - MQI_TALLY_PRODUCERS);
    mqi_kafka_tally_free(&tally);
}

static int copy_once(mqi_kafka_columns *c, const mqi_kafka_batch *batch, const uint8_t *payload, int64_t n) {
    mqi_kafka_records x;
    mqi_kafka_columns_free(c);
    *c = (mqi_kafka_columns){.keys = 1, .values = 1, .headers_wanted = 1};
    mqi_kafka_records_start(&x, batch, payload, n, 0);
    return mqi_kafka_columns_add(c, &x, 0, 100, 1 << 20);
}

static void segment(tape *t) {
    uint8_t bytes[BYTES];
    mqi_kafka_log log = {.buf = bytes, .len = make_batches(t, bytes)};
    mqi_kafka_recovery r = {0};
    EVERY(recover_once(&r, &log), status == MQI_RECOVERY_NO_MEMORY, status == MQI_RECOVERY_DONE);
    HOLDS(r.valid == log.len);
    mqi_kafka_recover_free(&r);
    mqi_kafka_scan scan = {0};
    mqi_kafka_batch batch;
    mqi_kafka_columns columns = {0};
    HOLDS(mqi_kafka_scan_batches(&log, &scan, log.len, &batch, 1) == 1);
    EVERY(copy_once(&columns, &batch, bytes + batch.position, batch.size), status == MQI_COLUMNS_NO_MEMORY,
          status == MQI_COLUMNS_ENDED);
    mqi_kafka_columns_free(&columns);
}

static void record_with_a_header(void) {
    static const uint8_t record[] = {24, 0, 0, 0, 2, 'k', 2, 'v', 2, 2, 'h', 2, 'w'};
    const mqi_kafka_batch batch = {.magic = 2, .count = 1};
    mqi_kafka_columns columns = {0};
    EVERY(copy_once(&columns, &batch, record, sizeof record), status == MQI_COLUMNS_NO_MEMORY,
          status == MQI_COLUMNS_ENDED);
    mqi_kafka_columns_free(&columns);
}

/* ---- group commit ------------------------------------------------------------------------------------------------- */

static int switch_once(mqi_group *g, int fd) {
    int failed = mqi_group_switch(g, fd);
    if (failed) close(fd); /* it is the group's only then */
    return failed;
}

static void group(void) {
    mqi_group g;
    HOLDS(mqi_group_start(&g, 0) == 0);
    EVERY(switch_once(&g, dup(2)), status == ENOMEM, status == 0);
    HOLDS(mqi_group_wait(&g, 0) == 0); /* there is nothing to wait for */
    mqi_group_end(&g);
}

/* ---- the guard ---------------------------------------------------------------------------------------------------- */

enum { CUT = 4 << 16, RANGES = 300 }; /* some pages; more ranges than come at once */

static sigjmp_buf out_of_the_fault;

static void before_the_guard(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    siglongjmp(out_of_the_fault, 1);
}

static void settles_nothing(int number) { (void)number; }

static int guard_many(uint8_t *bytes) {
    mqi_guard_range *ranges[RANGES];
    int n = 0;
    while (n < RANGES && (ranges[n] = mqi_guard_add(bytes, 1, 0, NULL))) n++;
    for (int i = 0; i < n; i++) mqi_guard_remove(ranges[i]);
    return n;
}

/* Reads a mapped file that was cut: -1 where the fault went to who was there before the guard. */
static int read_cut(int guarded) {
    FILE *file = tmpfile();
    HOLDS(file && ftruncate(fileno(file), CUT) == 0);
    uint8_t *bytes = __real_mmap(NULL, CUT, PROT_READ, MAP_SHARED, fileno(file), 0);
    mqi_guard_range *range = mqi_guard_add(bytes, guarded ? CUT : 1, 0, NULL);
    HOLDS(bytes != MAP_FAILED && range && ftruncate(fileno(file), 0) == 0);
    volatile int sum = -1;
    if (!sigsetjmp(out_of_the_fault, 1)) sum = *(volatile uint8_t *)(bytes + CUT - 1) + *(volatile uint8_t *)bytes;
    HOLDS(mqi_guard_was_cut(range) == guarded);
    mqi_guard_remove(range);
    munmap(bytes, CUT);
    fclose(file);
    return sum;
}

static void guard(void) {
    struct sigaction theirs = {.sa_sigaction = before_the_guard, .sa_flags = SA_SIGINFO}, before;
    uint8_t byte;
    sigaction(SIGBUS, &theirs, &before);
    EVERY(guard_many(&byte), status < RANGES, status == RANGES);
    (void)signal(SIGBUS, settles_nothing);
    EVERY(read_cut(1), status == 0, status == 0); /* where there is no room for all pages, one does */
    HOLDS(read_cut(0) == -1);
    never = 1;
    int passed_on = read_cut(1);
    never = 0;
    HOLDS(passed_on == -1);
    sigaction(SIGBUS, &before, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int begun;
    tape t = {data, data + size};
    if (!begun++)
        late_index_file(), optimised_file(), queues_alike(), tally_of_units(), columns_of_a_log(), damaged_segment(),
            many_producers(), record_with_a_header(), guard(); /* no input changes these */
    switch (tape_byte(&t) % 6) {
    case 0:
        index_file(&t);
        break;
    case 1:
        queue_table(&t);
        break;
    case 2:
        tags_filter(&t);
        break;
    case 3:
        layers(&t);
        break;
    case 4:
        segment(&t);
        break;
    default:
        group();
    }
    return 0;
}
