#include "mqi_log_text.h"

#include <arpa/inet.h>
#include <string.h>

#include "mqi_decimal.h"

static char *put_unsigned(char *out, uint32_t value, uint32_t base) {
    char digits[10];
    int n = 0;
    do {
        digits[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    while (n) *out++ = digits[--n];
    return out;
}

int mqi_log_host_text(const uint8_t *host, int address_len, char *out) {
    char *p = out;
    int32_t port = mqi_get32(host + address_len);
    if (address_len == 4) {
        for (int i = 0; i < 4; i++) {
            if (i) *p++ = '.';
            p = put_unsigned(p, host[i], 10);
        }
    } else {
        *p++ = '[';
        for (int i = 0; i < 16; i += 2) {
            if (i) *p++ = ':';
            p = put_unsigned(p, (uint16_t)mqi_get16(host + i), 16);
        }
        *p++ = ']';
    }
    *p++ = ':';
    if (port < 0) *p++ = '-';
    return (int)(put_unsigned(p, port < 0 ? 0u - (uint32_t)port : (uint32_t)port, 10) - out);
}

/* Eight digits of four bytes at once: each half byte in a byte of its own, then to '0' .. '9' and 'A' .. 'F'. */
static void put_hex32(char *out, uint32_t value) {
    uint64_t v = value;
    v = (v << 16 | v) & UINT64_C(0x0000FFFF0000FFFF);
    v = (v << 8 | v) & UINT64_C(0x00FF00FF00FF00FF);
    v = (v << 4 | v) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    uint64_t letters = (v + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    mqi_set64((uint8_t *)out, (int64_t)(v + UINT64_C(0x3030303030303030) + letters * ('A' - '0' - 10)));
}

static char *put_hex(char *out, const uint8_t *p, int n) { /* n: a multiple of 4 */
    for (int i = 0; i < n; i += 4) put_hex32(out + 2 * i, (uint32_t)mqi_get32(p + i));
    return out + 2 * n;
}

int mqi_log_id(const uint8_t *buf, const mqi_log_frame *frame, char *out) {
    uint8_t place[8];
    mqi_set64(place, frame->phy_offset);
    char *p = put_hex(out, buf + frame->store_host_pos, frame->store_host_len + 4);
    return (int)(put_hex(p, place, 8) - out);
}

int mqi_log_parse_host(const uint8_t *text, int64_t n, uint8_t out[MQI_HOST_SIZE_IPV6]) {
    char copy[MQI_LOG_TEXT_MAX + 1], *address = copy;
    int64_t port;
    if (n < 1 || n > MQI_LOG_TEXT_MAX) return 0;
    memcpy(copy, text, (size_t)n);
    copy[n] = 0;
    char *colon = memchr(copy, 0, (size_t)n) ? 0 : strrchr(copy, ':');
    if (!colon || colon[1] == '+') return 0;
    if (!mqi_parse_number((const uint8_t *)colon + 1, copy + n - colon - 1, INT32_MAX, &port)) return 0;
    int wide = copy[0] == '[' && colon[-1] == ']';
    colon[-wide] = 0;
    address += wide;
    if (inet_pton(wide ? AF_INET6 : AF_INET, address, out) != 1) return 0;
    mqi_set32(out + (wide ? 16 : 4), (int32_t)port);
    return wide ? MQI_HOST_SIZE_IPV6 : MQI_HOST_SIZE;
}
