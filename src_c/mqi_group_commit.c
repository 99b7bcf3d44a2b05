#define _GNU_SOURCE
#include "mqi_group_commit.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/syscall.h>
/* As in <linux/futex.h>, whose values never change: a compiler with only musl has no headers of the kernel. */
enum { WAIT_PRIVATE = 0 | 128, WAKE_PRIVATE = 1 | 128 };
#elif defined(__APPLE__)
#include <fcntl.h>
#endif

#include "mqi_clock.h"

#define LONGEST_GATHERING 2000000 /* ns */
#define AWAKE 300000              /* ns of it */

static int sync_data(int fd) {
#if defined(__APPLE__) /* there fsync leaves the bytes in the drive's cache */
    if (fcntl(fd, F_FULLFSYNC) == 0) return 0;
    return errno == EINTR || errno == EIO ? -1 : fsync(fd); /* a network's file system only has fsync */
#else
    return fdatasync(fd);
#endif
}

/* Waits for `came`, not longer than until `stop`. */
static void wait_until(mqi_group *group, int64_t stop) {
#if defined(__APPLE__)
    int64_t left = stop - mqi_now();
    struct timespec t = {0, left > 0 ? (long)left : 0};
    pthread_cond_timedwait_relative_np(&group->came, &group->lock, &t);
#else
    struct timespec t = {stop / 1000000000, stop % 1000000000};
    pthread_cond_timedwait(&group->came, &group->lock, &t);
#endif
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void set_waiting(mqi_group *group, int n) { __atomic_store_n(&group->waiting, n, __ATOMIC_RELAXED); }

/* Sleeps until this round's end. Called with the lock held, left without. */
static void sleep_through(mqi_group *group) {
    uint32_t round = group->round;
#if defined(__linux__)
    pthread_mutex_unlock(&group->lock);
    syscall(SYS_futex, &group->round, WAIT_PRIVATE, round, 0, 0, 0);
#else
    while (group->round == round) pthread_cond_wait(&group->done, &group->lock);
    pthread_mutex_unlock(&group->lock);
#endif
}

/* Ends the round. Called and left with the lock held, but the threads that wake do not have to wait for it. */
static void wake_all(mqi_group *group) {
    __atomic_add_fetch(&group->round, 1, __ATOMIC_RELEASE);
#if defined(__linux__)
    pthread_mutex_unlock(&group->lock);
    syscall(SYS_futex, &group->round, WAKE_PRIVATE, INT32_MAX, 0, 0, 0);
    pthread_mutex_lock(&group->lock);
#else
    pthread_cond_broadcast(&group->done);
#endif
}

int mqi_group_start(mqi_group *group, int64_t written) {
    pthread_condattr_t clock;
    memset(group, 0, sizeof *group);
    group->written = group->flushed = written;
    group->expected = 1;
    /* GCOVR_EXCL_BR_START: none of these fails on a system that a test runs on */
    int failed = pthread_condattr_init(&clock);
    if (failed) return failed;
#if !defined(__APPLE__)
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
#endif
    failed = pthread_mutex_init(&group->lock, 0);
    if (!failed) failed = pthread_cond_init(&group->done, 0);
    if (!failed) failed = pthread_cond_init(&group->came, &clock);
    /* GCOVR_EXCL_BR_STOP */
    pthread_condattr_destroy(&clock);
    return failed;
}

void mqi_group_drop(mqi_group *group) {
    for (int i = 0; i < group->n_fds; i++) close(group->fds[i]);
    free(group->fds);
    group->fds = 0;
    group->n_fds = group->room = 0;
}

void mqi_group_end(mqi_group *group) {
    mqi_group_drop(group);
    pthread_cond_destroy(&group->came);
    pthread_cond_destroy(&group->done);
    pthread_mutex_destroy(&group->lock);
}

int mqi_group_switch(mqi_group *group, int fd) {
    int failed = 0;
    pthread_mutex_lock(&group->lock);
    if (group->n_fds == group->room) {
        int room = 2 * group->room + 4, *fds = realloc(group->fds, (size_t)room * sizeof *fds);
        if (fds) group->fds = fds, group->room = room;
        else failed = ENOMEM;
    }
    if (!failed) group->fds[group->n_fds++] = fd;
    pthread_mutex_unlock(&group->lock);
    return failed;
}

void mqi_group_commit(mqi_group *group, int64_t written) {
    pthread_mutex_lock(&group->lock);
    group->written = written;
    pthread_mutex_unlock(&group->lock);
}

/* A thread that sleeps on an idle processor wakes late: the leader stays awake as long as callers may come soon. */
static void stay_awake(const mqi_group *group, int64_t stop) {
    while (__atomic_load_n(&group->waiting, __ATOMIC_RELAXED) < group->expected && mqi_now() < stop) sched_yield();
}

static void gather(mqi_group *group) {
    if (group->waiting >= group->expected) return;
    int64_t start = mqi_now(), stop = start + least(2 * group->took, LONGEST_GATHERING);
    pthread_mutex_unlock(&group->lock);
    stay_awake(group, least(stop, start + AWAKE));
    pthread_mutex_lock(&group->lock);
    while (group->waiting < group->expected && mqi_now() < stop) wait_until(group, stop);
}

/* Syncs the first n files and closes all but the last; only the leader removes files, so they stay in their places
 * while the lock is free. */
static int sync_files(mqi_group *group, int n) {
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&group->lock); /* the array may move */
        int fd = group->fds[i];
        pthread_mutex_unlock(&group->lock);
        while (sync_data(fd) != 0)
            if (errno != EINTR) return errno;
    }
    return 0;
}

static void forget_files(mqi_group *group, int n) {
    for (int i = 0; i < n; i++) close(group->fds[i]);
    group->n_fds -= n;
    memmove(group->fds, group->fds + n, (size_t)group->n_fds * sizeof *group->fds);
}

/* One round: gathers its callers, syncs their bytes, wakes them. Called and left with the lock held. */
static void lead(mqi_group *group) {
    group->leading = 1;
    gather(group);
    int64_t start = mqi_now();
    int n = group->n_fds, taken_up = group->waiting;
    group->taken = group->written;
    set_waiting(group, 0);
    pthread_mutex_unlock(&group->lock);
    int failed = sync_files(group, n);
    pthread_mutex_lock(&group->lock);
    group->took = mqi_now() - start;
    if (failed) group->error = failed;
    else if (n > 1) forget_files(group, n - 1);
    if (!failed && group->taken > group->flushed) __atomic_store_n(&group->flushed, group->taken, __ATOMIC_RELEASE);
    group->expected = taken_up + group->waiting;
    group->leading = 0;
    wake_all(group);
}

static void come(mqi_group *group, int64_t offset) {
    if (group->leading && offset <= group->taken) return; /* the sync under way covers it */
    set_waiting(group, group->waiting + 1);
    if (group->leading && group->waiting >= group->expected) pthread_cond_signal(&group->came);
}

static int is_flushed(const mqi_group *group, int64_t offset) { return mqi_group_flushed(group) >= offset; }

int mqi_group_wait(mqi_group *group, int64_t offset) {
    if (is_flushed(group, offset)) return 0;
    pthread_mutex_lock(&group->lock);
    come(group, offset);
    while (!is_flushed(group, offset) && !group->error) {
        if (!group->leading) {
            lead(group);
            continue;
        }
        sleep_through(group);
        if (is_flushed(group, offset)) return 0; /* without the lock: all wake at once */
        pthread_mutex_lock(&group->lock);
    }
    int failed = is_flushed(group, offset) ? 0 : group->error;
    pthread_mutex_unlock(&group->lock);
    return failed;
}
