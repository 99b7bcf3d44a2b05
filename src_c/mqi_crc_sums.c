#include "mqi_crc_sums.h"

#include <stdlib.h>

/* A checksum is a remainder of polynomials: crc(a + b) is crc(a) * x^(8 * bytes of b), plus crc(b). So that of b is known
 * from those of a + b and a. */

static uint32_t multiply(uint32_t a, uint32_t b, uint32_t polynomial) {
    uint32_t product = 0;
    for (; a; a <<= 1) {
        product ^= b & -(a >> 31);
        b = b >> 1 ^ (polynomial & -(b & 1));
    }
    return product;
}

/* crc * x^(8 * n) */
static uint32_t shifted(const mqi_crc_sums *s, uint32_t crc, int64_t n) {
    for (int k = 3; n; n >>= 1, k++)
        if (n & 1) crc = multiply(s->powers[k], crc, s->polynomial);
    return crc;
}

int mqi_crc_sums_start(mqi_crc_sums *s, const uint8_t *buf, int64_t len, mqi_checksum *checksum, uint32_t polynomial) {
    *s = (mqi_crc_sums){.buf = buf, .len = len, .checksum = checksum, .polynomial = polynomial};
    s->powers[0] = 1U << 30;
    for (int k = 1; k < MQI_CRC_POWERS; k++) s->powers[k] = multiply(s->powers[k - 1], s->powers[k - 1], polynomial);
    s->sums = calloc((size_t)(len / MQI_CRC_STRIDE) + 1, sizeof *s->sums); /* no page of it is touched yet */
    return s->sums != 0;
}

/* The checksum of the first n bytes. */
static uint32_t up_to(mqi_crc_sums *s, int64_t n) {
    int64_t whole = n / MQI_CRC_STRIDE;
    for (; s->last < whole; s->last++)
        s->sums[s->last + 1] = s->checksum(s->buf + s->last * MQI_CRC_STRIDE, MQI_CRC_STRIDE, s->sums[s->last]);
    return s->checksum(s->buf + whole * MQI_CRC_STRIDE, (size_t)(n % MQI_CRC_STRIDE), s->sums[whole]);
}

uint32_t mqi_crc_of_part(mqi_crc_sums *s, int64_t from, int64_t stop) {
    uint32_t before = up_to(s, from);
    return up_to(s, stop) ^ shifted(s, before, stop - from);
}

void mqi_crc_sums_free(mqi_crc_sums *s) {
    free(s->sums);
    s->sums = 0;
}
