/* Where the chains of many keys begin in an optimised index file that is not in memory: the fence has the page that
 * each key needs which the filter does not rule out, and these are read ahead at once, in file order. */
#ifndef MQI_INDEX_COLD_H
#define MQI_INDEX_COLD_H

#include "mqi_index_fence.h"

/* The page of each key, or MQI_NO_PAGE: no chain of the file has it. Returns how many need a page. `held`:
 * the keys that the filter does not rule out, a bit each; NULL: it rules out none. */
size_t mqi_cold_pages(const mqi_index_file *f, const mqi_fence *fence, const uint8_t *held, const int32_t *key_hashes,
                      size_t n, uint32_t *pages);
/* The first entry of each key's chain, 0: none; `wanted` is how many have a page. */
int mqi_cold_heads(const mqi_index_file *f, const mqi_fence *fence, const int32_t *key_hashes, const uint32_t *pages,
                   size_t n, size_t wanted, int32_t *heads);

#endif
