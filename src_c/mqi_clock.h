/* Time that never goes back. */
#ifndef MQI_CLOCK_H
#define MQI_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t mqi_now(void) { /* ns since an arbitrary moment */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
