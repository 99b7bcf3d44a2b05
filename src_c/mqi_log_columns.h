/* Frames of the commit log as columns, made block by block: while a frame's bytes are near, all of its columns are. */
#ifndef MQI_LOG_COLUMNS_H
#define MQI_LOG_COLUMNS_H

#include "mqi_log_scan.h"

enum mqi_log_column_kind {
    MQI_COLUMN_INT32,
    MQI_COLUMN_INT64,
    MQI_COLUMN_TEXT, /* or bytes */
    MQI_COLUMN_BORN_HOST,
    MQI_COLUMN_STORE_HOST,
    MQI_COLUMN_MSG_ID,
};

/* One column to be filled. Numbers go to `numbers`, which has room for all rows. A text's `offsets` has one place more
 * than there are rows and begins with 0; `valid` (0: none is absent) a byte a row; `data` grows, and is the caller's to
 * free. */
typedef struct {
    int32_t kind;
    int32_t at, len_at; /* of the number, or of a text's position and length: bytes from a frame's begin */
    uint8_t *numbers;
    int64_t *offsets;
    uint8_t *valid;
    uint8_t *data;
    int64_t room;
} mqi_log_column;

typedef struct {
    mqi_log_column *columns;
    int64_t count;
    int64_t rows, max_rows; /* filled, and what the arrays have room for */
    int64_t expected;       /* how many there will be, as far as is known: buffers of texts are made for them */
} mqi_log_table;

/* The frames at n positions, of the sizes that are expected; returns n, or the number of the first that is no whole
 * frame or has another size (its rows and those after it are not filled); -1: out of memory. */
int64_t mqi_log_columns_at(const mqi_log *log, const int64_t *at, const int32_t *sizes, int64_t n,
                           mqi_log_table *table);

/* The frames that begin in [scan->at, stop), as many as the table has room for and no more than begin in `max_bytes`;
 * returns 0: out of memory. */
int mqi_log_columns_scan(const mqi_log *log, mqi_log_scan *scan, int64_t stop, int64_t max_bytes, mqi_log_table *table);

/* out[i]: whether text i, which may be outside of the `len` bytes of data, is one of n_wanted texts; `ends` of those in
 * `wanted`, one after the other. */
void mqi_texts_among(const uint8_t *data, int64_t len, const int64_t *offsets, int64_t n, const uint8_t *wanted,
                     const int64_t *ends, int64_t n_wanted, uint8_t *out);

#endif
