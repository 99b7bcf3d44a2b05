#include "mqi_kafka_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mqi_bytes.h"
#include "mqi_crc.h"
#include "mqi_kafka_index.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define TAIL 17 /* so many bytes and fewer are no batch, and no fault */

enum { WHOLE, END, BAD };

typedef struct {
    int64_t size, last_offset, max_timestamp;
    int magic;
} head;

static int bad(mqi_batch_fault *fault, int kind, int64_t at, int64_t expected, int64_t got) {
    *fault = (mqi_batch_fault){.kind = kind, .at = at, .expected = expected, .got = got};
    return BAD;
}

static inline int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

/* What recovery and searches ask of a batch: sizes are checked, contents are not. */
static inline int read_head_of(const uint8_t *p, int64_t left, int64_t at, head *h, mqi_batch_fault *fault) {
    if (UNLIKELY(left <= TAIL)) return END;
    int32_t length = mqi_get32(p + 8);
    h->size = MQI_BATCH_OVERHEAD + (int64_t)length;
    h->magic = (int8_t)p[MQI_BATCH_MAGIC]; /* NOLINT(bugprone-signed-char-misuse): signed in Java too */
    if (UNLIKELY(length < MQI_MIN_LENGTH)) return bad(fault, MQI_BATCH_BAD_LENGTH, at, MQI_MIN_LENGTH, length);
    if (UNLIKELY(h->size > left)) return END;
    if (LIKELY(h->magic >= 2)) {
        const int64_t least = MQI_BATCH_RECORDS - MQI_BATCH_OVERHEAD;
        if (UNLIKELY(length < least)) return bad(fault, MQI_BATCH_BAD_LENGTH, at, least, length);
        h->last_offset = plus(mqi_get64(p), mqi_get32(p + 23));
        h->max_timestamp = mqi_get64(p + 35);
    } else {
        h->last_offset = mqi_get64(p);
        h->max_timestamp = h->magic == 0 ? -1 : mqi_get64(p + MQI_MESSAGE_TIMESTAMP);
    }
    return WHOLE;
}

static inline int read_head(const mqi_kafka_log *log, int64_t at, head *h, mqi_batch_fault *fault) {
    return read_head_of(log->buf + at, log->len - at, at, h, fault);
}

static int check_crc(const uint8_t *p, const head *h, int64_t at, mqi_batch_fault *fault) {
    int v2 = h->magic >= 2;
    uint32_t stored = (uint32_t)mqi_get32(p + (v2 ? 17 : 12)), found;
    if (v2) found = mqi_crc32c(p + MQI_BATCH_ATTRIBUTES, (size_t)h->size - MQI_BATCH_ATTRIBUTES, 0);
    else found = mqi_crc32(p + MQI_BATCH_MAGIC, (size_t)h->size - MQI_BATCH_MAGIC, 0);
    return LIKELY(found == stored) ? WHOLE : bad(fault, MQI_BATCH_BAD_CRC, at, found, stored);
}

static inline int read_checked(const mqi_kafka_log *log, int64_t at, head *h, mqi_batch_fault *fault) {
    int found = read_head(log, at, h, fault);
    if (found == WHOLE && log->check_crc) found = check_crc(log->buf + at, h, at, fault);
    return found;
}

static inline void read_row(const uint8_t *p, int64_t at, const head *h, mqi_kafka_batch *b) {
    b->position = at;
    b->base_offset = mqi_get64(p);
    b->last_offset = h->last_offset;
    b->max_timestamp = h->max_timestamp;
    b->size = (int32_t)h->size;
    b->magic = (int8_t)h->magic;
    if (LIKELY(h->magic >= 2)) {
        b->base_timestamp = mqi_get64(p + 27);
        b->producer_id = mqi_get64(p + 43);
        b->leader_epoch = mqi_get32(p + 12);
        b->crc = (uint32_t)mqi_get32(p + 17);
        b->count = mqi_get32(p + 57);
        b->base_sequence = mqi_get32(p + 53);
        b->attributes = mqi_get16(p + MQI_BATCH_ATTRIBUTES);
        b->producer_epoch = mqi_get16(p + 51);
    } else {
        b->base_timestamp = h->max_timestamp;
        b->producer_id = -1;
        b->leader_epoch = -1;
        b->crc = (uint32_t)mqi_get32(p + 12);
        b->count = 1;
        b->base_sequence = -1;
        b->attributes = (int16_t)(int8_t)p[MQI_MESSAGE_ATTRIBUTES];
        b->producer_epoch = -1;
    }
}

