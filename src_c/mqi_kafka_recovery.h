/* The result of a broker's recovery for a segment's .log: where it cuts the log, and the two index files (Kafka's
 * LogSegment.recover, 4.1). */
#ifndef MQI_KAFKA_RECOVERY_H
#define MQI_KAFKA_RECOVERY_H

#include "mqi_buffer.h"
#include "mqi_kafka_batch.h"
#include "mqi_kafka_tally.h"

enum mqi_recovery_state {
    MQI_RECOVERY_RUNS = 0,
    MQI_RECOVERY_DONE,
    MQI_RECOVERY_NEEDS_FIRST, /* of the wrapper at `valid`: set `first_offset` and continue */
    MQI_RECOVERY_OVERFLOW,    /* a broker's recovery fails on this one and the next ones too; at `valid` */
    MQI_RECOVERY_FULL,
    MQI_RECOVERY_ORDER,
    MQI_RECOVERY_NO_MEMORY,
    MQI_RECOVERY_UNREADABLE /* `error` is the system's number, 0: the file was cut */
};

/* What no checksum covers, and a recovery does not check. */
enum mqi_batch_oddity { MQI_ODD_ORDER = 0, MQI_ODD_BASE, MQI_ODD_MAGIC, MQI_ODD_COUNT, MQI_ODDITIES };

typedef struct {
    int64_t count, at, expected, got; /* how many, and the first */
} mqi_batch_odd;

/* Neighbours with the same leader epoch, not -1. Packed, as rows. */
typedef struct __attribute__((packed)) {
    int64_t position, base_offset, last_base_offset; /* of the first; and the base offset of the last */
    int32_t leader_epoch;
} mqi_epoch_run;
#define MQI_MAX_EPOCH_RUNS (1 << 20) /* no segment has so many leaders */

/* Bytes of a log that are no good batch, between good ones. */
typedef struct {
    int64_t at, end;                  /* `end`: where the next good batch begins */
    int64_t batches, records;         /* how many good ones come before */
    int64_t last_offset, next_offset; /* of the batch before (the base offset less 1: there is none), and of the next */
    int passed;                       /* its lengths lead a reader to `end` */
    mqi_batch_fault fault;
} mqi_kafka_damage;
#define MQI_MAX_DAMAGE (1 << 16) /* behind so many stretches a log is not read on */

typedef struct {
    mqi_kafka_log log;           /* as much of it as may be read now */
    int64_t size;                /* bytes of the whole log */
    int partly;                  /* what is before may not be read any more: nothing is judged by all of the log */
    const mqi_kafka_log *behind; /* with `sums`, where a recovery goes on behind damage; 0: it ends there */
    int64_t base_offset, index_interval, max_index_size;
    int fd;            /* where to read headers from, -1: from `log`. Checksums are not compared then */
    int first_offsets; /* entries of the offset index have the first offset of their batch, as up to 1.1 */

    int state, error, in_time_index; /* the last: which index refused */
    uint8_t header[MQI_BATCH_RECORDS];
    int64_t valid, last_indexed, batches, records, last_offset, max_timestamp, max_timestamp_offset, first_offset;
    int64_t first_offset_of; /* the position of its wrapper, -1: none */
    int64_t refused, limit;  /* the offset, and the last one in the index */
    int64_t n_offsets, n_times, last_index_offset, last_time, last_time_offset;
    mqi_buffer offset_index, time_index, transactional; /* the last: rows of mqi_kafka_batch */
    mqi_buffer epochs;                                  /* rows of mqi_epoch_run */
    mqi_buffer damage;                                  /* mqi_kafka_damage */
    int entry_due;                                      /* at `valid`: no length leads there */
    mqi_batch_odd odd[MQI_ODDITIES];
    mqi_batch_fault fault;
    mqi_kafka_tally *tally; /* what the batches are counted in, or 0 */
} mqi_kafka_recovery;

void mqi_kafka_recover_start(mqi_kafka_recovery *r);
/* Processes the batches that begin before `stop`; the closing entry is written with the last of the log. It returns
 * before one that needs more of the log than may be read. */
void mqi_kafka_recover(mqi_kafka_recovery *r, int64_t stop);
void mqi_kafka_recover_free(mqi_kafka_recovery *r);

#endif
