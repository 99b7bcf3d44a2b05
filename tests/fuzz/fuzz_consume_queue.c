/* Any bytes as units of a queue file, and any units on their way there: nothing outside is read or written, and what is
 * encoded is what is decoded. */
#include "input.h"
#include "mqi_consume_queue.h"
#include "mqi_unit_tally.h"

enum { MOST_UNITS = 48, QUEUES = 5, MOST_HASHES = 9 };

static mqi_queue_unit *make_units(tape *t, int64_t n) {
    mqi_queue_unit *units = fresh((size_t)n * sizeof *units);
    for (int64_t i = 0; i < n; i++) {
        units[i] = (mqi_queue_unit){
            tape_field(t), tape_field(t), tape_field(t), i, (int32_t)tape_field(t), tape_byte(t) % (QUEUES + 1)};
    }
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

/* Every unit that passes is taken while there is room, and one without a size lies in no file of the log. */
static void take_some(const uint8_t *bytes, int64_t n, tape *t) {
    int64_t files = tape_byte(t) % 4, room = tape_byte(t) % MOST_UNITS, k = (int64_t)(tape_byte(t) % 7) - 1;
    int64_t *starts = fresh((size_t)files * 8), *stops = fresh((size_t)files * 8), *codes = fresh((size_t)room * 8);
    int64_t *offsets = fresh((size_t)room * 8), *phys = fresh((size_t)room * 8);
    int32_t *sizes = fresh((size_t)room * 4), hashes[MOST_HASHES];
    for (int64_t j = 0, at = tape_byte(t); j < files; j++)
        starts[j] = at, at += tape_byte(t), stops[j] = at, at += 1 + tape_byte(t) % 3;
    for (int64_t j = 0; j < k; j++) hashes[j] = (int32_t)tape_field(t);
    mqi_unit_take to = {starts, stops, files, offsets, phys, sizes, tape_byte(t) & 1 ? codes : 0, room, 0, 0};
    int64_t seen = mqi_units_take(&to, hashes, k, bytes, n, 7), gone = 0;
    HOLDS(seen >= 0 && seen <= n && to.found <= room && to.found <= seen && (seen == n || to.found == room));
    for (int64_t i = 0; i < to.found; i++) {
        int there = 0;
        for (int64_t j = 0; j < files; j++)
            there |= sizes[i] > 0 && phys[i] >= starts[j] && phys[i] <= stops[j] - sizes[i];
        HOLDS(there == (sizes[i] != 0) && offsets[i] >= 7 && offsets[i] < 7 + seen);
        gone += !there;
    }
    HOLDS(gone == to.gone && (k >= 0 || to.found == seen));
    free(starts), free(stops), free(codes), free(offsets), free(phys), free(sizes);
}

/* Each queue has its own units and bytes, and one unit of each `every` is kept, however the units come. */
static void tally(mqi_queue_unit *units, int64_t n, tape *t) {
    int64_t every = 1 + tape_byte(t) % 9, cut = n ? tape_byte(t) % n : 0, messages = 0, bytes = 0;
    mqi_unit_tally some = mqi_unit_tally_begin(every, 7), same = mqi_unit_tally_begin(every, 7);
    HOLDS(mqi_unit_tally_add(&some, units, n) == n);
    HOLDS(mqi_unit_tally_add(&same, units, cut) == cut && mqi_unit_tally_add(&same, units + cut, n - cut) == n - cut);
    const mqi_unit_sum *sums = (const mqi_unit_sum *)(const void *)some.sums.data;
    for (int64_t k = 0; k < some.sums.size / (int64_t)sizeof *sums; k++) {
        messages += sums[k].messages, bytes += sums[k].bytes;
        for (int64_t i = 0; i < n; i++)
            if (units[i].queue == k) messages--, bytes -= units[i].size;
    }
    HOLDS(!messages && !bytes);
    const mqi_queue_unit *kept = (const mqi_queue_unit *)(const void *)some.kept.data;
    int64_t m = some.kept.size / (int64_t)sizeof *kept;
    HOLDS(m == n / every || m == n / every + 1);
    for (int64_t k = 0; k < m; k++) HOLDS(kept[k].store_timestamp / every == k);
    HOLDS(some.kept.size == same.kept.size && (!m || !memcmp(kept, same.kept.data, (size_t)some.kept.size)));
    if (n) {
        units[cut].queue = -1;
        HOLDS(mqi_unit_tally_add(&same, units, n) == cut);
        units[cut].queue = 0;
    }
    mqi_unit_tally_free(&some), mqi_unit_tally_free(&same);
}

static void group(const mqi_queue_unit *units, int64_t n) {
    mqi_queue_unit *out = fresh((size_t)n * sizeof *out);
    int64_t offsets[QUEUES + 2];
    int64_t bad = mqi_units_count(units, n, QUEUES, offsets), sound = 1;
    HOLDS(bad < 0 || units[bad].queue == QUEUES);
    HOLDS(mqi_units_count(units, n, QUEUES + 1, offsets) < 0);
    mqi_units_sort(units, n, QUEUES + 1, out, offsets);
    for (int64_t i = 0; i < n; i++) sound &= units[i].phy_offset >= 0 && units[i].size > 0;
    HOLDS(mqi_units_sound(units, n) == sound);
    int64_t line = mqi_units_line(units, n, -1, INT64_MAX);
    for (int64_t i = 1; i < line; i++) HOLDS(units[i].queue_offset == units[i - 1].queue_offset + 1);
    HOLDS(offsets[0] == 0 && offsets[QUEUES + 1] == n);
    for (int k = 0; k <= QUEUES; k++) {
        for (int64_t i = offsets[k]; i < offsets[k + 1]; i++) {
            HOLDS(out[i].queue == k); /* store_timestamp is the unit's number: stable */
            HOLDS(i == offsets[k] || out[i - 1].store_timestamp < out[i].store_timestamp);
        }
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

static void match(const mqi_queue_unit *units, int64_t n, const uint8_t *bytes, int64_t places, tape *t) {
    mqi_unit_line lines[QUEUES];
    mqi_queue_unit *rest = fresh((size_t)n * sizeof *rest);
    for (int k = 0; k < QUEUES; k++) lines[k] = (mqi_unit_line){bytes, places, tape_byte(t) % 4, -1, 0};
    int64_t found, seen = mqi_units_match(lines, QUEUES, units, n, rest, &found);
    HOLDS(found <= seen && seen <= n);
    for (int k = 0; k < QUEUES; k++) HOLDS(lines[k].left <= places);
    for (int64_t i = 0; i < found; i++) HOLDS(lines[rest[i].queue].left < 0);
    free(rest);
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
    match(units, n, bytes, places, &t);
    read_all(bytes, places, &t);
    take_some(bytes, places, &t);
    tally(units, n, &t);
    free(units), free(bytes), free(differ);
    return 0;
}
