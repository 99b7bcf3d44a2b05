/* The key filter of an optimised index file: whether a key hash may be in it; wrong for one of 256 hashes that are not.
 *
 *   0       32*P bytes  partitions   | 0 first_slot u32 | 4 segment_length u32 | 8 segment_count u32 | 12 seed u32
 *                                    | 16 start u64, in the fingerprints | 24 checksum u32, CRC-32C | 28 zero u32 |
 *   32*P    ...         fingerprints | one byte for each place, partition after partition |
 *
 * A partition is for the slots from its first one to the next partition's; the first one's is 0. Its fingerprints are a
 * binary fuse filter (Graf and Lemire, 2022) of three places in neighbouring segments, over the distinct key hashes:
 * (segment_count + 2) * segment_length bytes, about 9.3 bits a key. A look-up reads one partition. A segment_length of
 * 0: the partition has no fingerprints and may hold everything.
 *
 * Any bytes are safe: `mqi_filter_load` refuses a table that leads outside the file, and a partition whose checksum is
 * wrong may hold everything. */
#ifndef MQI_KEY_FILTER_H
#define MQI_KEY_FILTER_H

#include <stdatomic.h>

#include "mqi_index_file.h"

enum {
    MQI_PARTITION_FIRST_SLOT = 0,
    MQI_PARTITION_SEGMENT_LENGTH = 4,
    MQI_PARTITION_SEGMENT_COUNT = 8,
    MQI_PARTITION_SEED = 12,
    MQI_PARTITION_START = 16,
    MQI_PARTITION_CHECKSUM = 24,
    MQI_PARTITION_SIZE = 32,
    MQI_FILTER_ENTRIES = 1 << 17, /* of a partition, and those that its last slot has beyond */
    MQI_FILTER_MOST = 1 << 20,    /* distinct hashes of a partition; one slot with more has no fingerprints */
};

typedef uint32_t mqi_filter_checksum(const uint8_t *p, size_t n, uint32_t crc);

typedef struct mqi_partition {
    const uint8_t *fingerprints;
    uint32_t segment_length, segment_count, seed, checksum;
    atomic_int state; /* whether the checksum was compared, and the result */
} mqi_partition;

typedef struct mqi_key_filter {
    mqi_partition *partitions;
    uint32_t *first_slots;
    uint32_t n;
    const uint8_t *fingerprints;
    size_t size;
    mqi_filter_checksum *crc32c;
} mqi_key_filter;

/* ---- reading -------------------------------------------------------------------------------------------------------- */

enum { MQI_FILTER_BAD = 1 }; /* beside MQI_OK, MQI_NO_MEMORY */

/* `data`: n partitions and their fingerprints, which stay where they are until `mqi_filter_free`. */
int mqi_filter_load(mqi_key_filter *filter, const uint8_t *data, size_t size, uint32_t n, uint32_t hash_slot_num,
                    mqi_filter_checksum *crc32c);
void mqi_filter_free(mqi_key_filter *filter);
int mqi_filter_may_hold(mqi_key_filter *filter, uint32_t slot, int32_t key_hash);
/* The first partition whose checksum is wrong, or the number of partitions. */
uint32_t mqi_filter_damaged(mqi_key_filter *filter);
/* All fingerprints are read in the background: for many look-ups. */
void mqi_filter_read_ahead(const mqi_key_filter *filter);

/* ---- building ------------------------------------------------------------------------------------------------------- */

typedef struct mqi_fingerprints {
    uint8_t *bytes; /* malloc'ed, the caller's; NULL where there are none */
    size_t size;
    uint32_t segment_length, segment_count, seed;
} mqi_fingerprints;

/* Where the partition that begins with entry `first` ends: the first entry of the next one. */
int32_t mqi_filter_cut(const mqi_index_file *f, int32_t covered, int32_t first);
/* The fingerprints of the hashes of the entries [first, stop). */
int mqi_filter_build(const mqi_index_file *f, int32_t first, int32_t stop, mqi_fingerprints *made);
/* The first entry that the filter would not find, or 0. */
int32_t mqi_filter_missing(const mqi_index_file *f, mqi_key_filter *filter, int32_t covered);

#endif
