/* Hosts and message ids as people write them. */
#ifndef MQI_LOG_TEXT_H
#define MQI_LOG_TEXT_H

#include "mqi_log_scan.h"

#define MQI_LOG_TEXT_MAX 56 /* of a host: "[" 8 x "ffff:" "]:-2147483648"; of an id: 2 x (16 + 4 + 8) */

/* "address:port", the address as Java writes it, IPv6 in brackets; `host` holds address_len (4 or 16) bytes and a port.
 * Returns the length. */
int mqi_log_host_text(const uint8_t *host, int address_len, char *out);

/* The id that brokers give a frame, which must be one that a scan of this very buffer gave: its store host and its phy
 * offset in hex. Returns the length. */
int mqi_log_id(const uint8_t *buf, const mqi_log_frame *frame, char *out);

/* "address:port", IPv6 in brackets, as the bytes of a frame; returns 8 or 20, or 0 for what is no such text. */
int mqi_log_parse_host(const uint8_t *text, int64_t n, uint8_t out[MQI_HOST_SIZE_IPV6]);

#endif
