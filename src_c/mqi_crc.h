/* CRC-32 (zlib, PNG, RocketMQ bodies) and CRC-32C (Castagnoli, Kafka batches): the instructions where the processor has
 * them, slicing-by-8 elsewhere. */
#ifndef MQI_CRC_H
#define MQI_CRC_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t mqi_checksum(const uint8_t *p, size_t n, uint32_t crc);

/* The tables are filled, and the kernels chosen, when the code is loaded: no caller has to do it.
 * `crc` is the checksum of what comes before, 0 for nothing: crc(a + b) == f(b, crc(a)).
 *
 * Other units do not call these: they get a function from their callers, so that this code and its tables are compiled
 * into one module only. */
uint32_t mqi_crc32(const uint8_t *p, size_t n, uint32_t crc);
uint32_t mqi_crc32c(const uint8_t *p, size_t n, uint32_t crc);

/* "portable" and the others that this processor can run, the slowest first: the last one is chosen. */
typedef struct {
    const char *name;
    mqi_checksum *crc32, *crc32c;
} mqi_crc_kernel;

int mqi_crc_kernels(const mqi_crc_kernel **all);

#endif
