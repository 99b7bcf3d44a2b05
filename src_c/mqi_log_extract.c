#include "mqi_log_extract.h"

#include "mqi_decimal.h"
#include "mqi_hash.h"

enum { MQI_CURSOR_RUNS, MQI_CURSOR_ENDED, MQI_CURSOR_PAUSED, MQI_CURSOR_FAULT, MQI_CURSOR_BLANK };

#define FEW_BYTES (MQI_LOG_WINDOW / 32) /* for less than this a cursor is not worth while */

static inline void emit(mqi_log_cursor *c, uint32_t hash, int64_t phy_offset, int64_t timestamp) {
    mqi_run_put(c->next, mqi_key_hash(hash), phy_offset, timestamp);
    c->next += MQI_RUN_SIZE;
}

/* KEYS are split at every single space; empty parts are no keys. */
static inline void emit_keys(mqi_log_cursor *c, const uint8_t *p, int64_t n, const uint8_t *limit, uint32_t seed,
                             int64_t phy_offset, int64_t timestamp) {
    const uint8_t *key = p, *end = p + n;
    for (; p < end; p += 64) {
        for (uint64_t mask = mqi_mask_of(p, end - p, limit, ' '); mask; mask &= mask - 1) {
            const uint8_t *space = p + __builtin_ctzll(mask);
            if (space > key) emit(c, mqi_hash_utf8(key, (size_t)(space - key), seed), phy_offset, timestamp);
            key = space + 1;
        }
    }
    if (key < end) emit(c, mqi_hash_utf8(key, (size_t)(end - key), seed), phy_offset, timestamp);
}

/* Parts of "a,b,,": as Java splits, without the empty ones at the end. */
static int64_t count_parts(const uint8_t *p, int64_t n) {
    int64_t parts = 0, at = 0;
    while (n > 0 && p[n - 1] == ',') n--;
    if (n == 0) return 0;
    for (; at < n; at++) parts += p[at] == ',';
    return parts + 1;
}

static const uint8_t *part_end(const uint8_t *p, const uint8_t *end) {
    /* GCOVR_EXCL_BR_START: where `p` is the end, a live file has lost a comma since they were counted */
    const uint8_t *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : 0;
    /* GCOVR_EXCL_BR_STOP */
    return comma ? comma : end;
}

/* Which of the system's topics it is: the timer's is one where messages wait, as the schedule topic. */
static int system_topic(const uint8_t *topic, int32_t n) {
    if (n >= 7 && memcmp(topic, "%RETRY%", 7) == 0) return MQI_RETRY_TOPICS;
    if (mqi_log_is_scheduled(topic, n)) return MQI_WAITING_TOPICS;
    if (n < 8 || memcmp(topic, "rmq_sys_", 8) != 0) return 0;
    return n == 19 && memcmp(topic + 8, "wheel_timer", 11) == 0 ? MQI_WAITING_TOPICS : MQI_SYSTEM_TOPICS;
}

int mqi_log_allows_multi_dispatch(const mqi_log_queues *queues, const uint8_t *topic, int32_t n) {
    return !(system_topic(topic, n) & ~queues->system_topics);
}

/* The same unit in every queue that the message names, at the offset that it names for it. A live file may have lost a
 * comma since they were counted: then there are fewer. */
static void emit_multi_dispatch(mqi_log_queues *queues, mqi_log_cursor *c, const mqi_log_keys *keys,
                                mqi_queue_unit unit, int32_t queue_id) {
    const uint8_t *name = keys->queues, *names_end = name + keys->queues_len;
    const uint8_t *number = keys->queue_offsets, *numbers_end = number + keys->queue_offsets_len;
    int64_t parts = count_parts(name, keys->queues_len);
    if (parts != count_parts(number, keys->queue_offsets_len)) return;
    for (; parts > 0; parts--) {
        if (name > names_end || number > numbers_end) break; /* GCOVR_EXCL_BR_LINE: the live file has changed */
        const uint8_t *stop = part_end(name, names_end), *number_stop = part_end(number, numbers_end);
        int32_t n = (int32_t)(stop - name);
        int32_t id = queues->lmq && n >= 5 && memcmp(name, "%LMQ%", 5) == 0 ? 0 : queue_id;
        if (mqi_parse_number(number, number_stop - number, INT64_MAX, &unit.queue_offset)) {
            unit.queue = mqi_log_queue_number(queues, name, n, id);
            c->units[c->n_units++] = unit;
        }
        name = stop + 1;
        number = number_stop + 1;
    }
}

