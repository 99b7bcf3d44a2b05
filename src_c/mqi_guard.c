#define _GNU_SOURCE
#include "mqi_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK 256  /* ranges that are allocated at once */
#define HANDLERS 8 /* different ones that were installed before ours, one after the other */

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

typedef struct chunk {
    mqi_guard_range ranges[CHUNK];
    struct chunk *_Atomic next;
} chunk;

static chunk *_Atomic chunks; /* never freed: a handler may be walking there */
static mqi_guard_range *unused;
static uintptr_t page_size;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all changes; the handler reads without */

static struct sigaction earlier[HANDLERS]; /* the last is the one that ours replaced */
static atomic_int n_earlier;
static atomic_int passing; /* handlers without siginfo that are running: one may raise the signal again */

/* ---- the handler: nothing here takes a lock or memory */

mqi_guard_range *mqi_guard_find(const void *byte) {
    uintptr_t at = (uintptr_t)byte;
    for (chunk *some = atomic_load(&chunks); some != NULL; some = atomic_load(&some->next)) {
        for (int i = 0; i < CHUNK; i++) {
            mqi_guard_range *range = &some->ranges[i];
            unsigned turn = atomic_load_explicit(&range->turn, memory_order_acquire);
            uintptr_t start = atomic_load_explicit(&range->start, memory_order_relaxed);
            uintptr_t end = atomic_load_explicit(&range->end, memory_order_relaxed);
            if (turn % 2 != 0 || at < start || at >= end) continue;
            atomic_thread_fence(memory_order_acquire);
            unsigned still = atomic_load_explicit(&range->turn, memory_order_relaxed);
            if (still == turn) return range; /* GCOVR_EXCL_BR_LINE: false where it was changed in between */
        }
    }
    return NULL;
}

static int map_zeros(uintptr_t from, uintptr_t to, int writable) {
    int access = PROT_READ | (writable ? PROT_WRITE : 0);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    void *start = (void *)from; /* NOLINT(performance-no-int-to-ptr): a page's begin is arithmetic */
    return mmap(start, to - from, access, flags, -1, 0) != MAP_FAILED;
}

static int put_zero_pages(const void *byte) {
    mqi_guard_range *range = mqi_guard_find(byte);
    if (range == NULL) return 0;
    uintptr_t page = (uintptr_t)byte & ~(page_size - 1);
    uintptr_t end = atomic_load_explicit(&range->end, memory_order_relaxed);
    int writable = atomic_load_explicit(&range->writable, memory_order_relaxed);
    atomic_store(&range->cut, 1); /* first: a reader of the zeros must find the mark */
    return map_zeros(page, end, writable) || map_zeros(page, page + page_size, writable);
}

/* Passes the signal to the handlers before ours. A handler without siginfo can resolve no fault: if it returns from
 * one, the next one is called, or the fault would repeat without end. One that raises the signal itself, as Python's
 * faulthandler does to end the process, gets here a second time, and the one before it is called. */
static void pass_on(int number, siginfo_t *info, void *context) {
    int fault = info->si_code > 0;
    int first = atomic_load(&n_earlier) - 1 - atomic_load(&passing);
    for (int i = first; i >= 0; i--) { /* GCOVR_EXCL_BR_LINE: after the last of them the process dies */
        const struct sigaction *handler = &earlier[i];
        if (handler->sa_flags & SA_SIGINFO) {
            handler->sa_sigaction(number, info, context);
            return;
        }
        if (handler->sa_handler == SIG_DFL) break; /* GCOVR_EXCL_BR_LINE: the process dies */
        if (handler->sa_handler != SIG_IGN) {
            int levels = first + 1 - i;
            atomic_fetch_add(&passing, levels);
            handler->sa_handler(number);
            atomic_fetch_sub(&passing, levels);
        }
        if (!fault) return;
    }
    /* GCOVR_EXCL_START: the process dies of it, and its counts with it */
    (void)signal(number, SIG_DFL);
    if (!fault) (void)raise(number); /* a fault repeats by itself, at the same place */
    /* GCOVR_EXCL_STOP */
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    int saved = errno;
    int missing = info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR; /* GCOVR_EXCL_BR_LINE: not on Linux */
    int settled = missing && put_zero_pages(info->si_addr);
    if (!settled) pass_on(number, info, context);
    errno = saved;
}

