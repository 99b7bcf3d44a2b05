/* Where a damaged log of Kafka goes on: the next position at which a valid batch begins.
 *
 * A batch is valid at a position if
 *   - its magic is 0, 1 or 2, its length at least that of an empty one, and it ends within the log;
 *   - floor <= its base offset, and its last offset is below `ceiling`;
 *   - of magic 2: last_offset_delta is not negative, 0 <= count <= last_offset_delta + 1;
 *   - its checksum is right: CRC-32C of magic 2, CRC-32 of magic 0 and 1;
 *   - of magic 0 and 1 also: the log ends with it, or another valid batch follows at once, above its offset.
 *
 * floor: the offset after the last batch before the damage, or the segment's base offset. ceiling: the base offset of the
 * next segment, or the segment's base offset + 2^31, which no relative offset of an index reaches.
 *
 * The walk before damage accepts more than this (offsets that go back, a magic above 2), as brokers do: only who has lost
 * the framing has to be strict. A value of a record may hold the bytes of a valid batch. That is why the framing is
 * believed where it can be (mqi_kafka_batch_after). Where it is lost, such an imitation is taken for a batch if its
 * offsets fit.
 *
 * Both calls need log->sums. Then any number of them, ever further on, cost time in proportion to the log's length
 * whatever its content is: a log full of headers that look right is summed up once. The log's `sums` also serve a walk
 * that goes on behind damage: a bad batch costs it no more than its header. */
#ifndef MQI_KAFKA_RESYNC_H
#define MQI_KAFKA_RESYNC_H

#include "mqi_kafka_batch.h"

/* The first position >= at where a valid batch begins; log->len: there is none. */
int64_t mqi_kafka_next_batch(const mqi_kafka_log *log, int64_t at, int64_t floor, int64_t ceiling);

/* Where a log goes on behind what is no valid batch at `bad`: where its length leads, if a valid batch begins there or
 * the log ends; else the first position > bad where one begins; log->len: there is none. */
int64_t mqi_kafka_batch_after(const mqi_kafka_log *log, int64_t bad, int64_t floor, int64_t ceiling);

#endif