/* When a delayed message is to be delivered. A level above the last counts as the last; one below the first as no delay. */
static int64_t deliver_time(const mqi_log_queues *queues, int64_t level, int64_t timestamp) {
    if (level > queues->n_delay_levels) level = queues->n_delay_levels;
    return mqi_add64(timestamp, queues->delay_levels[level - 1]);
}

static inline void emit_units(const mqi_log *log, mqi_log_queues *queues, mqi_log_cursor *c, const mqi_log_head *head,
                              const mqi_log_tail *tail, const mqi_log_keys *keys, int64_t timestamp) {
    const uint8_t *p = log->buf + head->at, *topic = log->buf + tail->topic_at;
    int32_t queue_id = mqi_get32(p + MQI_FRAME_QUEUE_ID);
    mqi_queue_unit unit = {
        .phy_offset = log->start + head->at,
        .queue_offset = mqi_get64(p + MQI_FRAME_QUEUE_OFFSET),
        .store_timestamp = timestamp,
        .size = head->size,
        .queue = mqi_log_queue_number(queues, topic, tail->topic_len, queue_id),
    };
    if (keys->tags) unit.tags_code = (int32_t)mqi_hash_utf8(keys->tags, (size_t)keys->tags_len, 0);
    if (UNLIKELY(mqi_log_is_scheduled(topic, tail->topic_len)) && queues->n_delay_levels > 0) {
        int64_t level = mqi_log_delay_level(log->buf + tail->properties_at, tail->properties_len);
        if (level > 0) unit.tags_code = deliver_time(queues, level, timestamp);
    }
    c->units[c->n_units++] = unit;
    if (UNLIKELY(keys->queues && keys->queue_offsets) && queues->multi_dispatch &&
        mqi_log_allows_multi_dispatch(queues, topic, tail->topic_len)) {
        emit_multi_dispatch(queues, c, keys, unit, queue_id);
    }
}

/* The entries and units of one message. Entries: its unique key, its keys in order, then the tag; none of a rolled-back
 * one. Units: none of a prepared or rolled-back one. */
static inline void emit_message(const mqi_log *log, int tags, mqi_log_queues *queues, mqi_log_cursor *c,
                                const mqi_log_head *head, const mqi_log_tail *tail) {
    const uint8_t *p = log->buf + head->at, *limit = log->buf + log->len;
    int32_t sys_flag = head->sys_flag;
    if (UNLIKELY((sys_flag & MQI_SYS_ROLLBACK) == MQI_SYS_ROLLBACK)) return;
    mqi_log_keys keys = mqi_log_read_keys(log->buf + tail->properties_at, tail->properties_len, limit, queues != 0);
    if (!queues && !keys.uniq_key && !keys.keys && !(tags && keys.tags)) return;
    int64_t phy_offset = log->start + head->at;
    int64_t timestamp = mqi_log_store_timestamp(p, sys_flag);
    uint32_t seed = mqi_hash_utf8(log->buf + tail->topic_at, (size_t)tail->topic_len, 0) * 31u + '#';
    uint8_t *before = c->next;
    if (queues && !(sys_flag & MQI_SYS_PREPARED)) emit_units(log, queues, c, head, tail, &keys, timestamp);
    if (!tags) keys.tags = 0;
    if (keys.uniq_key) emit(c, mqi_hash_utf8(keys.uniq_key, (size_t)keys.uniq_key_len, seed), phy_offset, timestamp);
    if (keys.keys) emit_keys(c, keys.keys, keys.keys_len, limit, seed, phy_offset, timestamp);
    if (keys.tags) {
        seed = (seed * 31u + 'T') * 31u + '#';
        emit(c, mqi_hash_utf8(keys.tags, (size_t)keys.tags_len, seed), phy_offset, timestamp);
    }
    if (c->next > before) c->last_entry = head->at;
}

/* Reads the head at c->at, and prefetches the cache lines that the next turn needs. */
static inline void look_ahead(const mqi_log *log, mqi_log_cursor *c) {
    if (UNLIKELY(c->at >= c->stop)) {
        c->state = MQI_CURSOR_ENDED;
        return;
    }
    int found = mqi_log_read_head(log, c->at, &c->head, &c->fault);
    if (LIKELY(found == MQI_FOUND_FRAME)) {
        mqi_log_prefetch_rest(log, &c->head, MQI_HEAD_SIZE);
        c->state = MQI_CURSOR_RUNS;
    } else if (found == MQI_FOUND_BLANK) {
        c->blank = c->at;
        c->at = log->len;
        c->state = MQI_CURSOR_BLANK;
    } else {
        c->state = MQI_CURSOR_FAULT;
    }
}

static inline int nearly_full(const mqi_log_cursor *c) {
    return c->next - c->run > (MQI_LOG_RUN_ENTRIES - MQI_LOG_MAX_ENTRIES) * MQI_RUN_SIZE ||
           c->n_units > MQI_LOG_RUN_UNITS - MQI_LOG_MAX_ENTRIES;
}

