/* A batch of a Kafka segment's .log: its layout and its checks.
 *
 *   any batch    | 0 base_offset i64 | 8 length i32, of what follows | 12 ... | 16 magic i8 |
 *   magic 0, 1   | 12 crc u32, CRC-32 of [16, end) | 17 attributes i8 | 18 timestamp i64, not of magic 0 | key | value |
 *   magic 2      | 12 leader_epoch i32 | 17 crc u32, CRC-32C of [21, end) | 21 attributes i16 | 23 last_offset_delta i32 |
 *                | 27 base_timestamp i64 | 35 max_timestamp i64 | 43 producer_id i64 | 51 producer_epoch i16 |
 *                | 53 base_sequence i32 | 57 count i32 | 61 records |
 *
 * A magic above 2 is read as 2 and one below 0 as 1, as brokers do with files. Nothing outside `buf` is read. */
#ifndef MQI_KAFKA_BATCH_H
#define MQI_KAFKA_BATCH_H

#include <stdint.h>

#include "mqi_bytes.h"
#include "mqi_compiler.h"
#include "mqi_crc_sums.h"

enum {
    MQI_BATCH_BASE_OFFSET = 0,
    MQI_BATCH_LENGTH = 8,
    MQI_BATCH_LEADER_EPOCH = 12,
    MQI_BATCH_MAGIC = 16,
    MQI_BATCH_CRC = 17,
    MQI_BATCH_ATTRIBUTES = 21,
    MQI_BATCH_LAST_OFFSET_DELTA = 23,
    MQI_BATCH_BASE_TIMESTAMP = 27,
    MQI_BATCH_MAX_TIMESTAMP = 35,
    MQI_BATCH_PRODUCER_ID = 43,
    MQI_BATCH_PRODUCER_EPOCH = 51,
    MQI_BATCH_BASE_SEQUENCE = 53,
    MQI_BATCH_COUNT = 57,
    MQI_BATCH_RECORDS = 61,
    MQI_MESSAGE_CRC = 12,
    MQI_MESSAGE_ATTRIBUTES = 17,
    MQI_MESSAGE_TIMESTAMP = 18,
    MQI_BATCH_OVERHEAD = 12, /* offset and length */
    MQI_MIN_LENGTH = 14,     /* what the broker requires of any batch */
};

#define MQI_BATCH_CODEC 0x07
#define MQI_BATCH_APPEND_TIME 0x08
#define MQI_BATCH_TRANSACTIONAL 0x10
#define MQI_BATCH_CONTROL 0x20

typedef struct {
    const uint8_t *buf;
    int64_t len;
    mqi_checksum *crc32, *crc32c; /* of magic 0 and 1, of 2 and above; 0: they are not compared */
    mqi_crc_sums *sums;           /* of both, in this order; 0: a checksum reads the whole batch */
} mqi_kafka_log;

enum mqi_batch_kind { MQI_BATCH_FINE = 0, MQI_BATCH_BAD_LENGTH, MQI_BATCH_BAD_CRC };

typedef struct {
    int64_t at, expected, got;
    int32_t kind;
} mqi_batch_fault;

/* One batch; fields that its magic does not have are -1, and the count is 1. Packed: rows can be joined as bytes. */
typedef struct __attribute__((packed)) {
    int64_t position, base_offset, last_offset, base_timestamp, max_timestamp, producer_id;
    int32_t size, leader_epoch;
    uint32_t crc;
    int32_t count, base_sequence;
    int16_t attributes, producer_epoch;
    int8_t magic;
} mqi_kafka_batch;

#define MQI_BATCH_TAIL 17 /* so many bytes and fewer are no batch, and no fault */

enum mqi_batch_found { MQI_BATCH_WHOLE, MQI_BATCH_END, MQI_BATCH_BAD };

typedef struct {
    int64_t size, last_offset, max_timestamp;
    int magic;
} mqi_batch_head;

static inline int mqi_batch_blame(mqi_batch_fault *fault, int kind, int64_t at, int64_t expected, int64_t got) {
    *fault = (mqi_batch_fault){.kind = kind, .at = at, .expected = expected, .got = got};
    return MQI_BATCH_BAD;
}

