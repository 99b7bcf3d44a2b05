#include "mqi_kafka_records.h"

#include <string.h>

#define APPEND_TIME_BIT 0x08
#define LEAST_RECORD 7 /* bytes */

static inline int fail(mqi_kafka_records *x, int kind) {
    x->fault = kind;
    x->p = x->end;
    x->left = 0;
    return 0;
}

/* Zigzag, base 128, low groups first; `bytes` at most. */
static inline int read_varint(mqi_kafka_records *x, const uint8_t **p, const uint8_t *end, int bytes, int64_t *value) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) {
        if (UNLIKELY(*p == end)) return fail(x, MQI_RECORD_CUT);
        uint8_t b = *(*p)++;
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (b < 0x80) {
            if (bytes == 5) v = (uint32_t)v; /* cut to 32 bits */
            *value = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
            return 1;
        }
    }
    return fail(x, MQI_RECORD_VARINT);
}

/* A length and so many bytes; a negative length is null. */
static inline int read_piece(mqi_kafka_records *x, const uint8_t **p, const uint8_t *end, const uint8_t **piece,
                             int64_t *n) {
    if (UNLIKELY(!read_varint(x, p, end, 5, n))) return 0;
    *piece = *p;
    if (*n < 0) {
        *n = -1;
        return 1;
    }
    if (UNLIKELY(*n > end - *p)) return fail(x, MQI_RECORD_CUT);
    *p += *n;
    return 1;
}

static int skip_headers(mqi_kafka_records *x, const uint8_t **p, const uint8_t *end, int64_t n) {
    const uint8_t *piece;
    int64_t length;
    for (; n > 0; n--) {
        if (!read_piece(x, p, end, &piece, &length)) return 0;
        if (length < 0) return fail(x, MQI_RECORD_HEADER_KEY);
        if (!read_piece(x, p, end, &piece, &length)) return 0;
    }
    return 1;
}

static inline int next_record(mqi_kafka_records *x, mqi_kafka_record *r) {
    const uint8_t *p = x->p;
    int64_t length, timestamp, offset;
    if (UNLIKELY(x->left == 0)) return x->p == x->end ? 0 : fail(x, MQI_RECORD_COUNT);
    if (UNLIKELY(p == x->end)) return fail(x, MQI_RECORD_COUNT);
    if (UNLIKELY(!read_varint(x, &p, x->end, 5, &length))) return 0;
    if (UNLIKELY(length < 1 || length > x->end - p)) return fail(x, MQI_RECORD_CUT);
    const uint8_t *end = p + length;
    p++; /* attributes: none are defined */
    if (UNLIKELY(!read_varint(x, &p, end, 10, &timestamp) || !read_varint(x, &p, end, 5, &offset) ||
                 !read_piece(x, &p, end, &r->key, &r->key_len) || !read_piece(x, &p, end, &r->value, &r->value_len) ||
                 !read_varint(x, &p, end, 5, &r->n_headers))) {
        return 0;
    }
    if (UNLIKELY(r->n_headers < 0)) return fail(x, MQI_RECORD_COUNT);
    r->headers = p;
    if (UNLIKELY(r->n_headers > 0) && !skip_headers(x, &p, end, r->n_headers)) return 0;
    if (UNLIKELY(p != end)) return fail(x, MQI_RECORD_LENGTH);
    r->offset = mqi_add64(x->base_offset, offset);
    r->timestamp = x->timestamp_type == MQI_LOG_APPEND_TIME ? x->append_time : mqi_add64(x->base_timestamp, timestamp);
    r->timestamp_type = x->timestamp_type;
    x->p = end;
    x->left--;
    x->index++;
    return 1;
}

/* ---- magic 0 and 1 -------------------------------------------------------------------------------------------------- */

