#include "mqi_log_find.h"

static int is_record(const mqi_log *log, int64_t at) {
    mqi_log_head head;
    mqi_log_tail tail;
    mqi_log_fault fault;
    int found = mqi_log_read_head(log, at, &head, &fault);
    if (found == MQI_FOUND_FRAME) found = mqi_log_read_rest(log, &head, &tail, &fault);
    return found == MQI_FOUND_FRAME || found == MQI_FOUND_BLANK;
}

static int begins_magic(const uint8_t *p) { return (p[0] == 0xDA && p[1] == 0xA3) || (p[0] == 0xCB && p[1] == 0xD4); }

#if defined(__SSE2__)
/* Bit i: p + i has the first two bytes of a magic code; 17 bytes are read. */
static unsigned magic_mask(const uint8_t *p) {
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
    __m128i message =
        _mm_and_si128(_mm_cmpeq_epi8(a, _mm_set1_epi8((char)0xDA)), _mm_cmpeq_epi8(b, _mm_set1_epi8((char)0xA3)));
    __m128i blank =
        _mm_and_si128(_mm_cmpeq_epi8(a, _mm_set1_epi8((char)0xCB)), _mm_cmpeq_epi8(b, _mm_set1_epi8((char)0xD4)));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(message, blank));
}
#else
static unsigned magic_mask(const uint8_t *p) {
    unsigned mask = 0;
    for (int i = 0; i < 16; i++) mask |= (unsigned)begins_magic(p + i) << i;
    return mask;
}
#endif

int64_t mqi_log_find(const mqi_log *log, int64_t at, int64_t stop) {
    if (stop > log->len - MQI_BLANK_SIZE + 1) stop = log->len - MQI_BLANK_SIZE + 1;
    for (; stop - at >= 16 && log->len - at >= 32; at += 16) {
        for (unsigned mask = magic_mask(log->buf + at + MQI_FRAME_MAGIC_CODE); mask; mask &= mask - 1)
            if (is_record(log, at + __builtin_ctz(mask))) return at + __builtin_ctz(mask);
    }
    for (; at < stop; at++)
        if (begins_magic(log->buf + at + MQI_FRAME_MAGIC_CODE) && is_record(log, at)) return at;
    return -1;
}

/* The size of the record whose head is at `at`; 0: there is none, or it does not fit. */
static int64_t size_at(const mqi_log *log, int64_t at) {
    if (at > log->len - MQI_BLANK_SIZE) return 0;
    int32_t magic = mqi_get32(log->buf + at + MQI_FRAME_MAGIC_CODE);
    int64_t size = mqi_get32(log->buf + at + MQI_FRAME_TOTAL_SIZE);
    int is_head = magic == MQI_MAGIC_1 || magic == MQI_MAGIC_2 || magic == MQI_MAGIC_BLANK;
    return is_head && size >= MQI_BLANK_SIZE && size <= log->len - at ? size : 0;
}

int64_t mqi_log_last(const mqi_log *log, int64_t at, int64_t stop, int64_t *end) {
    int64_t size = size_at(log, at);
    while (size && at + size < stop) {
        int64_t next = size_at(log, at + size);
        if (!next) break;
        at += size;
        size = next;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* later reads of these records see what their writer wrote */
    *end = at + size;
    return at;
}
