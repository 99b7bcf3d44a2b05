/* Batches of a Kafka segment's .log: walk them, search them. */
#ifndef MQI_KAFKA_LOG_H
#define MQI_KAFKA_LOG_H

#include "mqi_kafka_batch.h"

/* ---- walk --------------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t at;
    int done; /* the end, a batch that is cut short, or a fault */
    mqi_batch_fault fault;
} mqi_kafka_scan;

/* The next batches that begin before `stop`, at most `max`; returns how many. */
int64_t mqi_kafka_scan_batches(const mqi_kafka_log *log, mqi_kafka_scan *scan, int64_t stop, mqi_kafka_batch *out,
                               int64_t max);

/* ---- search: headers only ------------------------------------------------------------------------------------------ */

enum mqi_kafka_find { MQI_FIND_LAST_OFFSET = 0, MQI_FIND_MAX_TIMESTAMP };

/* The first batch from scan->at on whose last offset, or max timestamp, is not less than `target`; 0: none. `scan`
 * moves to its end. */
int mqi_kafka_find_batch(const mqi_kafka_log *log, mqi_kafka_scan *scan, int64_t stop, int column, int64_t target,
                         mqi_kafka_batch *out);

/* For each i the position of the first batch at or after starts[i], and before `stop`, whose max timestamp is not below
 * times[i]; -1: none. In the order of (start, time) no header is read more than twice, as long as every start is the
 * beginning of a batch; one within a batch, as a wrong index gives it, leads where a search for it alone does. */
void mqi_kafka_find_batches(const mqi_kafka_log *log, int64_t stop, const int64_t *starts, const int64_t *times,
                            int64_t n, int64_t *found, mqi_batch_fault *fault);

/* The batches that begin at `positions`; returns how many there are before a position that has none. */
int64_t mqi_kafka_batches_at(const mqi_kafka_log *log, const int64_t *positions, int64_t n, mqi_kafka_batch *out);

/* For each i the index of the first value in [starts[i], stops[i]) that is not below targets[i]; -1: none. Ordered as
 * above, no value is read twice. */
void mqi_first_not_below(const int64_t *values, const int64_t *starts, const int64_t *stops, const int64_t *targets,
                         int64_t n, int64_t *found);

#endif
