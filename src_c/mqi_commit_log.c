#include "mqi_commit_log.h"

#include "mqi_crc.h"
#include "mqi_log_frame.h"

int mqi_log_read_body(const mqi_log *log, const mqi_log_head *head, mqi_log_fault *fault) {
    if (head->body_len == 0) return MQI_FOUND_FRAME;
    const uint8_t *p = log->buf + head->at;
    int64_t want = mqi_crc32(p + head->body_at, (size_t)head->body_len, 0) & INT32_MAX, stored = mqi_get32(p + 8);
    if (want == stored) return MQI_FOUND_FRAME;
    return mqi_log_blame(fault, head->at, MQI_LOG_BAD_CRC, MQI_FIELD_BODY_CRC, MQI_EXACTLY, want, stored);
}

static int64_t number_of(const uint8_t *p, int64_t n) { /* n > 0 */
    int64_t value = 0;
    int negative = *p == '-';
    if (negative || *p == '+') p++, n--;
    if (n == 0) return MQI_NO_LEVEL;
    for (; n > 0; p++, n--) {
        if (*p < '0' || *p > '9') return MQI_NO_LEVEL;
        value = value * 10 + (*p - '0');
        if (value > (int64_t)INT32_MAX + negative) return MQI_NO_LEVEL;
    }
    return negative ? -value : value;
}

int64_t mqi_log_delay_level(const uint8_t *properties, int32_t n) {
    const uint8_t *p = properties, *end = properties + n;
    int64_t level = 0;
    while (p < end) {
        const uint8_t *stop = memchr(p, 2, (size_t)(end - p));
        if (!stop) stop = end;
        if (stop - p > 6 && memcmp(p, "DELAY\1", 6) == 0) level = number_of(p + 6, stop - p - 6);
        p = stop + 1;
    }
    return level;
}

/* ---- find --------------------------------------------------------------------------------------------------------- */

static int stands_at(const mqi_log *log, int64_t at) {
    mqi_log_head head;
    mqi_log_tail tail;
    mqi_log_fault fault;
    int found = mqi_log_read_head(log, at, &head, &fault);
    if (found == MQI_FOUND_FRAME) {
        found = mqi_log_read_tail(log, &head, &tail, &fault);
        if (found == MQI_FOUND_FRAME && log->check_crc) found = mqi_log_read_body(log, &head, &fault);
    }
    return found == MQI_FOUND_FRAME || found == MQI_FOUND_BLANK;
}

static int opens_magic(const uint8_t *p) { return (p[0] == 0xDA && p[1] == 0xA3) || (p[0] == 0xCB && p[1] == 0xD4); }

#if defined(__SSE2__)
/* Bit i: the first two bytes of a magic code stand at p + i; 17 bytes are read. */
static unsigned magic_mask(const uint8_t *p) {
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
    __m128i message =
        _mm_and_si128(_mm_cmpeq_epi8(a, _mm_set1_epi8((char)0xDA)), _mm_cmpeq_epi8(b, _mm_set1_epi8((char)0xA3)));
    __m128i blank =
        _mm_and_si128(_mm_cmpeq_epi8(a, _mm_set1_epi8((char)0xCB)), _mm_cmpeq_epi8(b, _mm_set1_epi8((char)0xD4)));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(message, blank));
}
#else
static unsigned magic_mask(const uint8_t *p) {
    unsigned mask = 0;
    for (int i = 0; i < 16; i++) mask |= (unsigned)opens_magic(p + i) << i;
    return mask;
}
#endif

int64_t mqi_log_find(const mqi_log *log, int64_t at, int64_t stop) {
    if (stop > log->len - MQI_BLANK_SIZE + 1) stop = log->len - MQI_BLANK_SIZE + 1;
    for (; stop - at >= 16 && log->len - at >= 32; at += 16)
        for (unsigned mask = magic_mask(log->buf + at + 4); mask; mask &= mask - 1)
            if (stands_at(log, at + __builtin_ctz(mask))) return at + __builtin_ctz(mask);
    for (; at < stop; at++)
        if (opens_magic(log->buf + at + 4) && stands_at(log, at)) return at;
    return -1;
}

