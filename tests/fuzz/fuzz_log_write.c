/* Any rows to be written: what is refused no broker takes, and what is encoded a scan reads back. */
#include <sys/types.h>

#include "input.h"
#include "mqi_bytes.h"
#include "mqi_crc.h"
#include "mqi_log_append.h"
#include "mqi_log_scan.h"

enum { ROWS = 6, ROOM = 1 << 16, PIECES = 8, FILE_SIZE = 4096 };

typedef struct {
    mqi_piece pieces[PIECES][ROWS];
    int64_t numbers[8][ROWS];
    mqi_log_rows rows;
} message_rows;

static mqi_piece piece(tape *t, int64_t most) {
    static const uint8_t filling[] = "order-17\2KEYS\1a b\2TAGS\1x\2DELAY\0017x";
    uint8_t kind = tape_byte(t);
    if (kind < 40) return (mqi_piece){0, -1};
    int64_t n = kind < 80 ? 0 : kind < 250 ? kind % 24 : most;
    uint8_t *p = fresh((size_t)n);
    if (kind & 1) tape_copy(t, p, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++) p[i] = kind & 2 ? 'a' : filling[i % (int64_t)(sizeof filling - 1)];
    return (mqi_piece){p, n};
}

static mqi_piece host(tape *t) {
    int64_t n = tape_byte(t) & 1 ? 20 : 8;
    uint8_t *p = fresh((size_t)n);
    tape_copy(t, p, (size_t)n);
    return (mqi_piece){p, n};
}

static void make(message_rows *m, tape *t) {
    static const int64_t most[] = {300, 500, 40000, 200, 100, 40};
    mqi_log_rows *rows = &m->rows;
    uint8_t rules = tape_byte(t);
    rows->n = tape_byte(t) % (ROWS + 1);
    rows->crc32 = mqi_crc32;
    rows->rules = (mqi_log_rules){rules & 1, rules >> 1 & 1, rules >> 2 & 1, rules & 8 ? 100 : 1 << 22, 1 << 22};
    for (int64_t i = 0; i < rows->n; i++) {
        for (int k = 0; k < 6; k++) m->pieces[k][i] = piece(t, most[k]);
        m->pieces[6][i] = host(t), m->pieces[7][i] = host(t);
        for (int k = 0; k < 8; k++) m->numbers[k][i] = tape_field(t);
    }
    mqi_pieces *columns[] = {&rows->topic, &rows->body,     &rows->properties, &rows->keys,
                             &rows->tags,  &rows->uniq_key, &rows->born_host,  &rows->store_host};
    for (int k = 0; k < PIECES; k++) *columns[k] = (mqi_pieces){m->pieces[k], 1};
    mqi_numbers *numbers[] = {&rows->queue_id,
                              &rows->queue_offset,
                              &rows->flag,
                              &rows->sys_flag,
                              &rows->born_timestamp,
                              &rows->store_timestamp,
                              &rows->reconsume_times,
                              &rows->prepared_transaction_offset};
    for (int k = 0; k < 8; k++) *numbers[k] = (mqi_numbers){m->numbers[k], 1};
}

static void give_back(message_rows *m) {
    for (int64_t i = 0; i < m->rows.n; i++)
        for (int k = 0; k < PIECES; k++) free((void *)(uintptr_t)m->pieces[k][i].p);
}

static int same(const uint8_t *buf, int64_t pos, int64_t len, const mqi_piece *given) {
    int64_t n = given->len > 0 ? given->len : 0;
    return (len > 0 ? len : 0) == n && (n == 0 || memcmp(buf + pos, given->p, (size_t)n) == 0);
}

static void compare(const message_rows *m, int64_t i, const uint8_t *buf, const mqi_log_frame *f) {
    HOLDS(same(buf, f->topic_pos, f->topic_len, &m->pieces[0][i]));
    HOLDS(same(buf, f->body_pos, f->body_len, &m->pieces[1][i]));
    int plain = m->pieces[2][i].len <= 0; /* a block of the caller's may hold anything */
    for (int k = 3; k < 6; k++) {
        const mqi_piece *given = &m->pieces[k][i];
        int64_t pos = k == 3 ? f->keys_pos : k == 4 ? f->tags_pos : f->uniq_key_pos;
        int64_t len = k == 3 ? f->keys_len : k == 4 ? f->tags_len : f->uniq_key_len;
        HOLDS(!plain || same(buf, pos, len, given));
    }
    HOLDS(same(buf, f->born_host_pos, f->born_host_len + 4, &m->pieces[6][i]));
    HOLDS(same(buf, f->store_host_pos, f->store_host_len + 4, &m->pieces[7][i]));
    HOLDS(f->queue_id == (int32_t)m->numbers[0][i] && f->flag == (int32_t)m->numbers[2][i]);
    HOLDS(f->born_timestamp == m->numbers[4][i] && f->store_timestamp == m->numbers[5][i]);
    HOLDS(f->reconsume_times == (int32_t)m->numbers[6][i] && f->prepared_transaction_offset == m->numbers[7][i]);
    int type = m->numbers[3][i] & 0xC;
    HOLDS(f->queue_offset == (type == 0x4 || type == 0xC ? 0 : m->numbers[1][i]));
}

