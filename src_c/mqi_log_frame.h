/* One record of the commit log, here called a frame: its layout, its checks, and which strings of it are index keys
 * (RocketMQ's CommitLog.checkMessageAndReturnSize, 4.9.3; version 2 as in 5.x).
 *
 * Every integer is big-endian and signed. H: body_at - 72, the width of both hosts (8 or 20 each); W: 1, version 2: 2.
 *
 *   0 total_size i32 |  4 magic_code i32 |  8 body_crc i32 | 12 queue_id i32 | 16 flag i32 | 20 queue_offset i64
 *  28 phy_offset i64 | 36 sys_flag i32   | 40 born_timestamp i64 | 48 born_host: address, port i32
 *     store_timestamp i64 | store_host | reconsume_times i32 | prepared_transaction_offset i64
 *  68+H body_len i32 | body | topic_len W | topic | properties_len i16 | properties
 *
 * total_size = 74 + H + W + the three lengths; a negative body_len or properties_len counts as 0, as in the broker.
 * A file ends with a blank record: 0 bytes left in the file i32 | 4 magic_code i32 | undefined.
 *
 * `at` is a position in the buffer; at + start is the frame's phy offset. Nothing outside [buf, buf + len) is read,
 * whatever the bytes are. */
#ifndef MQI_LOG_FRAME_H
#define MQI_LOG_FRAME_H

#include "mqi_bytes.h"
#include "mqi_compiler.h"
#include "mqi_crc.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum {
    MQI_FRAME_TOTAL_SIZE = 0,
    MQI_FRAME_MAGIC_CODE = 4,
    MQI_FRAME_BODY_CRC = 8,
    MQI_FRAME_QUEUE_ID = 12,
    MQI_FRAME_FLAG = 16,
    MQI_FRAME_QUEUE_OFFSET = 20,
    MQI_FRAME_PHY_OFFSET = 28,
    MQI_FRAME_SYS_FLAG = 36,
    MQI_FRAME_BORN_TIMESTAMP = 40,
    MQI_FRAME_BORN_HOST = 48,
    MQI_FRAME_FIXED_SIZE = 74, /* without hosts, topic_len and the parts with a length field */
};

#define MQI_MAGIC_1 ((int32_t)0xDAA320A7)
#define MQI_MAGIC_2 ((int32_t)0xDAA320AB)
#define MQI_MAGIC_BLANK ((int32_t)0xCBD43194)
#define MQI_BLANK_SIZE 8
#define MQI_HEAD_SIZE 88 /* up to the body, with IPv4 hosts */

#define MQI_SYS_PREPARED 0x04
#define MQI_SYS_ROLLBACK 0x0C /* both transaction bits */
#define MQI_SYS_BORN_IPV6 0x10
#define MQI_SYS_STORE_IPV6 0x20

#define MQI_HOST_SIZE 8 /* address and port */
#define MQI_HOST_SIZE_IPV6 20

#define MQI_SCHEDULE_TOPIC "SCHEDULE_TOPIC_XXXX"
#define MQI_SCHEDULE_LEN 19

typedef struct {
    const uint8_t *buf; /* one whole commit-log file */
    int64_t len;
    int64_t start;       /* the phy offset of buf[0] */
    mqi_checksum *crc32; /* of bodies; 0: they are not compared */
} mqi_log;

enum mqi_log_kind {
    MQI_LOG_FINE = 0,
    MQI_LOG_BAD_MAGIC,
    MQI_LOG_BAD_SIZE,
    MQI_LOG_BAD_LENGTH,
    MQI_LOG_FOREIGN,
    MQI_LOG_BAD_CRC,
    MQI_LOG_TRUNCATED,
    MQI_LOG_BAD_DELAY
};

enum mqi_log_field {
    MQI_FIELD_NONE = 0, /* the bytes that are left in the file */
    MQI_FIELD_TOTAL_SIZE,
    MQI_FIELD_MAGIC_CODE,
    MQI_FIELD_PHY_OFFSET,
    MQI_FIELD_BODY_LEN,
    MQI_FIELD_TOPIC_LEN,
    MQI_FIELD_BODY_CRC,
    MQI_FIELD_DELAY
};

enum mqi_log_relation { MQI_EXACTLY = 0, MQI_AT_LEAST, MQI_AT_MOST };

/* The first error in a frame: `field` must be exactly, at least or at most `expected`. */
typedef struct {
    int64_t at;
    int32_t kind, field, relation;
    int64_t expected, got;
} mqi_log_fault;

