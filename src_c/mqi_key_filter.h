/* The key filter of optimised index files: whether a key hash may be in one of them; wrong for about one of 256 that
 * are not.
 *
 *   0         8*(R+1)  starts | u64 | where row 0 .. R-1 begins and the last one ends, counted from the first row
 *   8*(R+1)   ...      rows   | 0 checksum u32 | 4 counts u16*F | 4+2*F buckets of file 0 .. F-1 |
 *
 * Row r is for the slots from r << shift on, up to the next row's, of all F files: a look-up reads one row, whatever the
 * number of files. A key hash is a number of 14 bits: the slot inside the row, then bits of the mixed hash. Its upper 6
 * bits are its group, the lower 8 are kept. A bucket has the numbers of one file, sorted and distinct:
 *
 *   0         count bytes               lows   | the lower 8 bits of each |
 *   count     (count + 64 + 7)/8 bytes  groups | for each group a one for each number, then a zero; bit 0 is first |
 *
 * A count of 0 is a bucket of no bytes. The checksum is the CRC-32C of the rest of the row, begun with `seed` XOR r.
 *
 * Any bytes are safe: a row that is not in the file, or whose checksum is wrong, may hold everything. */
#ifndef MQI_KEY_FILTER_H
#define MQI_KEY_FILTER_H

#include <stdatomic.h>

#include "mqi_buffer.h"
#include "mqi_index_file.h"

enum {
    MQI_ROW_CHECKSUM = 0,
    MQI_ROW_COUNTS = 4,
    MQI_ROW_START_SIZE = 8,
    MQI_FILTER_GROUPS = 64,
    MQI_FILTER_NUMBERS = MQI_FILTER_GROUPS * 256, /* a bucket with all of them holds everything */
};

typedef uint32_t mqi_filter_checksum(const uint8_t *p, size_t n, uint32_t crc);

typedef struct mqi_key_filter {
    const uint8_t *starts, *rows;
    uint64_t size; /* of all rows */
    uint32_t n;    /* rows */
    uint32_t files, shift, seed;
    mqi_filter_checksum *crc32c;
    atomic_uchar *states; /* of each row: whether its checksum was compared, and the result */
} mqi_key_filter;

/* The keys of one file. */
typedef struct mqi_key_column {
    mqi_key_filter *filter;
    uint32_t file; /* below filter->files */
} mqi_key_column;

/* A row is for 1 << this slots, as many as have 64 entries in a full file, but not more than 64. */
uint32_t mqi_filter_shift(uint32_t hash_slot_num, int32_t index_num);
uint32_t mqi_filter_rows(uint32_t hash_slot_num, uint32_t shift);

/* ---- reading -------------------------------------------------------------------------------------------------------- */

enum { MQI_FILTER_BAD = 1 }; /* beside MQI_OK, MQI_NO_MEMORY */

/* `data` stays where it is until `mqi_filter_free`. MQI_FILTER_BAD: it is too short for the starts. */
int mqi_filter_load(mqi_key_filter *filter, const uint8_t *data, uint64_t size, uint32_t files, uint32_t hash_slot_num,
                    int32_t index_num, uint32_t seed, mqi_filter_checksum *crc32c);
void mqi_filter_free(mqi_key_filter *filter);
int mqi_filter_may_hold(const mqi_key_column *keys, uint32_t slot, int32_t key_hash);
/* Of n keys those that the files [first, first + files) may hold: a bit for each key, `mqi_filter_stride(n)` bytes for
 * each file, which must be zeros. */
void mqi_filter_ask(const mqi_key_filter *filter, const mqi_index_file *f, const int32_t *key_hashes, size_t n,
                    uint32_t first, uint32_t files, uint8_t *held);
static inline size_t mqi_filter_stride(size_t n) { return (n + 7) / 8; }
/* The first row that is damaged, or the number of rows. */
uint32_t mqi_filter_damaged(mqi_key_filter *filter);
/* What look-ups of these hashes need and nobody has read yet is read in the background, in file order. */
int mqi_filter_read_ahead(mqi_key_filter *filter, const mqi_index_file *f, const int32_t *key_hashes, size_t n);

/* ---- building ------------------------------------------------------------------------------------------------------- */

/* Rows one after the other, and the length of each. */
typedef struct mqi_filter_part {
    mqi_buffer rows;
    uint32_t *lengths; /* as many as were asked for */
    int32_t entries;   /* of the file that are in them */
} mqi_filter_part;

/* The rows [first, stop) of a filter of this one file, whose entries 1 .. covered are in the order of their slots. What
 * is in `part` is the caller's to free, also after MQI_NO_MEMORY or MQI_FILTER_BAD: they are not in this order. */
int mqi_filter_build(const mqi_index_file *f, int32_t covered, uint32_t shift, uint32_t first, uint32_t stop,
                     uint32_t seed, mqi_filter_checksum *crc32c, mqi_filter_part *part);
/* The rows [first, stop) of one filter for the files of many. MQI_FILTER_BAD: a row of theirs is damaged. */
int mqi_filter_weave(const mqi_key_column *columns, uint32_t files, uint32_t first, uint32_t stop, uint32_t seed,
                     mqi_filter_checksum *crc32c, mqi_filter_part *part);
/* The first entry that the filter would not find, or 0. */
int32_t mqi_filter_missing(const mqi_index_file *f, const mqi_key_column *keys, int32_t covered);

#endif
