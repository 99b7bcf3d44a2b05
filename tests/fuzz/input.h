/* A fuzz input read as a tape of small decisions; an exhausted tape gives zeros. */
#ifndef MQINDEX_FUZZ_INPUT_H
#define MQINDEX_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const uint8_t *at, *end;
} tape;

static inline uint8_t tape_byte(tape *t) { return t->at < t->end ? *t->at++ : 0; }

static inline uint64_t tape_number(tape *t, int bytes) {
    uint64_t v = 0;
    while (bytes-- > 0) v = v << 8 | tape_byte(t);
    return v;
}

/* Small, near a limit, or anything: what a hostile field holds. */
static inline int64_t tape_field(tape *t) {
    static const int64_t limits[] = {0, 1, -1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (int64_t)INT32_MAX + 1};
    uint8_t kind = tape_byte(t);
    if (kind < 128) return kind;
    if (kind < 160) return limits[kind % 8];
    if (kind < 200) return (int32_t)tape_number(t, 4);
    return (int64_t)tape_number(t, 8);
}

static inline size_t tape_copy(tape *t, uint8_t *to, size_t n) {
    size_t left = (size_t)(t->end - t->at), taken = n < left ? n : left;
    memcpy(to, t->at, taken);
    memset(to + taken, 0, n - taken);
    t->at += taken;
    return taken;
}

/* A buffer of its own for each use, so that AddressSanitizer sees one byte too many. */
static inline void *fresh(size_t n) {
    void *p = calloc(n ? n : 1, 1);
    if (!p) abort();
    return p;
}

/* For what is slow on purpose, and no code under test: its branches are none that an input should be kept for. */
#if defined(__clang__)
#define TWIN static __attribute__((no_sanitize("coverage"), noinline))
#else
#define TWIN static inline
#endif

#define HOLDS(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
