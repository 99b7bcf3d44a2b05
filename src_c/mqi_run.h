/* A run: index entries on their way from the log to index files, scratch between two stages of a build.
 *
 *   record   | 0 key_hash i32 | 4 phy_offset i64 | 12 store_timestamp i64, ms |      native byte order, packed, 20 bytes */
#ifndef MQI_RUN_H
#define MQI_RUN_H

#include <stdint.h>
#include <string.h>

enum {
    MQI_RUN_SIZE = 20,
    MQI_RUN_KEY_HASH = 0,
    MQI_RUN_PHY_OFFSET = 4,
    MQI_RUN_STORE_TIMESTAMP = 12,
};

static inline void mqi_run_put(uint8_t *record, int32_t key_hash, int64_t phy_offset, int64_t store_timestamp) {
    memcpy(record + MQI_RUN_KEY_HASH, &key_hash, sizeof key_hash);
    memcpy(record + MQI_RUN_PHY_OFFSET, &phy_offset, sizeof phy_offset);
    memcpy(record + MQI_RUN_STORE_TIMESTAMP, &store_timestamp, sizeof store_timestamp);
}

#endif