/* What recovery and searches need of a batch: sizes are checked, contents are not. */
static inline int mqi_batch_read_head_of(const uint8_t *p, int64_t left, int64_t at, mqi_batch_head *h,
                                         mqi_batch_fault *fault) {
    if (UNLIKELY(left <= MQI_BATCH_TAIL)) return MQI_BATCH_END;
    int32_t length = mqi_get32(p + MQI_BATCH_LENGTH);
    h->size = MQI_BATCH_OVERHEAD + (int64_t)length;
    h->magic = (int8_t)p[MQI_BATCH_MAGIC]; /* NOLINT(bugprone-signed-char-misuse): signed in Java too */
    if (UNLIKELY(length < MQI_MIN_LENGTH))
        return mqi_batch_blame(fault, MQI_BATCH_BAD_LENGTH, at, MQI_MIN_LENGTH, length);
    if (UNLIKELY(h->size > left)) return MQI_BATCH_END;
    if (LIKELY(h->magic >= 2)) {
        const int64_t least = MQI_BATCH_RECORDS - MQI_BATCH_OVERHEAD;
        if (UNLIKELY(length < least)) return mqi_batch_blame(fault, MQI_BATCH_BAD_LENGTH, at, least, length);
        h->last_offset = mqi_add64(mqi_get64(p), mqi_get32(p + MQI_BATCH_LAST_OFFSET_DELTA));
        h->max_timestamp = mqi_get64(p + MQI_BATCH_MAX_TIMESTAMP);
    } else {
        h->last_offset = mqi_get64(p);
        h->max_timestamp = h->magic == 0 ? -1 : mqi_get64(p + MQI_MESSAGE_TIMESTAMP);
    }
    return MQI_BATCH_WHOLE;
}

static inline int mqi_batch_read_head(const mqi_kafka_log *log, int64_t at, mqi_batch_head *h, mqi_batch_fault *fault) {
    return mqi_batch_read_head_of(log->buf + at, log->len - at, at, h, fault);
}

static inline int mqi_batch_check_crc(const mqi_kafka_log *log, const uint8_t *p, const mqi_batch_head *h, int64_t at,
                                      mqi_batch_fault *fault) {
    int v2 = h->magic >= 2;
    uint32_t stored = (uint32_t)mqi_get32(p + (v2 ? MQI_BATCH_CRC : MQI_MESSAGE_CRC)), found;
    if (UNLIKELY(log->sums))
        found = mqi_crc_of_part(log->sums + v2, at + (v2 ? MQI_BATCH_ATTRIBUTES : MQI_BATCH_MAGIC), at + h->size);
    else if (v2) found = log->crc32c(p + MQI_BATCH_ATTRIBUTES, (size_t)h->size - MQI_BATCH_ATTRIBUTES, 0);
    else found = log->crc32(p + MQI_BATCH_MAGIC, (size_t)h->size - MQI_BATCH_MAGIC, 0);
    return LIKELY(found == stored) ? MQI_BATCH_WHOLE : mqi_batch_blame(fault, MQI_BATCH_BAD_CRC, at, found, stored);
}

static inline int mqi_batch_read_checked(const mqi_kafka_log *log, int64_t at, mqi_batch_head *h,
                                         mqi_batch_fault *fault) {
    int found = mqi_batch_read_head(log, at, h, fault);
    if (found == MQI_BATCH_WHOLE && log->crc32) found = mqi_batch_check_crc(log, log->buf + at, h, at, fault);
    return found;
}

static inline void mqi_batch_read_row(const uint8_t *p, int64_t at, const mqi_batch_head *h, mqi_kafka_batch *b) {
    b->position = at;
    b->base_offset = mqi_get64(p);
    b->last_offset = h->last_offset;
    b->max_timestamp = h->max_timestamp;
    b->size = (int32_t)h->size;
    b->magic = (int8_t)h->magic;
    if (LIKELY(h->magic >= 2)) {
        b->base_timestamp = mqi_get64(p + MQI_BATCH_BASE_TIMESTAMP);
        b->producer_id = mqi_get64(p + MQI_BATCH_PRODUCER_ID);
        b->leader_epoch = mqi_get32(p + MQI_BATCH_LEADER_EPOCH);
        b->crc = (uint32_t)mqi_get32(p + MQI_BATCH_CRC);
        b->count = mqi_get32(p + MQI_BATCH_COUNT);
        b->base_sequence = mqi_get32(p + MQI_BATCH_BASE_SEQUENCE);
        b->attributes = mqi_get16(p + MQI_BATCH_ATTRIBUTES);
        b->producer_epoch = mqi_get16(p + MQI_BATCH_PRODUCER_EPOCH);
    } else {
        b->base_timestamp = h->max_timestamp;
        b->producer_id = -1;
        b->leader_epoch = -1;
        b->crc = (uint32_t)mqi_get32(p + MQI_MESSAGE_CRC);
        b->count = 1;
        b->base_sequence = -1;
        b->attributes = (int16_t)(int8_t)p[MQI_MESSAGE_ATTRIBUTES];
        b->producer_epoch = -1;
    }
}

#endif
