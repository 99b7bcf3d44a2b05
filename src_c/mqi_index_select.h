/* Looking keys up in an index file, as the broker's IndexFile.selectPhyOffset does: one walk, or many in flight. */
#ifndef MQI_INDEX_SELECT_H
#define MQI_INDEX_SELECT_H

#include "mqi_index_file.h"

/* One look-up, resumable: `found` counts down from max_num, `cur` is 0 when the walk has ended. */
typedef struct mqi_walk {
    int64_t begin_timestamp, begin, end;
    int64_t left;
    int32_t key_hash, count, cur;
} mqi_walk;

void mqi_index_walk_start(const mqi_index_file *f, mqi_walk *walk, int32_t key_hash, int64_t max_num, int64_t begin,
                          int64_t end);
/* The same where the chain's first entry is known, 0: there is none; no slot is read. */
void mqi_index_walk_from(const mqi_index_file *f, mqi_walk *walk, int32_t head, int32_t key_hash, int64_t max_num,
                         int64_t begin, int64_t end);
/* Fill `out` with up to `room` physical offsets, newest first; return how many. */
size_t mqi_index_walk(const mqi_index_file *f, mqi_walk *walk, int64_t *out, size_t room);

/* Look-ups in a file that is there in part: of each of its pages `present` has a byte, 0: it was not read yet. The page
 * with the header must be there. For each look-up that needs one that is not, the next one on its way goes to `pages`,
 * which has room for n; returns how many. Once none is missing, `mqi_index_select_many` reads no other page. The other
 * arguments are as there. */
size_t mqi_index_pages_missing(const mqi_index_file *f, const uint8_t *present, const int32_t *key_hashes,
                               const int32_t *heads, const int32_t *limits, int64_t max_num, size_t n, int64_t begin,
                               int64_t end, uint32_t *pages);

/* Many look-ups with a ring of them in flight. Hits of key i: values[offsets[i] .. offsets[i+1]). `limits` gives each
 * key its own max_num, or is NULL: then max_num for all. `heads` gives each key the first entry of its chain, 0: none, or
 * is NULL: then the slots do. `values` is malloc'ed and grows; the caller frees it, also
 * after MQI_NO_MEMORY. */
typedef struct mqi_hits {
    int64_t *values;
    size_t room;
} mqi_hits;

int mqi_index_select_many(const mqi_index_file *f, const int32_t *key_hashes, const int32_t *heads,
                          const int32_t *limits, int64_t max_num, size_t n, int64_t begin, int64_t end,
                          int64_t *offsets, mqi_hits *hits);

#endif
