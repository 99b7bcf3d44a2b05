/* Hints for the compiler and the processor. */
#ifndef MQI_COMPILER_H
#define MQI_COMPILER_H

#include <stdint.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { MQI_LINE = 64 }; /* bytes of a cache line */

/* Every cache line of n bytes, the last one too, which begins before their end is reached in steps from `p`. They may
 * be outside any buffer: nothing is read. */
static ALWAYS_INLINE void mqi_prefetch_lines(const void *p, int64_t n) {
    uintptr_t line = (uintptr_t)p & ~(uintptr_t)(MQI_LINE - 1), end = (uintptr_t)p + (uintptr_t)n;
    for (; line < end; line += MQI_LINE)
        __builtin_prefetch((const void *)line); /* NOLINT(performance-no-int-to-ptr): not read from */
}

#endif
