#include "mqi_log_encode.h"

#include <string.h>

#include "mqi_log_frame.h"

#define MAX_PROPERTIES INT16_MAX
#define MAX_TOPIC_1 INT8_MAX
#define MAX_TOPIC_2 255 /* the broker's own limit; and a directory is named by the topic */
#define SEPARATOR 2

static const char CRC_NAME[] = "__CRC32#\1"; /* then ten digits and a separator */

/* What measuring found in the caller's bytes. Encoding does not check them again: they may have changed by then, and
 * the frame must have its measured size. PART_OPEN: the block does not end with a separator. */
enum part { PART_KEYS = 1, PART_TAGS = 2, PART_UNIQ_KEY = 4, PART_VERSION_2 = 8, PART_STALE_CRC = 16, PART_OPEN = 32 };

/* The columns that become properties, in the order in which they are put. */
typedef struct {
    const char *name; /* with its 01 */
    int32_t name_len, column;
    uint8_t part;
} named;

static const named NAMED[] = {
    {"KEYS\1", 5, MQI_COLUMN_KEYS, PART_KEYS},
    {"TAGS\1", 5, MQI_COLUMN_TAGS, PART_TAGS},
    {"UNIQ_KEY\1", 9, MQI_COLUMN_UNIQ_KEY, PART_UNIQ_KEY},
};
enum { N_NAMED = 3 };

static inline const mqi_piece *cell(const mqi_pieces *pieces, int64_t row) {
    return pieces->cells + row * pieces->step;
}

static inline int64_t number(const mqi_numbers *numbers, int64_t row) { return numbers->cells[row * numbers->step]; }

static inline const mqi_piece *named_cell(const mqi_log_rows *rows, int which, int64_t row) {
    return cell(which == 0 ? &rows->keys : which == 1 ? &rows->tags : &rows->uniq_key, row);
}

static int refuse(mqi_log_refusal *why, int64_t row, int kind, int column, int64_t limit, int64_t got) {
    *why = (mqi_log_refusal){row, kind, column, limit, got};
    return -1;
}

/* ---- measure ------------------------------------------------------------------------------------------------------ */

static int ends_with_crc(const uint8_t *p, int64_t n) {
    const uint8_t *tail = p + n - MQI_LOG_CRC_SIZE;
    return n >= MQI_LOG_CRC_SIZE && memcmp(tail, CRC_NAME, 9) == 0 && p[n - 1] == SEPARATOR &&
           (n == MQI_LOG_CRC_SIZE || tail[-1] == SEPARATOR);
}

/* Which of the columns' values are appended to the block: those that it does not have itself. */
static int choose_parts(const mqi_log_rows *rows, int64_t row, const mqi_piece *block, int64_t n, uint8_t *parts,
                        mqi_log_refusal *why) {
    mqi_log_keys held = {0};
    int read = 0;
    for (int i = 0; i < N_NAMED; i++) {
        const mqi_piece *value = named_cell(rows, i, row);
        if (value->len <= 0) continue; /* every reader ignores an empty value */
        if (memchr(value->p, SEPARATOR, (size_t)value->len))
            return refuse(why, row, MQI_REFUSED_SEPARATOR, NAMED[i].column, 0, 0);
        if (n > 0 && !read) {
            held = mqi_log_read_keys(block->p, n, block->p + n, 0);
            read = 1;
        }
        const uint8_t *there = i == 0 ? held.keys : i == 1 ? held.tags : held.uniq_key;
        int32_t there_len = i == 0 ? held.keys_len : i == 1 ? held.tags_len : held.uniq_key_len;
        if (!there) *parts |= NAMED[i].part;
        else if (there_len != value->len || memcmp(there, value->p, (size_t)value->len) != 0)
            return refuse(why, row, MQI_REFUSED_OTHERWISE, NAMED[i].column, 0, 0);
    }
    return 0;
}

/* Bytes of the properties: the block, the values appended to it, the checksum. */
static int64_t properties_size(const mqi_log_rows *rows, int64_t row, int64_t n, uint8_t parts) {
    int open = (parts & PART_OPEN) != 0;
    for (int i = 0; i < N_NAMED; i++) {
        if (parts & NAMED[i].part) {
            n += open + NAMED[i].name_len + named_cell(rows, i, row)->len;
            open = 1;
        }
    }
    if (parts & (PART_KEYS | PART_TAGS | PART_UNIQ_KEY) && rows->rules.separator) n += open, open = 0;
    return rows->rules.append_crc ? n + open + MQI_LOG_CRC_SIZE : n;
}

/* A delayed message has its level in the block. Neither is too long. */
static int has_bad_delay(const mqi_piece *topic, const mqi_piece *block) {
    return mqi_log_is_scheduled(topic->p, (int32_t)topic->len) && block->len > 0 &&
           mqi_log_delay_level(block->p, (int32_t)block->len) == MQI_NO_LEVEL;
}

