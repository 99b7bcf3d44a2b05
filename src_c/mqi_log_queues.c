#include "mqi_log_queues.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Topics are chosen by users: a hash that they know, as Java's, lets them put every queue into one chain. */
static void choose_secret(mqi_log_queues *t) {
    /* GCOVR_EXCL_START: an old kernel, a sandbox; a weak secret is better than none */
    if (getentropy(t->secret, sizeof t->secret) != 0) {
        t->secret[0] = (uint64_t)time(NULL) * UINT64_C(0x9E3779B97F4A7C15);
        t->secret[1] = (uint64_t)(uintptr_t)t * UINT64_C(0xD1B54A32D192ED03);
    }
    /* GCOVR_EXCL_STOP */
    t->secret[1] |= 1;
}

/* Both halves of the product: no bit of `a` is lost, and every one is moved. */
static uint64_t fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t hash_of(const mqi_log_queues *t, const uint8_t *topic, int32_t n, int32_t queue_id) {
    uint64_t h = fold(t->secret[0] ^ (uint32_t)queue_id, t->secret[1]) + (uint32_t)n, piece;
    for (; n >= 8; topic += 8, n -= 8) {
        memcpy(&piece, topic, 8);
        h = fold(h ^ piece, t->secret[1]);
    }
    piece = 0;
    if (n > 0) memcpy(&piece, topic, (size_t)n);
    return (uint32_t)fold(h ^ piece, t->secret[1]);
}

static int grow(mqi_log_queues *t) {
    int32_t room = t->room ? t->room * 2 : 64;
    uint32_t mask = (uint32_t)room * 2 - 1;
    mqi_log_queue *queues = realloc(t->queues, (size_t)room * sizeof *queues);
    uint32_t *slots = calloc(mask + 1, sizeof *slots);
    if (queues) t->queues = queues;
    if (!queues || !slots) {
        free(slots);
        return 0;
    }
    for (int32_t i = 0; i < t->n; i++) {
        uint32_t at = queues[i].hash & mask;
        while (slots[at]) at = (at + 1) & mask;
        slots[at] = (uint32_t)i + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->mask = mask;
    t->room = room;
    return 1;
}

static int keep_topic(mqi_log_queues *t, const uint8_t *topic, int32_t n) {
    if (t->topics_room - t->topics_len < n) {
        int64_t room = t->topics_room * 2 + n + 1024;
        uint8_t *topics = realloc(t->topics, (size_t)room);
        if (!topics) return 0;
        t->topics = topics;
        t->topics_room = room;
    }
    if (n > 0) memcpy(t->topics + t->topics_len, topic, (size_t)n);
    t->topics_len += n;
    return 1;
}

static inline int is_queue(const mqi_log_queues *t, const mqi_log_queue *q, const uint8_t *topic, int32_t topic_len,
                           int32_t queue_id) {
    return q->queue_id == queue_id && q->topic_len == topic_len &&
           (topic_len == 0 || memcmp(t->topics + q->topic_at, topic, (size_t)topic_len) == 0);
}

int32_t mqi_log_queue_number(mqi_log_queues *t, const uint8_t *topic, int32_t topic_len, int32_t queue_id) {
    if (t->n > 0 && is_queue(t, t->queues + t->last, topic, topic_len, queue_id)) return t->last;
    if (!t->secret[1]) choose_secret(t);
    uint32_t hash = hash_of(t, topic, topic_len, queue_id), at = hash & t->mask;
    if (t->slots) {
        for (; t->slots[at]; at = (at + 1) & t->mask) {
            const mqi_log_queue *q = t->queues + t->slots[at] - 1;
            if (q->hash == hash && is_queue(t, q, topic, topic_len, queue_id))
                return t->last = (int32_t)(t->slots[at] - 1);
        }
    }
    if (t->no_memory || ((!t->slots || t->n == t->room) && !grow(t)) || !keep_topic(t, topic, topic_len)) {
        t->no_memory = 1;
        return 0;
    }
    for (at = hash & t->mask; t->slots[at];) at = (at + 1) & t->mask;
    t->queues[t->n] = (mqi_log_queue){hash, queue_id, topic_len, t->topics_len - topic_len};
    t->slots[at] = (uint32_t)++t->n;
    return t->last = t->n - 1;
}

void mqi_log_queues_free(mqi_log_queues *t) {
    free(t->queues);
    free(t->slots);
    free(t->topics);
}
