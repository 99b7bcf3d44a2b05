#include "mqi_log_append.h"

#include <pthread.h>
#include <signal.h>

#include "mqi_write_all.h"

typedef struct {
    const uint8_t *p;
    int64_t n, at;
} write_job;

/* Jobs [done, given) wait for the writing thread, or are under way. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t filled, freed;
    write_job jobs[MQI_LOG_SLOTS];
    int64_t given, done;
    int fd, ended, failed;
} write_queue;

static void *write_jobs(void *of) {
    write_queue *queue = of;
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        while (queue->done == queue->given && !queue->ended) pthread_cond_wait(&queue->filled, &queue->lock);
        if (queue->done == queue->given) break;
        write_job job = queue->jobs[queue->done % MQI_LOG_SLOTS];
        int failed = queue->failed;
        pthread_mutex_unlock(&queue->lock);
        if (!failed) failed = mqi_write_all(queue->fd, job.p, job.n, job.at);
        pthread_mutex_lock(&queue->lock);
        queue->failed = failed;
        queue->done++;
        if (queue->given - queue->done <= MQI_LOG_SLOTS / 2) pthread_cond_signal(&queue->freed);
    }
    pthread_mutex_unlock(&queue->lock);
    return 0;
}

/* Returns when a slot is free: 0, or the errno of a write. */
static int wait_for_slot(write_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    while (queue->given - queue->done == MQI_LOG_SLOTS) pthread_cond_wait(&queue->freed, &queue->lock);
    int failed = queue->failed;
    pthread_mutex_unlock(&queue->lock);
    return failed;
}

static void give(write_queue *queue, write_job job) {
    pthread_mutex_lock(&queue->lock);
    queue->jobs[queue->given++ % MQI_LOG_SLOTS] = job;
    if (queue->given - queue->done == 1) pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

static int finish(write_queue *queue, pthread_t writer) {
    pthread_mutex_lock(&queue->lock);
    queue->ended = 1;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(writer, 0);
    return queue->failed;
}

/* Signals stay with the threads of whoever called. */
static int start_thread(pthread_t *writer, write_queue *queue) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(writer, 0, write_jobs, queue);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    return failed;
}

int mqi_log_append(const mqi_log_rows *rows, const int32_t *sizes, const uint8_t *parts, mqi_log_progress *progress,
                   const mqi_log_file *file, int64_t most, int64_t *phy_offsets) {
    write_queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
                         .filled = PTHREAD_COND_INITIALIZER,
                         .freed = PTHREAD_COND_INITIALIZER,
                         .fd = file->fd};
    pthread_t writer;
    int alone = start_thread(&writer, &queue) != 0, failed = 0;
    int64_t stop = progress->phy_offset + most;
    progress->roll = 0;
    while (!failed && progress->row < rows->n && !progress->roll && progress->phy_offset < stop) {
        if (!alone) failed = wait_for_slot(&queue);
        uint8_t *slot = file->buffer + queue.given % MQI_LOG_SLOTS * file->room;
        int64_t at = progress->phy_offset - file->start;
        int64_t used = failed ? 0 : mqi_log_encode(rows, sizes, parts, progress, slot, file->room, phy_offsets);
        if (!used) continue;
        if (alone) failed = mqi_write_all(file->fd, slot, used, at);
        else give(&queue, (write_job){slot, used, at});
    }
    return alone ? failed : finish(&queue, writer);
}