static int64_t measure_properties(const mqi_log_rows *rows, int64_t row, uint8_t *parts, mqi_log_refusal *why) {
    const mqi_piece *block = cell(&rows->properties, row);
    int64_t n = block->len > 0 ? block->len : 0;
    if (rows->rules.append_crc && n > 0 && ends_with_crc(block->p, n)) {
        *parts |= PART_STALE_CRC;
        n -= MQI_LOG_CRC_SIZE;
    }
    if (choose_parts(rows, row, block, n, parts, why) != 0) return -1;
    if (n > 0 && block->p[n - 1] != SEPARATOR) *parts |= PART_OPEN;
    n = properties_size(rows, row, n, *parts);
    if (n > MAX_PROPERTIES) return refuse(why, row, MQI_REFUSED_LONG, MQI_COLUMN_PROPERTIES, MAX_PROPERTIES, n);
    return n;
}

static int64_t measure_row(const mqi_log_rows *rows, int64_t row, uint8_t *parts, mqi_log_refusal *why) {
    int64_t topic = cell(&rows->topic, row)->len, body = cell(&rows->body, row)->len;
    int64_t max_topic = rows->rules.long_topics ? MAX_TOPIC_2 : MAX_TOPIC_1;
    if (topic < 1) return refuse(why, row, MQI_REFUSED_EMPTY, MQI_COLUMN_TOPIC, 0, 0);
    if (topic > max_topic) return refuse(why, row, MQI_REFUSED_LONG, MQI_COLUMN_TOPIC, max_topic, topic);
    if (body < 0) body = 0;
    if (body > rows->rules.max_body)
        return refuse(why, row, MQI_REFUSED_LONG, MQI_COLUMN_BODY, rows->rules.max_body, body);
    *parts = topic > MAX_TOPIC_1 ? PART_VERSION_2 : 0;
    int64_t properties = measure_properties(rows, row, parts, why);
    if (properties < 0) return -1;
    if (has_bad_delay(cell(&rows->topic, row), cell(&rows->properties, row)))
        return refuse(why, row, MQI_REFUSED_DELAY, MQI_COLUMN_PROPERTIES, 0, 0);
    int64_t size = MQI_FRAME_FIXED_SIZE + cell(&rows->born_host, row)->len + cell(&rows->store_host, row)->len + body +
                   topic + properties + (*parts & PART_VERSION_2 ? 2 : 1);
    if (size > rows->rules.max_frame)
        return refuse(why, row, MQI_REFUSED_LONG, MQI_COLUMN_NONE, rows->rules.max_frame, size);
    return size;
}

int64_t mqi_log_measure(const mqi_log_rows *rows, int32_t *sizes, uint8_t *parts, mqi_log_refusal *why) {
    int64_t total = 0;
    *why = (mqi_log_refusal){0};
    for (int64_t row = 0; row < rows->n; row++) {
        int64_t size = measure_row(rows, row, parts + row, why);
        if (size < 0) return -1;
        sizes[row] = (int32_t)size;
        total += size;
    }
    return total;
}

/* ---- encode ------------------------------------------------------------------------------------------------------- */

static inline uint8_t *put(uint8_t *out, const void *p, int64_t n) {
    if (n > 0) memcpy(out, p, (size_t)n);
    return out + n;
}

static inline uint8_t *put32(uint8_t *out, int64_t value) {
    mqi_set32(out, (int32_t)value);
    return out + 4;
}

static inline uint8_t *put64(uint8_t *out, int64_t value) {
    mqi_set64(out, value);
    return out + 8;
}

/* The checksum's digits, the least significant first. */
static uint8_t *put_crc(mqi_checksum *crc32, uint8_t *out, const uint8_t *frame) {
    uint32_t crc = crc32(frame, (size_t)(out - frame), 0) & INT32_MAX;
    out = put(out, CRC_NAME, 9);
    for (int i = 0; i < 10; i++, crc /= 10) *out++ = (uint8_t)('0' + crc % 10);
    *out++ = SEPARATOR;
    return out;
}

static uint8_t *put_properties(const mqi_log_rows *rows, int64_t row, uint8_t parts, uint8_t *out) {
    const mqi_piece *block = cell(&rows->properties, row);
    int64_t n = block->len > 0 ? block->len : 0;
    if (parts & PART_STALE_CRC) n -= MQI_LOG_CRC_SIZE;
    int open = (parts & PART_OPEN) != 0;
    out = put(out, block->p, n);
    if (n > 0 && !open) out[-1] = SEPARATOR; /* as measured: else what follows would become part of the last value */
    for (int i = 0; i < N_NAMED; i++) {
        if (parts & NAMED[i].part) {
            const mqi_piece *value = named_cell(rows, i, row);
            if (open) *out++ = SEPARATOR;
            out = put(put(out, NAMED[i].name, NAMED[i].name_len), value->p, value->len);
            open = 1;
        }
    }
    int ends = parts & (PART_KEYS | PART_TAGS | PART_UNIQ_KEY) && rows->rules.separator;
    if ((ends || rows->rules.append_crc) && open) *out++ = SEPARATOR;
    return out;
}