enum mqi_log_found { MQI_FOUND_FRAME, MQI_FOUND_BLANK, MQI_FOUND_FAULT };

/* A frame whose head has been read and whose tail is being prefetched. */
typedef struct {
    int64_t at;
    int32_t size, body_at, body_len, width; /* width of topic_len: 1 or 2 */
    int32_t sys_flag;                       /* as it was when body_at was found: a live file may change */
} mqi_log_head;

typedef struct {
    int64_t topic_at, properties_at; /* positions in the buffer */
    int32_t topic_len, properties_len;
} mqi_log_tail;

typedef struct {
    const uint8_t *uniq_key, *keys, *tags; /* 0: absent */
    int32_t uniq_key_len, keys_len, tags_len;
    const uint8_t *queues, *queue_offsets; /* INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET; 0: absent or not asked */
    int32_t queues_len, queue_offsets_len;
} mqi_log_keys;

static inline int32_t mqi_log_born_size(int32_t sys_flag) {
    return sys_flag & MQI_SYS_BORN_IPV6 ? MQI_HOST_SIZE_IPV6 : MQI_HOST_SIZE;
}

static inline int32_t mqi_log_store_size(int32_t sys_flag) {
    return sys_flag & MQI_SYS_STORE_IPV6 ? MQI_HOST_SIZE_IPV6 : MQI_HOST_SIZE;
}

static inline int64_t mqi_log_store_timestamp(const uint8_t *frame, int32_t sys_flag) {
    return mqi_get64(frame + MQI_FRAME_BORN_HOST + mqi_log_born_size(sys_flag));
}

static inline int mqi_log_blame(mqi_log_fault *fault, int64_t at, int kind, int field, int relation, int64_t expected,
                                int64_t got) {
    *fault = (mqi_log_fault){at, kind, field, relation, expected, got};
    return MQI_FOUND_FAULT;
}

/* The frame at `at`, inside the buffer, checked as far as possible without reading what follows the body. */
static inline int mqi_log_read_head(const mqi_log *log, int64_t at, mqi_log_head *head, mqi_log_fault *fault) {
    const uint8_t *p = log->buf + at;
    int64_t left = log->len - at;
    if (UNLIKELY(left < MQI_BLANK_SIZE))
        return mqi_log_blame(fault, at, MQI_LOG_TRUNCATED, MQI_FIELD_NONE, MQI_AT_LEAST, MQI_BLANK_SIZE, left);
    int32_t size = mqi_get32(p + MQI_FRAME_TOTAL_SIZE), magic = mqi_get32(p + MQI_FRAME_MAGIC_CODE),
            width = magic == MQI_MAGIC_2 ? 2 : 1;
    if (UNLIKELY(magic != MQI_MAGIC_1 && magic != MQI_MAGIC_2)) {
        if (magic == MQI_MAGIC_BLANK) {
            if (size == left) return MQI_FOUND_BLANK;
            return mqi_log_blame(fault, at, MQI_LOG_BAD_SIZE, MQI_FIELD_TOTAL_SIZE, MQI_EXACTLY, left, size);
        }
        return mqi_log_blame(fault, at, MQI_LOG_BAD_MAGIC, MQI_FIELD_MAGIC_CODE, MQI_EXACTLY, MQI_MAGIC_1, magic);
    }
    if (UNLIKELY(size < MQI_HEAD_SIZE + 2 + width)) {
        return mqi_log_blame(fault, at, MQI_LOG_BAD_SIZE, MQI_FIELD_TOTAL_SIZE, MQI_AT_LEAST, MQI_HEAD_SIZE + 2 + width,
                             size);
    }
    if (UNLIKELY(size > left))
        return mqi_log_blame(fault, at, MQI_LOG_TRUNCATED, MQI_FIELD_TOTAL_SIZE, MQI_AT_MOST, left, size);
    if (UNLIKELY(mqi_get64(p + MQI_FRAME_PHY_OFFSET) != log->start + at)) {
        return mqi_log_blame(fault, at, MQI_LOG_FOREIGN, MQI_FIELD_PHY_OFFSET, MQI_EXACTLY, log->start + at,
                             mqi_get64(p + MQI_FRAME_PHY_OFFSET));
    }
    int32_t sys_flag = mqi_get32(p + MQI_FRAME_SYS_FLAG);
    int32_t body_at = MQI_HEAD_SIZE;
    if (UNLIKELY(sys_flag & (MQI_SYS_BORN_IPV6 | MQI_SYS_STORE_IPV6))) {
        body_at += mqi_log_born_size(sys_flag) + mqi_log_store_size(sys_flag) - 2 * MQI_HOST_SIZE;
        if (size < body_at + 2 + width) {
            return mqi_log_blame(fault, at, MQI_LOG_BAD_SIZE, MQI_FIELD_TOTAL_SIZE, MQI_AT_LEAST, body_at + 2 + width,
                                 size);
        }
    }
    int32_t body_len = mqi_get32(p + body_at - 4), room = size - body_at - 2 - width;
    if (UNLIKELY(body_len < 0)) body_len = 0;
    if (UNLIKELY(body_len > room))
        return mqi_log_blame(fault, at, MQI_LOG_BAD_LENGTH, MQI_FIELD_BODY_LEN, MQI_AT_MOST, room, body_len);
    *head = (mqi_log_head){at, size, body_at, body_len, width, sys_flag};
    return MQI_FOUND_FRAME;
}

