/* Java's String.hashCode of Latin-1, UTF-16, UCS-4 and UTF-8 text, one string at a time or many.
 *
 *   hash = sum over the UTF-16 units u[i] of u[i] * 31^(n-1-i)   (mod 2^32)
 *
 * `seed` is the hash of what precedes the text: hash("T#" + key) == hash(key, seed = hash("T#")), so a topic is
 * hashed once and no concatenated string is ever built. No function reads outside [p, p+n).
 *
 * Powers of 31 are written as products on purpose: a mistyped constant passes every test whose lengths happen not
 * to need it. */
#ifndef MQI_HASH_H
#define MQI_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mqi_bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#define MQI_HASH_STEP 16
#define MQI_HASH_KERNEL "sse2"
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>
#define MQI_HASH_STEP 16
#define MQI_HASH_KERNEL "neon"
#else
#define MQI_HASH_STEP 8
#define MQI_HASH_KERNEL "portable"
#endif

#define MQI_P1 31u
#define MQI_P2 (MQI_P1 * 31u)
#define MQI_P3 (MQI_P2 * 31u)
#define MQI_P4 (MQI_P3 * 31u)
#define MQI_P5 (MQI_P4 * 31u)
#define MQI_P6 (MQI_P5 * 31u)
#define MQI_P7 (MQI_P6 * 31u)
#define MQI_P8 (MQI_P7 * 31u)
#define MQI_P9 (MQI_P8 * 31u)
#define MQI_P10 (MQI_P9 * 31u)
#define MQI_P11 (MQI_P10 * 31u)
#define MQI_P12 (MQI_P11 * 31u)
#define MQI_P13 (MQI_P12 * 31u)
#define MQI_P14 (MQI_P13 * 31u)
#define MQI_P15 (MQI_P14 * 31u)
#define MQI_P16 (MQI_P15 * 31u)

extern const uint32_t mqi_pow31[17]; /* 31^0 .. 31^16 */

/* UTF-8 that holds a byte >= 128, malformed sequences replaced exactly as Java 17's new String(bytes, UTF_8). */
uint32_t mqi_hash_utf8_wide(const uint8_t *p, size_t n, uint32_t seed);
uint32_t mqi_hash_ucs2(const uint16_t *p, size_t n, uint32_t seed);
/* Above U+FFFF: two surrogate units. A lone surrogate is its own unit. */
uint32_t mqi_hash_ucs4(const uint32_t *p, size_t n, uint32_t seed);

/* Math.abs, and 0 for the one value that has no positive counterpart: the number that chooses a slot. */
static inline int32_t mqi_key_hash(uint32_t h) {
    uint32_t sign = (uint32_t)((int32_t)h >> 31);
    return (int32_t)(((h ^ sign) - sign) & 0x7FFFFFFFu);
}

