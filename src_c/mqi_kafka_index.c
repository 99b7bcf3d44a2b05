#include "mqi_kafka_index.h"

#define PAGES 8192 /* bytes at the end, which the broker searches first: they stay in the page cache */

/* ---- one look-up -------------------------------------------------------------------------------------------------- */

static inline int64_t column_at(const mqi_kafka_index *x, int column, int64_t i) {
    return column == MQI_KAFKA_KEY ? mqi_kafka_key(x, i) : mqi_kafka_value(x, i);
}

int64_t mqi_kafka_search(const mqi_kafka_index *x, int column, int64_t target, int upper) {
    int64_t warm = PAGES / mqi_kafka_width(x->times), last = x->n - 1, low, high;
    if (x->n == 0) return -1;
    int64_t hot = last > warm ? last - warm : 0;
    if (column_at(x, column, hot) < target) {
        low = hot;
        high = last;
    } else if (column_at(x, column, 0) > target) {
        return upper ? 0 : -1;
    } else {
        low = 0;
        high = hot;
    }
    while (low < high) {
        int64_t middle = (low + high + 1) / 2, found = column_at(x, column, middle);
        if (found > target) high = middle - 1;
        else if (found < target) low = middle;
        else return middle;
    }
    if (!upper) return low;
    return low == last ? -1 : low + 1;
}

/* ---- append and decode --------------------------------------------------------------------------------------------- */

#define BLOCK 256 /* entries that are checked together, without a branch each */

/* Whether all offsets of a block are in range and each is greater than the one before, or not less with `equal`. */
static inline int offsets_fit(const int64_t *offsets, int64_t n, int64_t before, uint64_t base, int equal) {
    uint64_t outside = 0, order = (uint64_t)before - (uint64_t)offsets[0] - (uint64_t)equal;
    for (int64_t i = 0; i < n; i++) outside |= (uint64_t)offsets[i] - base;
    for (int64_t i = 1; i < n; i++) order &= (uint64_t)offsets[i - 1] - (uint64_t)offsets[i] - (uint64_t)equal;
    return outside >> 31 == 0 && order >> 63 == 1;
}

/* Whether no timestamp of a block is negative and each is greater than the one before. */
static inline int timestamps_fit(const int64_t *timestamps, int64_t n, int64_t before) {
    uint64_t outside = 0, order = (uint64_t)before - (uint64_t)timestamps[0];
    for (int64_t i = 0; i < n; i++) outside |= (uint64_t)timestamps[i];
    for (int64_t i = 1; i < n; i++) order &= (uint64_t)timestamps[i - 1] - (uint64_t)timestamps[i];
    return outside >> 63 == 0 && order >> 63 == 1;
}

static inline void put_offset(uint8_t *p, uint64_t relative, int32_t position) {
    mqi_set64(p, (int64_t)(relative << 32 | (uint32_t)position));
}

static inline void put_time(uint8_t *p, int64_t timestamp, uint64_t relative) {
    mqi_set64(p, timestamp);
    mqi_set32(p + MQI_TIME_ENTRY_OFFSET, (int32_t)relative);
}

static int append_offset(mqi_kafka_end *end, int64_t offset, int32_t position) {
    uint64_t relative = (uint64_t)offset - (uint64_t)end->base_offset;
    if (end->entries >= end->max_entries) return MQI_KAFKA_FULL;
    if (end->entries > 0 && offset <= end->last_offset) return MQI_KAFKA_ORDER;
    if (relative > INT32_MAX) return MQI_KAFKA_OVERFLOW;
    put_offset(end->buf + end->entries * MQI_OFFSET_ENTRY_SIZE, relative, position);
    end->last_offset = offset;
    end->entries++;
    return MQI_KAFKA_FINE;
}