/* A delayed message: in this topic DELAY must be a number, or no broker accepts the frame. */
static inline int mqi_log_is_scheduled(const uint8_t *topic, int32_t n) {
    return n == MQI_SCHEDULE_LEN && memcmp(topic, MQI_SCHEDULE_TOPIC, MQI_SCHEDULE_LEN) == 0;
}

#define MQI_NO_LEVEL INT64_MIN

int64_t mqi_log_delay_level(const uint8_t *properties, int32_t n); /* 0: no DELAY; MQI_NO_LEVEL: it is no int32 */
/* A DELAY that is no int32 becomes level 0, in as many bytes. */
void mqi_log_settle_delay(uint8_t *properties, int32_t n);

/* Topic and properties; `head` has been read without a fault. */
static inline int mqi_log_read_tail(const mqi_log *log, const mqi_log_head *head, mqi_log_tail *tail,
                                    mqi_log_fault *fault) {
    int64_t at = head->at + head->body_at + head->body_len;
    const uint8_t *p = log->buf + at;
    int32_t width = head->width, room = head->size - head->body_at - head->body_len - 2 - width;
    int32_t topic_len = width == 1 ? (int8_t)p[0] : mqi_get16(p);
    if (UNLIKELY((uint32_t)topic_len > (uint32_t)room)) {
        return mqi_log_blame(fault, head->at, MQI_LOG_BAD_LENGTH, MQI_FIELD_TOPIC_LEN,
                             topic_len < 0 ? MQI_AT_LEAST : MQI_AT_MOST, topic_len < 0 ? 0 : room, topic_len);
    }
    int32_t properties_len = mqi_get16(p + width + topic_len);
    if (UNLIKELY(properties_len < 0)) properties_len = 0;
    if (UNLIKELY(topic_len + properties_len != room)) {
        return mqi_log_blame(fault, head->at, MQI_LOG_BAD_SIZE, MQI_FIELD_TOTAL_SIZE, MQI_EXACTLY,
                             (int64_t)head->size - room + topic_len + properties_len, head->size);
    }
    *tail = (mqi_log_tail){at + width, at + width + topic_len + 2, topic_len, properties_len};
    if (UNLIKELY(mqi_log_is_scheduled(p + width, topic_len)) &&
        mqi_log_delay_level(p + width + topic_len + 2, properties_len) == MQI_NO_LEVEL) {
        return mqi_log_blame(fault, head->at, MQI_LOG_BAD_DELAY, MQI_FIELD_DELAY, MQI_EXACTLY, 0, 0);
    }
    return MQI_FOUND_FRAME;
}

/* Compares the body's checksum; `log` has a function for it. */
int mqi_log_read_body(const mqi_log *log, const mqi_log_head *head, mqi_log_fault *fault);

/* The rest of a frame, with the body's checksum if it is to be compared. */
static inline int mqi_log_read_rest(const mqi_log *log, const mqi_log_head *head, mqi_log_tail *tail,
                                    mqi_log_fault *fault) {
    int found = mqi_log_read_tail(log, head, tail, fault);
    return found == MQI_FOUND_FRAME && log->crc32 ? mqi_log_read_body(log, head, fault) : found;
}

enum {
    MQI_LOG_MOST_TAIL = 512, /* bytes of topic and properties that are prefetched */
    MQI_LOG_AHEAD = 4,       /* frames beyond the next one, for the guess below */
};

/* What follows a frame's body, and the first `more` bytes of the next frame. Where that one is read at once, a later one
 * is prefetched where it is if all are as long as this: neighbours are often of one kind. A walk over heads waits for
 * memory once a frame otherwise. */
