/* Any bytes as units of a queue file, and any units on their way there: nothing outside is read or written, and what is
 * encoded is what is decoded. */
#include "input.h"
#include "mqi_consume_queue.h"

enum { MOST_UNITS = 48, QUEUES = 5, MOST_HASHES = 9 };

static mqi_queue_unit *make_units(tape *t, int64_t n) {
    mqi_queue_unit *units = fresh((size_t)n * sizeof *units);
    for (int64_t i = 0; i < n; i++)
        units[i] = (mqi_queue_unit){tape_field(t), tape_field(t),          tape_field(t),
                                    i,             (int32_t)tape_field(t), tape_byte(t) % (QUEUES + 1)};
    return units;
}

static void read_all(const uint8_t *bytes, int64_t n, tape *t) {
    int64_t *phys = fresh((size_t)n * 8), *codes = fresh((size_t)n * 8), *found = fresh((size_t)n * 8);
    int32_t *sizes = fresh((size_t)n * 4), hashes[MOST_HASHES];
    mqi_units_decode(bytes, n, phys, sizes, codes);
    int64_t valid = mqi_units_check(bytes, n), k = tape_byte(t) % (MOST_HASHES + 1), at = 0;
    for (int64_t i = 0; i < n; i++) HOLDS(i > valid || (i < valid) == (phys[i] >= 0 && sizes[i] > 0));
    for (int64_t j = 0; j < k; j++) hashes[j] = (int32_t)(tape_byte(t) & 1 || !n ? tape_field(t) : codes[j % n]);
    int64_t m = mqi_units_select(bytes, n, 7, hashes, k, found);
    for (int64_t i = 0; i < n; i++) {
        int passes = codes[i] <= MQI_MAX_EXT_ADDRESS;
        for (int64_t j = 0; j < k; j++) passes |= (int32_t)codes[i] == hashes[j];
        HOLDS(!passes || (at < m && found[at] == i + 7));
        at += passes;
    }
    HOLDS(at == m);
    free(phys), free(codes), free(found), free(sizes);
}

static void group(const mqi_queue_unit *units, int64_t n) {
    mqi_queue_unit *out = fresh((size_t)n * sizeof *out);
    int64_t offsets[QUEUES + 2];
    int64_t bad = mqi_units_group(units, n, QUEUES, out, offsets);
    HOLDS(bad < 0 || units[bad].queue == QUEUES);
    HOLDS(mqi_units_group(units, n, QUEUES + 1, out, offsets) < 0);
    HOLDS(offsets[0] == 0 && offsets[QUEUES + 1] == n);
    for (int k = 0; k <= QUEUES; k++)
        for (int64_t i = offsets[k]; i < offsets[k + 1]; i++) {
            HOLDS(out[i].queue == k); /* store_timestamp is the unit's number: stable */
            HOLDS(i == offsets[k] || out[i - 1].store_timestamp < out[i].store_timestamp);
        }
    free(out);
}

static void append(const mqi_queue_unit *units, int64_t n, tape *t) {
    int64_t next = tape_byte(t);
    mqi_unit_append end = {.next_offset = next, .max_phy_offset = tape_field(t)};
    uint8_t *out = fresh((size_t)n * MQI_UNIT_SIZE);
    int64_t *differ = fresh((size_t)n * 8), written = mqi_units_encode(&end, units, n, out);
    HOLDS(written + end.repeated == n && end.next_offset == next + written && end.misplaced <= written);
    uint8_t *exact = fresh((size_t)written * MQI_UNIT_SIZE);
    memcpy(exact, out, (size_t)written * MQI_UNIT_SIZE);
    int64_t m = mqi_units_compare(exact, written, next, units, n, differ);
    for (int64_t i = 0; i < m; i++) HOLDS(differ[i] >= 0 && differ[i] < n && (!i || differ[i - 1] < differ[i]));
    read_all(exact, written, t);
    free(out), free(differ), free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tape t = {data, data + size};
    int64_t n = tape_byte(&t) % MOST_UNITS;
    mqi_queue_unit *units = make_units(&t, n);
    group(units, n);
    append(units, n, &t);
    int64_t places = (t.end - t.at) / MQI_UNIT_SIZE;
    uint8_t *bytes = fresh((size_t)places * MQI_UNIT_SIZE);
    int64_t *differ = fresh((size_t)n * 8);
    tape_copy(&t, bytes, (size_t)places * MQI_UNIT_SIZE);
    mqi_units_compare(bytes, places, units ? (int64_t)tape_byte(&t) - 2 : 0, units, n, differ);
    read_all(bytes, places, &t);
    free(units), free(bytes), free(differ);
    return 0;
}
