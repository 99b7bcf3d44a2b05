/* The slot of a key hash: key_hash % hash_slot_num, by multiplying. */
#ifndef MQI_SLOT_H
#define MQI_SLOT_H

#include <stdint.h>

/* ceil(2^64 / hash_slot_num), modulo 2^64; hash_slot_num > 0. */
static inline uint64_t mqi_slot_inverse(uint32_t hash_slot_num) { return UINT64_MAX / hash_slot_num + 1; }

/* The fraction of key_hash / hash_slot_num in 64 bits, times hash_slot_num. Exact for all numbers of 32 bits (Lemire,
 * Kaser, Kurz: Faster remainder by direct computation, 2019). Unsigned: a negative hash, which no broker writes, gets a
 * slot that exists. */
static inline uint32_t mqi_slot(uint64_t slot_inverse, uint32_t hash_slot_num, int32_t key_hash) {
    uint64_t fraction = slot_inverse * (uint32_t)key_hash;
    return (uint32_t)(((unsigned __int128)fraction * hash_slot_num) >> 64);
}

#endif
