/* From frames to index entries and to units of consume queues. A cursor reads the head of frame k + 1, and prefetches
 * what follows its body and the head after that, before it hashes the keys of frame k; several cursors take turns, each
 * in a window of its own. So nearly no load waits for memory, for bodies of any size. */
#ifndef MQI_LOG_EXTRACT_H
#define MQI_LOG_EXTRACT_H

#include "mqi_log_find.h"
#include "mqi_log_queues.h"
#include "mqi_run.h"

#define MQI_LOG_CURSORS 8        /* an Intel Xeon with 6 takes 15 % longer; an AMD EPYC has enough with 6 */
#ifndef MQI_LOG_WINDOW           /* the fuzzer's windows are small */
#define MQI_LOG_WINDOW (2 << 20) /* bytes of log per cursor and step: so many that a step costs little */
#endif
#define MQI_LOG_MAX_ENTRIES (32767 / 2 + 3)                /* of one message: its properties have at most 32767 bytes */
#define MQI_LOG_RUN_ENTRIES (131072 + MQI_LOG_MAX_ENTRIES) /* room for the output of one cursor in one step */
#define MQI_LOG_RUN_UNITS MQI_LOG_RUN_ENTRIES              /* of one message: its own and one for each two bytes */

typedef struct {
    uint8_t *run;          /* MQI_LOG_RUN_ENTRIES * MQI_RUN_SIZE bytes, the caller's */
    mqi_queue_unit *units; /* room for MQI_LOG_RUN_UNITS, the caller's; 0 where there is no table of queues */
    int64_t first;         /* where the cursor began; -1: there is no frame in its window */
    int64_t at;            /* of the first frame that was not extracted; after a blank record its end */
    int64_t stop;
    int state;
    mqi_log_head head; /* of the frame at `at`, in the state MQI_CURSOR_RUNS */
    uint8_t *next;     /* where in `run` the next entry goes */
    int64_t entries, n_units, messages;
    int64_t last_message, last_entry, blank; /* positions, -1: none */
    mqi_log_fault fault;
} mqi_log_cursor;

/* Extracts [at, stop), a few windows a step, each by a cursor of its own so that their cache misses overlap. */
typedef struct {
    mqi_log log;
    int tags;               /* also topic#T#TAGS, as brokers from 5.4 on */
    mqi_log_queues *queues; /* 0: no units. It keeps also the queues of runs that are not confirmed */
    int64_t at, stop;
    mqi_log_cursor cursor[MQI_LOG_CURSORS];
    int confirmed; /* after a step: the runs of this many cursors are the output, in order */
    int done;
    int64_t messages, entries;
    int64_t last_message, last_entry, blank; /* positions, -1: none */
    mqi_log_fault fault;
} mqi_log_extract;

/* The caller has set log, tags, queues, at, stop (the log's end at most) and every cursor's run and units. */
int mqi_log_allows_multi_dispatch(const mqi_log_queues *queues, const uint8_t *topic, int32_t n);
void mqi_log_extract_start(mqi_log_extract *x);
void mqi_log_extract_step(mqi_log_extract *x); /* while it is not done */

#endif
