/* Records of one Kafka batch, after its codec: walk them, copy them into columns, search them by time.
 *
 *   magic 2      | length varint | attributes i8 | timestamp delta varlong | offset delta varint | key length varint, key |
 *                | value length varint, value | header count varint | key length, key, value length, value, ... |
 *   magic 0, 1   a message as it is in the log; inside a compressed one a row of messages
 *
 * Whatever the bytes are: nothing outside them is read, and every walk ends. */
#ifndef MQI_KAFKA_RECORDS_H
#define MQI_KAFKA_RECORDS_H

#include "mqi_buffer.h"
#include "mqi_kafka_batch.h"

#define MQI_NO_TIMESTAMP_TYPE (-1)
#define MQI_CREATE_TIME 0
#define MQI_LOG_APPEND_TIME 1

enum mqi_record_kind {
    MQI_RECORD_FINE = 0,
    MQI_RECORD_CUT,        /* a field reaches beyond the record, or the record beyond the batch */
    MQI_RECORD_VARINT,     /* a varint does not end */
    MQI_RECORD_LENGTH,     /* the fields do not fill the record */
    MQI_RECORD_COUNT,      /* fewer or more records than the batch says, or a negative number of them or of headers */
    MQI_RECORD_HEADER_KEY, /* a header without a key */
    MQI_RECORD_NESTED,     /* a compressed message inside a compressed one */
    MQI_RECORD_EMPTY,      /* a compressed message without any inside */
    MQI_RECORD_OFFSET      /* the wrapper's offset is below that of its last message */
};

typedef struct {
    const uint8_t *p, *end; /* what is left of the payload */
    int64_t base_offset, base_timestamp, append_time;
    int64_t left, index;     /* records of magic 2 to come; number of the next one */
    int old, timestamp_type; /* old: of magic 0 and 1 */
    int wrapper, fault;
} mqi_kafka_records;

typedef struct {
    int64_t offset, timestamp;
    const uint8_t *key, *value, *headers;
    int64_t key_len, value_len; /* -1: null */
    int64_t n_headers;
    int timestamp_type;
} mqi_kafka_record;

/* Starts on the records of the batch of this row: `payload` is what follows the header of magic 2, or the message; with
 * `expanded`, the decompressed bytes of that, or of the message's value. */
void mqi_kafka_records_start(mqi_kafka_records *x, const mqi_kafka_batch *batch, const uint8_t *payload, int64_t n,
                             int expanded);
/* 1: a record; 0: there are no more, or x->fault has the reason. */
int mqi_kafka_records_next(mqi_kafka_records *x, mqi_kafka_record *record);

/* Where the value of a message of magic 0 or 1 is; its length, -1: null, -2: it is cut. `size` as in a batch's row: at
 * least that of the shortest message. */
int64_t mqi_kafka_message_value(const uint8_t *message, int64_t size, const uint8_t **value);

/* ---- columns ------------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t offset, timestamp;
    int64_t key_end, value_end, headers_end;
    int32_t batch;
    int8_t timestamp_type;
    uint8_t has_key, has_value, pad;
} mqi_kafka_row;

typedef struct {
    int64_t key_end, value_end;
    uint8_t has_value, pad[7];
} mqi_kafka_header;

typedef struct {
    int keys, values, headers_wanted;
    mqi_buffer rows, key_data, value_data, headers, header_keys, header_values;
} mqi_kafka_columns;

enum mqi_columns_state { MQI_COLUMNS_ENDED = 0, MQI_COLUMNS_FULL, MQI_COLUMNS_NO_MEMORY };

/* Copies records until there are no more, or `max_rows` or `max_bytes` are reached; continue with the same `x` then. */
int mqi_kafka_columns_add(mqi_kafka_columns *c, mqi_kafka_records *x, int32_t batch, int64_t max_rows,
                          int64_t max_bytes);
void mqi_kafka_columns_free(mqi_kafka_columns *c);

#endif
