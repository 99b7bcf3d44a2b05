#include "mqi_hash.h"

const uint32_t mqi_pow31[17] = {1,      MQI_P1,  MQI_P2,  MQI_P3,  MQI_P4,  MQI_P5,  MQI_P6,  MQI_P7, MQI_P8,
                                MQI_P9, MQI_P10, MQI_P11, MQI_P12, MQI_P13, MQI_P14, MQI_P15, MQI_P16};

#if MQI_HASH_STEP == 16
const uint8_t mqi_tail_mask[32] = {0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
                                   255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
#endif

#define REPLACEMENT 0xFFFDu
#define AHEAD 1024 /* bytes of keys that are prefetched: an Intel Xeon hashes 32 of them in 5 ns, without in 14 */

/* A hint only: there may be nothing, and `p` may be none, to which no number is added as to a pointer. */
static inline void fetch_ahead(const void *p) {
    __builtin_prefetch((const void *)((uintptr_t)p + AHEAD)); /* NOLINT(performance-no-int-to-ptr): not read from */
}

static inline uint32_t hash_code_point(uint32_t h, uint32_t c) {
    if (c < 0x10000u) return h * MQI_P1 + c;
    c -= 0x10000u;
    return h * MQI_P2 + (0xD800u + (c >> 10)) * MQI_P1 + (0xDC00u + (c & 0x3FFu));
}

uint32_t mqi_hash_ucs2(const uint16_t *p, size_t n, uint32_t seed) {
    const uint16_t *end = p + n;
    uint32_t h = seed;
    for (; end - p >= 8; p += 8) { /* eight independent products, one chained */
        h = h * MQI_P8 + p[0] * MQI_P7 + p[1] * MQI_P6 + p[2] * MQI_P5 + p[3] * MQI_P4 + p[4] * MQI_P3 + p[5] * MQI_P2 +
            p[6] * MQI_P1 + p[7];
    }
    for (; p < end; p++) h = h * MQI_P1 + *p;
    return h;
}

uint32_t mqi_hash_ucs4(const uint32_t *p, size_t n, uint32_t seed) {
    const uint32_t *end = p + n;
    uint32_t h = seed;
    for (; end - p >= 8; p += 8) {
        if (__builtin_expect((p[0] | p[1] | p[2] | p[3] | p[4] | p[5] | p[6] | p[7]) < 0x10000u, 1)) {
            h = h * MQI_P8 + p[0] * MQI_P7 + p[1] * MQI_P6 + p[2] * MQI_P5 + p[3] * MQI_P4 + p[4] * MQI_P3 +
                p[5] * MQI_P2 + p[6] * MQI_P1 + p[7];
            continue;
        }
        for (int i = 0; i < 8; i++) h = hash_code_point(h, p[i]);
    }
    for (; p < end; p++) h = hash_code_point(h, *p);
    return h;
}

static inline int is_continuation(uint8_t b) { return (b & 0xC0u) == 0x80u; }

/* The second byte of a three-byte sequence: not a continuation, or the sequence would not be the shortest form. */
static inline int bad_second_of_3(uint8_t b1, uint8_t b2) {
    return (b1 == 0xE0u && (b2 & 0xE0u) == 0x80u) || !is_continuation(b2);
}

static inline int bad_second_of_4(uint8_t b1, uint8_t b2) {
    return b1 > 0xF4u || (b1 == 0xF0u && b2 < 0x90u) || (b1 == 0xF4u && (b2 & 0xF0u) != 0x80u) || !is_continuation(b2);
}

/* One multi-byte character at p (p[0] >= 0x80): its code point in *c, the bytes that it takes as the result.
 * A malformed one becomes one U+FFFD for as many bytes as Java's decoder takes. */
static inline size_t wide_char(const uint8_t *p, const uint8_t *end, uint32_t *c) {
    size_t left = (size_t)(end - p);
    uint8_t b1 = p[0];
    *c = REPLACEMENT;
    if (b1 >= 0xC2u && b1 <= 0xDFu) {
        if (left < 2 || !is_continuation(p[1])) return 1;
        *c = (b1 & 0x1Fu) << 6 | (p[1] & 0x3Fu);
        return 2;
    }
    if (b1 >= 0xE0u && b1 <= 0xEFu) {
        if (left < 2) return 1;
        if (bad_second_of_3(b1, p[1])) return 1;
        if (left < 3 || !is_continuation(p[2])) return 2;
        uint32_t decoded = (b1 & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
        if ((decoded & 0xF800u) != 0xD800u) /* an encoded surrogate is one replacement for three bytes */
            *c = decoded;
        return 3;
    }
    if (b1 >= 0xF0u && b1 <= 0xF7u) {
        if (left < 2 || bad_second_of_4(b1, p[1])) return 1;
        if (left < 3 || !is_continuation(p[2])) return 2;
        if (left < 4 || !is_continuation(p[3])) return 3;
        *c = (b1 & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
        return 4;
    }
    return 1;
}

uint32_t mqi_hash_utf8_wide(const uint8_t *p, size_t n, uint32_t seed) {
    const uint8_t *end = p + n;
    uint32_t h = seed;
    while (p < end) {
        if (*p < 0x80u) {
            h = h * MQI_P1 + *p++;
            continue;
        }
        uint32_t c;
        p += wide_char(p, end, &c);
        h = hash_code_point(h, c);
    }
    return h;
}

void mqi_hash_offsets32(const uint8_t *data, const int32_t *offsets, size_t n, uint32_t seed, int32_t *out) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = data + offsets[i];
        fetch_ahead(p);
        out[i] = mqi_key_hash(mqi_hash_utf8(p, (size_t)(offsets[i + 1] - offsets[i]), seed));
    }
}

void mqi_hash_offsets64(const uint8_t *data, const int64_t *offsets, size_t n, uint32_t seed, int32_t *out) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = data + offsets[i];
        fetch_ahead(p);
        out[i] = mqi_key_hash(mqi_hash_utf8(p, (size_t)(offsets[i + 1] - offsets[i]), seed));
    }
}

void mqi_hash_views(const uint8_t *views, const uint8_t *const *buffers, size_t n, uint32_t seed, int32_t *out) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t *view = views + 16 * i;
        int32_t field[4]; /* length, first four bytes, number of the buffer, position in it */
        memcpy(field, view, sizeof field);
        const uint8_t *p = field[0] <= 12 ? view + 4 : buffers[field[2]] + field[3];
        fetch_ahead(view);
        fetch_ahead(p);
        out[i] = mqi_key_hash(mqi_hash_utf8(p, (size_t)field[0], seed));
    }
}

void mqi_hash_fixed_bytes(const uint8_t *data, ptrdiff_t stride, size_t width, size_t n, uint32_t seed, int32_t *out) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = data + (ptrdiff_t)i * stride;
        size_t length = width;
        fetch_ahead(p);
        while (length > 0 && p[length - 1] == 0) length--;
        out[i] = mqi_key_hash(mqi_hash_utf8(p, length, seed));
    }
}

void mqi_hash_fixed_ucs4(const uint8_t *data, ptrdiff_t stride, size_t width, size_t n, uint32_t seed, int32_t *out) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t *p = (const uint32_t *)(const void *)(data + (ptrdiff_t)i * stride);
        size_t length = width;
        fetch_ahead(p);
        while (length > 0 && p[length - 1] == 0) length--;
        out[i] = mqi_key_hash(mqi_hash_ucs4(p, length, seed));
    }
}
