#include "mqi_crc.h"

#include <string.h>

#define POLY_CRC32 0xEDB88320u  /* reflected 0x04C11DB7 */
#define POLY_CRC32C 0x82F63B78u /* reflected 0x1EDC6F41 */

typedef uint32_t (*crc_kernel)(const uint8_t *p, size_t n, uint32_t crc);
typedef uint32_t crc_tables[8][256];

static crc_tables table32, table32c;

/* tables[k][b]: the remainder of byte b followed by k zero bytes. */
static void fill_tables(crc_tables tables, uint32_t poly) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? poly : 0);
        tables[0][b] = crc;
    }
    for (uint32_t b = 0; b < 256; b++)
        for (int k = 1; k < 8; k++) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 255];
}

static uint32_t little32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* `crc` is the inner state: no inversion at either end. */
static uint32_t slice8(crc_tables t, const uint8_t *p, size_t n, uint32_t crc) {
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t a = little32(p) ^ crc, b = little32(p + 4);
        crc = t[7][a & 255] ^ t[6][a >> 8 & 255] ^ t[5][a >> 16 & 255] ^ t[4][a >> 24] ^ t[3][b & 255] ^
              t[2][b >> 8 & 255] ^ t[1][b >> 16 & 255] ^ t[0][b >> 24];
    }
    while (n--) crc = (crc >> 8) ^ t[0][(crc ^ *p++) & 255];
    return crc;
}

uint32_t mqi_crc32_portable(const uint8_t *p, size_t n, uint32_t crc) { return ~slice8(table32, p, n, ~crc); }

uint32_t mqi_crc32c_portable(const uint8_t *p, size_t n, uint32_t crc) { return ~slice8(table32c, p, n, ~crc); }

static crc_kernel kernel32 = mqi_crc32_portable, kernel32c = mqi_crc32c_portable;
static const char *name32 = "portable", *name32c = "portable";

void mqi_crc_choose(void) {
    fill_tables(table32, POLY_CRC32);
    fill_tables(table32c, POLY_CRC32C);
}

uint32_t mqi_crc32(const uint8_t *p, size_t n, uint32_t crc) { return kernel32(p, n, crc); }

uint32_t mqi_crc32c(const uint8_t *p, size_t n, uint32_t crc) { return kernel32c(p, n, crc); }

const char *mqi_crc32_kernel(void) { return name32; }

const char *mqi_crc32c_kernel(void) { return name32c; }
