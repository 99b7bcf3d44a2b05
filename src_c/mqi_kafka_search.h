/* Searches by time in a Kafka segment's log, many at once: headers only. */
#ifndef MQI_KAFKA_SEARCH_H
#define MQI_KAFKA_SEARCH_H

#include <stdint.h>

#include "mqi_kafka_log.h"

/* For each i the position of the first batch at or behind starts[i], and before `stop`, whose max timestamp is not below
 * times[i]; -1: none. starts[i] is the begin of a batch. In the order of (start, time) no header is read twice. */
void mqi_kafka_find_batches(const mqi_kafka_log *log, int64_t stop, const int64_t *starts, const int64_t *times,
                            int64_t n, int64_t *found, mqi_batch_fault *fault);

/* The batches that begin at `positions`; returns how many there are before one that is none. */
int64_t mqi_kafka_batches_at(const mqi_kafka_log *log, const int64_t *positions, int64_t n, mqi_kafka_batch *out);

/* For each i the index of the first value in [starts[i], stops[i]) that is not below targets[i]; -1: none. Ordered as
 * above, no value is read twice. */
void mqi_first_not_below(const int64_t *values, const int64_t *starts, const int64_t *stops, const int64_t *targets,
                         int64_t n, int64_t *found);

#endif
