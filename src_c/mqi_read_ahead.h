/* Bytes of a mapped file that will be read soon are read ahead. Advice: without it only time is lost. */
#ifndef MQI_READ_AHEAD_H
#define MQI_READ_AHEAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MQI_READ_AHEAD = 1 << 17 }; /* Linux reads no more for one advice, unless a disk is set to more */

static inline void mqi_read_ahead(const uint8_t *start, size_t size) {
    size_t into = (uintptr_t)start % (uintptr_t)sysconf(_SC_PAGESIZE);
    start -= into;
    size += into;
    while (size > 0) {
        size_t piece = size < MQI_READ_AHEAD ? size : MQI_READ_AHEAD;
        madvise((void *)start, piece, MADV_WILLNEED);
        start += piece;
        size -= piece;
    }
}

#endif