/* ---- walk and search ----------------------------------------------------------------------------------------------- */

int64_t mqi_kafka_scan_batches(const mqi_kafka_log *log, mqi_kafka_scan *scan, int64_t stop, mqi_kafka_batch *out,
                               int64_t max) {
    int64_t n = 0;
    while (n < max && scan->at < stop) {
        head h;
        if (UNLIKELY(read_checked(log, scan->at, &h, &scan->fault) != WHOLE)) {
            scan->done = 1;
            return n;
        }
        __builtin_prefetch(log->buf + scan->at + h.size);
        read_row(log->buf + scan->at, scan->at, &h, out + n++);
        scan->at += h.size;
    }
    scan->done = scan->at >= stop;
    return n;
}

int mqi_kafka_find_batch(const mqi_kafka_log *log, mqi_kafka_scan *scan, int64_t stop, int column, int64_t target,
                         mqi_kafka_batch *out) {
    while (scan->at < stop) {
        head h;
        if (UNLIKELY(read_head(log, scan->at, &h, &scan->fault) != WHOLE)) break;
        int64_t at = scan->at;
        scan->at += h.size;
        if ((column == MQI_FIND_LAST_OFFSET ? h.last_offset : h.max_timestamp) >= target) {
            read_row(log->buf + at, at, &h, out);
            return 1;
        }
    }
    scan->done = 1;
    return 0;
}

/* ---- recovery ------------------------------------------------------------------------------------------------------ */

static int make_room(mqi_bytes *bytes, int64_t more) {
    if (LIKELY(bytes->size + more <= bytes->room)) return 1;
    int64_t room = bytes->room ? 2 * bytes->room : 1 << 16;
    uint8_t *data = realloc(bytes->data, (size_t)room);
    if (!data) return 0;
    bytes->data = data;
    bytes->room = room;
    return 1;
}

static int refuse(mqi_kafka_recovery *r, int why, int in_time_index, int64_t refused, int64_t limit) {
    static const int states[] = {MQI_RECOVERY_RUNS, MQI_RECOVERY_FULL, MQI_RECOVERY_ORDER, MQI_RECOVERY_OVERFLOW};
    r->state = states[why];
    r->in_time_index = in_time_index;
    r->refused = refused;
    r->limit = limit;
    return 0;
}

static int append_offset(mqi_kafka_recovery *r, int64_t offset, int64_t position) {
    int32_t place = (int32_t)position;
    if (!make_room(&r->offset_index, MQI_OFFSET_ENTRY_SIZE)) {
        r->state = MQI_RECOVERY_NO_MEMORY;
        return 0;
    }
    mqi_kafka_end end = {.buf = r->offset_index.data,
                         .entries = r->n_offsets,
                         .max_entries = r->max_index_size / MQI_OFFSET_ENTRY_SIZE,
                         .base_offset = r->base_offset,
                         .last_offset = r->last_index_offset};
    int why = mqi_kafka_append_offsets(&end, &offset, &place, 1);
    if (UNLIKELY(why != MQI_KAFKA_FINE)) return refuse(r, why, 0, offset, r->last_index_offset);
    r->n_offsets = end.entries;
    r->offset_index.size = end.entries * MQI_OFFSET_ENTRY_SIZE;
    r->last_index_offset = offset;
    return 1;
}

