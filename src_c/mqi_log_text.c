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

static char *put_hex(char *out, const uint8_t *p, int n) {
    for (int i = 0; i < n; i++) {
        *out++ = "0123456789ABCDEF"[p[i] >> 4];
        *out++ = "0123456789ABCDEF"[p[i] & 15];
    }
    return out;
}

int64_t mqi_log_host_texts(const uint8_t *buf, const mqi_log_frame *frames, int64_t n, int born, int64_t *offsets,
                           char *out) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        const mqi_log_frame *f = frames + i;
        offsets[i] = total;
        total += born ? mqi_log_host_text(buf + f->born_host_pos, f->born_host_len, out + total)
                      : mqi_log_host_text(buf + f->store_host_pos, f->store_host_len, out + total);
    }
    return offsets[n] = total;
}

int64_t mqi_log_ids(const uint8_t *buf, const mqi_log_frame *frames, int64_t n, int64_t *offsets, char *out) {
    char *p = out;
    for (int64_t i = 0; i < n; i++) {
        uint8_t place[8];
        offsets[i] = p - out;
        mqi_set64(place, frames[i].phy_offset);
        p = put_hex(put_hex(p, buf + frames[i].store_host_pos, frames[i].store_host_len + 4), place, 8);
    }
    return offsets[n] = p - out;
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

int64_t mqi_log_gather(const uint8_t *buf, int64_t len, const uint8_t *pos, int64_t pos_stride, const uint8_t *size,
                       int64_t size_stride, int64_t n, int64_t *offsets, uint8_t *out) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++, pos += pos_stride, size += size_stride) {
        int64_t at = mqi_native64(pos);
        int32_t m = mqi_native32(size);
        offsets[i] = total;
        if (m <= 0) continue;
        if (at < 0 || at > len - m) return i;
        if (out) memcpy(out + total, buf + at, (size_t)m);
        total += m;
    }
    offsets[n] = total;
    return -1;
}
