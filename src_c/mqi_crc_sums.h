/* Checksums of any parts of one buffer: each costs the same, however long the part is, and all of them together read
 * the buffer once. For hostile content, where many parts that overlap have to be compared. */
#ifndef MQI_CRC_SUMS_H
#define MQI_CRC_SUMS_H

#include "mqi_crc.h"

enum { MQI_CRC_STRIDE = 512, MQI_CRC_POWERS = 35 };

#define MQI_CRC32_POLYNOMIAL 0xEDB88320U /* bit 31 is x^0 */
#define MQI_CRC32C_POLYNOMIAL 0x82F63B78U

typedef struct {
    const uint8_t *buf;
    int64_t len; /* below 2^32 */
    mqi_checksum *checksum;
    uint32_t polynomial;
    uint32_t powers[MQI_CRC_POWERS]; /* [k]: x^(2^k) modulo the polynomial */
    uint32_t *sums;                  /* [k]: the checksum of the first k * MQI_CRC_STRIDE bytes */
    int64_t last;                    /* up to which of them they are known */
} mqi_crc_sums;

/* 0: there is no memory. */
int mqi_crc_sums_start(mqi_crc_sums *s, const uint8_t *buf, int64_t len, mqi_checksum *checksum, uint32_t polynomial);
/* The checksum of the bytes [from, stop) of the buffer; 0 <= from <= stop <= len. For one thread at a time. */
uint32_t mqi_crc_of_part(mqi_crc_sums *s, int64_t from, int64_t stop);
void mqi_crc_sums_free(mqi_crc_sums *s);

#endif
