#include "mqi_log_frame.h"

#include "mqi_decimal.h"

int mqi_log_read_body(const mqi_log *log, const mqi_log_head *head, mqi_log_fault *fault) {
    if (head->body_len == 0) return MQI_FOUND_FRAME;
    const uint8_t *p = log->buf + head->at;
    int64_t expected = log->crc32(p + head->body_at, (size_t)head->body_len, 0) & INT32_MAX;
    int64_t stored = mqi_get32(p + MQI_FRAME_BODY_CRC);
    if (expected == stored) return MQI_FOUND_FRAME;
    return mqi_log_blame(fault, head->at, MQI_LOG_BAD_CRC, MQI_FIELD_BODY_CRC, MQI_EXACTLY, expected, stored);
}

#define DELAY "DELAY\1"
#define DELAY_LEN 6

/* The value of the last DELAY, which is the one that counts, and its length; 0: there is none. */
static const uint8_t *find_delay(const uint8_t *properties, int32_t n, int64_t *value_len) {
    const uint8_t *end = properties + n, *value = 0;
    for (const uint8_t *p = properties, *stop; p < end; p = stop + 1) {
        stop = memchr(p, 2, (size_t)(end - p));
        if (!stop) stop = end;
        if (stop - p <= DELAY_LEN || memcmp(p, DELAY, DELAY_LEN) != 0) continue;
        value = p + DELAY_LEN;
        *value_len = stop - value;
    }
    return value;
}

int64_t mqi_log_delay_level(const uint8_t *properties, int32_t n) {
    int64_t value_len, level = 0;
    const uint8_t *value = find_delay(properties, n, &value_len);
    return !value || mqi_parse_number(value, value_len, INT32_MAX, &level) ? level : MQI_NO_LEVEL;
}

void mqi_log_settle_delay(uint8_t *properties, int32_t n) {
    int64_t value_len, level;
    const uint8_t *value = find_delay(properties, n, &value_len);
    if (value && !mqi_parse_number(value, value_len, INT32_MAX, &level))
        memset(properties + (value - properties), '0', (size_t)value_len);
}
