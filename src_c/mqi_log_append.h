/* Many frames into a file: one thread encodes, another one writes what is encoded, so an append takes as long as the
 * slower of both. Bytes go through pwrite, in the order of the file: a full disk is an error, and whatever ends the
 * process leaves whole frames and the beginning of one more. */
#ifndef MQI_LOG_APPEND_H
#define MQI_LOG_APPEND_H

#include "mqi_log_encode.h"

enum { MQI_LOG_SLOTS = 2 };

typedef struct {
    int fd;
    int64_t start;   /* phy offset of the file's first byte */
    uint8_t *buffer; /* MQI_LOG_SLOTS parts of `room` bytes; no frame is longer than one */
    int64_t room;
} mqi_log_file;

/* Appends rows from progress->row on, to the file's end or until `most` bytes are written, about. Returns 0 or the errno
 * of a write: then nobody knows how much of the frames up to `progress` is in the file. */
int mqi_log_append(const mqi_log_rows *rows, const int32_t *sizes, const uint8_t *parts, mqi_log_progress *progress,
                   const mqi_log_file *file, int64_t most, int64_t *phy_offsets);

#endif
