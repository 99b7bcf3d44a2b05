/* Commit-log records, here called frames: find, check, decode, extract what the index needs.
 *
 * `at` is a position in the buffer; at + start is the frame's phy offset. Nothing outside [buf, buf + len) is read,
 * whatever the bytes are. */
#ifndef MQI_COMMIT_LOG_H
#define MQI_COMMIT_LOG_H

#include <stdint.h>

#include "mqi_log_queues.h"

typedef struct {
    const uint8_t *buf; /* one whole commit-log file */
    int64_t len;
    int64_t start; /* the phy offset of buf[0] */
    int check_crc;
} mqi_log;

enum mqi_log_kind {
    MQI_LOG_FINE = 0,
    MQI_LOG_BAD_MAGIC,
    MQI_LOG_BAD_SIZE,
    MQI_LOG_BAD_LENGTH,
    MQI_LOG_FOREIGN,
    MQI_LOG_BAD_CRC,
    MQI_LOG_TRUNCATED,
    MQI_LOG_BAD_DELAY
};

enum mqi_log_field {
    MQI_FIELD_NONE = 0, /* the bytes that are left in the file */
    MQI_FIELD_TOTAL_SIZE,
    MQI_FIELD_MAGIC_CODE,
    MQI_FIELD_PHY_OFFSET,
    MQI_FIELD_BODY_LEN,
    MQI_FIELD_TOPIC_LEN,
    MQI_FIELD_BODY_CRC,
    MQI_FIELD_DELAY
};

enum mqi_log_relation { MQI_EXACTLY = 0, MQI_AT_LEAST, MQI_AT_MOST };

/* The first thing wrong with a frame: `field` was to be exactly, at least or at most `expected`. */
typedef struct {
    int64_t at;
    int32_t kind, field, relation;
    int64_t expected, got;
} mqi_log_fault;

/* ---- find and scan ---------------------------------------------------------------------------------------------- */

/* Everything of one frame except its bytes; *_at are positions in the buffer, *_len -1: absent. The order keeps it free
 * of padding, because Python sees it as a structured array. */
typedef struct {
    int64_t phy_offset, queue_offset, stored_phy_offset;
    int64_t born_timestamp, store_timestamp, prepared_transaction_offset;
    int64_t born_host_pos, store_host_pos, body_pos, topic_pos, properties_pos, keys_pos, tags_pos, uniq_key_pos;
    int32_t size, magic, body_crc, queue_id, flag, sys_flag, reconsume_times;
    int32_t born_host_len, store_host_len, body_len, topic_len, properties_len, keys_len, tags_len, uniq_key_len;
    int32_t entry_count; /* index entries of UNIQ_KEY and KEYS; 0 for a rolled-back message */
} mqi_log_frame;

/* The first position in [at, stop) where a whole frame stands that names this very place, or a blank record that
 * fills the file; -1: none. */
int64_t mqi_log_find(const mqi_log *log, int64_t at, int64_t stop);

/* Walks from a record's head at `at` by sizes alone, over records that begin in [at, stop): returns where the last one
 * begins whose head is there, and `*end`, which is the same place where it has no size. */
int64_t mqi_log_last(const mqi_log *log, int64_t at, int64_t stop, int64_t *end);

typedef struct {
    int64_t at;    /* after the last good frame; for a blank record the end of the buffer */
    int64_t blank; /* where the blank record stands, or -1 */
    int done;
    mqi_log_fault fault;
} mqi_log_scan;

/* Decodes at most `max` frames that begin in [scan->at, stop); returns how many. */
int64_t mqi_log_scan_frames(const mqi_log *log, mqi_log_scan *scan, int64_t stop, mqi_log_frame *out, int64_t max);

/* The frames at n positions, which may be anywhere; valid[i] 0: no whole frame stands there, and out[i] is zero. */
void mqi_log_scan_at(const mqi_log *log, const int64_t *at, int64_t n, mqi_log_frame *out, uint8_t *valid);

/* Copies n pieces of `buf` one after another; `offsets` has n + 1 places; a negative size is an empty piece. `pos` holds
 * int64, `size` int32, both native with strides in bytes. out == 0: only fills `offsets`. Returns -1, or the number of
 * the first piece that does not lie in the buffer. */