static inline void turn(const mqi_log *log, int tags, mqi_log_queues *queues, mqi_log_cursor *c) {
    mqi_log_tail tail;
    const mqi_log_head head = c->head;
    if (UNLIKELY(mqi_log_read_rest(log, &head, &tail, &c->fault) != MQI_FOUND_FRAME)) {
        c->state = MQI_CURSOR_FAULT;
        return;
    }
    c->at = head.at + head.size;
    look_ahead(log, c);
    c->messages++;
    c->last_message = head.at;
    emit_message(log, tags, queues, c, &head, &tail);
    if (UNLIKELY(nearly_full(c)) && c->state == MQI_CURSOR_RUNS) c->state = MQI_CURSOR_PAUSED;
}

static void begin(const mqi_log *log, mqi_log_cursor *c, int64_t at, int64_t stop) {
    *c = (mqi_log_cursor){.run = c->run, .units = c->units, .next = c->run, .first = at, .at = at, .stop = stop};
    c->last_message = c->last_entry = c->blank = -1;
    c->state = MQI_CURSOR_ENDED;
    if (at >= 0) look_ahead(log, c);
}

static inline int all_run(const mqi_log_cursor *c) {
    int state = 0;
    for (int i = 0; i < MQI_LOG_CURSORS; i++) state |= c[i].state ^ MQI_CURSOR_RUNS;
    return !state;
}

static void finish_all(const mqi_log *log, int tags, mqi_log_queues *queues, mqi_log_cursor *c, int n) {
    if (n == MQI_LOG_CURSORS) {
        while (all_run(c))
            for (int i = 0; i < MQI_LOG_CURSORS; i++) turn(log, tags, queues, c + i);
    }
    for (int running = 1; running;) {
        running = 0;
        for (int i = 0; i < n; i++) {
            if (c[i].state == MQI_CURSOR_RUNS) {
                turn(log, tags, queues, c + i);
                running = 1;
            }
        }
    }
    for (int i = 0; i < n; i++) c[i].entries = (c[i].next - c[i].run) / MQI_RUN_SIZE;
}

/* Takes over what a cursor found, which began where all before it ended; 0: nothing can follow in this step. */
static int confirm(mqi_log_extract *x, const mqi_log_cursor *c) {
    x->at = c->at;
    x->messages += c->messages;
    x->entries += c->entries;
    if (c->last_message >= 0) x->last_message = c->last_message;
    if (c->last_entry >= 0) x->last_entry = c->last_entry;
    x->confirmed++;
    if (c->state == MQI_CURSOR_PAUSED) return 0;
    if (c->state == MQI_CURSOR_FAULT) x->fault = c->fault;
    if (c->state == MQI_CURSOR_BLANK) x->blank = c->blank;
    if (c->state != MQI_CURSOR_ENDED || x->at >= x->stop) x->done = 1;
    return !x->done;
}

void mqi_log_extract_start(mqi_log_extract *x) {
    x->messages = x->entries = x->confirmed = 0;
    x->last_message = x->last_entry = x->blank = -1;
    x->fault = (mqi_log_fault){0};
    x->done = x->at >= x->stop;
}

void mqi_log_extract_step(mqi_log_extract *x) {
    const mqi_log *log = &x->log;
    mqi_log resync = x->log;
    /* Checksums read whole bodies: one cursor does that in memory's order, which processors prefetch themselves. */
    int n = 1, most = log->crc32 ? 1 : MQI_LOG_CURSORS;
    int64_t at = x->at, left = x->stop - at, widest = MQI_LOG_WINDOW * (MQI_LOG_CURSORS / most);
    int64_t window = left / most + 1;
    x->confirmed = 0;
    if (window > widest) window = widest;
    if (window < FEW_BYTES) window = FEW_BYTES;
    resync.crc32 = 0;
    begin(log, x->cursor, at, left <= window ? x->stop : at + window);
    for (; n < most && left > n * window; n++) {
        int64_t from = at + n * window, stop = left - n * window <= window ? x->stop : from + window;
        begin(log, x->cursor + n, mqi_log_find(&resync, from, stop), stop);
    }
    finish_all(log, x->tags, x->queues, x->cursor, n);
    for (int i = 0; i < n; i++) {
        mqi_log_cursor *c = x->cursor + i;
        if (c->first != x->at) { /* a frame longer than its window, or a copy of a frame inside a body */
            begin(log, c, x->at, c->stop);
            finish_all(log, x->tags, x->queues, c, 1);
        }
        if (!confirm(x, c)) return;
    }
}
