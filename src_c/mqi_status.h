/* The results of kernels: a status, and where the first bad bytes are. No kernel prints, raises, or allocates for the
 * caller unless its comment says so. */
#ifndef MQI_STATUS_H
#define MQI_STATUS_H

#include <stdint.h>

enum mqi_status {
    MQI_OK = 0,
    MQI_NO_MEMORY = -1,
};

/* One contradiction in a file. `kind` is an enumerator of the unit that reports it; `number` is that of the slot or
 * entry, -1 for the header; `at` is the byte in the file. */
typedef struct mqi_fault {
    int32_t kind;
    int64_t number;
    int64_t at;
    int64_t expected;
    int64_t got;
} mqi_fault;

#endif
