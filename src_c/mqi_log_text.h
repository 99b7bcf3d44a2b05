/* Bytes of frames as columns of text: hosts, message ids, pieces of the log; and hosts as people write them. */
#ifndef MQI_LOG_TEXT_H
#define MQI_LOG_TEXT_H

#include "mqi_log_scan.h"

#define MQI_LOG_TEXT_MAX 56 /* of a host: "[" 8 x "ffff:" "]:-2147483648"; of an id: 2 x (16 + 4 + 8) */

/* "address:port", the address as Java writes it, IPv6 in brackets; `host` holds address_len (4 or 16) bytes and a port.
 * Returns the length. */
int mqi_log_host_text(const uint8_t *host, int address_len, char *out);

/* Of all frames, which must be those that a scan of this very buffer gave; `offsets` has n + 1 places, `out` room for
 * n * MQI_LOG_TEXT_MAX. Return the length of all. An id is the store host and the phy offset in hex. */
int64_t mqi_log_host_texts(const uint8_t *buf, const mqi_log_frame *frames, int64_t n, int born, int64_t *offsets,
                           char *out);
int64_t mqi_log_ids(const uint8_t *buf, const mqi_log_frame *frames, int64_t n, int64_t *offsets, char *out);

/* "address:port", IPv6 in brackets, as the bytes of a frame; returns 8 or 20, or 0 for what is no such text. */
int mqi_log_parse_host(const uint8_t *text, int64_t n, uint8_t out[MQI_HOST_SIZE_IPV6]);

/* Copies n pieces of `buf` one after another; `offsets` has n + 1 places; a negative size is an empty piece. `pos` holds
 * int64, `size` int32, both native with strides in bytes. out == 0: only fills `offsets`. Returns -1, or the number of
 * the first piece that does not lie in the buffer. */
int64_t mqi_log_gather(const uint8_t *buf, int64_t len, const uint8_t *pos, int64_t pos_stride, const uint8_t *size,
                       int64_t size_stride, int64_t n, int64_t *offsets, uint8_t *out);

#endif
