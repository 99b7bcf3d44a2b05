/* Hosts and message ids as people read them. */
#include "mqi_bytes.h"
#include "mqi_commit_log.h"

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
