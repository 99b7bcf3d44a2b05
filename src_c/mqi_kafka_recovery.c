#include "mqi_kafka_recovery.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "mqi_kafka_index.h"
#include "mqi_kafka_resync.h"

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
    if (!mqi_buffer_reserve(&r->offset_index, MQI_OFFSET_ENTRY_SIZE)) {
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
    if (!mqi_buffer_reserve(&r->time_index, MQI_TIME_ENTRY_SIZE)) {
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

/* The offset that the index gets; 0: it is compressed inside the wrapper, and the caller must read it. */
static int index_offset(mqi_kafka_recovery *r, const uint8_t *p, const mqi_batch_head *h, int64_t *offset) {
    *offset = h->last_offset;
    if (LIKELY(!r->first_offsets && !r->entry_due)) return 1;
    *offset = mqi_get64(p);
    if (!r->first_offsets) return 1;
    if (h->magic >= 2 || !(p[MQI_MESSAGE_ATTRIBUTES] & MQI_BATCH_CODEC)) return 1;
    if (r->first_offset_of != r->valid) {
        r->state = MQI_RECOVERY_NEEDS_FIRST;
        return 0;
    }
    *offset = r->first_offset;
    return 1;
}

static int keep_row(mqi_kafka_recovery *r, const uint8_t *p, const mqi_batch_head *h) {
    int attributes = p[MQI_BATCH_ATTRIBUTES + 1];
    if (LIKELY(!(attributes & (MQI_BATCH_TRANSACTIONAL | MQI_BATCH_CONTROL)) ||
               mqi_get64(p + MQI_BATCH_PRODUCER_ID) < 0)) {
        return 1;
    }
    if (!mqi_buffer_reserve(&r->transactional, sizeof(mqi_kafka_batch))) {
        r->state = MQI_RECOVERY_NO_MEMORY;
        return 0;
    }
    mqi_batch_read_row(p, r->valid, h, (mqi_kafka_batch *)(void *)(r->transactional.data + r->transactional.size));
    r->transactional.size += (int64_t)sizeof(mqi_kafka_batch);
    return 1;
}

static void note(mqi_kafka_recovery *r, int what, int64_t expected, int64_t got) {
    mqi_batch_odd *odd = r->odd + what;
    if (odd->count++ == 0) *odd = (mqi_batch_odd){.count = 1, .at = r->valid, .expected = expected, .got = got};
}

static int new_epoch(mqi_kafka_recovery *r, int32_t epoch, int64_t base) {
    if (epoch == -1 || r->epochs.size >= (int64_t)sizeof(mqi_epoch_run) * MQI_MAX_EPOCH_RUNS) return 1;
    if (!mqi_buffer_reserve(&r->epochs, sizeof(mqi_epoch_run))) {
        r->state = MQI_RECOVERY_NO_MEMORY;
        return 0;
    }
    mqi_epoch_run run = {.position = r->valid, .base_offset = base, .last_base_offset = base, .leader_epoch = epoch};
    memcpy(r->epochs.data + r->epochs.size, &run, sizeof run);
    r->epochs.size += (int64_t)sizeof run;
    return 1;
}

/* What the checksum does not cover: offsets continue after the batch before, the magic is known, the epoch is kept. */
static inline int look_over(mqi_kafka_recovery *r, const uint8_t *p, const mqi_batch_head *h) {
    int64_t base = mqi_get64(p);
    if (UNLIKELY(r->batches && base <= r->last_offset)) note(r, MQI_ODD_ORDER, r->last_offset + 1, base);
    if (UNLIKELY(base < r->base_offset)) note(r, MQI_ODD_BASE, r->base_offset, base);
    if (h->magic < 2) {
        if (UNLIKELY(h->magic < 0)) note(r, MQI_ODD_MAGIC, 2, h->magic);
        return 1;
    }
    if (UNLIKELY(h->magic > 2)) note(r, MQI_ODD_MAGIC, 2, h->magic);
    int64_t most = (int64_t)mqi_get32(p + MQI_BATCH_LAST_OFFSET_DELTA) + 1;
    int32_t count = mqi_get32(p + MQI_BATCH_COUNT), epoch = mqi_get32(p + MQI_BATCH_LEADER_EPOCH);
    if (UNLIKELY(count < 0 || count > most || most < 1)) note(r, MQI_ODD_COUNT, most, count);
    if (UNLIKELY(!r->epochs.size)) return new_epoch(r, epoch, base);
    mqi_epoch_run *last = (mqi_epoch_run *)(void *)(r->epochs.data + r->epochs.size) - 1;
    if (UNLIKELY(epoch != last->leader_epoch)) return new_epoch(r, epoch, base);
    last->last_base_offset = base;
    return 1;
}

/* 0: stopped before this batch. */
static inline int recover_batch(mqi_kafka_recovery *r, const uint8_t *p, const mqi_batch_head *h) {
    int64_t offset = 0;
    int indexed = r->entry_due || r->valid - r->last_indexed > r->index_interval;
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
        r->entry_due = 0;
    }
    if (h->magic >= 2 && UNLIKELY(!keep_row(r, p, h))) return 0;
    if (UNLIKELY(!look_over(r, p, h))) return 0;
    if (r->tally && UNLIKELY(!mqi_kafka_tally_add(r->tally, p, h, r->valid, r->max_timestamp))) {
        r->state = MQI_RECOVERY_NO_MEMORY;
        return 0;
    }
    r->valid += h->size;
    r->last_offset = h->last_offset;
    r->batches++;
    int32_t count = h->magic >= 2 ? mqi_get32(p + MQI_BATCH_COUNT) : 1;
    r->records += count > 0 ? count : 0;
    return 1;
}

/* Whether one batch's length leads to another's begin, from `at` to `end`. */
static int leads_to(const mqi_kafka_log *log, int64_t at, int64_t end) {
    mqi_batch_fault fault;
    mqi_batch_head h;
    while (at < end && mqi_batch_read_head(log, at, &h, &fault) == MQI_BATCH_WHOLE) at += h.size;
    return at == end;
}

/* Goes to the next good batch behind a bad one; 0: there is none. */
static int pass_damage(mqi_kafka_recovery *r, int found) {
    const mqi_kafka_log *log = r->behind;
    if (!log || r->damage.size >= MQI_MAX_DAMAGE * (int64_t)sizeof(mqi_kafka_damage)) return 0;
    int64_t last = r->batches ? r->last_offset : r->base_offset - 1;
    int64_t end = mqi_kafka_batch_after(log, r->valid, last + 1, r->base_offset + INT32_MAX + 1);
    if (end >= log->len) return 0;
    if (!mqi_buffer_reserve(&r->damage, sizeof(mqi_kafka_damage))) {
        r->state = MQI_RECOVERY_NO_MEMORY;
        return 1;
    }
    if (found == MQI_BATCH_END) { /* it claims more than the log has */
        const uint8_t *p = log->buf + r->valid;
        r->fault = (mqi_batch_fault){.kind = MQI_BATCH_BAD_LENGTH, .at = r->valid};
        r->fault.expected = log->len - r->valid - MQI_BATCH_OVERHEAD;
        r->fault.got = mqi_get32(p + MQI_BATCH_LENGTH);
    }
    mqi_kafka_damage *damage = (mqi_kafka_damage *)(void *)(r->damage.data + r->damage.size);
    *damage = (mqi_kafka_damage){.at = r->valid,
                                 .end = end,
                                 .batches = r->batches,
                                 .records = r->records,
                                 .last_offset = last,
                                 .next_offset = mqi_get64(log->buf + end),
                                 .fault = r->fault};
    damage->passed = leads_to(log, r->valid, end);
    r->damage.size += (int64_t)sizeof(mqi_kafka_damage);
    r->entry_due = !damage->passed;
    r->fault = (mqi_batch_fault){.kind = MQI_BATCH_FINE};
    if (r->log.crc32) r->log.sums = log->sums; /* from here on no bad batch costs more than its header */
    r->valid = end;
    return 1;
}

/* Where batches are large, one read of a header costs less than the faults of its page and those around it. */
static int read_header(mqi_kafka_recovery *r) {
    int64_t left = r->log.len - r->valid;
    size_t wanted = left < MQI_BATCH_RECORDS ? (size_t)left : MQI_BATCH_RECORDS;
    ssize_t n;
    do {
        n = pread(r->fd, r->header, wanted, (off_t)r->valid);
    } while (n < 0 && errno == EINTR);
    if (LIKELY(n == (ssize_t)wanted)) return 1;
    r->state = MQI_RECOVERY_UNREADABLE;
    r->error = n < 0 ? errno : 0;
    return 0;
}

void mqi_kafka_recover_start(mqi_kafka_recovery *r) {
    r->fd = -1;
    r->first_offset_of = -1;
    r->max_timestamp = r->last_time = -1;
    r->max_timestamp_offset = r->last_time_offset = r->base_offset;
}

void mqi_kafka_recover(mqi_kafka_recovery *r, int64_t stop) {
    mqi_batch_head h;
    if (r->state == MQI_RECOVERY_NEEDS_FIRST) {
        r->first_offset_of = r->valid;
        r->state = MQI_RECOVERY_RUNS;
    }
    if (r->state != MQI_RECOVERY_RUNS) return;
    while (r->valid < stop) {
        int mapped = r->fd < 0, found;
        const uint8_t *p = mapped ? r->log.buf + r->valid : r->header;
        if (mapped) found = mqi_batch_read_checked(&r->log, r->valid, &h, &r->fault);
        else if (LIKELY(read_header(r)))
            found = mqi_batch_read_head_of(p, r->log.len - r->valid, r->valid, &h, &r->fault);
        else return;
        if (UNLIKELY(found != MQI_BATCH_WHOLE)) {
            if (r->partly && (r->behind || (found == MQI_BATCH_END && r->log.len < r->size))) return;
            if (pass_damage(r, found)) {
                if (r->state != MQI_RECOVERY_RUNS) return;
                continue;
            }
            stop = r->size;
            break;
        }
        if (mapped) __builtin_prefetch(p + h.size);
        if (UNLIKELY(!recover_batch(r, p, &h))) return;
    }
    if (stop >= r->size && append_time(r, 1)) r->state = MQI_RECOVERY_DONE;
}

void mqi_kafka_recover_free(mqi_kafka_recovery *r) {
    mqi_buffer_free(&r->offset_index);
    mqi_buffer_free(&r->time_index);
    mqi_buffer_free(&r->transactional);
    mqi_buffer_free(&r->epochs);
    mqi_buffer_free(&r->damage);
}