/* ---- ranges; with the lock held */

static int same_handler(const struct sigaction *one, const struct sigaction *other) {
    if ((one->sa_flags & SA_SIGINFO) != (other->sa_flags & SA_SIGINFO)) return 0;
    return one->sa_flags & SA_SIGINFO ? one->sa_sigaction == other->sa_sigaction : one->sa_handler == other->sa_handler;
}

static void remember(const struct sigaction *handler) {
    int n = atomic_load(&n_earlier);
    for (int i = 0; i < n; i++) {
        if (same_handler(&earlier[i], handler)) {
            atomic_store(&n_earlier, i + 1); /* it came back */
            return;
        }
    }
    if (n == HANDLERS) n--;
    earlier[n] = *handler;
    atomic_store(&n_earlier, n + 1);
}

/* Our handler must be called first, even if others were installed since. */
static void install(void) {
    struct sigaction ours, now;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, NULL, &now);
    if (same_handler(&now, &ours)) return;
    remember(&now);
    sigaction(SIGBUS, &ours, NULL);
}

static void take_lock(void) { pthread_mutex_lock(&lock); }
static void leave_lock(void) { pthread_mutex_unlock(&lock); }

static void begin(void) {
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    pthread_atfork(take_lock, leave_lock, leave_lock); /* a child must not begin with a lock that nobody releases */
}

static int grow(void) {
    chunk *fresh = calloc(1, sizeof(chunk));
    if (fresh == NULL) return 0;
    for (int i = 0; i < CHUNK; i++) {
        atomic_store(&fresh->ranges[i].turn, 1);
        fresh->ranges[i].next_free = unused;
        unused = &fresh->ranges[i];
    }
    atomic_store(&fresh->next, atomic_load(&chunks));
    atomic_store(&chunks, fresh);
    return 1;
}

mqi_guard_range *mqi_guard_add(void *start, size_t length, int writable, void *owner) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    take_lock();
    install();
    mqi_guard_range *range = unused != NULL || grow() ? unused : NULL;
    if (range != NULL) {
        unused = range->next_free;
        range->owner = owner;
        atomic_store_explicit(&range->start, (uintptr_t)start, memory_order_relaxed);
        atomic_store_explicit(&range->end, ((uintptr_t)start + length + page_size - 1) & ~(page_size - 1),
                              memory_order_relaxed);
        atomic_store_explicit(&range->writable, writable, memory_order_relaxed);
        atomic_store_explicit(&range->cut, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&range->turn, 1, memory_order_release);
    }
    leave_lock();
    return range;
}

/* A file without bytes, one for all ranges; -1: none can be made. */
static int empty_file(void) {
    static int fd = -1;
    take_lock();
    if (fd < 0) {
#ifdef __linux__
        fd = memfd_create("mqindex", MFD_CLOEXEC);
#else
        FILE *file = tmpfile();
        fd = file != NULL ? dup(fileno(file)) : -1;
        if (file != NULL) (void)fclose(file);
#endif
    }
    leave_lock();
    return fd;
}

static void *map_nothing(void *start, size_t length, int flags) {
    int fd = empty_file();
    return fd < 0 ? MAP_FAILED : mmap(start, length, PROT_READ, MAP_SHARED | MAP_NORESERVE | flags, fd, 0);
}

void *mqi_guard_map_nothing(size_t length) {
    void *start = map_nothing(NULL, length, 0);
    return start == MAP_FAILED ? NULL : start;
}

int mqi_guard_show(mqi_guard_range *range, size_t from, size_t to) {
    uintptr_t start = atomic_load_explicit(&range->start, memory_order_relaxed);
    return map_zeros(start + from, start + to, 1);
}

int mqi_guard_hide(mqi_guard_range *range, size_t from, size_t to) {
    uintptr_t start = atomic_load_explicit(&range->start, memory_order_relaxed);
    void *first = (void *)(start + from); /* NOLINT(performance-no-int-to-ptr): a page's begin is arithmetic */
    return map_nothing(first, to - from, MAP_FIXED) != MAP_FAILED;
}

void mqi_guard_remove(mqi_guard_range *range) {
    take_lock();
    atomic_fetch_add_explicit(&range->turn, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* the turn is seen to be odd before any field has changed */
    range->next_free = unused;
    unused = range;
    leave_lock();
}
