/* Putting entries into an index file, as the broker's IndexFile.putKey does: one, columns of them, or a run. */
#ifndef MQI_INDEX_PUT_H
#define MQI_INDEX_PUT_H

#include "mqi_index_file.h"

/* Entries that a put of many writes before it brings the header up to date with them: hash_slot_count, end_phy_offset and
 * end_timestamp are those of a block's end until then. index_count always counts every entry that is there. */
enum { MQI_PUT_BLOCK = 4096 };

/* Return how many were stored, in order from the first; fewer than n: the file is full. */
size_t mqi_index_put(mqi_index_file *f, int32_t key_hash, int64_t phy_offset, int64_t store_timestamp);
size_t mqi_index_put_columns(mqi_index_file *f, const int32_t *key_hashes, const int64_t *phy_offsets,
                             const int64_t *store_timestamps, size_t n);
size_t mqi_index_put_run(mqi_index_file *f, const uint8_t *run, size_t n);

#endif
