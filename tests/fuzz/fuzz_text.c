/* Any bytes as text: Java's hash of them, whatever the encoding, and hosts to text and back. */
#include "input.h"
#include "mqi_bytes.h"
#include "mqi_crc.h"
#include "mqi_hash.h"
#include "mqi_log_encode.h"
#include "mqi_log_scan.h"
#include "mqi_log_text.h"

enum { MOST = 600, REPLACEMENT = 0xFFFD };

/* ---- new String(bytes, UTF_8) of Java 17, one character at a time ------------------------------------------------- */

static int follows(const uint8_t *p, size_t n, size_t i, int low, int high) {
    return i < n && p[i] >= low && p[i] <= high;
}

/* How many bytes the character at p takes; what it is. */
static size_t decode(const uint8_t *p, size_t n, uint32_t *c) {
    uint8_t lead = p[0];
    size_t width = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    *c = REPLACEMENT;
    if (width == 0) return 1;
    if (width == 1) {
        *c = lead;
        return 1;
    }
    int low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
    size_t good = 1;
    while (good < width && follows(p, n, good, good == 1 ? low : 0x80, good == 1 ? high : 0xBF)) good++;
    if (good < width) return good;
    uint32_t value = lead & (0xFFu >> (width + 1));
    for (size_t i = 1; i < width; i++) value = value << 6 | (p[i] & 0x3F);
    if (value < 0xD800 || value > 0xDFFF) *c = value; /* a surrogate is one replacement */
    return width;
}

static size_t units_of(uint32_t c, uint16_t *out) {
    if (c < 0x10000) {
        out[0] = (uint16_t)c;
        return 1;
    }
    out[0] = (uint16_t)(0xD800 + ((c - 0x10000) >> 10));
    out[1] = (uint16_t)(0xDC00 + ((c - 0x10000) & 0x3FF));
    return 2;
}

static uint32_t hash_units(const uint16_t *units, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) seed = seed * 31 + units[i];
    return seed;
}

static void hash_all(const uint8_t *p, size_t n, uint32_t seed) {
    uint16_t *units = fresh((n + 1) * 4);
    uint32_t *points = fresh((n + 1) * 4), latin1 = seed;
    size_t n_units = 0, n_points = 0, n_small = 0;
    for (size_t at = 0; at < n;) {
        at += decode(p + at, n - at, points + n_points);
        n_small += points[n_points] < 0x10000;
        n_units += units_of(points[n_points++], units + n_units);
    }
    uint32_t expected = hash_units(units, n_units, seed);
    for (size_t i = 0; i < n; i++) latin1 = latin1 * 31 + p[i];
    HOLDS(mqi_hash_utf8(p, n, seed) == expected);
    HOLDS(mqi_hash_utf8_wide(p, n, seed) == expected);
    HOLDS(mqi_hash_ucs4(points, n_points, seed) == expected);
    HOLDS(n_small < n_points || mqi_hash_ucs2(units, n_units, seed) == expected);
    HOLDS(mqi_hash_latin1(p, n, seed) == latin1);
    int64_t wide[] = {0, (int64_t)n};
    int32_t narrow[] = {0, (int32_t)n}, out[2];
    mqi_hash_offsets64(p, wide, 1, seed, out);
    mqi_hash_offsets32(p, narrow, 1, seed, out + 1);
    HOLDS(out[0] == mqi_key_hash(expected) && out[1] == out[0] && out[0] >= 0);
    free(units), free(points);
}

/* ---- hosts -------------------------------------------------------------------------------------------------------- */

static void host_and_back(tape *t) {
    uint8_t host[MQI_HOST_SIZE_IPV6], back[MQI_HOST_SIZE_IPV6];
    char *text = fresh(MQI_LOG_TEXT_MAX);
    int wide = tape_byte(t) & 1, size = wide ? 20 : 8;
    tape_copy(t, host, (size_t)size);
    int n = mqi_log_host_text(host, size - 4, text);
    HOLDS(n > 0 && n <= MQI_LOG_TEXT_MAX);
    uint8_t *exact = fresh((size_t)n);
    memcpy(exact, text, (size_t)n);
    HOLDS(mqi_log_parse_host(exact, n, back) == size && memcmp(host, back, (size_t)size) == 0);
    if (n > 0) exact[tape_byte(t) % n] = tape_byte(t);
    int again = mqi_log_parse_host(exact, n, back);
    HOLDS(again == 0 || again == 8 || again == 20);
    free(exact), free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tape t = {data, data + size};
    uint32_t seed = (uint32_t)tape_field(&t);
    host_and_back(&t);
    size_t n = (size_t)(t.end - t.at);
    if (n > MOST) n = MOST;
    uint8_t *text = fresh(n);
    tape_copy(&t, text, n);
    hash_all(text, n, seed);
    for (size_t skip = 1; skip < 5 && skip < n; skip++) hash_all(text + skip, n - skip, seed); /* any alignment */
    uint8_t host[MQI_HOST_SIZE_IPV6];
    int parsed = mqi_log_parse_host(text, (int64_t)n, host);
    HOLDS(parsed == 0 || parsed == 8 || parsed == 20);
    free(text);
    return 0;
}
