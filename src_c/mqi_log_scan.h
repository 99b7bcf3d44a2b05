/* Frames of the commit log decoded into rows: one after another, or at given positions. */
#ifndef MQI_LOG_SCAN_H
#define MQI_LOG_SCAN_H

#include "mqi_log_frame.h"

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

typedef struct {
    int64_t at;    /* after the last good frame; for a blank record the end of the buffer */
    int64_t blank; /* of the blank record, or -1 */
    int done;
    mqi_log_fault fault;
} mqi_log_scan;

/* Decodes at most `max` frames that begin in [scan->at, stop); returns how many. */
int64_t mqi_log_scan_frames(const mqi_log *log, mqi_log_scan *scan, int64_t stop, mqi_log_frame *out, int64_t max);

/* The frames at n positions, which may be anywhere; valid[i] 0: there is no whole frame, and out[i] is zero. */
void mqi_log_scan_at(const mqi_log *log, const int64_t *at, int64_t n, mqi_log_frame *out, uint8_t *valid);

#endif