static int append_time(mqi_kafka_recovery *r, int closing) {
    if (!make_room(&r->time_index, MQI_TIME_ENTRY_SIZE)) {
        r->state = MQI_RECOVERY_NO_MEMORY;
        return 0;
    }
    mqi_kafka_end end = {.buf = r->time_index.data,
                         .entries = r->n_times,
                         .max_entries = r->max_index_size / MQI_TIME_ENTRY_SIZE,
                         .base_offset = r->base_offset,
                         .last_timestamp = r->last_time,
                         .last_offset = r->last_time_offset};
    int why = mqi_kafka_append_times(&end, &r->max_timestamp, &r->max_timestamp_offset, 1, closing);
    if (UNLIKELY(why != MQI_KAFKA_FINE)) return refuse(r, why, 1, r->max_timestamp_offset, r->last_time_offset);
    r->n_times = end.entries;
    r->time_index.size = end.entries * MQI_TIME_ENTRY_SIZE;
    r->last_time = end.last_timestamp;
    r->last_time_offset = end.last_offset;
    return 1;
}

/* The offset that the index gets; 0: it stands compressed inside the wrapper, and the caller must look. */
static int index_offset(mqi_kafka_recovery *r, const uint8_t *p, const head *h, int64_t *offset) {
    *offset = h->last_offset;
    if (LIKELY(!r->first_offsets)) return 1;
    *offset = mqi_get64(p);
    if (h->magic >= 2 || !(p[MQI_MESSAGE_ATTRIBUTES] & MQI_BATCH_CODEC)) return 1;
    if (r->told_at != r->valid) {
        r->state = MQI_RECOVERY_WANTS_FIRST;
        return 0;
    }
    *offset = r->first_offset;
    return 1;
}

static int keep_row(mqi_kafka_recovery *r, const uint8_t *p, const head *h) {
    int attributes = p[MQI_BATCH_ATTRIBUTES + 1];
    if (LIKELY(!(attributes & (MQI_BATCH_TRANSACTIONAL | MQI_BATCH_CONTROL)) || mqi_get64(p + 43) < 0)) return 1;
    if (!make_room(&r->transactional, sizeof(mqi_kafka_batch))) {
        r->state = MQI_RECOVERY_NO_MEMORY;
        return 0;
    }
    read_row(p, r->valid, h, (mqi_kafka_batch *)(void *)(r->transactional.data + r->transactional.size));
    r->transactional.size += (int64_t)sizeof(mqi_kafka_batch);
    return 1;
}

static void note(mqi_kafka_recovery *r, int what, int64_t expected, int64_t got) {
    mqi_batch_odd *odd = r->odd + what;
    if (odd->count++ == 0) *odd = (mqi_batch_odd){.count = 1, .at = r->valid, .expected = expected, .got = got};
}

static int new_epoch(mqi_kafka_recovery *r, int32_t epoch, int64_t base) {
    if (epoch == -1 || r->epochs.size >= (int64_t)sizeof(mqi_epoch_run) * MQI_MAX_EPOCH_RUNS) return 1;
    if (!make_room(&r->epochs, sizeof(mqi_epoch_run))) {
        r->state = MQI_RECOVERY_NO_MEMORY;
        return 0;
    }
    mqi_epoch_run run = {.position = r->valid, .base_offset = base, .last_base_offset = base, .leader_epoch = epoch};
    memcpy(r->epochs.data + r->epochs.size, &run, sizeof run);
    r->epochs.size += (int64_t)sizeof run;
    return 1;
}

/* What the checksum leaves open: offsets go on behind the batch before, the magic is known, the epoch is kept. */
static inline int look_over(mqi_kafka_recovery *r, const uint8_t *p, const head *h) {
    int64_t base = mqi_get64(p);
    if (UNLIKELY(r->batches && base <= r->last_offset)) note(r, MQI_ODD_ORDER, r->last_offset + 1, base);
    if (UNLIKELY(base < r->base_offset)) note(r, MQI_ODD_BASE, r->base_offset, base);
    if (h->magic < 2) {
        if (UNLIKELY(h->magic < 0)) note(r, MQI_ODD_MAGIC, 2, h->magic);
        return 1;
    }
    if (UNLIKELY(h->magic > 2)) note(r, MQI_ODD_MAGIC, 2, h->magic);
    int64_t most = (int64_t)mqi_get32(p + 23) + 1;
    int32_t count = mqi_get32(p + 57), epoch = mqi_get32(p + 12);
    if (UNLIKELY(count < 0 || count > most || most < 1)) note(r, MQI_ODD_COUNT, most, count);
    if (UNLIKELY(!r->epochs.size)) return new_epoch(r, epoch, base);
    mqi_epoch_run *last = (mqi_epoch_run *)(void *)(r->epochs.data + r->epochs.size) - 1;
    if (UNLIKELY(epoch != last->leader_epoch)) return new_epoch(r, epoch, base);
    last->last_base_offset = base;
    return 1;
}

