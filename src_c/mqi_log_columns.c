#include "mqi_log_columns.h"

#include <stdlib.h>
#include <string.h>

#include "mqi_log_text.h"

#define BLOCK 128 /* frames: their rows stay in the first-level cache, what these point to in the second */
#define MOST_AHEAD (16 << 20)
#define SLACK 64 /* bytes that may be written after a text, and read where the log has them */

/* ---- texts -------------------------------------------------------------------------------------------------------- */

/* Room for `more` bytes after those of the rows so far. A new buffer is made for all rows that are expected, if they
 * are as long as these: one of the right size comes from memory that is in use, one that is cut later from new pages. */
static int reserve(mqi_log_column *column, const mqi_log_table *table, int64_t n, int64_t more) {
    int64_t used = column->offsets[table->rows] + more, needed = used + SLACK, rows = table->rows + n;
    if (LIKELY(needed <= column->room)) return 1;
    double rest = (double)used / (double)rows * (double)(table->expected - rows) * 1.0625;
    int64_t ahead = rest < MOST_AHEAD ? (int64_t)rest : MOST_AHEAD;
    int64_t room = needed + (ahead > needed / 4 ? ahead : needed / 4);
    uint8_t *data = realloc(column->data, (size_t)room);
    if (!data) return 0;
    column->data = data;
    column->room = room;
    return 1;
}

/* Short pieces are copied 16 bytes at a time, past their end where both sides have room. */
static inline void copy_piece(uint8_t *out, const uint8_t *from, int64_t n, const uint8_t *limit) {
    if (LIKELY(n <= SLACK && limit - from >= SLACK))
        for (int64_t i = 0; i < n; i += 16) memcpy(out + i, from + i, 16);
    else memcpy(out, from, (size_t)n);
}

static inline int32_t length_of(const mqi_log_column *column, const mqi_log_frame *frame) {
    int32_t n;
    memcpy(&n, (const uint8_t *)frame + column->len_at, sizeof n);
    return n;
}

static int add_texts(const mqi_log *log, const mqi_log_frame *frames, int64_t n, mqi_log_column *column,
                     const mqi_log_table *table) {
    const uint8_t *limit = log->buf + log->len;
    int64_t *offsets = column->offsets + table->rows, more = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t length = length_of(column, frames + i);
        more += length < 0 ? 0 : length;
    }
    if (!reserve(column, table, n, more)) return 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at;
        int32_t length = length_of(column, frames + i);
        memcpy(&at, (const uint8_t *)(frames + i) + column->at, sizeof at);
        if (column->valid) column->valid[table->rows + i] = length >= 0;
        if (length < 0) length = 0;
        copy_piece(column->data + offsets[i], log->buf + at, length, limit);
        offsets[i + 1] = offsets[i] + length;
    }
    return 1;
}

/* Neighbours mostly have the same host: its text is made once. */
static int add_hosts(const mqi_log *log, const mqi_log_frame *frames, int64_t n, mqi_log_column *column,
                     const mqi_log_table *table) {
    int64_t *offsets = column->offsets + table->rows;
    int born = column->kind == MQI_COLUMN_BORN_HOST, address_len = 0, length = 0;
    uint8_t before[MQI_HOST_SIZE_IPV6] = {0};
    char text[MQI_LOG_TEXT_MAX] = {0};
    if (!reserve(column, table, n, n * MQI_LOG_TEXT_MAX)) return 0;
    for (int64_t i = 0; i < n; i++) {
        const mqi_log_frame *f = frames + i;
        const uint8_t *host = log->buf + (born ? f->born_host_pos : f->store_host_pos);
        int bytes = born ? f->born_host_len : f->store_host_len;
        if (bytes != address_len || memcmp(host, before, (size_t)bytes + 4) != 0) {
            memcpy(before, host, (size_t)bytes + 4);
            address_len = bytes;
            length = mqi_log_host_text(before, bytes, text);
        }
        memcpy(column->data + offsets[i], text, sizeof text);
        offsets[i + 1] = offsets[i] + length;
    }
    return 1;
}

