#include "mqi_index_cold.h"

#include <stdlib.h>

size_t mqi_cold_pages(const mqi_index_file *f, const mqi_fence *fence, const uint8_t *held, const int32_t *key_hashes,
                      size_t n, uint32_t *pages) {
    size_t wanted = 0;
    for (size_t i = 0; i < n; i++) {
        int asked = held == NULL || (held[i / 8] >> i % 8 & 1);
        pages[i] = asked ? mqi_fence_find(fence, mqi_slot_of(f, key_hashes[i])) : MQI_NO_PAGE;
        wanted += pages[i] != MQI_NO_PAGE;
    }
    return wanted;
}

typedef struct place { /* of a key that needs a page */
    uint32_t page, key;
} place;

static int by_page(const void *a, const void *b) {
    uint32_t x = ((const place *)a)->page, y = ((const place *)b)->page;
    return (x > y) - (x < y);
}

int mqi_cold_heads(const mqi_index_file *f, const mqi_fence *fence, const int32_t *key_hashes, const uint32_t *pages,
                   size_t n, size_t wanted, int32_t *heads) {
    memset(heads, 0, n * sizeof *heads);
    if (wanted == 0) return MQI_OK;
    place *places = malloc(wanted * sizeof *places);
    uint32_t *sorted = malloc(wanted * sizeof *sorted);
    int status = places == NULL || sorted == NULL ? MQI_NO_MEMORY : MQI_OK;
    size_t kept = 0;
    for (size_t i = 0; i < n && status == MQI_OK && kept < wanted; i++)
        if (pages[i] != MQI_NO_PAGE) places[kept++] = (place){pages[i], (uint32_t)i};
    if (status == MQI_OK) {
        qsort(places, kept, sizeof *places, by_page);
        for (size_t i = 0; i < kept; i++) sorted[i] = places[i].page;
        mqi_fence_read_ahead(f, sorted, kept);
    }
    for (size_t i = 0; i < kept && status == MQI_OK; i++) {
        int32_t hash = key_hashes[places[i].key];
        heads[places[i].key] = mqi_fence_head(f, fence, places[i].page, mqi_slot_of(f, hash));
    }
    free(places);
    free(sorted);
    return status;
}
