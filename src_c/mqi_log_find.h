/* Where a record of the commit log begins: resynchronisation, and the last record of a log that grows. */
#ifndef MQI_LOG_FIND_H
#define MQI_LOG_FIND_H

#include "mqi_log_frame.h"

/* The first position in [at, stop) of a whole frame whose stored phy offset is its own, or of a blank record that fills
 * the file; -1: none. */
int64_t mqi_log_find(const mqi_log *log, int64_t at, int64_t stop);

/* Walks from a record's head at `at` by sizes alone, over records that begin in [at, stop): returns where the last one
 * with a head begins, and its `*end`, which is the same place if it has no size. */
int64_t mqi_log_last(const mqi_log *log, int64_t at, int64_t stop, int64_t *end);

#endif
