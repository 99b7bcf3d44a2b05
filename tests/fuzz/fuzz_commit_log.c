/* Any bytes as a commit-log file: no read outside it, the finder finds what a byte-by-byte search finds, and extract
 * sees the frames that scan sees. */
#include <stddef.h>

#include "input.h"
#include "mqi_bytes.h"
#include "mqi_crc.h"
#include "mqi_log_columns.h"
#include "mqi_log_extract.h"
#include "mqi_log_find.h"
#include "mqi_log_scan.h"

enum { MOST = 1 << 14 };

typedef struct {
    uint8_t *bytes;
    int64_t size, start;
} image;

static void put_bytes(image *m, const void *p, int64_t n) {
    if (n > MOST - m->size) n = MOST - m->size;
    memcpy(m->bytes + m->size, p, (size_t)n);
    m->size += n;
}

static void put32(image *m, int32_t v) {
    uint8_t b[4];
    mqi_set32(b, v);
    put_bytes(m, b, 4);
}

static void put64(image *m, int64_t v) {
    uint8_t b[8];
    mqi_set64(b, v);
    put_bytes(m, b, 8);
}

static void put_frame(image *m, tape *t, int depth) {
    static const char *const names[] = {"KEYS\1",
                                        "UNIQ_KEY\1",
                                        "TAGS\1",
                                        "X\1",
                                        "DELAY\1",
                                        "INNER_MULTI_DISPATCH\1",
                                        "INNER_MULTI_QUEUE_OFFSET\1",
                                        "INNER_MULTI_QUEUE_OFFSET\0011,2,"};
    uint8_t flags = tape_byte(t);
    int64_t at = m->size;
    int version2 = flags & 1, sys_flag = (flags & 2 ? 0x10 : 0) | (flags & 4 ? 0x20 : 0) | (flags & 8 ? 0x0C : 0);
    put32(m, 0);
    put32(m, version2 ? -626843477 : -626843481);
    put32(m, 0);
    put32(m, tape_byte(t));
    put32(m, 0);
    put64(m, tape_byte(t));
    put64(m, m->start + at);
    put32(m, sys_flag);
    put64(m, tape_field(t));
    put_bytes(m, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24", flags & 2 ? 20 : 8);
    put64(m, tape_field(t));
    put_bytes(m, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24", flags & 4 ? 20 : 8);
    put32(m, 0);
    put64(m, 0);
    int64_t length_at = m->size;
    put32(m, 0);
    int64_t body_at = m->size;
    if (flags & 16 && depth < 3) { /* a body that imitates frames of its own place */
        for (int n = tape_byte(t) % 3; n > 0; n--) put_frame(m, t, depth + 1);
    } else {
        uint8_t body[255];
        int n = tape_byte(t);
        tape_copy(t, body, (size_t)n);
        put_bytes(m, body, n);
    }
    int64_t body_len = m->size - body_at;
    uint8_t topic[64], properties[512], *p = properties;
    int topic_len = tape_byte(t) % 64;
    tape_copy(t, topic, (size_t)topic_len);
    if (flags & 64) memcpy(topic, "SCHEDULE_TOPIC_XXXX", (size_t)(topic_len = 19));
    for (int n = tape_byte(t) % 6; n > 0; n--) {
        const char *name = names[tape_byte(t) % 8];
        int value = tape_byte(t) % 40;
        memcpy(p, name, strlen(name));
        p += strlen(name);
        tape_copy(t, p, (size_t)value);
        p += value;
        if (n > 1 || flags & 32) *p++ = 2;
    }
    uint8_t width[2] = {0, (uint8_t)topic_len};
    put_bytes(m, width + !version2, 1 + version2);
    put_bytes(m, topic, topic_len);
    uint8_t properties_len[2] = {(uint8_t)((p - properties) >> 8), (uint8_t)(p - properties)};
    put_bytes(m, properties_len, 2);
    put_bytes(m, properties, p - properties);
    mqi_set32(m->bytes + at, (int32_t)(m->size - at));
    mqi_set32(m->bytes + at + 8, (int32_t)mqi_crc32(m->bytes + body_at, (size_t)body_len, 0) & INT32_MAX);
    mqi_set32(m->bytes + length_at, (int32_t)body_len);
}

static image make(tape *t) {
    static const int64_t starts[] = {0, 1 << 20, (int64_t)1 << 40, INT64_MAX - MOST};
    image m = {.bytes = fresh(MOST + 1024), .start = starts[tape_byte(t) % 4]};
    for (int n = tape_byte(t) % 24; n > 0 && m.size < MOST - 2048; n--) {
        uint8_t raw[256];
        uint8_t kind = tape_byte(t);
        if (kind < 200) {
            put_frame(&m, t, 0);
        } else {
            tape_copy(t, raw, kind);
            put_bytes(&m, raw, kind);
        }
    }
    uint8_t ending = tape_byte(t);
    if (ending & 1) { /* a blank record that fills the file */
        put32(&m, 8 + ending);
        put32(&m, -875286124);
        uint8_t rest[256] = {0};
        put_bytes(&m, rest, ending);
    }
    if (ending & 2 && m.size > 8)
        for (int n = tape_byte(t) % 6; n > 0; n--)
            mqi_set32(m.bytes + tape_number(t, 2) % (m.size - 4), (int32_t)tape_field(t));
    if (ending & 4) m.size -= tape_number(t, 2) % (m.size + 1);
    uint8_t *exact = fresh((size_t)m.size);
    memcpy(exact, m.bytes, (size_t)m.size);
    free(m.bytes);
    m.bytes = exact;
    return m;
}

static int64_t slow_find(const mqi_log *log, int64_t at, int64_t stop) {
    for (; at < stop; at++) {
        mqi_log_frame frame;
        mqi_log_scan scan = {.at = at, .blank = -1};
        if (mqi_log_scan_frames(log, &scan, at + 1, &frame, 1) == 1) return at;
        if (scan.blank == at && mqi_get32(log->buf + at) == log->len - at) return at;
    }
    return -1;
}

typedef struct {
    int64_t messages, entries;
} totals;

/* A column of each kind says what the frames, seven at most, say. */
static void check_columns(const mqi_log *log, const mqi_log_frame *frames, int64_t n) {
    int64_t offsets[5][8] = {{0}}, places[7], numbers[7];
    int32_t sizes[7];
    uint8_t valid[7];
    mqi_log_column columns[6] = {
        {.kind = MQI_COLUMN_INT64, .at = offsetof(mqi_log_frame, queue_offset), .numbers = (uint8_t *)numbers},
        {.kind = MQI_COLUMN_TEXT, .at = offsetof(mqi_log_frame, keys_pos), .offsets = offsets[0], .valid = valid},
        {.kind = MQI_COLUMN_TEXT, .at = offsetof(mqi_log_frame, body_pos), .offsets = offsets[1]},
        {.kind = MQI_COLUMN_BORN_HOST, .offsets = offsets[2]},
        {.kind = MQI_COLUMN_STORE_HOST, .offsets = offsets[3]},
        {.kind = MQI_COLUMN_MSG_ID, .offsets = offsets[4]},
    };
    columns[1].len_at = offsetof(mqi_log_frame, keys_len);
    columns[2].len_at = offsetof(mqi_log_frame, body_len);
    mqi_log_table table = {.columns = columns, .count = 6, .max_rows = 7};
    for (int64_t i = 0; i < n; i++) {
        places[i] = frames[i].phy_offset - log->start;
        sizes[i] = frames[i].size;
    }
    HOLDS(mqi_log_columns_at(log, places, sizes, n, &table) == n && table.rows == n);
    for (int64_t i = 0; i < n; i++) {
        const mqi_log_frame *f = frames + i;
        HOLDS(numbers[i] == f->queue_offset && valid[i] == (f->keys_len >= 0));
        HOLDS(offsets[0][i + 1] - offsets[0][i] == (f->keys_len < 0 ? 0 : f->keys_len));
        HOLDS(f->keys_len < 0 ||
              memcmp(columns[1].data + offsets[0][i], log->buf + f->keys_pos, (size_t)f->keys_len) == 0);
        HOLDS(offsets[1][i + 1] - offsets[1][i] == f->body_len);
        HOLDS(memcmp(columns[2].data + offsets[1][i], log->buf + f->body_pos, (size_t)f->body_len) == 0);
        HOLDS(offsets[4][i + 1] - offsets[4][i] == 2 * (f->store_host_len + 12));
    }
    table.rows = 0;
    if (n) sizes[n - 1]++;
    HOLDS(mqi_log_columns_at(log, places, sizes, n, &table) == (n ? n - 1 : 0));
    for (int i = 1; i < 6; i++) free(columns[i].data);
}

static totals scan_all(const mqi_log *log, mqi_log_scan *scan, int64_t stop, int64_t most) {
    totals sum = {0};
    mqi_log_frame *frames = fresh((size_t)most * sizeof *frames), again[7];
    while (!scan->done) {
        int64_t n = mqi_log_scan_frames(log, scan, stop, frames, most);
        for (int64_t i = 0; i < n; i++) {
            HOLDS(frames[i].properties_pos + frames[i].properties_len <= log->len);
            HOLDS(frames[i].keys_len < 0 || frames[i].keys_pos + frames[i].keys_len <= log->len);
            sum.entries += frames[i].entry_count;
        }
        int64_t places[7];
        uint8_t valid[7];
        for (int64_t i = 0; i < n; i++) places[i] = frames[i].phy_offset - log->start;
        mqi_log_scan_at(log, places, n, again, valid);
        for (int64_t i = 0; i < n; i++) HOLDS(valid[i] && memcmp(frames + i, again + i, sizeof *frames) == 0);
        check_columns(log, frames, n);
        sum.messages += n;
        if (n == 0) break;
    }
    free(frames);
    return sum;
}

static void check_units(const mqi_log_cursor *c, const mqi_log_queues *queues, const mqi_log *log) {
    for (int64_t i = 0; i < c->n_units; i++) {
        HOLDS(c->units[i].queue >= 0 && c->units[i].queue < queues->n);
        HOLDS(c->units[i].phy_offset >= log->start &&
              c->units[i].phy_offset + c->units[i].size <= log->start + log->len);
    }
}

static void extract_all(const mqi_log *log, int tags, int64_t at, int64_t stop) {
    mqi_log_scan scan = {.at = at, .blank = -1};
    totals seen = scan_all(log, &scan, stop, 7);
    mqi_log_extract *x = fresh(sizeof *x);
    x->log = *log;
    x->tags = tags;
    x->at = at;
    x->stop = stop;
    static const int64_t delays[] = {1000, INT64_MAX};
    static uint8_t *runs[MQI_LOG_CURSORS]; /* megabytes: made once */
    static mqi_queue_unit *units[MQI_LOG_CURSORS];
    mqi_log_queues queues = {.delay_levels = delays, .n_delay_levels = tags ? 2 : 0, .multi_dispatch = 1, .lmq = tags};
    queues.system_topics = (int)(stop >> 1) & (MQI_RETRY_TOPICS | MQI_WAITING_TOPICS | MQI_SYSTEM_TOPICS);
    if (stop & 1) x->queues = &queues;
    for (int i = 0; i < MQI_LOG_CURSORS; i++) {
        if (!runs[i]) runs[i] = fresh((size_t)MQI_LOG_RUN_ENTRIES * MQI_RUN_SIZE);
        x->cursor[i].run = runs[i];
        if (!units[i]) units[i] = fresh(MQI_LOG_RUN_UNITS * sizeof *units[i]);
        x->cursor[i].units = units[i];
    }
    mqi_log_extract_start(x);
    int64_t emitted = 0;
    while (!x->done) {
        mqi_log_extract_step(x);
        for (int i = 0; i < x->confirmed; i++) {
            emitted += x->cursor[i].entries;
            check_units(x->cursor + i, &queues, log);
        }
    }
    HOLDS(x->messages == seen.messages);
    HOLDS(emitted == x->entries);
    HOLDS(tags ? x->entries >= seen.entries : x->entries == seen.entries);
    HOLDS(x->at == scan.at);
    HOLDS(x->fault.kind == scan.fault.kind && (!x->fault.kind || x->fault.at == scan.fault.at));
    HOLDS(x->blank == scan.blank);
    mqi_log_queues_free(&queues);
    free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tape t = {data, data + size};
    image m = make(&t);
    uint8_t flags = tape_byte(&t);
    mqi_log log = {.buf = m.bytes, .len = m.size, .start = m.start, .crc32 = flags & 1 ? mqi_crc32 : 0};
    int64_t at = m.size ? (int64_t)(tape_number(&t, 2) % (uint64_t)m.size) : 0;
    int64_t stop = flags & 2 ? m.size : at + (m.size - at) / 2;
    HOLDS(mqi_log_find(&log, at, stop) == slow_find(&log, at, stop));
    extract_all(&log, flags >> 2 & 1, 0, m.size);
    int64_t found = mqi_log_find(&log, at, stop);
    if (found >= 0) extract_all(&log, flags >> 2 & 1, found, stop);
    int64_t end, last = mqi_log_last(&log, at, stop, &end);
    HOLDS(at <= last && last <= end && end <= m.size && (last == at || last < stop));
    free(m.bytes);
    return 0;
}
