/* RocketMQ's ConsumeQueue (store/ConsumeQueue.java, all versions): units on a buffer, and units on their way there.
 *
 *   unit   | 0 phy_offset i64 | 8 size i32, of the whole frame | 12 tags_code i64 |      big-endian, 20 bytes
 *
 * The unit of queue offset q is at byte 20 * q of its queue. Nothing outside the given bytes is read. */
#ifndef MQI_CONSUME_QUEUE_H
#define MQI_CONSUME_QUEUE_H

#include <stdint.h>

#include "mqi_bytes.h"
#include "mqi_status.h"

enum {
    MQI_UNIT_SIZE = 20,
    MQI_UNIT_PHY_OFFSET = 0,
    MQI_UNIT_MESSAGE_SIZE = 8,
    MQI_UNIT_TAGS_CODE = 12,
};

/* A tags code up to this is the address of an extension unit. */
#define MQI_MAX_EXT_ADDRESS (-2147483649)

/* What dispatching a frame gives to one queue: scratch in native byte order, packed into 40 bytes. `queue` is a number
 * that the dispatcher gave the queue. */
typedef struct mqi_queue_unit {
    int64_t phy_offset, queue_offset, tags_code, store_timestamp;
    int32_t size, queue;
} mqi_queue_unit;

_Static_assert(sizeof(mqi_queue_unit) == 40, "Python sees it as a packed record");

/* Where each queue's units will be once they are sorted: [offsets[k], offsets[k + 1]). Returns -1, or the number of the
 * first unit whose queue is not in [0, queues). */
int64_t mqi_units_count(const mqi_queue_unit *units, int64_t n, int64_t queues, int64_t *offsets);

/* Stably sorts `units` by their queue into `out`, by the offsets that were counted. */
void mqi_units_sort(const mqi_queue_unit *units, int64_t n, int64_t queues, mqi_queue_unit *out, int64_t *offsets);

/* Whether all have a phy_offset of 0 or more and a size above 0. */
int64_t mqi_units_sound(const mqi_queue_unit *units, int64_t n);

/* How many of the units, from the first on, follow each other without anything odd: each message after the one before
 * it, the first after `phy_offset`; queue offsets consecutive, 0 or more and below `limit`. */
int64_t mqi_units_line(const mqi_queue_unit *units, int64_t n, int64_t phy_offset, int64_t limit);

/* Appending as the broker does: state of one queue's end, and counts of units. */
typedef struct mqi_unit_append {
    int64_t next_offset;    /* the queue offset of the next unit */
    int64_t max_phy_offset; /* the end of the last unit's frame; a frame that ends no later is there already */
    int64_t repeated;       /* skipped: there already, or its queue offset is before next_offset */
    int64_t misplaced;      /* written, although their queue offsets are greater than next_offset: as the broker does */
} mqi_unit_append;

/* Encodes the units to write; `out` has room for all. Returns how many they are. */
int64_t mqi_units_encode(mqi_unit_append *end, const mqi_queue_unit *units, int64_t n, uint8_t *out);

/* Columns of n units. */
void mqi_units_decode(const uint8_t *units, int64_t n, int64_t *phy_offsets, int32_t *sizes, int64_t *tags_codes);

/* Numbers of the units whose tags codes' low 32 bits, which is all that a filter compares, are in `hashes`, plus
 * `first`; also of those that hold an address, which does not show the tags. `out` has room for n. Returns how many,
 * or MQI_NO_MEMORY. */
int64_t mqi_units_select(const uint8_t *units, int64_t n, int64_t first, const int32_t *hashes, int64_t k,
                         int64_t *out);

/* Taking units for a consumer: columns of the units that pass, and whether the log has their messages. */
typedef struct mqi_unit_take {
    const int64_t *starts, *stops; /* of the log's files, ascending: a message is in one of them as a whole */
    int64_t files;
    int64_t *queue_offsets, *phy_offsets; /* places for `room` units each, of which `found` are taken */
    int32_t *sizes;                       /* 0: the log does not have the message */
    int64_t *tags_codes;                  /* or 0: not requested */
    int64_t room, found;
    int64_t gone; /* of the units taken, those that the log does not have */
} mqi_unit_take;

/* Takes those of n units that pass a filter as in `mqi_units_select` (k below 0: all), while there is room; `first` is
 * the queue offset of the first one. Returns how many units were read, or MQI_NO_MEMORY. */
int64_t mqi_units_take(mqi_unit_take *t, const int32_t *hashes, int64_t k, const uint8_t *units, int64_t n,
                       int64_t first);

/* How many units from the first on are valid: phy_offset >= 0, size > 0. */
int64_t mqi_units_check(const uint8_t *units, int64_t n);

/* Numbers of `units` that are not in `queue`, whose `places` units begin with `first_offset`; `out` has room for
 * n. Returns how many. */
int64_t mqi_units_compare(const uint8_t *queue, int64_t places, int64_t first_offset, const mqi_queue_unit *units,
                          int64_t n, int64_t *out);

/* A queue whose units are compared with its file as they come: the order of an intact file. */
typedef struct mqi_unit_line {
    const uint8_t *unit; /* what the file has at the next place, and after it */
    int64_t left;        /* places that are known from there on; 0: more must be read; below 0: units are left over */
    int64_t next;        /* the next place, a queue offset */
    int64_t phy_offset;  /* of the last unit; the next one's message is after it */
    int64_t last_end;    /* the end of its message */
} mqi_unit_line;

/* Skips the units that are at their places in `lines`, which are by the number of the queue. The others go to `rest`,
 * which has room for n, and `found` counts them; the first one ends its line. Returns how many units were compared:
 * less than n if the next one is of a line of which more must be read, or of a queue that is not among the `queues`. */
int64_t mqi_units_match(mqi_unit_line *lines, int64_t queues, const mqi_queue_unit *units, int64_t n,
                        mqi_queue_unit *rest, int64_t *found);

#endif