static void write_and_read(const message_rows *m, const int32_t *sizes, const uint8_t *parts, int64_t total, tape *t) {
    static const int64_t starts[] = {0, 1 << 20, (int64_t)1 << 40};
    int64_t start = starts[tape_byte(t) % 3], phy_offsets[ROWS], read = 0;
    uint8_t *buf = fresh((size_t)total);
    mqi_log_progress progress = {0, start, total + 8, 0};
    int64_t room = tape_byte(t) & 1 ? total : total / 2, used = 0;
    while (progress.row < m->rows.n) {
        int64_t row = progress.row, n;
        n = mqi_log_encode(&m->rows, sizes, parts, &progress, buf + used, room < total - used ? room : total - used,
                           phy_offsets);
        used += n;
        if (progress.row == row) room = total; /* a frame that alone is longer */
    }
    HOLDS(used == total && progress.phy_offset == start + total);
    mqi_log log = {.buf = buf, .len = total, .start = start, .crc32 = mqi_crc32};
    mqi_log_scan scan = {.blank = -1};
    mqi_log_frame frame;
    while (mqi_log_scan_frames(&log, &scan, total, &frame, 1) == 1) {
        HOLDS(read < m->rows.n && frame.phy_offset == phy_offsets[read] && frame.size == sizes[read]);
        compare(m, read++, buf, &frame);
    }
    HOLDS(read == m->rows.n && scan.at == total && !scan.fault.kind);
    free(buf);
}

/* The same rows through two threads into a file. */
static void append_to_file(const message_rows *m, const int32_t *sizes, const uint8_t *parts, int64_t total) {
    static uint8_t *buffer;
    static FILE *file;
    if (!buffer) buffer = fresh(MQI_LOG_WRITERS * ROOM);
    if (!file) file = tmpfile();
    if (!file) return;
    int64_t phy_offsets[ROWS];
    for (int64_t i = 0; i < m->rows.n; i++)
        if (sizes[i] > ROOM) return;
    mqi_log_file out = {fileno(file), 0, buffer, ROOM};
    mqi_log_progress progress = {0, 0, total + 8, 0};
    HOLDS(mqi_log_append(&m->rows, sizes, parts, &progress, &out, total, phy_offsets) == 0);
    HOLDS(progress.row == m->rows.n && progress.phy_offset == total);
}

/* Another thread writes into the caller's bytes after they were measured. */
static void change_meanwhile(message_rows *m, tape *t) {
    while (t->at < t->end) {
        mqi_piece *changed = &m->pieces[tape_byte(t) % PIECES][tape_byte(t) % m->rows.n];
        uint8_t at = tape_byte(t), value = tape_byte(t);
        if (changed->len <= 0) continue;
        ((uint8_t *)(uintptr_t)changed->p)[at & 1 ? changed->len - 1 : at % changed->len] = value & 1 ? value : 2;
    }
}

/* Every frame has its measured size and is read back, also where a delay became none; a byte too many is the
 * sanitizer's. */
static void write_what_changed(const message_rows *m, const int32_t *sizes, const uint8_t *parts, int64_t total) {
    int64_t phy_offsets[ROWS];
    uint8_t *buf = fresh((size_t)total), *frame = buf;
    mqi_log_progress progress = {0, 0, total + 8, 0};
    HOLDS(mqi_log_encode(&m->rows, sizes, parts, &progress, buf, total, phy_offsets) == total);
    for (int64_t i = 0; i < m->rows.n; frame += sizes[i++]) {
        mqi_log log = {.buf = frame, .len = sizes[i], .start = phy_offsets[i], .crc32 = mqi_crc32};
        mqi_log_scan scan = {.blank = -1};
        mqi_log_frame found;
        HOLDS(mqi_get32(frame) == sizes[i]);
        HOLDS(mqi_log_scan_frames(&log, &scan, sizes[i], &found, 1) == 1 && scan.at == sizes[i]);
    }
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static message_rows m;
    tape t = {data, data + size};
    make(&m, &t);
    int32_t sizes[ROWS] = {0};
    uint8_t parts[ROWS];
    mqi_log_refusal why;
    int64_t total = mqi_log_measure(&m.rows, sizes, parts, &why), sum = 0;
    for (int64_t i = 0; i < m.rows.n; i++) sum += sizes[i];
    if (total < 0) HOLDS(why.kind != MQI_REFUSED_NOT && why.row >= 0 && why.row < m.rows.n);
    else HOLDS(total == sum);
    if (total > 0) {
        write_and_read(&m, sizes, parts, total, &t);
        if (tape_byte(&t) % 16 == 0) append_to_file(&m, sizes, parts, total);
        change_meanwhile(&m, &t);
        write_what_changed(&m, sizes, parts, total);
    }
    give_back(&m);
    return 0;
}
