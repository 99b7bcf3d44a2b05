#include "mqi_unit_tally.h"

#include <string.h>

/* SplitMix64's next number, below `limit`, which is at most 2^31. */
static inline int64_t random_below(uint64_t *state, int64_t limit) {
    uint64_t z = *state += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return (int64_t)((((z ^ (z >> 31)) >> 32) * (uint64_t)limit) >> 32);
}

mqi_unit_tally mqi_unit_tally_begin(int64_t every, uint64_t seed) {
    mqi_unit_tally t = {.every = every, .random = seed};
    t.chosen = random_below(&t.random, every);
    return t;
}

void mqi_unit_tally_free(mqi_unit_tally *t) {
    mqi_buffer_free(&t->sums);
    mqi_buffer_free(&t->kept);
}

static int make_room(mqi_buffer *sums, int64_t queue) {
    int64_t more = 2 * (queue + 1) * (int64_t)sizeof(mqi_unit_sum) - sums->size;
    if (!mqi_buffer_reserve(sums, more)) return 0;
    memset(sums->data + sums->size, 0, (size_t)more);
    sums->size += more;
    return 1;
}

/* Neighbours of one queue are summed in registers: adding each to memory waits for the one before it. */
static int64_t count(mqi_buffer *sums, const mqi_queue_unit *units, int64_t n) {
    for (int64_t i = 0; i < n;) {
        int64_t queue = units[i].queue, first = i, bytes = 0;
        if (UNLIKELY(queue < 0)) return i;
        if (UNLIKELY(queue >= sums->size / (int64_t)sizeof(mqi_unit_sum)) && !make_room(sums, queue))
            return MQI_NO_MEMORY;
        for (; i < n && units[i].queue == queue; i++) bytes += units[i].size;
        mqi_unit_sum *sum = (mqi_unit_sum *)(void *)sums->data + queue;
        sum->messages += i - first;
        sum->bytes += bytes;
    }
    return n;
}

static int keep(mqi_unit_tally *t, const mqi_queue_unit *units, int64_t n) {
    if (!mqi_buffer_reserve(&t->kept, (n / t->every + 2) * (int64_t)sizeof *units)) return 0;
    for (; t->group + t->chosen < n; t->chosen = random_below(&t->random, t->every)) {
        memcpy(t->kept.data + t->kept.size, units + t->group + t->chosen, sizeof *units);
        t->kept.size += (int64_t)sizeof *units;
        t->group += t->every;
    }
    t->group -= n;
    return 1;
}

int64_t mqi_unit_tally_add(mqi_unit_tally *t, const mqi_queue_unit *units, int64_t n) {
    int64_t done = count(&t->sums, units, n);
    if (done < n) return done;
    return keep(t, units, n) ? n : MQI_NO_MEMORY;
}
