/* Memory that grows at its end. */
#ifndef MQI_BUFFER_H
#define MQI_BUFFER_H

#include <stdint.h>
#include <stdlib.h>

#include "mqi_compiler.h"

typedef struct {
    uint8_t *data;
    int64_t size, room;
} mqi_buffer;

/* Room for `more` bytes (more than 0) after the first `size`; 0: there is no memory, and nothing has changed. */
static inline int mqi_buffer_reserve(mqi_buffer *b, int64_t more) {
    if (LIKELY(b->size + more <= b->room)) return 1;
    int64_t room = b->room ? b->room : 1 << 12;
    while (room < b->size + more) room *= 2;
    uint8_t *data = realloc(b->data, (size_t)room);
    if (!data) return 0;
    b->data = data;
    b->room = room;
    return 1;
}

static inline void mqi_buffer_free(mqi_buffer *b) {
    free(b->data);
    *b = (mqi_buffer){0};
}

#endif
