#include "mqi_kafka_tally.h"

static inline void add_to(mqi_batch_sum *sum, int64_t records, int64_t bytes) {
    sum->batches++;
    sum->records += records;
    sum->bytes += bytes;
}

static inline int power_of(int64_t number) { return number > 0 ? 64 - __builtin_clzll((uint64_t)number) : 0; }

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

static int begin_stretch(mqi_kafka_tally *t, int64_t at, int64_t base_offset) {
    mqi_buffer *rows = &t->stretches;
    if (!mqi_buffer_reserve(rows, sizeof(mqi_log_stretch))) return 0;
    mqi_log_stretch *row = (mqi_log_stretch *)(void *)(rows->data + rows->size);
    *row = (mqi_log_stretch){.position = at, .base_offset = base_offset, .min_timestamp = -1, .max_timestamp = -1};
    rows->size += (int64_t)sizeof *row;
    t->next = at - at % t->stretch + t->stretch;
    return 1;
}

static inline mqi_log_stretch *this_stretch(const mqi_kafka_tally *t) {
    return (mqi_log_stretch *)(void *)(t->stretches.data + t->stretches.size) - 1;
}

static inline void add_sum(mqi_batch_sum *to, const mqi_batch_sum *sum) {
    to->batches += sum->batches;
    to->records += sum->records;
    to->bytes += sum->bytes;
}

void mqi_kafka_tally_settle(mqi_kafka_tally *t) {
    mqi_batch_run *run = &t->run;
    if (!run->sum.batches) return;
    mqi_log_stretch *row = this_stretch(t);
    row->last_offset = run->last_offset;
    row->batches += run->sum.batches;
    row->records += run->sum.records;
    row->bytes += run->sum.bytes;
    add_sum(t->counts.codecs + run->codec, &run->sum);
    t->counts.magics[run->magic] += run->sum.batches;
    if (run->magic < 2 && run->codec) t->counts.wrapped += run->sum.batches;
    if (run->producer_id >= 0) add_sum(place_of(t, run->producer_id), &run->sum);
    run->sum = (mqi_batch_sum){0};
}

static int begin_run(mqi_kafka_tally *t, int64_t at, int64_t base_offset, mqi_batch_run run) {
    mqi_kafka_tally_settle(t);
    if ((!t->stretches.size || at >= t->next) && !begin_stretch(t, at, base_offset)) return 0;
    t->run = run;
    return 1;
}

static inline void count_time(mqi_batch_counts *c, mqi_log_stretch *row, int64_t timestamp, int64_t greatest) {
    if (UNLIKELY(timestamp < 0)) {
        c->untimed++;
        return;
    }
    if (row->min_timestamp < 0 || timestamp < row->min_timestamp) row->min_timestamp = timestamp;
    if (timestamp > row->max_timestamp) row->max_timestamp = timestamp;
    int64_t back = greatest - timestamp;
    if (LIKELY(back <= 0)) return;
    c->late++;
    if (back > c->furthest_back) c->furthest_back = back;
}

int mqi_kafka_tally_add(mqi_kafka_tally *t, const uint8_t *p, const mqi_batch_head *h, int64_t at, int64_t greatest) {
    mqi_batch_counts *c = &t->counts;
    mqi_batch_run *run = &t->run;
    int is_new = LIKELY(h->magic >= 2), magic = is_new ? 2 : h->magic != 0;
    int attributes = p[is_new ? MQI_BATCH_ATTRIBUTES + 1 : MQI_MESSAGE_ATTRIBUTES];
    int codec = attributes & MQI_BATCH_CODEC;
    int64_t producer = is_new ? mqi_get64(p + MQI_BATCH_PRODUCER_ID) : -1;
    int64_t records = is_new ? mqi_get32(p + MQI_BATCH_COUNT) : 1;
    if (UNLIKELY(records < 0)) records = 0;
    if (UNLIKELY(!run->sum.batches || at >= t->next || codec != run->codec || producer != run->producer_id ||
                 magic != run->magic)) {
        mqi_batch_run next = {.producer_id = producer, .codec = codec, .magic = magic};
        if (UNLIKELY(!begin_run(t, at, mqi_get64(p), next))) return 0;
    }
    add_to(&run->sum, records, h->size);
    run->last_offset = h->last_offset;
    c->sizes[power_of(h->size)]++;
    c->counts[power_of(records)]++;
    if (UNLIKELY(attributes & ~MQI_BATCH_CODEC)) {
        c->transactional += is_new && (attributes & MQI_BATCH_TRANSACTIONAL);
        c->control += is_new && (attributes & MQI_BATCH_CONTROL);
        c->append_time += magic && (attributes & MQI_BATCH_APPEND_TIME);
    }
    count_time(c, this_stretch(t), h->max_timestamp, greatest);
    return 1;
}

void mqi_kafka_tally_free(mqi_kafka_tally *t) { mqi_buffer_free(&t->stretches); }
