#include "mqi_kafka_tally.h"

static inline void add_to(mqi_batch_sum *sum, int64_t records, int64_t bytes) {
    sum->batches++;
    sum->records += records;
    sum->bytes += bytes;
}

static inline int power_of(int64_t number) {
    return number > 0 ? 64 - __builtin_clzll((uint64_t)number) : 0;
}

/* Producers are few, and their batches lie together: the first place that is looked at is nearly always theirs. */
static mqi_batch_sum *place_of(mqi_kafka_tally *t, int64_t producer) {
    uint64_t at = ((uint64_t)producer * 0x9E3779B97F4A7C15U) >> 32;
    for (;; at++) {
        mqi_producer_sum *place = t->producers + at % MQI_TALLY_PLACES;
        if (LIKELY(place->sum.batches && place->producer_id == producer)) return &place->sum;
        if (place->sum.batches) continue;
        if (t->n_producers == MQI_TALLY_PRODUCERS) return &t->counts.other_producers;
        t->n_producers++;
        place->producer_id = producer;
        return &place->sum;
    }
}

static mqi_log_stretch *stretch_of(mqi_kafka_tally *t, int64_t at, int64_t base_offset) {
    mqi_buffer *rows = &t->stretches;
    if (LIKELY(rows->size && at < t->next)) {
        return (mqi_log_stretch *)(void *)(rows->data + rows->size) - 1;
    }
    if (!mqi_buffer_reserve(rows, sizeof(mqi_log_stretch))) return 0;
    mqi_log_stretch *row = (mqi_log_stretch *)(void *)(rows->data + rows->size);
    *row = (mqi_log_stretch){.position = at, .base_offset = base_offset, .min_timestamp = -1, .max_timestamp = -1};
    rows->size += (int64_t)sizeof *row;
    t->next = at - at % t->stretch + t->stretch;
    return row;
}

static inline void count_time(mqi_batch_counts *c, mqi_log_stretch *row, int64_t timestamp, int64_t greatest) {
    if (UNLIKELY(timestamp < 0)) {
        c->untimed++;
        return;
    }
    if (row->min_timestamp < 0 || timestamp < row->min_timestamp) row->min_timestamp = timestamp;
    if (timestamp > row->max_timestamp) row->max_timestamp = timestamp;
    int64_t back = greatest - timestamp;
    c->late += back > 0;
    if (back > c->furthest_back) c->furthest_back = back;
}

static inline void count_batch(mqi_batch_counts *c, mqi_log_stretch *row, const mqi_batch_head *h, int codec,
                               int64_t records) {
    row->last_offset = h->last_offset;
    row->batches++;
    row->records += records;
    row->bytes += h->size;
    add_to(c->codecs + codec, records, h->size);
    c->sizes[power_of(h->size)]++;
    c->counts[power_of(records)]++;
}

static inline void count_producer(mqi_kafka_tally *t, int64_t producer, int64_t records, int64_t bytes) {
    if (producer < 0) return;
    if (UNLIKELY(!t->last || t->last_producer != producer)) {
        t->last = place_of(t, producer);
        t->last_producer = producer;
    }
    add_to(t->last, records, bytes);
}

/* Of magic 0 and 1: a message is a batch of one record. */
static int add_message(mqi_kafka_tally *t, const uint8_t *p, const mqi_batch_head *h, int64_t at, int64_t greatest) {
    mqi_batch_counts *c = &t->counts;
    mqi_log_stretch *row = stretch_of(t, at, mqi_get64(p));
    if (UNLIKELY(!row)) return 0;
    int attributes = p[MQI_MESSAGE_ATTRIBUTES], codec = attributes & MQI_BATCH_CODEC;
    count_batch(c, row, h, codec, 1);
    c->magics[h->magic != 0]++;
    c->wrapped += codec != 0;
    c->append_time += h->magic != 0 && (attributes & MQI_BATCH_APPEND_TIME);
    count_time(c, row, h->max_timestamp, greatest);
    return 1;
}

int mqi_kafka_tally_add(mqi_kafka_tally *t, const uint8_t *p, const mqi_batch_head *h, int64_t at, int64_t greatest) {
    if (UNLIKELY(h->magic < 2)) return add_message(t, p, h, at, greatest);
    mqi_batch_counts *c = &t->counts;
    mqi_log_stretch *row = stretch_of(t, at, mqi_get64(p));
    if (UNLIKELY(!row)) return 0;
    int32_t count = mqi_get32(p + MQI_BATCH_COUNT);
    int64_t records = count > 0 ? count : 0;
    int attributes = p[MQI_BATCH_ATTRIBUTES + 1];
    count_batch(c, row, h, attributes & MQI_BATCH_CODEC, records);
    c->magics[2]++;
    if (UNLIKELY(attributes & ~MQI_BATCH_CODEC)) {
        c->transactional += (attributes & MQI_BATCH_TRANSACTIONAL) != 0;
        c->control += (attributes & MQI_BATCH_CONTROL) != 0;
        c->append_time += (attributes & MQI_BATCH_APPEND_TIME) != 0;
    }
    count_time(c, row, h->max_timestamp, greatest);
    count_producer(t, mqi_get64(p + MQI_BATCH_PRODUCER_ID), records, h->size);
    return 1;
}

void mqi_kafka_tally_free(mqi_kafka_tally *t) {
    mqi_buffer_free(&t->stretches);
}
