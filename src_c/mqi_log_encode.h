/* Frames from columns: what RocketMQ's MessageExtEncoder and CommitLog.doAppend write (4.9.3; version 2 and the
 * appended checksum as in 5.x), directly into the bytes that go to the file. The layout is drawn in mqi_log_frame.h.
 *
 * First measure: every row's size, or the first row that no broker would take. Then encode as often as the buffer is
 * full or a file ends. Nothing outside the given cells is read. Bytes that change in between
 * change what a message says, never a frame's size; a body has its checksum, and every reader accepts the frame. */
#ifndef MQI_LOG_ENCODE_H
#define MQI_LOG_ENCODE_H

#include <stdint.h>

#include "mqi_crc.h"

#define MQI_LOG_CRC_SIZE 20 /* "__CRC32#" 01 ten digits 02 */

/* Some bytes; len -1: there is nothing. */
typedef struct {
    const uint8_t *p;
    int64_t len;
} mqi_piece;

/* The cell of row i is cells[i * step]; step 0: the same in every row. */
typedef struct {
    const mqi_piece *cells;
    int64_t step;
} mqi_pieces;

typedef struct {
    const int64_t *cells;
    int64_t step;
} mqi_numbers;

/* What the broker's version and settings decide. */
typedef struct {
    int separator;   /* a properties block that is put together here ends with 02 */
    int append_crc;  /* enabledAppendPropCRC */
    int long_topics; /* a topic longer than one byte can count makes a frame of version 2 */
    int64_t max_body, max_frame;
} mqi_log_rules;

typedef struct {
    int64_t n;
    mqi_log_rules rules;
    mqi_checksum *crc32;
    mqi_pieces topic, body;
    mqi_pieces properties; /* a block as stored; those of the next three that it does not have are appended */
    mqi_pieces keys, tags, uniq_key;
    mqi_pieces born_host, store_host; /* 8 or 20 bytes */
    mqi_numbers queue_id, queue_offset, flag, sys_flag, born_timestamp, store_timestamp, reconsume_times;
    mqi_numbers prepared_transaction_offset;
} mqi_log_rows;

enum mqi_log_column {
    MQI_COLUMN_NONE = 0, /* the whole frame */
    MQI_COLUMN_TOPIC,
    MQI_COLUMN_BODY,
    MQI_COLUMN_PROPERTIES,
    MQI_COLUMN_KEYS,
    MQI_COLUMN_TAGS,
    MQI_COLUMN_UNIQ_KEY,
};

enum mqi_log_refusal_kind {
    MQI_REFUSED_NOT = 0,
    MQI_REFUSED_EMPTY,     /* it must not be empty */
    MQI_REFUSED_LONG,      /* `limit` bytes at most, not `got` */
    MQI_REFUSED_SEPARATOR, /* a byte 02 inside a value would end it */
    MQI_REFUSED_OTHERWISE, /* `properties` has another value */
    MQI_REFUSED_DELAY,     /* in SCHEDULE_TOPIC_XXXX it must be an int32: to every reader the log would end there */
};

typedef struct {
    int64_t row;
    int32_t kind, column;
    int64_t limit, got;
} mqi_log_refusal;

/* sizes[i]: bytes of frame i; parts[i]: for mqi_log_encode. Returns the sum, or -1 and why. */
int64_t mqi_log_measure(const mqi_log_rows *rows, int32_t *sizes, uint8_t *parts, mqi_log_refusal *why);

/* How far it got. */
typedef struct {
    int64_t row;
    int64_t phy_offset; /* of the next frame */
    int64_t left;       /* bytes from there to the file's end */
    int roll;           /* the next frame and a blank do not fit in `left` */
} mqi_log_progress;

/* Passes the rows from progress->row on, as many as fit `room` and the file; returns the bytes of their frames. */
int64_t mqi_log_pass(const mqi_log_rows *rows, const int32_t *sizes, mqi_log_progress *progress, int64_t room);

/* Encodes the rows that mqi_log_pass passes; returns the bytes. phy_offsets[i]: of row i. */
int64_t mqi_log_encode(const mqi_log_rows *rows, const int32_t *sizes, const uint8_t *parts, mqi_log_progress *progress,
                       uint8_t *out, int64_t room, int64_t *phy_offsets);

#endif
