/* Loaded before libc (LD_PRELOAD): counts the calls that a process makes below one directory, and lets one or two of
 * them fail. Between arm and disarm only; the calls of every thread count. Linux: glibc and musl.
 *
 * A call is below the directory if one of its paths, the file of its descriptor, or the file that it maps is. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ONCE, SHORT, FULL }; /* one call fails; one write takes half; from one call on there is no space */
enum { PLAIN, TAKES_SPACE, WRITES };

#define MOST_CALLS 100000
#define MOST_MAPS 4096

static char root[PATH_MAX];
static size_t root_length;
static struct {
    long at;
    int error, mode;
    char path[2 * PATH_MAX]; /* at which it struck; empty: it did not */
} strike[2];
static int strike_signal;
static volatile int armed;
static long counted;
static const char *names[MOST_CALLS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uintptr_t start, stop;
} maps[MOST_MAPS];

/* `told`: a signal that is raised where a call fails, 0: none. Who catches it can say who called. */
void mqi_faults_arm(const char *below, int told) {
    snprintf(root, sizeof root, "%s", below);
    root_length = strlen(root);
    strike_signal = told;
    counted = 0;
    armed = 1;
}

/* Before that, for each of both: call number `at` fails (0: none). */
void mqi_faults_strike(int which, long at, int error, int mode) {
    strike[which].at = at, strike[which].error = error, strike[which].mode = mode, strike[which].path[0] = 0;
}

long mqi_faults_disarm(void) {
    armed = 0;
    return counted;
}

const char *mqi_faults_name(long number) { return number < counted && number < MOST_CALLS ? names[number] : ""; }

const char *mqi_faults_struck(int which) { return strike[which].path; }

/* ---- which calls count ---- */

static int inside(const char *path) {
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int fd_path(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    out[n < 0 ? 0 : n] = 0;
    return n >= 0 && inside(out);
}

static int path_below(int dirfd, const char *path, char *out) {
    char base[PATH_MAX];
    if (!path) return 0;
    if (path[0] == '/') snprintf(out, PATH_MAX, "%s", path);
    else {
        if (dirfd != AT_FDCWD) fd_path(dirfd, base);
        else if (syscall(SYS_getcwd, base, sizeof base) < 0) return 0;
        if ((size_t)snprintf(out, PATH_MAX, path[0] ? "%s/%s" : "%s", base, path) >= PATH_MAX) return 0;
    }
    return inside(out);
}

static int map_below(void *start) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_MAPS && !found; i++)
        found = (uintptr_t)start - maps[i].start < maps[i].stop - maps[i].start;
    pthread_mutex_unlock(&lock);
    return found;
}

static void keep_map(void *start, size_t size) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_MAPS; i++)
        if (!maps[i].stop) {
            maps[i].start = (uintptr_t)start, maps[i].stop = (uintptr_t)start + size;
            break;
        }
    pthread_mutex_unlock(&lock);
}

static void forget_map(void *start) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_MAPS; i++)
        if (maps[i].stop && maps[i].start == (uintptr_t)start) maps[i].start = maps[i].stop = 0;
    pthread_mutex_unlock(&lock);
}

/* Counts one call; 1: it fails, with errno set; 2: it takes half of its bytes. */
static int strikes(const char *name, const char *path, int kind) {
    long number = __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
    if (number < MOST_CALLS) names[number] = name;
    number++;
    for (int i = 0; i < 2; i++) {
        int mode = strike[i].mode;
        if (!strike[i].at || number < strike[i].at || (number > strike[i].at && mode != FULL)) continue;
        if (mode == FULL && kind == PLAIN) continue;
        if (mode == SHORT && kind != WRITES) continue;
        if (!strike[i].path[0]) {
            snprintf(strike[i].path, sizeof strike[i].path, "%s", path);
            if (strike_signal) raise(strike_signal);
        }
        errno = strike[i].error;
        return mode == SHORT ? 2 : 1;
    }
    return 0;
}

static int at_path(const char *name, int dirfd, const char *path, int kind) {
    char full[PATH_MAX];
    int before = errno, hit = armed && path_below(dirfd, path, full) ? strikes(name, full, kind) : 0;
    if (!hit) errno = before;
    return hit;
}

static int at_paths(const char *name, int from, const char *path, int to, const char *other, int kind) {
    char full[PATH_MAX];
    int before = errno;
    int hit = armed && (path_below(to, other, full) || path_below(from, path, full)) ? strikes(name, full, kind) : 0;
    if (!hit) errno = before;
    return hit;
}

static int at_fd(const char *name, int fd, int kind) {
    char full[PATH_MAX];
    int before = errno, hit = armed && fd >= 0 && fd_path(fd, full) ? strikes(name, full, kind) : 0;
    if (!hit) errno = before;
    return hit;
}