static inline void mqi_log_prefetch_rest(const mqi_log *log, const mqi_log_head *head, int64_t more) {
    const uint8_t *next = log->buf + head->at + head->size;
    int64_t n = head->size - head->body_at - head->body_len;
    if (UNLIKELY(n > MQI_LOG_MOST_TAIL)) {
        mqi_prefetch_lines(next - n, MQI_LOG_MOST_TAIL);
        mqi_prefetch_lines(next, more);
        return;
    }
    mqi_prefetch_lines(next - n, n + more);
    if (more) {
        uintptr_t later = (uintptr_t)(next - n) + MQI_LOG_AHEAD * (uintptr_t)head->size;
        mqi_prefetch_lines((const void *)later, n + more); /* NOLINT(performance-no-int-to-ptr): not read from */
    }
}

/* ---- strings ------------------------------------------------------------------------------------------------------ */

/* Bit i: p[i] == c, for the 64 bytes at p; all of them must be readable. */
static inline uint64_t mqi_mask64(const uint8_t *p, uint8_t c) {
#if defined(__SSE2__)
    const __m128i sought = _mm_set1_epi8((char)c);
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), sought);
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(equal) << (16 * i);
    }
    return mask;
#elif defined(__aarch64__)
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t sought = vdupq_n_u8(c), weight = vld1q_u8(weights);
    uint8x16_t a = vandq_u8(vceqq_u8(vld1q_u8(p), sought), weight),
               b = vandq_u8(vceqq_u8(vld1q_u8(p + 16), sought), weight);
    uint8x16_t d = vandq_u8(vceqq_u8(vld1q_u8(p + 32), sought), weight);
    uint8x16_t e = vandq_u8(vceqq_u8(vld1q_u8(p + 48), sought), weight);
    uint8x16_t sum = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(d, e));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)), 0);
#else
    uint64_t mask = 0;
    for (int i = 0; i < 64; i++) mask |= (uint64_t)(p[i] == c) << i;
    return mask;
#endif
}

/* The same for the n bytes at p, n >= 64 meaning 64; reads as far as `limit` at most. */
static inline uint64_t mqi_mask_of(const uint8_t *p, int64_t n, const uint8_t *limit, uint8_t c) {
    uint64_t mask;
    if (LIKELY(limit - p >= 64)) {
        mask = mqi_mask64(p, c);
    } else {
        uint8_t block[64] = {0};
        memcpy(block, p, (size_t)(limit - p));
        mask = mqi_mask64(block, c);
    }
    return n < 64 ? mask & ~(~(uint64_t)0 << n) : mask;
}

/* One "name 0x01 value" of the properties, [p, end): name and value must not be empty, a later duplicate wins. */
static inline void mqi_log_property(const uint8_t *p, const uint8_t *end, int queues, mqi_log_keys *keys) {
    int64_t n = end - p;
    if (n < 6) return;
    if (memcmp(p, "KEYS\1", 5) == 0) {
        keys->keys = p + 5;
        keys->keys_len = (int32_t)(n - 5);
    } else if (memcmp(p, "TAGS\1", 5) == 0) {
        keys->tags = p + 5;
        keys->tags_len = (int32_t)(n - 5);
    } else if (n > 9 && memcmp(p, "UNIQ_KEY\1", 9) == 0) {
        keys->uniq_key = p + 9;
        keys->uniq_key_len = (int32_t)(n - 9);
    } else if (queues && n > 21 && memcmp(p, "INNER_MULTI_DISPATCH\1", 21) == 0) {
        keys->queues = p + 21;
        keys->queues_len = (int32_t)(n - 21);
    } else if (queues && n > 25 && memcmp(p, "INNER_MULTI_QUEUE_OFFSET\1", 25) == 0) {
        keys->queue_offsets = p + 25;
        keys->queue_offsets_len = (int32_t)(n - 25);
    }
}

/* Splitting bytes equals splitting the decoded text: an ASCII byte is never part of a longer or a broken sequence.
 * `queues`: also those of multi-dispatch. */
static inline mqi_log_keys mqi_log_read_keys(const uint8_t *p, int64_t n, const uint8_t *limit, int queues) {
    mqi_log_keys keys = {0};
    const uint8_t *item = p, *end = p + n;
    for (; p < end; p += 64) {
        uint64_t mask = mqi_mask_of(p, end - p, limit, 2);
        for (; mask; mask &= mask - 1) {
            const uint8_t *stop = p + __builtin_ctzll(mask);
            mqi_log_property(item, stop, queues, &keys);
            item = stop + 1;
        }
    }
    if (item < end) mqi_log_property(item, end, queues, &keys);
    return keys;
}

#endif
