/* Which queues a frame's units go to, and their fields: the rules of dispatch. Queues are numbered as they come. */
#ifndef MQI_LOG_QUEUES_H
#define MQI_LOG_QUEUES_H

#include <stdint.h>

#include "mqi_consume_queue.h"

typedef struct {
    uint32_t hash;
    int32_t queue_id, topic_len;
    int64_t topic_at; /* in `topics` */
} mqi_log_queue;

enum { MQI_RETRY_TOPICS = 1, MQI_WAITING_TOPICS = 2, MQI_SYSTEM_TOPICS = 4 };

typedef struct {
    const int64_t *delay_levels; /* ms, level 1 first */
    int64_t n_delay_levels;
    int multi_dispatch; /* also to the queues that INNER_MULTI_DISPATCH names */
    int lmq;            /* of these, %LMQ%... has only queue 0 */
    int system_topics;  /* also of these: a mask */

    uint64_t secret[2];    /* of the hash of a queue's name; chosen with the first queue */
    int32_t n, room, last; /* `last`: the queue looked up last, which is often looked up again */
    mqi_log_queue *queues;
    uint32_t *slots, mask; /* number + 1, 0: free */
    uint8_t *topics;
    int64_t topics_len, topics_room;
    int no_memory; /* from then on every queue is number 0 */
} mqi_log_queues;

/* An empty table is all zeros, except for the rules. */
int32_t mqi_log_queue_number(mqi_log_queues *t, const uint8_t *topic, int32_t topic_len, int32_t queue_id);
void mqi_log_queues_free(mqi_log_queues *t);

#endif
