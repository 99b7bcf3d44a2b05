/* Batches of any magic, whole and spoilt: walked, searched, recovered at once and in steps, their records copied. */
#include "input.h"
#include "mqi_bytes.h"
#include "mqi_crc.h"
#include "mqi_kafka_index.h"
#include "mqi_kafka_log.h"
#include "mqi_kafka_records.h"
#include "mqi_kafka_recovery.h"
#include "mqi_kafka_resync.h"

#define MOST 4096

typedef struct {
    uint8_t *bytes;
    int64_t size;
} image;

static void put_varint(image *m, int64_t n) {
    uint64_t left = (uint64_t)n << 1 ^ (uint64_t)(n >> 63);
    for (; left > 0x7f; left >>= 7) m->bytes[m->size++] = (uint8_t)(left | 0x80);
    m->bytes[m->size++] = (uint8_t)left;
}

static void put_piece(image *m, tape *t) {
    int n = tape_byte(t) % 9 - 1;
    put_varint(m, n);
    if (n > 0) m->size += (int64_t)tape_copy(t, m->bytes + m->size, (size_t)n);
}

static void put_record(image *m, tape *t, int number) {
    image body = {.bytes = m->bytes + m->size + 1, .size = 1};
    body.bytes[0] = 0;
    put_varint(&body, (int64_t)tape_byte(t) - 9);
    put_varint(&body, number);
    put_piece(&body, t);
    put_piece(&body, t);
    int headers = tape_byte(t) % 3;
    put_varint(&body, headers);
    for (; headers > 0; headers--) {
        put_varint(&body, 1);
        body.bytes[body.size++] = 'h';
        put_piece(&body, t);
    }
    m->bytes[m->size] = (uint8_t)(body.size << 1); /* below 64 */
    m->size += 1 + body.size;
}

static void put_batch(image *m, tape *t, int64_t offset) {
    uint8_t *p = m->bytes + m->size;
    uint8_t kind = tape_byte(t);
    int magic = kind % 8 < 6 ? 2 : kind % 8 - 6, count = tape_byte(t) % 4;
    int64_t start = m->size;
    mqi_set64(p, offset);
    p[MQI_BATCH_MAGIC] = (uint8_t)magic;
    if (magic == 2) {
        mqi_set32(p + 12, 1);
        mqi_set16(p + 21, (int16_t)(tape_byte(t) & 0x7f));
        mqi_set32(p + 23, count > 0 ? count - 1 : 0);
        mqi_set64(p + 27, 1000);
        mqi_set64(p + 35, 1000 + tape_byte(t));
        mqi_set64(p + 43, (int64_t)(tape_byte(t) % 4) - 1);
        mqi_set32(p + 57, count);
        m->size += MQI_BATCH_RECORDS;
        for (int i = 0; i < count; i++) put_record(m, t, i);
        mqi_set32(p + 17, (int32_t)mqi_crc32c(p + 21, (size_t)(m->size - start) - 21, 0));
    } else {
        p[17] = tape_byte(t) & 0x0f;
        mqi_set64(p + 18, 1000 + tape_byte(t));
        m->size += magic ? 26 : 18;
        for (int i = 0; i < 2; i++) {
            int n = tape_byte(t) % 40 - 1;
            mqi_set32(m->bytes + m->size, n);
            m->size += 4;
            if (n > 0) m->size += (int64_t)tape_copy(t, m->bytes + m->size, (size_t)n);
        }
        mqi_set32(p + 12, (int32_t)mqi_crc32(p + 16, (size_t)(m->size - start) - 16, 0));
    }
    mqi_set32(p + 8, (int32_t)(m->size - start) - MQI_BATCH_OVERHEAD);
}

static image make(tape *t, int64_t base) {
    image m = {.bytes = fresh(MOST + 1024)};
    int64_t offset = base;
    for (int n = tape_byte(t) % 12; n > 0 && m.size < MOST - 1024; n--) {
        put_batch(&m, t, offset);
        offset += 1 + tape_byte(t) % 8;
    }
    uint8_t ending = tape_byte(t);
    if (ending & 1 && m.size > 8)
        for (int n = tape_byte(t) % 6; n > 0; n--)
            mqi_set32(m.bytes + tape_number(t, 2) % (uint64_t)(m.size - 4), (int32_t)tape_field(t));
    if (ending & 2) m.size += (int64_t)tape_copy(t, m.bytes + m.size, tape_byte(t) % 64);
    if (ending & 4) m.size -= (int64_t)(tape_number(t, 2) % (uint64_t)(m.size + 1));
    uint8_t *exact = fresh((size_t)m.size);
    memcpy(exact, m.bytes, (size_t)m.size);
    free(m.bytes);
    m.bytes = exact;
    return m;
}