static inline int64_t flags_of(int64_t sys_flag, int64_t born_len, int64_t store_len) {
    sys_flag &= ~(int64_t)(MQI_SYS_BORN_IPV6 | MQI_SYS_STORE_IPV6);
    return sys_flag | (born_len == MQI_HOST_SIZE_IPV6 ? MQI_SYS_BORN_IPV6 : 0) |
           (store_len == MQI_HOST_SIZE_IPV6 ? MQI_SYS_STORE_IPV6 : 0);
}

/* A prepared message and a rolled-back one have no place in a queue. */
static inline int64_t queue_offset_of(int64_t sys_flag, int64_t queue_offset) {
    int64_t type = sys_flag & MQI_SYS_ROLLBACK;
    return type == MQI_SYS_PREPARED || type == MQI_SYS_ROLLBACK ? 0 : queue_offset;
}

static void encode_row(const mqi_log_rows *rows, int64_t row, int64_t size, uint8_t parts, int64_t phy_offset,
                       uint8_t *out) {
    const mqi_piece *topic = cell(&rows->topic, row), *body = cell(&rows->body, row);
    const mqi_piece *born = cell(&rows->born_host, row), *store = cell(&rows->store_host, row);
    int64_t body_len = body->len > 0 ? body->len : 0, sys_flag = number(&rows->sys_flag, row);
    uint8_t *frame = out;
    out = put32(out, size);
    out = put32(out, parts & PART_VERSION_2 ? MQI_MAGIC_2 : MQI_MAGIC_1);
    uint8_t *body_crc = out;
    out = put32(out + 4, number(&rows->queue_id, row));
    out = put32(out, number(&rows->flag, row));
    out = put64(out, queue_offset_of(sys_flag, number(&rows->queue_offset, row)));
    out = put64(out, phy_offset);
    out = put32(out, flags_of(sys_flag, born->len, store->len));
    out = put64(out, number(&rows->born_timestamp, row));
    out = put(out, born->p, born->len);
    out = put64(out, number(&rows->store_timestamp, row));
    out = put(out, store->p, store->len);
    out = put32(out, number(&rows->reconsume_times, row));
    out = put64(out, number(&rows->prepared_transaction_offset, row));
    out = put(put32(out, body_len), body->p, body_len);
    put32(body_crc, rows->crc32(out - body_len, (size_t)body_len, 0) & INT32_MAX); /* of the bytes in the frame */
    if (parts & PART_VERSION_2) *out++ = (uint8_t)(topic->len >> 8);
    *out++ = (uint8_t)topic->len;
    out = put(out, topic->p, topic->len);
    uint8_t *properties = out + 2;
    mqi_set16(out, (int16_t)(size - (properties - frame)));
    out = put_properties(rows, row, parts, properties);
    /* Every reader would end the log before a scheduled message whose DELAY is no number. Measuring refuses such a row,
     * but the caller's bytes may have become one since: so what was written is checked again. */
    if (UNLIKELY(mqi_log_is_scheduled(properties - 2 - topic->len, (int32_t)topic->len)))
        mqi_log_settle_delay(properties, (int32_t)(out - properties));
    if (rows->rules.append_crc) put_crc(rows->crc32, out, frame);
}

int64_t mqi_log_pass(const mqi_log_rows *rows, const int32_t *sizes, mqi_log_progress *progress, int64_t room) {
    mqi_log_progress at = *progress;
    int64_t used = 0;
    at.roll = 0;
    for (; at.row < rows->n; at.row++) {
        int64_t size = sizes[at.row];
        at.roll = size + MQI_BLANK_SIZE > at.left;
        if (at.roll || size > room - used) break;
        used += size, at.phy_offset += size, at.left -= size;
    }
    *progress = at;
    return used;
}

int64_t mqi_log_encode(const mqi_log_rows *rows, const int32_t *sizes, const uint8_t *parts, mqi_log_progress *progress,
                       uint8_t *out, int64_t room, int64_t *phy_offsets) {
    int64_t row = progress->row, phy_offset = progress->phy_offset;
    int64_t used = mqi_log_pass(rows, sizes, progress, room);
    for (; row < progress->row; row++) {
        int64_t size = sizes[row];
        if (row + 1 < rows->n) { /* bodies may be anywhere */
            const mqi_piece *next = cell(&rows->body, row + 1);
            for (int line = 0; line < 256 && line < next->len; line += 64) __builtin_prefetch(next->p + line);
        }
        encode_row(rows, row, size, parts[row], phy_offset, out);
        phy_offsets[row] = phy_offset;
        out += size, phy_offset += size;
    }
    return used;
}
