/* Writes all bytes at a place of a file. */
#ifndef MQI_WRITE_ALL_H
#define MQI_WRITE_ALL_H

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

/* 0, or an errno. */
static inline int mqi_write_all(int fd, const uint8_t *p, int64_t n, int64_t at) {
    while (n > 0) {
        ssize_t written = pwrite(fd, p, (size_t)n, (off_t)at);
        if (written >= 0) p += written, n -= written, at += written;
        else if (errno != EINTR) return errno;
    }
    return 0;
}

#endif
