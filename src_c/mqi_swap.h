/* Two names exchange what they lead to, at once: at every moment both lead to something. _GNU_SOURCE must be defined
 * before the first header. */
#ifndef MQI_SWAP_H
#define MQI_SWAP_H

#include <errno.h>
#include <stdio.h>

/* `mqi_swap`: 0, or an errno; ENOSYS, EINVAL, ENOTSUP: the system or the file system cannot. */
#if defined(__linux__)
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int mqi_swap(const char *one, const char *other) {
    enum { EXCHANGE = 2 }; /* RENAME_EXCHANGE of <linux/fs.h> */
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 28)
    return renameat2(AT_FDCWD, one, AT_FDCWD, other, EXCHANGE) == 0 ? 0 : errno;
#else
    return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, EXCHANGE) == 0 ? 0 : errno;
#endif
}
#elif defined(__APPLE__)
static inline int mqi_swap(const char *one, const char *other) {
    return renamex_np(one, other, RENAME_SWAP) == 0 ? 0 : errno;
}
#else
static inline int mqi_swap(const char *one, const char *other) {
    (void)one, (void)other;
    return ENOSYS;
}
#endif

#endif