static size_t half(int hit, size_t size) { return hit == 2 && size > 1 ? size / 2 : size; }

/* ---- the calls; those of glibc that take 64-bit lengths have a second name ---- */

#define REAL(type, name, ...)                                                                                          \
    static type (*real)(__VA_ARGS__);                                                                                  \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);

#define PATH_CALL(name, word, kind, dirfd, path, parameters, arguments)                                                \
    int name parameters {                                                                                              \
        static int(*real) parameters;                                                                                  \
        if (!real) real = (int(*) parameters)dlsym(RTLD_NEXT, #name);                                                  \
        return at_path(word, dirfd, path, kind) ? -1 : real arguments;                                                 \
    }

#define FD_CALL(type, name, word, parameters, arguments)                                                               \
    type name parameters {                                                                                             \
        static type(*real) parameters;                                                                                 \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                                 \
        return at_fd(word, fd, PLAIN) ? -1 : real arguments;                                                           \
    }

PATH_CALL(mkdir, "mkdir", TAKES_SPACE, AT_FDCWD, p, (const char *p, mode_t m), (p, m))
PATH_CALL(mkdirat, "mkdir", TAKES_SPACE, d, p, (int d, const char *p, mode_t m), (d, p, m))
PATH_CALL(symlink, "symlink", TAKES_SPACE, AT_FDCWD, p, (const char *to, const char *p), (to, p))
PATH_CALL(symlinkat, "symlink", TAKES_SPACE, d, p, (const char *to, int d, const char *p), (to, d, p))
PATH_CALL(rmdir, "rmdir", PLAIN, AT_FDCWD, p, (const char *p), (p))
PATH_CALL(unlink, "unlink", PLAIN, AT_FDCWD, p, (const char *p), (p))
PATH_CALL(unlinkat, "unlink", PLAIN, d, p, (int d, const char *p, int f), (d, p, f))
PATH_CALL(chmod, "chmod", PLAIN, AT_FDCWD, p, (const char *p, mode_t m), (p, m))
PATH_CALL(fchmodat, "chmod", PLAIN, d, p, (int d, const char *p, mode_t m, int f), (d, p, m, f))
PATH_CALL(chown, "chown", PLAIN, AT_FDCWD, p, (const char *p, uid_t u, gid_t g), (p, u, g))
PATH_CALL(lchown, "chown", PLAIN, AT_FDCWD, p, (const char *p, uid_t u, gid_t g), (p, u, g))
PATH_CALL(fchownat, "chown", PLAIN, d, p, (int d, const char *p, uid_t u, gid_t g, int f), (d, p, u, g, f))
PATH_CALL(stat, "stat", PLAIN, AT_FDCWD, p, (const char *p, struct stat *s), (p, s))
PATH_CALL(lstat, "stat", PLAIN, AT_FDCWD, p, (const char *p, struct stat *s), (p, s))
PATH_CALL(fstatat, "stat", PLAIN, d, p, (int d, const char *p, struct stat *s, int f), (d, p, s, f))
PATH_CALL(statvfs, "statvfs", PLAIN, AT_FDCWD, p, (const char *p, struct statvfs *s), (p, s))
PATH_CALL(truncate, "ftruncate", PLAIN, AT_FDCWD, p, (const char *p, off_t n), (p, n))
FD_CALL(int, fstat, "stat", (int fd, struct stat *s), (fd, s))
FD_CALL(int, fstatvfs, "statvfs", (int fd, struct statvfs *s), (fd, s))
FD_CALL(int, ftruncate, "ftruncate", (int fd, off_t n), (fd, n))
FD_CALL(int, fsync, "fsync", (int fd), (fd))
FD_CALL(int, fdatasync, "fsync", (int fd), (fd))
FD_CALL(int, fchmod, "chmod", (int fd, mode_t m), (fd, m))
FD_CALL(int, fchown, "chown", (int fd, uid_t u, gid_t g), (fd, u, g))
FD_CALL(int, flock, "lock", (int fd, int how), (fd, how))
FD_CALL(ssize_t, read, "read", (int fd, void *p, size_t n), (fd, p, n))
FD_CALL(ssize_t, pread, "read", (int fd, void *p, size_t n, off_t at), (fd, p, n, at))

int statx(int d, const char *restrict p, int f, unsigned mask, struct statx *restrict s) {
    REAL(int, statx, int, const char *, int, unsigned, struct statx *)
    int hit = p[0] ? at_path("stat", d, p, PLAIN) : at_fd("stat", d, PLAIN);
    return hit ? -1 : real(d, p, f, mask, s);
}

#define RENAME(name, word, kind, from, p, to, o, parameters, arguments)                                                \
    int name parameters {                                                                                              \
        static int(*real) parameters;                                                                                  \
        if (!real) real = (int(*) parameters)dlsym(RTLD_NEXT, #name);                                                  \
        return at_paths(word, from, p, to, o, kind) ? -1 : real arguments;                                             \
    }

RENAME(rename, "rename", PLAIN, AT_FDCWD, p, AT_FDCWD, o, (const char *p, const char *o), (p, o))
RENAME(renameat, "rename", PLAIN, d, p, e, o, (int d, const char *p, int e, const char *o), (d, p, e, o))
RENAME(renameat2, "rename", PLAIN, d, p, e, o, (int d, const char *p, int e, const char *o, unsigned f),
       (d, p, e, o, f))
RENAME(link, "link", TAKES_SPACE, AT_FDCWD, p, AT_FDCWD, o, (const char *p, const char *o), (p, o))
RENAME(linkat, "link", TAKES_SPACE, d, p, e, o, (int d, const char *p, int e, const char *o, int f), (d, p, e, o, f))

#define WRITE(name, parameters, arguments)                                                                             \
    ssize_t name parameters {                                                                                          \
        static ssize_t(*real) parameters;                                                                              \
        if (!real) real = (ssize_t(*) parameters)dlsym(RTLD_NEXT, #name);                                              \
        int hit = at_fd("write", fd, WRITES);                                                                          \
        if (hit == 1) return -1;                                                                                       \
        n = half(hit, n);                                                                                              \
        return real arguments;                                                                                         \
    }

WRITE(write, (int fd, const void *p, size_t n), (fd, p, n))
WRITE(pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))

static ssize_t vectored(const char *name, int hit, int fd, const struct iovec *v, int n, off_t at) {
    if (hit == 1) return -1;
    if (hit == 2 && n && v[0].iov_len > 1) { /* half of the first one */
        struct iovec first = {v[0].iov_base, v[0].iov_len / 2};
        return syscall(SYS_pwritev, fd, &first, 1L, (long)at, 0L);
    }
    ssize_t (*real)(int, const struct iovec *, int, off_t) = (void *)dlsym(RTLD_NEXT, name);
    return real(fd, v, n, at);
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at) {
    return vectored("pwritev", at_fd("write", fd, WRITES), fd, v, n, at);
}

ssize_t writev(int fd, const struct iovec *v, int n) {
    REAL(ssize_t, writev, int, const struct iovec *, int)
    return at_fd("write", fd, TAKES_SPACE) ? -1 : real(fd, v, n);
}

ssize_t copy_file_range(int in, off64_t *from, int fd, off64_t *to, size_t n, unsigned f) {
    REAL(ssize_t, copy_file_range, int, off64_t *, int, off64_t *, size_t, unsigned)
    int hit = at_fd("copy", fd, WRITES);
    return hit == 1 ? -1 : real(in, from, fd, to, half(hit, n), f);
}

ssize_t sendfile(int fd, int in, off_t *from, size_t n) {
    REAL(ssize_t, sendfile, int, int, off_t *, size_t)
    int hit = at_fd("copy", fd, WRITES);
    return hit == 1 ? -1 : real(fd, in, from, half(hit, n));
}

int fallocate(int fd, int mode, off_t at, off_t n) {
    REAL(int, fallocate, int, int, off_t, off_t)
    return at_fd("fallocate", fd, TAKES_SPACE) ? -1 : real(fd, mode, at, n);
}

int posix_fallocate(int fd, off_t at, off_t n) {
    REAL(int, posix_fallocate, int, off_t, off_t)
    int before = errno, failed = at_fd("fallocate", fd, TAKES_SPACE) ? errno : 0;
    errno = before;
    return failed ? failed : real(fd, at, n);
}

static mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; }

static int opens(int dirfd, const char *path, int flags) {
    int makes = (flags & O_TMPFILE) == O_TMPFILE || (flags & O_CREAT && syscall(SYS_faccessat, dirfd, path, F_OK) < 0);
    return at_path(flags & O_CREAT || makes ? "create" : "open", dirfd, path, makes ? TAKES_SPACE : PLAIN);
}

#define OPEN(name)                                                                                                     \
    int name(const char *p, int flags, ...) {                                                                          \
        REAL(int, name, const char *, int, ...)                                                                        \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = mode_of(flags, rest);                                                                            \
        va_end(rest);                                                                                                  \
        return opens(AT_FDCWD, p, flags) ? -1 : real(p, flags, mode);                                                  \
    }
#define OPENAT(name)                                                                                                   \
    int name(int d, const char *p, int flags, ...) {                                                                   \
        REAL(int, name, int, const char *, int, ...)                                                                   \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = mode_of(flags, rest);                                                                            \
        va_end(rest);                                                                                                  \
        return opens(d, p, flags) ? -1 : real(d, p, flags, mode);                                                      \
    }
OPEN(open)
OPENAT(openat)

DIR *opendir(const char *p) {
    REAL(DIR *, opendir, const char *)
    return at_path("open", AT_FDCWD, p, PLAIN) ? 0 : real(p);
}

#define FCNTL(name)                                                                                                    \
    int name(int fd, int what, ...) {                                                                                  \
        REAL(int, name, int, int, ...)                                                                                 \
        va_list rest;                                                                                                  \
        va_start(rest, what);                                                                                          \
        void *more = va_arg(rest, void *);                                                                             \
        va_end(rest);                                                                                                  \
        int locks = what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK || what == F_OFD_SETLKW;                \
        return locks && at_fd("lock", fd, PLAIN) ? -1 : real(fd, what, more);                                          \
    }
FCNTL(fcntl)

#define MMAP(name)                                                                                                     \
    void *name(void *start, size_t size, int prot, int flags, int fd, off_t at) {                                      \
        REAL(void *, name, void *, size_t, int, int, int, off_t)                                                       \
        if (flags & MAP_ANONYMOUS || fd < 0) return real(start, size, prot, flags, fd, at);                            \
        if (at_fd("mmap", fd, PLAIN)) return MAP_FAILED;                                                               \
        void *got = real(start, size, prot, flags, fd, at);                                                            \
        char full[PATH_MAX];                                                                                           \
        if (got != MAP_FAILED && armed && fd_path(fd, full)) keep_map(got, size);                                      \
        return got;                                                                                                    \
    }
MMAP(mmap)

int munmap(void *start, size_t size) {
    REAL(int, munmap, void *, size_t)
    if (armed) forget_map(start);
    return real(start, size);
}

int msync(void *start, size_t size, int flags) {
    REAL(int, msync, void *, size_t, int)
    int before = errno;
    if (armed && map_below(start) && strikes("msync", "a mapping", PLAIN)) return -1;
    errno = before;
    return real(start, size, flags);
}

#ifdef __GLIBC__
PATH_CALL(stat64, "stat", PLAIN, AT_FDCWD, p, (const char *p, struct stat64 *s), (p, s))
PATH_CALL(lstat64, "stat", PLAIN, AT_FDCWD, p, (const char *p, struct stat64 *s), (p, s))
PATH_CALL(fstatat64, "stat", PLAIN, d, p, (int d, const char *p, struct stat64 *s, int f), (d, p, s, f))
PATH_CALL(statvfs64, "statvfs", PLAIN, AT_FDCWD, p, (const char *p, struct statvfs64 *s), (p, s))
PATH_CALL(truncate64, "ftruncate", PLAIN, AT_FDCWD, p, (const char *p, off64_t n), (p, n))
FD_CALL(int, fstat64, "stat", (int fd, struct stat64 *s), (fd, s))
FD_CALL(int, fstatvfs64, "statvfs", (int fd, struct statvfs64 *s), (fd, s))
FD_CALL(int, ftruncate64, "ftruncate", (int fd, off64_t n), (fd, n))
FD_CALL(ssize_t, pread64, "read", (int fd, void *p, size_t n, off64_t at), (fd, p, n, at))
WRITE(pwrite64, (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at))
OPEN(open64)
OPENAT(openat64)

int __open64_2(const char *p, int flags) { return open64(p, flags); }
int __openat64_2(int d, const char *p, int flags) { return openat64(d, p, flags); }
FCNTL(fcntl64)
MMAP(mmap64)

ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t at) {
    return vectored("pwritev64", at_fd("write", fd, WRITES), fd, v, n, at);
}

ssize_t sendfile64(int fd, int in, off64_t *from, size_t n) {
    REAL(ssize_t, sendfile64, int, int, off64_t *, size_t)
    int hit = at_fd("copy", fd, WRITES);
    return hit == 1 ? -1 : real(fd, in, from, half(hit, n));
}

int fallocate64(int fd, int mode, off64_t at, off64_t n) {
    REAL(int, fallocate64, int, int, off64_t, off64_t)
    return at_fd("fallocate", fd, TAKES_SPACE) ? -1 : real(fd, mode, at, n);
}

int posix_fallocate64(int fd, off64_t at, off64_t n) {
    REAL(int, posix_fallocate64, int, off64_t, off64_t)
    int before = errno, failed = at_fd("fallocate", fd, TAKES_SPACE) ? errno : 0;
    errno = before;
    return failed ? failed : real(fd, at, n);
}
#endif
