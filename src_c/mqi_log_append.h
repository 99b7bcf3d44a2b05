/* Many frames into a file, by two threads in turn: while one writes, the other encodes the next part, and writes that
 * itself, out of the cache of its own processor. Bytes go through pwrite, in the order of the file: a full disk is an
 * error, and a process that ends at any moment leaves whole frames and the beginning of one more. */
#ifndef MQI_LOG_APPEND_H
#define MQI_LOG_APPEND_H

#include "mqi_log_encode.h"

enum { MQI_LOG_WRITERS = 2 };

typedef struct {
    int fd;
    int64_t start;   /* phy offset of the file's first byte */
    uint8_t *buffer; /* of MQI_LOG_WRITERS times `room` bytes; no frame is longer than `room` */
    int64_t room;
} mqi_log_file;

/* Appends rows from progress->row on, to the file's end or until about `most` bytes are written. Returns 0 or the errno
 * of a write: then it is not known how much of the frames up to `progress` is in the file. */
int mqi_log_append(const mqi_log_rows *rows, const int32_t *sizes, const uint8_t *parts, mqi_log_progress *progress,
                   const mqi_log_file *file, int64_t most, int64_t *phy_offsets);

#endif