/* The size of the record whose head stands there; 0: none does, or it does not fit. */
static int64_t size_at(const mqi_log *log, int64_t at) {
    if (at > log->len - MQI_BLANK_SIZE) return 0;
    int32_t magic = mqi_get32(log->buf + at + 4);
    int64_t size = mqi_get32(log->buf + at);
    int is_head = magic == MQI_MAGIC_1 || magic == MQI_MAGIC_2 || magic == MQI_MAGIC_BLANK;
    return is_head && size >= MQI_BLANK_SIZE && size <= log->len - at ? size : 0;
}

int64_t mqi_log_last(const mqi_log *log, int64_t at, int64_t stop, int64_t *end) {
    int64_t size = size_at(log, at);
    while (size && at + size < stop) {
        int64_t next = size_at(log, at + size);
        if (!next) break;
        at += size;
        size = next;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* what is read of these records from now on is what their writer wrote */
    *end = at + size;
    return at;
}

/* ---- scan --------------------------------------------------------------------------------------------------------- */

static int32_t count_keys(const uint8_t *p, int32_t n, const uint8_t *limit) {
    const uint8_t *key = p, *end = p + n;
    int32_t count = 0;
    for (; p < end; p += 64)
        for (uint64_t mask = mqi_mask_of(p, end - p, limit, ' '); mask; mask &= mask - 1) {
            const uint8_t *space = p + __builtin_ctzll(mask);
            count += space > key;
            key = space + 1;
        }
    return count + (key < end);
}

static void set_text(const mqi_log *log, const uint8_t *p, int32_t n, int64_t *pos, int32_t *len) {
    *pos = p ? p - log->buf : 0;
    *len = p ? n : -1;
}

static void fill_frame(const mqi_log *log, const mqi_log_head *head, const mqi_log_tail *tail, mqi_log_frame *out) {
    const uint8_t *p = log->buf + head->at, *limit = log->buf + log->len;
    int32_t sys_flag = head->sys_flag;
    int32_t born_len = sys_flag & MQI_SYS_BORN_IPV6 ? 16 : 4, store_len = sys_flag & MQI_SYS_STORE_IPV6 ? 16 : 4;
    const uint8_t *stored = p + 48 + born_len + 4, *rest = stored + 8 + store_len + 4;
    mqi_log_keys keys = mqi_log_read_keys(log->buf + tail->properties_at, tail->properties_len, limit, 0);
    *out = (mqi_log_frame){
        .phy_offset = log->start + head->at,
        .queue_offset = mqi_get64(p + 20),
        .stored_phy_offset = mqi_get64(p + 28),
        .born_timestamp = mqi_get64(p + 40),
        .store_timestamp = mqi_get64(stored),
        .prepared_transaction_offset = mqi_get64(rest + 4),
        .born_host_pos = head->at + 48,
        .store_host_pos = stored + 8 - log->buf,
        .body_pos = head->at + head->body_at,
        .topic_pos = tail->topic_at,
        .properties_pos = tail->properties_at,
        .size = head->size,
        .magic = mqi_get32(p + 4),
        .body_crc = mqi_get32(p + 8),
        .queue_id = mqi_get32(p + 12),
        .flag = mqi_get32(p + 16),
        .sys_flag = sys_flag,
        .reconsume_times = mqi_get32(rest),
        .born_host_len = born_len,
        .store_host_len = store_len,
        .body_len = head->body_len,
        .topic_len = tail->topic_len,
        .properties_len = tail->properties_len,
    };
    set_text(log, keys.uniq_key, keys.uniq_key_len, &out->uniq_key_pos, &out->uniq_key_len);
    set_text(log, keys.keys, keys.keys_len, &out->keys_pos, &out->keys_len);
    set_text(log, keys.tags, keys.tags_len, &out->tags_pos, &out->tags_len);
    if ((sys_flag & MQI_SYS_ROLLBACK) != MQI_SYS_ROLLBACK)
        out->entry_count = (keys.uniq_key != 0) + (keys.keys ? count_keys(keys.keys, keys.keys_len, limit) : 0);
}

int64_t mqi_log_scan_frames(const mqi_log *log, mqi_log_scan *scan, int64_t stop, mqi_log_frame *out, int64_t max) {
    int64_t n = 0;
    while (n < max && !scan->done) {
        mqi_log_head head;
        mqi_log_tail tail;
        if (scan->at >= stop) {
            scan->done = 1;
            break;
        }
        int found = mqi_log_read_head(log, scan->at, &head, &scan->fault);
        if (found == MQI_FOUND_FRAME) {
            __builtin_prefetch(log->buf + head.at + head.size); /* may lie behind the buffer: only a hint */
            __builtin_prefetch(log->buf + head.at + head.size + 64);
            found = mqi_log_read_tail(log, &head, &tail, &scan->fault);
        }
        if (found == MQI_FOUND_FRAME && log->check_crc) found = mqi_log_read_body(log, &head, &scan->fault);
        if (found == MQI_FOUND_FRAME) {
            fill_frame(log, &head, &tail, out + n++);
            scan->at += head.size;
            continue;
        }
        scan->done = 1;
        if (found == MQI_FOUND_BLANK) {
            scan->blank = scan->at;
            scan->at = log->len;
        }
    }
    return n;
}

#define AHEAD 8 /* frames: about as many cache misses as a core keeps in flight */

void mqi_log_scan_at(const mqi_log *log, const int64_t *at, int64_t n, mqi_log_frame *out, uint8_t *valid) {
    mqi_log_head head[AHEAD];
    mqi_log_tail tail;
    mqi_log_fault fault;
    int fine[AHEAD];
    for (int64_t i = 0; i < n + 2 * AHEAD; i++) {
        if (i < n && at[i] >= 0 && at[i] < log->len) {
            __builtin_prefetch(log->buf + at[i]);
            __builtin_prefetch(log->buf + at[i] + 64);
        }
        int64_t k = i - 2 * AHEAD; /* the tail is on its way since AHEAD turns */
        if (k >= 0) {
            const mqi_log_head *h = head + k % AHEAD;
            valid[k] = fine[k % AHEAD] && mqi_log_read_tail(log, h, &tail, &fault) == MQI_FOUND_FRAME &&
                       (!log->check_crc || mqi_log_read_body(log, h, &fault) == MQI_FOUND_FRAME);
            if (valid[k]) fill_frame(log, h, &tail, out + k);
            else out[k] = (mqi_log_frame){0};
        }
        k = i - AHEAD; /* the head is on its way since AHEAD turns */
        if (k >= 0 && k < n) {
            mqi_log_head *h = head + k % AHEAD;
            fine[k % AHEAD] =
                at[k] >= 0 && at[k] < log->len && mqi_log_read_head(log, at[k], h, &fault) == MQI_FOUND_FRAME;
            if (fine[k % AHEAD]) {
                __builtin_prefetch(log->buf + h->at + h->body_at + h->body_len);
                __builtin_prefetch(log->buf + h->at + h->body_at + h->body_len + 64);
            }
        }
    }
}

int64_t mqi_log_gather(const uint8_t *buf, int64_t len, const uint8_t *pos, int64_t pos_stride, const uint8_t *size,
                       int64_t size_stride, int64_t n, int64_t *offsets, uint8_t *out) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++, pos += pos_stride, size += size_stride) {
        int64_t at;
        int32_t m;
        memcpy(&at, pos, sizeof at);
        memcpy(&m, size, sizeof m);
        offsets[i] = total;
        if (m <= 0) continue;
        if (at < 0 || at > len - m) return i;
        if (out) memcpy(out + total, buf + at, (size_t)m);
        total += m;
    }
    offsets[n] = total;
    return -1;
}