static int read_field(const uint8_t **p, const uint8_t *end, const uint8_t **piece, int64_t *n) {
    if (end - *p < 4) return 0;
    *n = mqi_get32(*p);
    *p += 4;
    *piece = *p;
    if (*n < 0) {
        *n = -1;
        return 1;
    }
    if (*n > end - *p) return 0;
    *p += *n;
    return 1;
}

/* `size`: at least that of the shortest message. */
static int read_message(const uint8_t *p, int64_t size, mqi_kafka_record *r) {
    const uint8_t *end = p + size;
    p += p[MQI_BATCH_MAGIC] == 0 ? MQI_MESSAGE_TIMESTAMP : MQI_MESSAGE_TIMESTAMP + 8;
    return read_field(&p, end, &r->key, &r->key_len) && read_field(&p, end, &r->value, &r->value_len);
}

int64_t mqi_kafka_message_value(const uint8_t *message, int64_t size, const uint8_t **value) {
    mqi_kafka_record r;
    if (!read_message(message, size, &r)) return -2;
    *value = r.value;
    return r.value_len;
}

/* The size of the message at `p`; 0: what is left is none, as at the end. */
static int64_t message_size(mqi_kafka_records *x, const uint8_t *p) {
    if (x->end - p < MQI_BATCH_OVERHEAD) return 0;
    int64_t length = mqi_get32(p + MQI_BATCH_LENGTH);
    if (length < MQI_MIN_LENGTH) return fail(x, MQI_RECORD_CUT);
    return length > x->end - p - MQI_BATCH_OVERHEAD ? 0 : MQI_BATCH_OVERHEAD + length;
}

static int next_message(mqi_kafka_records *x, mqi_kafka_record *r) {
    const uint8_t *p = x->p;
    int64_t size = message_size(x, p);
    if (size == 0) {
        x->p = x->end;
        return 0;
    }
    if (x->wrapper && p[MQI_MESSAGE_ATTRIBUTES] & MQI_BATCH_CODEC) return fail(x, MQI_RECORD_NESTED);
    if (!read_message(p, size, r)) return fail(x, MQI_RECORD_CUT);
    r->offset = mqi_add64(x->base_offset, mqi_get64(p));
    r->headers = 0;
    r->n_headers = 0;
    if (p[MQI_BATCH_MAGIC] == 0) {
        r->timestamp = -1;
        r->timestamp_type = MQI_NO_TIMESTAMP_TYPE;
    } else {
        r->timestamp_type = x->timestamp_type;
        r->timestamp = r->timestamp_type == MQI_LOG_APPEND_TIME ? x->append_time : mqi_get64(p + MQI_MESSAGE_TIMESTAMP);
    }
    x->p += size;
    x->index++;
    return 1;
}

/* Offsets inside a wrapper of magic 1 count from 0; the wrapper has that of the last one. */
static void find_base(mqi_kafka_records *x, int64_t wrapper_offset, int magic) {
    const uint8_t *p = x->p, *last = 0;
    for (int64_t size; (size = message_size(x, p)) > 0; p += size) last = p;
    if (x->fault) return;
    if (!last) {
        fail(x, MQI_RECORD_EMPTY);
    } else if (magic != 0 && wrapper_offset != 0) {
        int64_t offset = mqi_get64(last);
        if (wrapper_offset < offset) fail(x, MQI_RECORD_OFFSET);
        else x->base_offset = mqi_sub64(wrapper_offset, offset);
    }
}

void mqi_kafka_records_start(mqi_kafka_records *x, const mqi_kafka_batch *batch, const uint8_t *payload, int64_t n,
                             int expanded) {
    *x = (mqi_kafka_records){.p = payload, .end = payload + n, .append_time = batch->max_timestamp};
    x->timestamp_type = batch->attributes & APPEND_TIME_BIT ? MQI_LOG_APPEND_TIME : MQI_CREATE_TIME;
    x->old = batch->magic < 2;
    if (x->old) {
        x->wrapper = expanded;
        if (expanded) find_base(x, batch->base_offset, batch->magic);
        return;
    }
    x->base_offset = batch->base_offset;
    x->base_timestamp = batch->base_timestamp;
    x->left = batch->count;
    if (batch->count < 0 || batch->count > n / LEAST_RECORD) fail(x, MQI_RECORD_COUNT);
}

