/* The fence of an optimised index file: the slot of the first entry that begins in each page of 4096 bytes of the file.
 *
 *   0        4*P bytes   | slot u32 | of page q, q+1, ... q+P-1, where q is the page that entry 1 begins in |
 *
 * In an optimised file the entries 1 .. covered are in the order of their slots, a slot's entries oldest first. So the
 * newest entry of a slot begins in the last page whose first slot is not above it, and is found without the slot table:
 * a look-up reads the page of the answer and no other.
 *
 * Any bytes are safe: a search ends inside the table, a head inside the entries that are covered. A damaged hash costs
 * its own key only, as in the slots: a page is read entry by entry, and its first one is known from the fence. */
#ifndef MQI_INDEX_FENCE_H
#define MQI_INDEX_FENCE_H

#include "mqi_index_file.h"

enum { MQI_FENCE_SLOT_SIZE = 4 };
#define MQI_NO_PAGE UINT32_MAX

typedef struct mqi_fence {
    const uint8_t *first_slots;
    uint32_t pages;
    int32_t covered; /* 1 <= covered < index_num */
} mqi_fence;

/* In how many pages entries begin. */
uint32_t mqi_fence_pages(const mqi_index_file *f, int32_t covered);
void mqi_fence_build(const mqi_index_file *f, int32_t covered, uint8_t *first_slots);
/* The first page whose slot is another, or MQI_NO_PAGE. */
uint32_t mqi_fence_check(const mqi_index_file *f, const mqi_fence *fence);

/* Whether the file's header is still `header`, of MQI_INDEX_HEADER_SIZE bytes, and all entries are covered: nothing was
 * appended, not even by a put that a kill cut short. */
int mqi_fence_current(const mqi_index_file *f, int32_t covered, const uint8_t *header);
/* Which page, counted from that of entry 1, the newest entry of a slot begins in, or MQI_NO_PAGE. */
uint32_t mqi_fence_find(const mqi_fence *fence, uint32_t slot);
/* The newest entry of the slot if it begins in that page, else 0; damaged, another one of the slot's. */
int32_t mqi_fence_head(const mqi_index_file *f, const mqi_fence *fence, uint32_t page, uint32_t slot);
/* The pages are read in the background; ascending, `n` of them, runs of neighbours by one call each. */
void mqi_fence_read_ahead(const mqi_index_file *f, const uint32_t *pages, size_t n);

#endif