int64_t mqi_log_gather(const uint8_t *buf, int64_t len, const uint8_t *pos, int64_t pos_stride, const uint8_t *size,
                       int64_t size_stride, int64_t n, int64_t *offsets, uint8_t *out);

/* ---- text ------------------------------------------------------------------------------------------------------- */

#define MQI_LOG_TEXT_MAX 56 /* of a host: "[" 8 x "ffff:" "]:-2147483648"; of an id: 2 x (16 + 4 + 8) */

/* "address:port", the address as Java writes it, IPv6 in brackets; `host` holds address_len (4 or 16) bytes and a port.
 * Returns the length. */
int mqi_log_host_text(const uint8_t *host, int address_len, char *out);

/* Of all frames, which must be those that a scan of this very buffer gave; `offsets` has n + 1 places, `out` room for
 * n * MQI_LOG_TEXT_MAX. Return the length of all. An id is the store host and the phy offset in hex. */
int64_t mqi_log_host_texts(const uint8_t *buf, const mqi_log_frame *frames, int64_t n, int born, int64_t *offsets,
                           char *out);
int64_t mqi_log_ids(const uint8_t *buf, const mqi_log_frame *frames, int64_t n, int64_t *offsets, char *out);

/* ---- extract ------------------------------------------------------------------------------------------------------ */

#define MQI_LOG_CURSORS 4
#ifndef MQI_LOG_WINDOW           /* the fuzzer's windows are small */
#define MQI_LOG_WINDOW (2 << 20) /* bytes of log per cursor and step: so many that a step costs little */
#endif
#define MQI_LOG_MAX_ENTRIES (32767 / 2 + 3)                /* of one message: its properties have at most 32767 bytes */
#define MQI_LOG_RUN_ENTRIES (131072 + MQI_LOG_MAX_ENTRIES) /* room for the output of one cursor in one step */
#define MQI_LOG_ENTRY_SIZE 20
#define MQI_LOG_RUN_UNITS MQI_LOG_RUN_ENTRIES /* of one message: its own and one for each two bytes */

/* A frame whose head has been read and whose tail is on its way into the cache. */
typedef struct {
    int64_t at;
    int32_t size, body_at, body_len, width; /* width of topic_len: 1 or 2 */
    int32_t sys_flag;                       /* as it was when body_at was found: a live file may change */
} mqi_log_head;

typedef struct {
    uint8_t *run;        /* MQI_LOG_RUN_ENTRIES * MQI_LOG_ENTRY_SIZE bytes, the caller's */
    mqi_log_unit *units; /* room for MQI_LOG_RUN_UNITS, the caller's; 0 where there is no table of queues */
    int64_t first;       /* where the cursor began; -1: there is no frame in its window */
    int64_t at;          /* of the first frame that was not extracted; behind a blank record */
    int64_t stop;
    int state;
    mqi_log_head head; /* of the frame at `at`, in the state MQI_CURSOR_RUNS */
    uint8_t *next;     /* where in `run` the next entry goes */
    int64_t entries, n_units, messages;
    int64_t last_message, last_entry, blank; /* positions, -1: none */
    mqi_log_fault fault;
} mqi_log_cursor;

/* Extracts [at, stop), a few windows a step, each by a cursor of its own so that their cache misses overlap. */
typedef struct {
    mqi_log log;
    int tags;               /* also topic#T#TAGS, as brokers from 5.4 on */
    mqi_log_queues *queues; /* 0: no units. Of a run that is not confirmed it keeps the queues too */
    int64_t at, stop;
    mqi_log_cursor cursor[MQI_LOG_CURSORS];
    int confirmed; /* after a step: the runs of this many cursors are the output, in order */
    int done;
    int64_t messages, entries;
    int64_t last_message, last_entry, blank; /* positions, -1: none */
    mqi_log_fault fault;
} mqi_log_extract;

/* The caller has set log, tags, queues, at, stop (the log's end at most) and every cursor's run and units. */
void mqi_log_extract_start(mqi_log_extract *x);
void mqi_log_extract_step(mqi_log_extract *x); /* while it is not done */

#endif