static int64_t copy_records(mqi_kafka_records x, int64_t max_rows) {
    mqi_kafka_columns c = {.keys = 1, .values = 1, .headers_wanted = 1};
    int64_t rows = 0;
    int state;
    do {
        state = mqi_kafka_columns_add(&c, &x, 0, max_rows, 1 << 20);
        HOLDS(state != MQI_COLUMNS_NO_MEMORY);
        rows += c.rows.size / (int64_t)sizeof(mqi_kafka_row);
        c.rows.size = c.key_data.size = c.value_data.size = c.headers.size = 0;
        c.header_keys.size = c.header_values.size = 0;
    } while (state == MQI_COLUMNS_FULL);
    mqi_kafka_columns_free(&c);
    return rows;
}

static void read_records(const mqi_kafka_log *log, const mqi_kafka_batch *b) {
    const uint8_t *p = log->buf + b->position, *value = 0;
    int64_t n = b->size, found = 0;
    int expanded = 0;
    if (b->magic >= 2) {
        p += MQI_BATCH_RECORDS;
        n -= MQI_BATCH_RECORDS;
    } else if (b->attributes & MQI_BATCH_CODEC) { /* its bytes stand for what they decompress to */
        n = mqi_kafka_message_value(p, n, &value);
        if (n < 0) return;
        p = value;
        expanded = 1;
    }
    mqi_kafka_records x, again;
    mqi_kafka_record r;
    mqi_kafka_records_start(&x, b, p, n, expanded);
    again = x;
    while (mqi_kafka_records_next(&x, &r)) {
        HOLDS(r.key_len < 0 || (r.key >= p && r.key + r.key_len <= p + n));
        HOLDS(r.value_len < 0 || (r.value >= p && r.value + r.value_len <= p + n));
        found++;
    }
    HOLDS(b->magic < 2 || x.fault || found == b->count);
    HOLDS(copy_records(again, 2) == found);
}

static void find(const mqi_kafka_log *log, const mqi_kafka_batch *all, int64_t n, int column, int64_t target) {
    mqi_kafka_scan scan = {0};
    mqi_kafka_batch row;
    int64_t i = 0;
    while (i < n && (column == MQI_FIND_LAST_OFFSET ? all[i].last_offset : all[i].max_timestamp) < target) i++;
    int found = mqi_kafka_find_batch(log, &scan, log->len, column, target, &row);
    HOLDS(found == (i < n));
    HOLDS(!found || memcmp(&row, all + i, sizeof row) == 0);
}

/* Searches that share their walks find what each alone finds. */
static void find_many(const mqi_kafka_log *log, const mqi_kafka_batch *all, int64_t n, tape *t) {
    int64_t starts[8], ends[8], times[8], found[8], positions[8], maxima[MOST / 26 + 4], at[8];
    mqi_kafka_batch rows[8];
    mqi_batch_fault fault = {0};
    for (int64_t i = 0; i < n; i++) maxima[i] = all[i].max_timestamp;
    for (int i = 0; i < 8; i++) {
        starts[i] = n ? tape_byte(t) % n : 0;
        positions[i] = n ? all[starts[i]].position : 0;
        ends[i] = n;
        times[i] = 990 + tape_byte(t);
    }
    mqi_kafka_find_batches(log, log->len, positions, times, n ? 8 : 0, found, &fault);
    mqi_first_not_below(maxima, starts, ends, times, 8, at);
    HOLDS(mqi_kafka_batches_at(log, positions, n ? 8 : 0, rows) == (n ? 8 : 0));
    for (int i = 0; n && i < 8; i++) {
        int64_t k = starts[i];
        while (k < n && all[k].max_timestamp < times[i]) k++;
        HOLDS(found[i] == (k < n ? all[k].position : -1) && at[i] == (k < n ? k : -1));
        HOLDS(memcmp(rows + i, all + starts[i], sizeof rows[i]) == 0);
    }
    for (int i = 0; i < 8; i++) positions[i] = (int64_t)(tape_number(t, 2) % (uint64_t)(log->len + 1));
    mqi_kafka_find_batches(log, log->len, positions, times, 8, found, &fault); /* none is the begin of a batch */
    for (int i = 0; i < 8; i++) HOLDS(found[i] < log->len);
}