static inline uint64_t mqi_hash_load64(const uint8_t *p) { /* first byte lowest, on every machine */
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Up to 8 bytes, right-aligned after zeros: leading zeros add nothing to a hash. */
static inline uint64_t mqi_hash_short(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    if (n >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + n - 4, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        first = __builtin_bswap32(first);
        last = __builtin_bswap32(last);
#endif
        uint32_t front = (uint32_t)((uint64_t)first << (8 * (8 - n)));
        return (uint64_t)last << 32 | front;
    }
    for (size_t i = 0; i < n; i++) v = v >> 8 | (uint64_t)p[i] << 56;
    return v;
}

/* Hash of 8 bytes: pairs in 16-bit lanes, fours in 32-bit lanes, then the two halves. */
static inline uint32_t mqi_hash_word(uint64_t v) {
    const uint64_t low8 = 0x00FF00FF00FF00FFu, low16 = 0x0000FFFF0000FFFFu;
    v = (v & low8) * MQI_P1 + (v >> 8 & low8);
    v = (v & low16) * MQI_P2 + (v >> 16 & low16);
    return (uint32_t)v * MQI_P4 + (uint32_t)(v >> 32);
}

#if defined(__SSE2__)
typedef __m128i mqi_vec;

static inline mqi_vec mqi_vec_load(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
static inline mqi_vec mqi_vec_or(mqi_vec a, mqi_vec b) { return _mm_or_si128(a, b); }
static inline mqi_vec mqi_vec_and(mqi_vec a, mqi_vec b) { return _mm_and_si128(a, b); }
static inline int mqi_vec_high(mqi_vec v) { return _mm_movemask_epi8(v) != 0; }
static inline mqi_vec mqi_vec_pair(uint64_t low, uint64_t high) {
    return _mm_set_epi64x((long long)high, (long long)low);
}

static inline uint32_t mqi_vec_hash(mqi_vec v) {
    __m128i pairs = _mm_add_epi16(_mm_mullo_epi16(_mm_and_si128(v, _mm_set1_epi16(0x00FF)), _mm_set1_epi16(MQI_P1)),
                                  _mm_srli_epi16(v, 8));
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32((1 << 16) | (int)MQI_P2));
    __m128i even = _mm_mul_epu32(fours, _mm_set_epi32(0, (int)MQI_P4, 0, (int)MQI_P12));
    __m128i odd = _mm_mul_epu32(_mm_srli_epi64(fours, 32), _mm_set_epi32(0, 1, 0, (int)MQI_P8));
    __m128i sum = _mm_add_epi64(even, odd);
    sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
    return (uint32_t)_mm_cvtsi128_si32(sum);
}
#elif MQI_HASH_STEP == 16
typedef uint8x16_t mqi_vec;

static inline mqi_vec mqi_vec_load(const uint8_t *p) { return vld1q_u8(p); }
static inline mqi_vec mqi_vec_or(mqi_vec a, mqi_vec b) { return vorrq_u8(a, b); }
static inline mqi_vec mqi_vec_and(mqi_vec a, mqi_vec b) { return vandq_u8(a, b); }
static inline int mqi_vec_high(mqi_vec v) { return vmaxvq_u8(v) >= 128; }
static inline mqi_vec mqi_vec_pair(uint64_t low, uint64_t high) {
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
}

static inline uint32_t mqi_vec_hash(mqi_vec v) {
    static const uint32_t weights[4] = {MQI_P12, MQI_P8, MQI_P4, 1};
    uint16x8_t units = vreinterpretq_u16_u8(v);
    uint16x8_t pairs = vmlaq_n_u16(vshrq_n_u16(units, 8), vandq_u16(units, vdupq_n_u16(0x00FF)), MQI_P1);
    uint32x4_t twos = vreinterpretq_u32_u16(pairs);
    uint32x4_t fours = vmlaq_n_u32(vshrq_n_u32(twos, 16), vandq_u32(twos, vdupq_n_u32(0xFFFF)), MQI_P2);
    return vaddvq_u32(vmulq_u32(fours, vld1q_u32(weights)));
}
#endif

#if MQI_HASH_STEP == 16
extern const uint8_t mqi_tail_mask[32]; /* 16 zero bytes, 16 of 0xFF */

/* Hash of bytes taken as Latin-1; *high says whether one of them was >= 128. */
static inline uint32_t mqi_hash_bytes(const uint8_t *p, size_t n, uint32_t seed, int *high) {
    uint32_t h = seed;
    if (n < 16) {
        mqi_vec v = n > 8 ? mqi_vec_pair(mqi_hash_load64(p) << (8 * (16 - n)), mqi_hash_load64(p + n - 8))
                          : mqi_vec_pair(0, mqi_hash_short(p, n));
        *high = mqi_vec_high(v);
        return h * mqi_pow31[n] + mqi_vec_hash(v);
    }
    const uint8_t *last = p + n - 16;
    mqi_vec seen = mqi_vec_load(last);
    mqi_vec tail = seen;
    for (; p <= last; p += 16) {
        mqi_vec v = mqi_vec_load(p);
        seen = mqi_vec_or(seen, v);
        h = h * MQI_P16 + mqi_vec_hash(v);
    }
    *high = mqi_vec_high(seen);
    size_t rest = (size_t)(last + 16 - p);
    if (rest == 0) return h;
    return h * mqi_pow31[rest] + mqi_vec_hash(mqi_vec_and(tail, mqi_vec_load(mqi_tail_mask + rest)));
}
#else
static inline uint32_t mqi_hash_bytes(const uint8_t *p, size_t n, uint32_t seed, int *high) {
    const uint8_t *end = p + n;
    uint32_t h = seed;
    uint64_t seen = 0;
    for (; end - p >= 8; p += 8) {
        uint64_t v = mqi_hash_load64(p);
        seen |= v;
        h = h * MQI_P8 + mqi_hash_word(v);
    }
    size_t rest = (size_t)(end - p);
    uint64_t v = mqi_hash_short(p, rest);
    *high = ((seen | v) & 0x8080808080808080u) != 0;
    return h * mqi_pow31[rest] + mqi_hash_word(v);
}
#endif

static inline uint32_t mqi_hash_latin1(const uint8_t *p, size_t n, uint32_t seed) {
    int high;
    return mqi_hash_bytes(p, n, seed, &high);
}

static inline uint32_t mqi_hash_utf8(const uint8_t *p, size_t n, uint32_t seed) {
    int high;
    uint32_t h = mqi_hash_bytes(p, n, seed, &high);
    return __builtin_expect(high, 0) ? mqi_hash_utf8_wide(p, n, seed) : h;
}

/* key_hash of many strings. Offsets and views are Arrow's; `stride` is NumPy's; trailing NULs are no part of a key. */
void mqi_hash_offsets32(const uint8_t *data, const int32_t *offsets, size_t n, uint32_t seed, int32_t *out);
void mqi_hash_offsets64(const uint8_t *data, const int64_t *offsets, size_t n, uint32_t seed, int32_t *out);
void mqi_hash_views(const uint8_t *views, const uint8_t *const *buffers, size_t n, uint32_t seed, int32_t *out);
void mqi_hash_fixed_bytes(const uint8_t *data, ptrdiff_t stride, size_t width, size_t n, uint32_t seed, int32_t *out);
void mqi_hash_fixed_ucs4(const uint8_t *data, ptrdiff_t stride, size_t width, size_t n, uint32_t seed, int32_t *out);

#endif
