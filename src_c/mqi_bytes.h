/* Loads and stores: the only place that swaps bytes. And sums that wrap, as Java's.
 *
 * Plain forms are big-endian, `native` ones are in this machine's order; both accept any alignment. The acquire/release
 * forms are big-endian and need a 4-byte aligned address: they publish the slot and count words of a live index file to
 * readers of other threads and processes. */
#ifndef MQI_BYTES_H
#define MQI_BYTES_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define MQI_SWAP16(x) (x)
#define MQI_SWAP32(x) (x)
#define MQI_SWAP64(x) (x)
#else
#define MQI_SWAP16(x) __builtin_bswap16(x)
#define MQI_SWAP32(x) __builtin_bswap32(x)
#define MQI_SWAP64(x) __builtin_bswap64(x)
#endif

static inline int16_t mqi_get16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return (int16_t)MQI_SWAP16(v);
}

static inline int32_t mqi_get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return (int32_t)MQI_SWAP32(v);
}

static inline int64_t mqi_get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return (int64_t)MQI_SWAP64(v);
}

static inline void mqi_set16(uint8_t *p, int16_t value) {
    uint16_t v = MQI_SWAP16((uint16_t)value);
    memcpy(p, &v, sizeof v);
}

static inline void mqi_set32(uint8_t *p, int32_t value) {
    uint32_t v = MQI_SWAP32((uint32_t)value);
    memcpy(p, &v, sizeof v);
}

static inline void mqi_set64(uint8_t *p, int64_t value) {
    uint64_t v = MQI_SWAP64((uint64_t)value);
    memcpy(p, &v, sizeof v);
}

static inline int32_t mqi_native32(const uint8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline int64_t mqi_native64(const uint8_t *p) {
    int64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Text that is the same in ASCII, UTF-8 and Latin-1. */
static inline int mqi_is_ascii(const uint8_t *p, int64_t n) {
    uint64_t all = 0;
    if (n >= 8) {
        for (int64_t i = 0; i < n - 8; i += 8) all |= (uint64_t)mqi_native64(p + i);
        all |= (uint64_t)mqi_native64(p + n - 8);
    } else if (n >= 4) {
        all = (uint32_t)(mqi_native32(p) | mqi_native32(p + n - 4));
    } else if (n > 0) {
        all = p[0] | p[n / 2] | p[n - 1];
    }
    return (all & UINT64_C(0x8080808080808080)) == 0;
}

/* Hostile numbers wrap instead of being undefined. */
static inline int64_t mqi_add64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t mqi_sub64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline int32_t mqi_add32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

static inline int32_t mqi_acquire32(const uint8_t *p) {
    uint32_t v = __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_ACQUIRE);
    return (int32_t)MQI_SWAP32(v);
}

static inline void mqi_release32(uint8_t *p, int32_t value) {
    __atomic_store_n((uint32_t *)(void *)p, MQI_SWAP32((uint32_t)value), __ATOMIC_RELEASE);
}

#endif
