/* Hints for the compiler. */
#ifndef MQI_COMPILER_H
#define MQI_COMPILER_H

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ALWAYS_INLINE inline __attribute__((always_inline))

#endif