/* With as much of the log as a window has, and more where a batch needs it. */
static void grow(mqi_kafka_recovery *r, int64_t size, int64_t step) {
    r->partly = 1;
    mqi_kafka_recover_start(r);
    for (int64_t room = step; r->state == MQI_RECOVERY_RUNS; room *= 2) {
        int64_t before = r->valid;
        r->log.len = size - before < room ? size : before + room;
        mqi_kafka_recover(r, size);
        HOLDS(r->valid <= r->log.len && (r->state != MQI_RECOVERY_RUNS || r->log.len < size));
        if (r->valid > before) room = step;
    }
}

static void same(const mqi_kafka_recovery *a, const mqi_kafka_recovery *b) {
    HOLDS(a->state == b->state && a->valid == b->valid && a->batches == b->batches);
    HOLDS(a->offset_index.size == b->offset_index.size && a->time_index.size == b->time_index.size);
    HOLDS(!a->offset_index.size || !memcmp(a->offset_index.data, b->offset_index.data, a->offset_index.size));
    HOLDS(!a->time_index.size || !memcmp(a->time_index.data, b->time_index.data, a->time_index.size));
}

/* What lies behind damage is found, and no batch is counted twice. */
static void recover_behind(const mqi_kafka_log *log, int64_t base, int64_t interval, int64_t max_index_size) {
    mqi_crc_sums sums[2];
    mqi_kafka_log summed = {log->buf, log->len, mqi_crc32, mqi_crc32c, sums};
    HOLDS(mqi_crc_sums_start(sums, log->buf, log->len, mqi_crc32, MQI_CRC32_POLYNOMIAL));
    HOLDS(mqi_crc_sums_start(sums + 1, log->buf, log->len, mqi_crc32c, MQI_CRC32C_POLYNOMIAL));
    mqi_kafka_recovery r = {.log = *log,
                            .size = log->len,
                            .behind = &summed,
                            .base_offset = base,
                            .index_interval = interval,
                            .max_index_size = max_index_size};
    mqi_kafka_recover_start(&r);
    mqi_kafka_recover(&r, log->len);
    HOLDS(r.state != MQI_RECOVERY_RUNS && r.valid <= log->len);
    int64_t after = 0;
    for (int64_t n = 0; n < r.damage.size / (int64_t)sizeof(mqi_kafka_damage); n++) {
        const mqi_kafka_damage *one = (const mqi_kafka_damage *)(const void *)r.damage.data + n;
        HOLDS(one->at >= after && one->end > one->at && one->end <= r.valid && one->batches <= r.batches);
        HOLDS(one->next_offset > one->last_offset);
        after = one->end;
    }
    mqi_kafka_recover_free(&r);
    mqi_crc_sums_free(sums);
    mqi_crc_sums_free(sums + 1);
}

static void recover(const mqi_kafka_log *log, int64_t base, int64_t interval, int64_t max_index_size, int64_t step) {
    mqi_kafka_recovery whole = {.log = *log,
                                .size = log->len,
                                .base_offset = base,
                                .index_interval = interval,
                                .max_index_size = max_index_size};
    mqi_kafka_recovery steps = whole, parts = whole;
    mqi_kafka_tally tally = {.stretch = step}; /* what is counted changes nothing else */
    steps.tally = &tally;
    mqi_kafka_recover_start(&whole);
    mqi_kafka_recover_start(&steps);
    mqi_kafka_recover(&whole, log->len);
    while (steps.state == MQI_RECOVERY_RUNS) mqi_kafka_recover(&steps, steps.valid + step);
    grow(&parts, log->len, step);
    same(&whole, &steps);
    same(&whole, &parts);
    HOLDS(whole.valid <= log->len && whole.offset_index.size <= max_index_size);
    mqi_kafka_tally_settle(&tally);
    int64_t counted = 0, batches = 0;
    for (int n = 0; n < MQI_TALLY_CODECS; n++) counted += tally.counts.codecs[n].bytes;
    for (int n = 0; n < MQI_TALLY_POWERS; n++) batches += tally.counts.sizes[n];
    HOLDS(counted == steps.valid && batches == steps.batches && tally.counts.furthest_back >= 0);
    mqi_kafka_index offsets = {whole.offset_index.data, whole.n_offsets, 0};
    mqi_kafka_index times = {whole.time_index.data, whole.n_times, 1};
    HOLDS(mqi_kafka_is_sorted(&offsets) && mqi_kafka_is_sorted(&times));
    mqi_kafka_recover_free(&whole);
    mqi_kafka_recover_free(&steps);
    mqi_kafka_recover_free(&parts);
    mqi_kafka_tally_free(&tally);
}

