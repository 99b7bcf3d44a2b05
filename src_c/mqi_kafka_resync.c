#include "mqi_kafka_resync.h"

enum { LEAST_0 = 26, LEAST_1 = 34 }; /* bytes of a message without key and value */

typedef struct {
    const mqi_kafka_log *log;
    int64_t floor, ceiling;
} mqi_kafka_line;

static inline int64_t least_of(int magic) { return magic == 2 ? MQI_BATCH_RECORDS : magic ? LEAST_1 : LEAST_0; }

/* All of a batch but its checksum. There are MQI_BATCH_TAIL bytes at `at`, and one more. */
static inline int is_plausible(const mqi_kafka_line *line, int64_t at, mqi_batch_head *h) {
    const uint8_t *p = line->log->buf + at;
    if (LIKELY(p[MQI_BATCH_MAGIC] > 2)) return 0;
    h->magic = p[MQI_BATCH_MAGIC];
    h->size = MQI_BATCH_OVERHEAD + (int64_t)mqi_get32(p + MQI_BATCH_LENGTH);
    if (LIKELY(h->size < least_of(h->magic) || h->size > line->log->len - at)) return 0;
    int64_t base = mqi_get64(p);
    if (LIKELY(base < line->floor || base >= line->ceiling)) return 0;
    h->last_offset = base;
    if (h->magic < 2) return 1;
    int64_t delta = mqi_get32(p + MQI_BATCH_LAST_OFFSET_DELTA), count = mqi_get32(p + MQI_BATCH_COUNT);
    if (delta < 0 || delta > line->ceiling - 1 - base || count < 0 || count > delta + 1) return 0;
    h->last_offset += delta;
    return 1;
}

static int is_batch(const mqi_kafka_line *line, int64_t at, mqi_batch_head *h) {
    mqi_batch_fault fault;
    return line->log->len - at > MQI_BATCH_TAIL && is_plausible(line, at, h) &&
           mqi_batch_check_crc(line->log, line->log->buf + at, h, at, &fault) == MQI_BATCH_WHOLE;
}

static int is_valid(const mqi_kafka_line *line, int64_t at) {
    mqi_batch_head h, next;
    if (LIKELY(!is_batch(line, at, &h))) return 0;
    if (h.magic == 2 || at + h.size == line->log->len) return 1;
    mqi_kafka_line above = {line->log, h.last_offset + 1, line->ceiling};
    return is_batch(&above, at + h.size, &next);
}

int64_t mqi_kafka_next_batch(const mqi_kafka_log *log, int64_t at, int64_t floor, int64_t ceiling) {
    mqi_kafka_line line = {log, floor, ceiling};
    for (; at < log->len - MQI_BATCH_TAIL; at++)
        if (UNLIKELY(is_valid(&line, at))) return at;
    return log->len;
}

int64_t mqi_kafka_batch_after(const mqi_kafka_log *log, int64_t bad, int64_t floor, int64_t ceiling) {
    mqi_kafka_line line = {log, floor, ceiling};
    mqi_batch_fault fault;
    mqi_batch_head h;
    if (mqi_batch_read_head(log, bad, &h, &fault) == MQI_BATCH_WHOLE &&
        (bad + h.size == log->len || is_valid(&line, bad + h.size)))
        return bad + h.size;
    return mqi_kafka_next_batch(log, bad + 1, floor, ceiling);
}
