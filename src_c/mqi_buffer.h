/* Memory that grows at its end. */
#ifndef MQI_BUFFER_H
#define MQI_BUFFER_H

#include <stdint.h>
#include <stdlib.h>

#include "mqi_compiler.h"

typedef struct {
    uint8_t *data;
    int64_t size, room;
    int64_t usual; /* the room to begin with, from what was given away; 0: nothing was */
} mqi_buffer;

/* Room for `more` bytes (more than 0) after the first `size`; 0: there is no memory, and nothing has changed. */
static inline int mqi_buffer_reserve(mqi_buffer *b, int64_t more) {
    if (LIKELY(b->size + more <= b->room)) return 1;
    int64_t room = b->room ? b->room : b->usual ? b->usual : 1 << 12;
    while (room < b->size + more) room *= 2;
    uint8_t *data = realloc(b->data, (size_t)room);
    if (!data) return 0;
    b->data = data;
    b->room = room;
    return 1;
}

/* Memory of `size` bytes, 1 or more, that somebody may keep: what is not in use goes where it is much. What is little
 * stays: malloc gives freed memory out again where it is asked for as much, and else new pages, each with a fault. */
static inline uint8_t *mqi_memory_cut(uint8_t *data, int64_t size, int64_t room) {
    uint8_t *cut = room - size > size ? realloc(data, (size_t)size) : data;
    return cut ? cut : data;
}

/* The buffer's memory, for others to keep and to free, 0: it has none. It begins anew, with room for as much. */
static inline uint8_t *mqi_buffer_give(mqi_buffer *b) {
    uint8_t *data = b->size ? mqi_memory_cut(b->data, b->size, b->room) : 0;
    if (!data) free(b->data);
    int64_t needed = b->size + b->size / 16;
    *b = (mqi_buffer){.usual = needed > b->usual ? needed : b->usual};
    return data;
}

static inline void mqi_buffer_free(mqi_buffer *b) {
    free(b->data);
    *b = (mqi_buffer){0};
}

#endif