int mqi_kafka_append_offsets(mqi_kafka_end *end, const int64_t *offsets, const int32_t *positions, int64_t m) {
    uint64_t base = (uint64_t)end->base_offset;
    for (int64_t done = end->done = 0; done < m; done = end->done) {
        int64_t n = m - done < BLOCK ? m - done : BLOCK;
        const int64_t *block = offsets + done;
        if (end->entries > 0 && n <= end->max_entries - end->entries &&
            offsets_fit(block, n, end->last_offset, base, 0)) {
            uint8_t *p = end->buf + end->entries * MQI_OFFSET_ENTRY_SIZE;
            for (int64_t i = 0; i < n; i++)
                put_offset(p + i * MQI_OFFSET_ENTRY_SIZE, (uint64_t)block[i] - base, positions[done + i]);
            end->last_offset = block[n - 1];
            end->entries += n;
            end->done += n;
            continue;
        }
        if (end->entries == 0) n = 1; /* it has none before it */
        for (int64_t i = 0; i < n; i++, end->done++) {
            int why = append_offset(end, block[i], positions[done + i]);
            if (why != MQI_KAFKA_FINE) return why;
        }
    }
    return MQI_KAFKA_FINE;
}

static int append_time(mqi_kafka_end *end, int64_t timestamp, int64_t offset, int skip_full_check) {
    uint64_t relative = (uint64_t)offset - (uint64_t)end->base_offset;
    int64_t full = skip_full_check ? end->max_entries : end->max_entries - 1;
    if (!skip_full_check && end->entries >= full) return MQI_KAFKA_FULL;
    if (end->entries > 0 && (offset < end->last_offset || timestamp < end->last_timestamp)) return MQI_KAFKA_ORDER;
    if (timestamp <= end->last_timestamp) return MQI_KAFKA_FINE;
    if (end->entries >= full) return MQI_KAFKA_FULL;
    if (relative > INT32_MAX) return MQI_KAFKA_OVERFLOW;
    put_time(end->buf + end->entries * MQI_TIME_ENTRY_SIZE, timestamp, relative);
    end->entries++;
    end->last_timestamp = timestamp;
    end->last_offset = offset;
    return MQI_KAFKA_FINE;
}

int mqi_kafka_append_times(mqi_kafka_end *end, const int64_t *timestamps, const int64_t *offsets, int64_t m,
                           int skip_full_check) {
    uint64_t base = (uint64_t)end->base_offset;
    int64_t full = skip_full_check ? end->max_entries : end->max_entries - 1;
    for (int64_t done = end->done = 0; done < m; done = end->done) {
        int64_t n = m - done < BLOCK ? m - done : BLOCK;
        const int64_t *times = timestamps + done, *block = offsets + done;
        if (end->entries > 0 && n <= full - end->entries && timestamps_fit(times, n, end->last_timestamp) &&
            offsets_fit(block, n, end->last_offset, base, 1)) {
            uint8_t *p = end->buf + end->entries * MQI_TIME_ENTRY_SIZE;
            for (int64_t i = 0; i < n; i++) put_time(p + i * MQI_TIME_ENTRY_SIZE, times[i], (uint64_t)block[i] - base);
            end->last_timestamp = times[n - 1];
            end->last_offset = block[n - 1];
            end->entries += n;
            end->done += n;
            continue;
        }
        if (end->entries == 0) n = 1;
        for (int64_t i = 0; i < n; i++, end->done++) {
            int why = append_time(end, times[i], block[i], skip_full_check);
            if (why != MQI_KAFKA_FINE) return why;
        }
    }
    return MQI_KAFKA_FINE;
}

void mqi_kafka_decode(const mqi_kafka_index *x, int64_t base_offset, int64_t start, int64_t stop, int64_t *first,
                      void *second) {
    for (int64_t i = start; i < stop; i++) {
        int64_t key = mqi_kafka_key(x, i);
        int32_t value = mqi_kafka_value(x, i);
        first[i - start] = x->times ? key : base_offset + key;
        if (x->times) ((int64_t *)second)[i - start] = base_offset + value;
        else ((int32_t *)second)[i - start] = value;
    }
}
