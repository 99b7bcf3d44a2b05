/* Batches of a Kafka segment's .log: walk them, and make the index files that a broker's recovery makes of them.
 *
 *   any batch    | 0 base_offset i64 | 8 length i32, of what follows | 12 ... | 16 magic i8 |
 *   magic 0, 1   | 12 crc u32, CRC-32 of [16, end) | 17 attributes i8 | 18 timestamp i64, not of magic 0 | key | value |
 *   magic 2      | 12 leader_epoch i32 | 17 crc u32, CRC-32C of [21, end) | 21 attributes i16 | 23 last_offset_delta i32 |
 *                | 27 base_timestamp i64 | 35 max_timestamp i64 | 43 producer_id i64 | 51 producer_epoch i16 |
 *                | 53 base_sequence i32 | 57 count i32 | 61 records |
 *
 * A magic above 2 is read as 2 and one below 0 as 1, as brokers do with files. Nothing outside `buf` is read. */
#ifndef MQI_KAFKA_LOG_H
#define MQI_KAFKA_LOG_H

#include <stdint.h>

#define MQI_BATCH_MAGIC 16
#define MQI_MESSAGE_ATTRIBUTES 17
#define MQI_MESSAGE_TIMESTAMP 18
#define MQI_BATCH_ATTRIBUTES 21
#define MQI_BATCH_RECORDS 61
#define MQI_BATCH_OVERHEAD 12 /* offset and length */
#define MQI_MIN_LENGTH 14     /* what the broker asks of any batch */
#define MQI_BATCH_CODEC 0x07
#define MQI_BATCH_TRANSACTIONAL 0x10
#define MQI_BATCH_CONTROL 0x20

typedef struct {
    const uint8_t *buf;
    int64_t len;
    int check_crc;
} mqi_kafka_log;

enum mqi_batch_kind { MQI_BATCH_FINE = 0, MQI_BATCH_BAD_LENGTH, MQI_BATCH_BAD_CRC };

typedef struct {
    int64_t at, expected, got;
    int32_t kind;
} mqi_batch_fault;

/* One batch; what its magic does not have is -1, and the count 1. Packed: rows that are joined stay what they are. */
typedef struct __attribute__((packed)) {
    int64_t position, base_offset, last_offset, base_timestamp, max_timestamp, producer_id;
    int32_t size, leader_epoch;
    uint32_t crc;
    int32_t count, base_sequence;
    int16_t attributes, producer_epoch;
    int8_t magic;
} mqi_kafka_batch;

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
 * moves behind it. */
int mqi_kafka_find_batch(const mqi_kafka_log *log, mqi_kafka_scan *scan, int64_t stop, int column, int64_t target,
                         mqi_kafka_batch *out);

/* ---- recovery ------------------------------------------------------------------------------------------------------ */

enum mqi_recovery_state {
    MQI_RECOVERY_RUNS = 0,
    MQI_RECOVERY_DONE,
    MQI_RECOVERY_WANTS_FIRST, /* of the wrapper at `valid`: set `first_offset` and go on */
    MQI_RECOVERY_OVERFLOW,    /* what follows, a broker's recovery does not survive either; at `valid` */
    MQI_RECOVERY_FULL,
    MQI_RECOVERY_ORDER,
    MQI_RECOVERY_NO_MEMORY,
    MQI_RECOVERY_UNREADABLE /* `error` is the system's number, 0: the file was cut */
};

typedef struct {
    uint8_t *data;
    int64_t size, room;
} mqi_bytes;

/* What no checksum covers, and a recovery does not look at. */
enum mqi_batch_oddity { MQI_ODD_ORDER = 0, MQI_ODD_BASE, MQI_ODD_MAGIC, MQI_ODD_COUNT, MQI_ODDITIES };

typedef struct {
    int64_t count, at, expected, got; /* how many, and the first */
} mqi_batch_odd;

/* Neighbours that tell one leader epoch, not -1. Packed, as rows. */
typedef struct __attribute__((packed)) {
    int64_t position, base_offset, last_base_offset; /* of the first; and the base offset of the last */
    int32_t leader_epoch;
} mqi_epoch_run;
#define MQI_MAX_EPOCH_RUNS (1 << 20) /* no segment has seen so many leaders */

typedef struct {
    mqi_kafka_log log;
    int64_t base_offset, index_interval, max_index_size;
    int fd;            /* where to read headers from, -1: from `log`. Checksums are not compared then */
    int first_offsets; /* entries of the offset index have the first offset of their batch, as up to 1.1 */

    int state, error, in_time_index; /* the last: which index it was that refused */
    uint8_t header[MQI_BATCH_RECORDS];
    int64_t valid, last_indexed, batches, last_offset, max_timestamp, max_timestamp_offset, first_offset;
    int64_t told_at;        /* the wrapper that `first_offset` is of, -1: none */
    int64_t refused, limit; /* the offset, and the last one in the index */
    int64_t n_offsets, n_times, last_index_offset, last_time, last_time_offset;
    mqi_bytes offset_index, time_index, transactional; /* the last: rows of mqi_kafka_batch */
    mqi_bytes epochs;                                  /* rows of mqi_epoch_run */
    mqi_batch_odd odd[MQI_ODDITIES];
    mqi_batch_fault fault;
} mqi_kafka_recovery;

void mqi_kafka_recover_start(mqi_kafka_recovery *r);
/* Goes over the batches that begin before `stop`; the closing entry is written with the last of the log. */
void mqi_kafka_recover(mqi_kafka_recovery *r, int64_t stop);
void mqi_kafka_recover_free(mqi_kafka_recovery *r);

#endif
