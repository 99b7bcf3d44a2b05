/* Hosts as people write them, into the bytes of a frame. */
#include <arpa/inet.h>
#include <string.h>

#include "mqi_bytes.h"
#include "mqi_log_encode.h"

#define MAX_TEXT 56

static int parse_port(const char *p, const char *end, int32_t *port) {
    int negative = p < end && *p == '-';
    int64_t value = 0;
    p += negative;
    if (p == end) return 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9' || value > INT32_MAX) return 0;
        value = value * 10 + (*p - '0');
    }
    if (value > (int64_t)INT32_MAX + negative) return 0;
    *port = (int32_t)(negative ? -value : value);
    return 1;
}

int mqi_log_parse_host(const uint8_t *text, int64_t n, uint8_t out[MQI_LOG_HOST_SIZE]) {
    char copy[MAX_TEXT + 1], *address = copy;
    int32_t port;
    if (n < 1 || n > MAX_TEXT) return 0;
    memcpy(copy, text, (size_t)n);
    copy[n] = 0;
    char *colon = memchr(copy, 0, (size_t)n) ? 0 : strrchr(copy, ':');
    if (!colon || !parse_port(colon + 1, copy + n, &port)) return 0;
    int wide = copy[0] == '[' && colon[-1] == ']';
    colon[-wide] = 0;
    address += wide;
    if (inet_pton(wide ? AF_INET6 : AF_INET, address, out) != 1) return 0;
    mqi_set32(out + (wide ? 16 : 4), port);
    return wide ? 20 : 8;
}