/* 0: stopped before this batch. */
static inline int recover_batch(mqi_kafka_recovery *r, const uint8_t *p, const head *h) {
    int64_t offset = 0;
    int indexed = r->valid - r->last_indexed > r->index_interval;
    uint64_t relative = (uint64_t)h->last_offset - (uint64_t)r->base_offset;
    if (UNLIKELY(relative > INT32_MAX)) return refuse(r, MQI_KAFKA_OVERFLOW, 0, h->last_offset, r->last_offset);
    if (indexed && UNLIKELY(!index_offset(r, p, h, &offset))) return 0;
    if (h->max_timestamp > r->max_timestamp) {
        r->max_timestamp = h->max_timestamp;
        r->max_timestamp_offset = h->last_offset;
    }
    if (indexed) {
        if (UNLIKELY(!append_offset(r, offset, r->valid) || !append_time(r, 0))) return 0;
        r->last_indexed = r->valid;
    }
    if (h->magic >= 2 && UNLIKELY(!keep_row(r, p, h))) return 0;
    if (UNLIKELY(!look_over(r, p, h))) return 0;
    r->valid += h->size;
    r->last_offset = h->last_offset;
    r->batches++;
    return 1;
}

/* One read of a header costs less than the faults of its page, and of those around it, where batches are large. */
static int read_header(mqi_kafka_recovery *r) {
    int64_t left = r->log.len - r->valid;
    size_t wanted = left < MQI_BATCH_RECORDS ? (size_t)left : MQI_BATCH_RECORDS;
    ssize_t n;
    do n = pread(r->fd, r->header, wanted, (off_t)r->valid);
    while (n < 0 && errno == EINTR);
    if (LIKELY(n == (ssize_t)wanted)) return 1;
    r->state = MQI_RECOVERY_UNREADABLE;
    r->error = n < 0 ? errno : 0;
    return 0;
}

void mqi_kafka_recover_start(mqi_kafka_recovery *r) {
    r->fd = -1;
    r->told_at = -1;
    r->max_timestamp = r->last_time = -1;
    r->max_timestamp_offset = r->last_time_offset = r->base_offset;
}

void mqi_kafka_recover(mqi_kafka_recovery *r, int64_t stop) {
    head h;
    if (r->state == MQI_RECOVERY_WANTS_FIRST) {
        r->told_at = r->valid;
        r->state = MQI_RECOVERY_RUNS;
    }
    if (r->state != MQI_RECOVERY_RUNS) return;
    while (r->valid < stop) {
        int mapped = r->fd < 0, found;
        const uint8_t *p = mapped ? r->log.buf + r->valid : r->header;
        if (mapped) found = read_checked(&r->log, r->valid, &h, &r->fault);
        else if (LIKELY(read_header(r))) found = read_head_of(p, r->log.len - r->valid, r->valid, &h, &r->fault);
        else return;
        if (UNLIKELY(found != WHOLE)) {
            stop = r->log.len;
            break;
        }
        if (mapped) __builtin_prefetch(p + h.size);
        if (UNLIKELY(!recover_batch(r, p, &h))) return;
    }
    if (stop >= r->log.len && append_time(r, 1)) r->state = MQI_RECOVERY_DONE;
}

void mqi_kafka_recover_free(mqi_kafka_recovery *r) {
    free(r->offset_index.data);
    free(r->time_index.data);
    free(r->transactional.data);
    free(r->epochs.data);
    r->offset_index = r->time_index = r->transactional = r->epochs = (mqi_bytes){0};
}