/* Sums find what comparing every batch alone finds; where nothing is bad, the next batch is that of the walk. */
static void resync(const mqi_kafka_log *log, int64_t base, tape *t) {
    mqi_crc_sums sums[2];
    mqi_kafka_log summed = {log->buf, log->len, mqi_crc32, mqi_crc32c, sums}, alone = summed;
    alone.sums = 0;
    HOLDS(mqi_crc_sums_start(sums, log->buf, log->len, mqi_crc32, MQI_CRC32_POLYNOMIAL));
    HOLDS(mqi_crc_sums_start(sums + 1, log->buf, log->len, mqi_crc32c, MQI_CRC32C_POLYNOMIAL));
    int64_t floor = base + tape_byte(t) % 8, ceiling = tape_byte(t) & 1 ? base + INT32_MAX : base + tape_byte(t);
    for (int64_t at = 0; at <= log->len;) {
        int64_t found = mqi_kafka_next_batch(&summed, at, floor, ceiling);
        HOLDS(found == mqi_kafka_next_batch(&alone, at, floor, ceiling) && found >= at && found <= log->len);
        int64_t behind = mqi_kafka_batch_after(&summed, at, floor, ceiling);
        HOLDS(behind == mqi_kafka_batch_after(&alone, at, floor, ceiling) && (behind > at || at == log->len));
        at = found + 1;
    }
    mqi_kafka_scan scan = {0}, again = {0};
    mqi_kafka_batch row, same;
    while (mqi_kafka_scan_batches(&summed, &scan, log->len, &row, 1) == 1) {
        HOLDS(mqi_kafka_scan_batches(&alone, &again, log->len, &same, 1) == 1);
        HOLDS(memcmp(&row, &same, sizeof row) == 0);
    }
    HOLDS(mqi_kafka_scan_batches(&alone, &again, log->len, &same, 1) == 0 && scan.at == again.at);
    mqi_crc_sums_free(sums);
    mqi_crc_sums_free(sums + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tape t = {data, data + size};
    uint8_t flags = tape_byte(&t);
    int64_t base = flags & 1 ? (int64_t)1 << 40 : 5;
    int64_t interval = tape_byte(&t), step = 1 + tape_byte(&t), most = flags & 2 ? 10485760 : 12 + tape_byte(&t);
    int64_t target = flags & 4 ? tape_field(&t) : base + tape_byte(&t);
    image m = make(&t, base);
    mqi_kafka_log log = {.buf = m.bytes, .len = m.size, .crc32 = flags & 8 ? mqi_crc32 : 0, .crc32c = mqi_crc32c};
    mqi_kafka_batch all[MOST / 26 + 4];
    mqi_kafka_scan scan = {0};
    int64_t n = 0, more;
    while (!scan.done && (more = mqi_kafka_scan_batches(&log, &scan, m.size, all + n, 3)) > 0) n += more;
    HOLDS(scan.at <= m.size);
    for (int64_t i = 0; i < n; i++) read_records(&log, all + i);
    if (!log.crc32) {
        find(&log, all, n, MQI_FIND_LAST_OFFSET, target);
        find(&log, all, n, MQI_FIND_MAX_TIMESTAMP, target);
        find_many(&log, all, n, &t);
    }
    recover(&log, base, interval, most, step);
    recover_behind(&log, base, interval, most);
    resync(&log, base, &t);
    free(m.bytes);
    return 0;
}
