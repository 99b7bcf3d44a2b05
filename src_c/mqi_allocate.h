/* Blocks of the disk for bytes that will be written; _GNU_SOURCE must be defined before the first header. */
#ifndef MQI_ALLOCATE_H
#define MQI_ALLOCATE_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

/* 0, or an errno: ENOTSUP, ENOSPC, ... Never longer than it was, and no byte changes. */
static inline int mqi_allocate(int fd, int64_t at, int64_t size) {
#if defined(__linux__)
    return fallocate(fd, FALLOC_FL_KEEP_SIZE, at, size) == 0 ? 0 : errno;
#else
    (void)fd, (void)at, (void)size;
    return ENOTSUP;
#endif
}

#endif
