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

int64_t mqi_log_delay_level(const uint8_t *properties, int32_t n) {
    const uint8_t *p = properties, *end = properties + n;
    int64_t level = 0;
    while (p < end) {
        const uint8_t *stop = memchr(p, 2, (size_t)(end - p));
        if (!stop) stop = end;
        if (stop - p > 6 && memcmp(p, "DELAY\1", 6) == 0) {
            if (!mqi_parse_number(p + 6, stop - p - 6, INT32_MAX, &level)) level = MQI_NO_LEVEL;
        }
        p = stop + 1;
    }
    return level;
}
