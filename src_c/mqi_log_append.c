#include "mqi_log_append.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "mqi_clock.h"
#include "mqi_write_all.h"

#define AWAKE 200000 /* ns: a part is written faster than a sleeping thread wakes */

/* What both threads share. The thread that takes part n of the frames encodes it, and writes it when `written` is n. */
typedef struct {
    const mqi_log_rows *rows;
    const int32_t *sizes;
    const uint8_t *parts;
    const mqi_log_file *file;
    int64_t *phy_offsets;
    int64_t stop; /* phy offset */
    pthread_mutex_t lock;
    pthread_cond_t turned;
    mqi_log_progress progress; /* after the parts that were taken */
    int64_t taken, written;
    int failed;
} append_work;

typedef struct {
    int64_t number, size;
    mqi_log_progress progress; /* at its first frame */
} part_of_it;

/* The next frames that fit a buffer; 0: there are none. */
static int take(append_work *work, part_of_it *part) {
    pthread_mutex_lock(&work->lock);
    mqi_log_progress *at = &work->progress;
    *part = (part_of_it){work->taken, 0, *at};
    if (!work->failed && !at->roll && at->phy_offset < work->stop)
        part->size = mqi_log_pass(work->rows, work->sizes, at, work->file->room);
    work->taken += part->size > 0;
    pthread_mutex_unlock(&work->lock);
    return part->size > 0;
}

static int64_t written(append_work *work) { return __atomic_load_n(&work->written, __ATOMIC_ACQUIRE); }

/* Returns when all parts before this one are in the file. */
static void wait_for_turn(append_work *work, int64_t number) {
    if (written(work) == number) return;
    int64_t stop = mqi_now() + AWAKE;
    while (written(work) != number && mqi_now() < stop) sched_yield();
    if (written(work) == number) return;
    pthread_mutex_lock(&work->lock);
    while (work->written != number) pthread_cond_wait(&work->turned, &work->lock);
    pthread_mutex_unlock(&work->lock);
}

static void write_part(append_work *work, const part_of_it *part, const uint8_t *frames) {
    const mqi_log_file *file = work->file;
    wait_for_turn(work, part->number);
    int failed = work->failed; /* in turn: no other thread changes it now */
    if (!failed) failed = mqi_write_all(file->fd, frames, part->size, part->progress.phy_offset - file->start);
    pthread_mutex_lock(&work->lock);
    work->failed = failed;
    __atomic_store_n(&work->written, part->number + 1, __ATOMIC_RELEASE);
    pthread_cond_signal(&work->turned);
    pthread_mutex_unlock(&work->lock);
}

static void append_parts(append_work *work, uint8_t *buffer) {
    part_of_it part;
    while (take(work, &part)) {
        mqi_log_progress progress = part.progress;
        mqi_log_encode(work->rows, work->sizes, work->parts, &progress, buffer, work->file->room, work->phy_offsets);
        write_part(work, &part, buffer);
    }
}

static void *help(void *of) {
    append_work *work = of;
    append_parts(work, work->file->buffer + work->file->room);
    return 0;
}

/* Signals go to the caller's threads only. */
static int start_helper(pthread_t *helper, append_work *work) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(helper, 0, help, work);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    return failed;
}

int mqi_log_append(const mqi_log_rows *rows, const int32_t *sizes, const uint8_t *parts, mqi_log_progress *progress,
                   const mqi_log_file *file, int64_t most, int64_t *phy_offsets) {
    append_work work = {.rows = rows,
                        .sizes = sizes,
                        .parts = parts,
                        .file = file,
                        .phy_offsets = phy_offsets,
                        .stop = progress->phy_offset + most,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .turned = PTHREAD_COND_INITIALIZER,
                        .progress = *progress};
    pthread_t helper;
    work.progress.roll = 0;
    int alone = start_helper(&helper, &work) != 0;
    append_parts(&work, file->buffer);
    if (!alone) pthread_join(helper, 0);
    *progress = work.progress;
    return work.failed;
}
