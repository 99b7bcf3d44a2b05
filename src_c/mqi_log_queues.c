#include "mqi_log_queues.h"

#include <stdlib.h>
#include <string.h>

static uint32_t mix(uint32_t topic_hash, int32_t queue_id) {
    uint64_t h = (topic_hash ^ ((uint64_t)(uint32_t)queue_id << 32)) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32);
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

int32_t mqi_log_queue_number(mqi_log_queues *t, const uint8_t *topic, int32_t topic_len, uint32_t topic_hash,
                             int32_t queue_id) {
    uint32_t hash = mix(topic_hash, queue_id), at = hash & t->mask;
    if (t->slots) {
        for (; t->slots[at]; at = (at + 1) & t->mask) {
            const mqi_log_queue *q = t->queues + t->slots[at] - 1;
            if (q->hash == hash && q->queue_id == queue_id && q->topic_len == topic_len &&
                (topic_len == 0 || memcmp(t->topics + q->topic_at, topic, (size_t)topic_len) == 0))
                return (int32_t)(t->slots[at] - 1);
        }
    }
    if (t->no_memory || (t->n == t->room && !grow(t)) || !keep_topic(t, topic, topic_len)) {
        t->no_memory = 1;
        return 0;
    }
    for (at = hash & t->mask; t->slots[at];) at = (at + 1) & t->mask;
    t->queues[t->n] = (mqi_log_queue){hash, queue_id, topic_len, t->topics_len - topic_len};
    t->slots[at] = (uint32_t)++t->n;
    return t->n - 1;
}

void mqi_log_queues_free(mqi_log_queues *t) {
    free(t->queues);
    free(t->slots);
    free(t->topics);
}