static int add_ids(const mqi_log *log, const mqi_log_frame *frames, int64_t n, mqi_log_column *column,
                   const mqi_log_table *table) {
    int64_t *offsets = column->offsets + table->rows;
    if (!reserve(column, table, n, n * MQI_LOG_TEXT_MAX)) return 0;
    for (int64_t i = 0; i < n; i++) {
        char *out = (char *)column->data + offsets[i];
        offsets[i + 1] = offsets[i] + mqi_log_id(log->buf, frames + i, out);
    }
    return 1;
}

/* ---- columns ------------------------------------------------------------------------------------------------------ */

static int add_numbers(const mqi_log_frame *frames, int64_t n, mqi_log_column *column, const mqi_log_table *table) {
    if (column->kind == MQI_COLUMN_INT32) {
        uint8_t *out = column->numbers + table->rows * 4;
        for (int64_t i = 0; i < n; i++) memcpy(out + 4 * i, (const uint8_t *)(frames + i) + column->at, 4);
    } else {
        uint8_t *out = column->numbers + table->rows * 8;
        for (int64_t i = 0; i < n; i++) memcpy(out + 8 * i, (const uint8_t *)(frames + i) + column->at, 8);
    }
    return 1;
}

static int add_rows(const mqi_log *log, const mqi_log_frame *frames, int64_t n, mqi_log_table *table) {
    int fine = 1;
    for (int64_t i = 0; i < table->count && fine; i++) {
        mqi_log_column *column = table->columns + i;
        if (column->kind <= MQI_COLUMN_INT64) fine = add_numbers(frames, n, column, table);
        else if (column->kind == MQI_COLUMN_TEXT) fine = add_texts(log, frames, n, column, table);
        else if (column->kind == MQI_COLUMN_MSG_ID) fine = add_ids(log, frames, n, column, table);
        else fine = add_hosts(log, frames, n, column, table);
    }
    table->rows += n;
    return fine;
}

int64_t mqi_log_columns_at(const mqi_log *log, const int64_t *at, const int32_t *sizes, int64_t n,
                           mqi_log_table *table) {
    mqi_log_frame frames[BLOCK];
    uint8_t valid[BLOCK];
    table->expected = n;
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t rows = n - first < BLOCK ? n - first : BLOCK;
        mqi_log_scan_at(log, at + first, rows, frames, valid);
        for (int64_t i = 0; i < rows; i++)
            if (UNLIKELY(!valid[i] || frames[i].size != sizes[first + i])) return first + i;
        if (!add_rows(log, frames, rows, table)) return -1;
    }
    return n;
}

/* How many rows a scan of the bytes [start, limit) will have, of which those to `at` gave the first ones. */
static int64_t expected_rows(int64_t rows, int64_t start, int64_t at, int64_t limit, int64_t max_rows) {
    double all = (double)rows * (double)(limit - start) / (double)(at - start);
    return all < (double)max_rows ? (int64_t)all + 1 : max_rows;
}

int mqi_log_columns_scan(const mqi_log *log, mqi_log_scan *scan, int64_t stop, int64_t max_bytes,
                         mqi_log_table *table) {
    mqi_log_frame frames[BLOCK];
    int64_t start = scan->at, limit = max_bytes < stop - start ? start + max_bytes : stop;
    while (table->rows < table->max_rows) {
        int64_t rows = table->max_rows - table->rows < BLOCK ? table->max_rows - table->rows : BLOCK;
        rows = mqi_log_scan_frames(log, scan, limit, frames, rows);
        if (!rows) break;
        table->expected = expected_rows(table->rows + rows, start, scan->at, limit, table->max_rows);
        if (!add_rows(log, frames, rows, table)) return 0;
    }
    if (limit < stop && scan->fault.kind == MQI_LOG_FINE && scan->blank < 0) scan->done = 0;
    return 1;
}

void mqi_texts_among(const uint8_t *data, int64_t len, const int64_t *offsets, int64_t n, const uint8_t *wanted,
                     const int64_t *ends, int64_t n_wanted, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        int64_t at = offsets[i], stop = offsets[i + 1], begin = 0;
        out[i] = 0;
        if (UNLIKELY(at < 0 || stop < at || stop > len)) continue;
        for (int64_t k = 0; k < n_wanted && !out[i]; begin = ends[k++])
            out[i] = ends[k] - begin == stop - at && memcmp(wanted + begin, data + at, (size_t)(stop - at)) == 0;
    }
}
