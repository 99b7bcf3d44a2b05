/* What a segment's log consists of, counted while a recovery reads its batches. Contents are hostile: negative counts
 * of records are 0, and only timestamps from 0 on are compared. */
#ifndef MQI_KAFKA_TALLY_H
#define MQI_KAFKA_TALLY_H

#include "mqi_buffer.h"
#include "mqi_kafka_batch.h"

#define MQI_TALLY_CODECS 8
#define MQI_TALLY_MAGICS 3    /* as brokers read them: below 0 is 1, above 2 is 2 */
#define MQI_TALLY_POWERS 32   /* number n: from 2^(n-1) up to 2^n, n 0: nothing */
#define MQI_TALLY_PLACES 1024 /* for producers; a power of two */
#define MQI_TALLY_PRODUCERS 512

typedef struct {
    int64_t batches, records, bytes;
} mqi_batch_sum;

typedef struct {
    mqi_batch_sum codecs[MQI_TALLY_CODECS];
    int64_t magics[MQI_TALLY_MAGICS];            /* batches */
    int64_t sizes[MQI_TALLY_POWERS];             /* batches by their bytes */
    int64_t counts[MQI_TALLY_POWERS];            /* batches by their records */
    int64_t wrapped;                             /* compressed messages of magic 0 and 1, each counted as one record */
    int64_t transactional, control, append_time; /* batches */
    int64_t untimed;                             /* batches without a timestamp */
    int64_t late, furthest_back;                 /* batches below the greatest timestamp before them; by how many ms */
    mqi_batch_sum other_producers;               /* those for which there was no place */
} mqi_batch_counts;

/* The batches that begin in one stretch of the log. Timestamps: the least and the greatest of theirs, -1: none. */
typedef struct {
    int64_t position, base_offset, last_offset, min_timestamp, max_timestamp, batches, records, bytes;
} mqi_log_stretch;

typedef struct {
    int64_t producer_id;
    mqi_batch_sum sum; /* no batches: the place is free */
} mqi_producer_sum;

/* Neighbours of one codec, producer and stretch: they are counted together when the next one is of another. */
typedef struct {
    mqi_batch_sum sum;
    int64_t producer_id, last_offset;
    int codec, magic;
} mqi_batch_run;

typedef struct {
    int64_t stretch, next; /* bytes in a stretch, where the next one begins */
    int64_t n_producers;
    mqi_batch_run run;
    mqi_batch_counts counts;
    mqi_buffer stretches; /* rows of mqi_log_stretch */
    mqi_producer_sum producers[MQI_TALLY_PLACES];
} mqi_kafka_tally;

/* Counts the batch `p`, which begins at `at`; `greatest`: the greatest timestamp up to it. 0: there is no memory. */
int mqi_kafka_tally_add(mqi_kafka_tally *t, const uint8_t *p, const mqi_batch_head *h, int64_t at, int64_t greatest);
/* Brings the counts of the batches so far up to date. */
void mqi_kafka_tally_settle(mqi_kafka_tally *t);
void mqi_kafka_tally_free(mqi_kafka_tally *t);

#endif
