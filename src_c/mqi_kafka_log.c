#include "mqi_kafka_log.h"

/* ---- walk ---------------------------------------------------------------------------------------------------------- */

int64_t mqi_kafka_scan_batches(const mqi_kafka_log *log, mqi_kafka_scan *scan, int64_t stop, mqi_kafka_batch *out,
                               int64_t max) {
    int64_t n = 0;
    while (n < max && scan->at < stop) {
        mqi_batch_head h;
        if (UNLIKELY(mqi_batch_read_checked(log, scan->at, &h, &scan->fault) != MQI_BATCH_WHOLE)) {
            scan->done = 1;
            return n;
        }
        __builtin_prefetch(log->buf + scan->at + h.size);
        mqi_batch_read_row(log->buf + scan->at, scan->at, &h, out + n++);
        scan->at += h.size;
    }
    scan->done = scan->at >= stop;
    return n;
}

int mqi_kafka_find_batch(const mqi_kafka_log *log, mqi_kafka_scan *scan, int64_t stop, int column, int64_t target,
                         mqi_kafka_batch *out) {
    while (scan->at < stop) {
        mqi_batch_head h;
        if (UNLIKELY(mqi_batch_read_head(log, scan->at, &h, &scan->fault) != MQI_BATCH_WHOLE)) break;
        int64_t at = scan->at;
        scan->at += h.size;
        if ((column == MQI_FIND_LAST_OFFSET ? h.last_offset : h.max_timestamp) >= target) {
            mqi_batch_read_row(log->buf + at, at, &h, out);
            return 1;
        }
    }
    scan->done = 1;
    return 0;
}

/* ---- search, many at once ------------------------------------------------------------------------------------------ */

/* Whether the walk of which a batch begins at `edge` has one at `position`; moves `edge` there, or past it. */
static int is_on_walk(const mqi_kafka_log *log, int64_t *edge, int64_t position) {
    mqi_batch_fault fault;
    mqi_batch_head h;
    while (*edge < position && mqi_batch_read_head(log, *edge, &h, &fault) == MQI_BATCH_WHOLE) *edge += h.size;
    return *edge == position;
}

void mqi_kafka_find_batches(const mqi_kafka_log *log, int64_t stop, const int64_t *starts, const int64_t *times,
                            int64_t n, int64_t *found, mqi_batch_fault *fault) {
    /* All batches of [from, at) are below `time`; `at` is a batch that is not, or the end of what can be read. A walk
     * goes on for a start that is a batch of it: one within a batch leads elsewhere. `edge`: one of its batches. */
    int64_t from = 0, at = -1, edge = 0, time = 0;
    int ended = 0;
    for (int64_t i = 0; i < n; i++) {
        int goes_on = from <= starts[i] && starts[i] <= at && time <= times[i];
        if (starts[i] == at) edge = at;
        goes_on = goes_on && edge <= starts[i] && is_on_walk(log, &edge, starts[i]);
        mqi_kafka_batch batch = {.position = -1};
        mqi_kafka_scan scan = {.at = starts[i]};
        time = times[i];
        if (goes_on) {
            scan.at = at;
        } else {
            from = edge = starts[i];
            ended = 0;
        }
        if (!ended && mqi_kafka_find_batch(log, &scan, stop, MQI_FIND_MAX_TIMESTAMP, time, &batch)) {
            at = batch.position;
        } else if (!ended) {
            at = scan.at; /* nothing can be read from here on */
            ended = 1;
            if (scan.fault.kind != MQI_BATCH_FINE) *fault = scan.fault;
        }
        found[i] = batch.position;
    }
}

int64_t mqi_kafka_batches_at(const mqi_kafka_log *log, const int64_t *positions, int64_t n, mqi_kafka_batch *out) {
    for (int64_t i = 0; i < n; i++) {
        mqi_kafka_scan scan = {.at = positions[i]};
        if (mqi_kafka_scan_batches(log, &scan, positions[i] + 1, out + i, 1) == 0) return i;
    }
    return n;
}

void mqi_first_not_below(const int64_t *values, const int64_t *starts, const int64_t *stops, const int64_t *targets,
                         int64_t n, int64_t *found) {
    int64_t from = 0, at = -1, target = 0; /* all of [from, at) is below `target` */
    for (int64_t i = 0; i < n; i++) {
        int goes_on = from <= starts[i] && starts[i] <= at && target <= targets[i];
        if (!goes_on) from = at = starts[i];
        target = targets[i];
        while (at < stops[i] && values[at] < target) at++;
        found[i] = at < stops[i] ? at : -1;
    }
}