int mqi_kafka_records_next(mqi_kafka_records *x, mqi_kafka_record *record) {
    if (UNLIKELY(x->fault)) return 0;
    return x->old ? next_message(x, record) : next_record(x, record);
}

/* ---- columns ------------------------------------------------------------------------------------------------------- */

static inline void *grown(mqi_buffer *b, int64_t more) {
    if (UNLIKELY(!mqi_buffer_reserve(b, more))) return 0;
    b->size += more;
    return b->data + b->size - more;
}

static inline int put(mqi_buffer *b, const uint8_t *p, int64_t n) {
    uint8_t *place = n > 0 ? grown(b, n) : 0;
    if (n <= 0) return 1;
    if (place) memcpy(place, p, (size_t)n);
    return place != 0;
}

/* The headers were read before, and are complete, unless the file changes meanwhile: then the earlier ones stay. */
static int put_headers(mqi_kafka_columns *c, const mqi_kafka_record *r, const uint8_t *end) {
    mqi_kafka_records walk = {0};
    const uint8_t *p = r->headers, *key, *value;
    int64_t key_len, value_len;
    for (int64_t i = 0; i < r->n_headers; i++) {
        /* GCOVR_EXCL_BR_START: no test changes the file between the two reads */
        if (!read_piece(&walk, &p, end, &key, &key_len) || !read_piece(&walk, &p, end, &value, &value_len)) break;
        /* GCOVR_EXCL_BR_STOP */
        mqi_kafka_header *h = grown(&c->headers, sizeof *h);
        if (!h || !put(&c->header_keys, key, key_len) || !put(&c->header_values, value, value_len)) return 0;
        *h = (mqi_kafka_header){
            .key_end = c->header_keys.size, .value_end = c->header_values.size, .has_value = value_len >= 0};
    }
    return 1;
}

int mqi_kafka_columns_add(mqi_kafka_columns *c, mqi_kafka_records *x, int32_t batch, int64_t max_rows,
                          int64_t max_bytes) {
    mqi_kafka_record r;
    for (;;) {
        int64_t bytes = c->key_data.size + c->value_data.size + c->header_keys.size + c->header_values.size;
        if (c->rows.size >= max_rows * (int64_t)sizeof(mqi_kafka_row) || bytes >= max_bytes) return MQI_COLUMNS_FULL;
        if (!mqi_kafka_records_next(x, &r)) return MQI_COLUMNS_ENDED;
        if ((c->keys && !put(&c->key_data, r.key, r.key_len)) ||
            (c->values && !put(&c->value_data, r.value, r.value_len)) ||
            (c->headers_wanted && r.n_headers > 0 && !put_headers(c, &r, x->p))) {
            return MQI_COLUMNS_NO_MEMORY;
        }
        mqi_kafka_row *row = grown(&c->rows, sizeof *row);
        if (!row) return MQI_COLUMNS_NO_MEMORY;
        *row = (mqi_kafka_row){.offset = r.offset,
                               .timestamp = r.timestamp,
                               .key_end = c->key_data.size,
                               .value_end = c->value_data.size,
                               .headers_end = c->headers.size / (int64_t)sizeof(mqi_kafka_header),
                               .batch = batch,
                               .timestamp_type = (int8_t)r.timestamp_type,
                               .has_key = r.key_len >= 0,
                               .has_value = r.value_len >= 0};
    }
}

void mqi_kafka_columns_free(mqi_kafka_columns *c) {
    mqi_buffer *all[] = {&c->rows, &c->key_data, &c->value_data, &c->headers, &c->header_keys, &c->header_values};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) mqi_buffer_free(all[i]);
}
