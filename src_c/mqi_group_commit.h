/* Callers that wait for the disk share one sync (RocketMQ's GroupCommitService): the first of them leads, the others
 * find their bytes written.
 *
 * A leader waits a moment for the callers of the round before to come back, no longer than twice the last sync: eight
 * callers in a loop make one sync for eight, and a single one never waits. After a failed sync it is not known which
 * bytes the disk has, and a second sync would not show it: every later call gets the same error. */
#ifndef MQI_GROUP_COMMIT_H
#define MQI_GROUP_COMMIT_H

#include <pthread.h>
#include <stdint.h>

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t done, came;
    int64_t written, taken, flushed; /* phy offsets; `taken`: what the sync under way brings to the disk */
    int64_t took;                    /* by the last sync, ns */
    uint32_t round;                  /* rounds that ended */
    int waiting;                     /* callers whose bytes no sync has taken up yet */
    int expected, leading;
    int error; /* errno of the sync that failed */
    int *fds;  /* all files with bytes that no sync has reached, the current one last */
    int n_fds, room;
} mqi_group;

/* Without the lock. */
static inline int64_t mqi_group_flushed(const mqi_group *group) {
    return __atomic_load_n(&group->flushed, __ATOMIC_ACQUIRE);
}

int mqi_group_start(mqi_group *group, int64_t written); /* 0, or an errno */
void mqi_group_end(mqi_group *group);                   /* closes every file; no caller may be waiting */
void mqi_group_drop(mqi_group *group);                  /* closes every file, in any state a parent's threads left */

/* Write to this file from now on, which the group closes; earlier ones are closed after a sync. 0, or ENOMEM. */
int mqi_group_switch(mqi_group *group, int fd);
void mqi_group_commit(mqi_group *group, int64_t written);

/* Returns when the bytes below `offset` are on the disk: 0, or an errno. */
int mqi_group_wait(mqi_group *group, int64_t offset);

#endif
