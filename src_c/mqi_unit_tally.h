/* Units on their way to RocketMQ's consume queues, counted by queue; some of them are kept. */
#ifndef MQI_UNIT_TALLY_H
#define MQI_UNIT_TALLY_H

#include "mqi_buffer.h"
#include "mqi_consume_queue.h"

typedef struct mqi_unit_sum {
    int64_t messages, bytes;
} mqi_unit_sum;

typedef struct mqi_unit_tally {
    int64_t every;   /* one of so many is kept, at random: a regular choice would meet regular tags or queues */
    int64_t group;   /* where the next group of so many begins, from the next unit on; below 0: it has begun */
    int64_t chosen;  /* which of its units is kept */
    uint64_t random; /* the generator's state */
    mqi_buffer sums; /* mqi_unit_sum of each queue up to the greatest number, and more */
    mqi_buffer kept; /* mqi_queue_unit */
} mqi_unit_tally;

/* `every`: 1 to 2^31; of the same `seed` the same units are kept, however they come. */
mqi_unit_tally mqi_unit_tally_begin(int64_t every, uint64_t seed);
/* Counts n units. Returns n, MQI_NO_MEMORY, or the number of the first unit whose queue is below 0: not all are counted. */
int64_t mqi_unit_tally_add(mqi_unit_tally *t, const mqi_queue_unit *units, int64_t n);
void mqi_unit_tally_free(mqi_unit_tally *t);

#endif
