#include "mqi_log_scan.h"

static int32_t count_keys(const uint8_t *p, int32_t n, const uint8_t *limit) {
    const uint8_t *key = p, *end = p + n;
    int32_t count = 0;
    for (; p < end; p += 64) {
        for (uint64_t mask = mqi_mask_of(p, end - p, limit, ' '); mask; mask &= mask - 1) {
            const uint8_t *space = p + __builtin_ctzll(mask);
            count += space > key;
            key = space + 1;
        }
    }
    return count + (key < end);
}

static void fill_frame(const mqi_log *log, const mqi_log_head *head, const mqi_log_tail *tail, mqi_log_frame *out) {
    const uint8_t *p = log->buf + head->at, *limit = log->buf + log->len;
    int32_t sys_flag = head->sys_flag, entries = 0;
    int32_t born_size = mqi_log_born_size(sys_flag), store_size = mqi_log_store_size(sys_flag);
    const uint8_t *stored = p + MQI_FRAME_BORN_HOST + born_size, *rest = stored + 8 + store_size;
    mqi_log_keys keys = mqi_log_read_keys(log->buf + tail->properties_at, tail->properties_len, limit, 0);
    if ((sys_flag & MQI_SYS_ROLLBACK) != MQI_SYS_ROLLBACK)
        entries = (keys.uniq_key != 0) + (keys.keys ? count_keys(keys.keys, keys.keys_len, limit) : 0);
    *out = (mqi_log_frame){
        .phy_offset = log->start + head->at,
        .queue_offset = mqi_get64(p + MQI_FRAME_QUEUE_OFFSET),
        .stored_phy_offset = mqi_get64(p + MQI_FRAME_PHY_OFFSET),
        .born_timestamp = mqi_get64(p + MQI_FRAME_BORN_TIMESTAMP),
        .store_timestamp = mqi_get64(stored),
        .prepared_transaction_offset = mqi_get64(rest + 4),
        .born_host_pos = head->at + MQI_FRAME_BORN_HOST,
        .store_host_pos = stored + 8 - log->buf,
        .body_pos = head->at + head->body_at,
        .topic_pos = tail->topic_at,
        .properties_pos = tail->properties_at,
        .keys_pos = keys.keys ? keys.keys - log->buf : 0,
        .tags_pos = keys.tags ? keys.tags - log->buf : 0,
        .uniq_key_pos = keys.uniq_key ? keys.uniq_key - log->buf : 0,
        .size = head->size,
        .magic = mqi_get32(p + MQI_FRAME_MAGIC_CODE),
        .body_crc = mqi_get32(p + MQI_FRAME_BODY_CRC),
        .queue_id = mqi_get32(p + MQI_FRAME_QUEUE_ID),
        .flag = mqi_get32(p + MQI_FRAME_FLAG),
        .sys_flag = sys_flag,
        .reconsume_times = mqi_get32(rest),
        .born_host_len = born_size - 4,
        .store_host_len = store_size - 4,
        .body_len = head->body_len,
        .topic_len = tail->topic_len,
        .properties_len = tail->properties_len,
        .keys_len = keys.keys ? keys.keys_len : -1,
        .tags_len = keys.tags ? keys.tags_len : -1,
        .uniq_key_len = keys.uniq_key ? keys.uniq_key_len : -1,
        .entry_count = entries,
    };
}

#define AHEAD 8 /* frames: about as many cache misses as a core keeps in flight */

/* Heads are read AHEAD of the rest, which is prefetched then, as is the next head. */
int64_t mqi_log_scan_frames(const mqi_log *log, mqi_log_scan *scan, int64_t stop, mqi_log_frame *out, int64_t max) {
    mqi_log_head heads[AHEAD];
    mqi_log_tail tail;
    int64_t n = 0, read = 0, at = scan->at;
    int found = MQI_FOUND_FRAME;
    if (scan->done) return 0;
    for (;;) {
        if (found == MQI_FOUND_FRAME && read < max && at < stop) {
            mqi_log_head *h = heads + read % AHEAD;
            found = mqi_log_read_head(log, at, h, &scan->fault);
            if (LIKELY(found == MQI_FOUND_FRAME)) {
                at += h->size;
                mqi_log_prefetch_rest(log, h, MQI_HEAD_SIZE);
                if (++read - n < AHEAD) continue;
            }
        }
        if (n == read) break;
        const mqi_log_head *h = heads + n % AHEAD;
        if (UNLIKELY(mqi_log_read_rest(log, h, &tail, &scan->fault) != MQI_FOUND_FRAME)) {
            found = MQI_FOUND_FAULT;
            break;
        }
        fill_frame(log, h, &tail, out + n++);
        scan->at += h->size;
    }
    scan->done = found != MQI_FOUND_FRAME || n < max;
    if (found == MQI_FOUND_BLANK) {
        scan->blank = scan->at;
        scan->at = log->len;
    }
    return n;
}

void mqi_log_scan_at(const mqi_log *log, const int64_t *at, int64_t n, mqi_log_frame *out, uint8_t *valid) {
    mqi_log_head head[AHEAD];
    mqi_log_tail tail;
    mqi_log_fault fault;
    int fine[AHEAD];
    for (int64_t i = 0; i < n + 2 * AHEAD; i++) {
        if (i < n && at[i] >= 0 && at[i] < log->len) mqi_prefetch_lines(log->buf + at[i], MQI_HEAD_SIZE);
        int64_t k = i - 2 * AHEAD; /* the tail was prefetched AHEAD turns ago */
        if (k >= 0) {
            const mqi_log_head *h = head + k % AHEAD;
            valid[k] = fine[k % AHEAD] && mqi_log_read_rest(log, h, &tail, &fault) == MQI_FOUND_FRAME;
            if (valid[k]) fill_frame(log, h, &tail, out + k);
            else out[k] = (mqi_log_frame){0};
        }
        k = i - AHEAD; /* the head was prefetched AHEAD turns ago */
        if (k >= 0 && k < n) {
            mqi_log_head *h = head + k % AHEAD;
            fine[k % AHEAD] =
                at[k] >= 0 && at[k] < log->len && mqi_log_read_head(log, at[k], h, &fault) == MQI_FOUND_FRAME;
            if (fine[k % AHEAD]) mqi_log_prefetch_rest(log, h, 0);
        }
    }
}
