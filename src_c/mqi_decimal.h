/* Numbers in text. */
#ifndef MQI_DECIMAL_H
#define MQI_DECIMAL_H

#include <stdint.h>

/* n bytes of decimal digits after a sign or none, as Java's parseInt and parseLong read them; 0: they are no number from
 * -limit - 1 to limit. */
static inline int mqi_parse_number(const uint8_t *p, int64_t n, int64_t limit, int64_t *value) {
    int negative = n > 0 && *p == '-';
    uint64_t digits = 0;
    if (n > 0 && (*p == '-' || *p == '+')) p++, n--;
    if (n < 1) return 0;
    for (; n > 0; p++, n--) {
        if (*p < '0' || *p > '9' || digits > (UINT64_MAX - 9) / 10) return 0;
        digits = digits * 10 + (uint64_t)(*p - '0');
    }
    if (digits > (uint64_t)limit + (uint64_t)negative) return 0;
    *value = (int64_t)(negative ? 0 - digits : digits);
    return 1;
}

#endif
