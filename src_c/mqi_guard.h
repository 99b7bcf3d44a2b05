/* A guard for mapped files: another process may cut a file at any moment, or the disk be full when a hole is written,
 * and an access to such a page gets SIGBUS.
 *
 * In a range that is added here the signal does not end the process: the handler maps zero pages over the mapping, from
 * that page to the range's end (a walk costs one fault, not one a page), and marks the range. Code that reads or writes
 * through the mapping checks the mark afterwards, one load, and gives no answer made of zeros. Any other SIGBUS goes to
 * the handlers that were installed before, and in the end to the default one, which ends the process.
 *
 * A range must be added before its first use, and removed after its last one, before its munmap. Ranges may be added
 * and removed by any thread, and after a fork; the handler takes no lock.
 *
 * Compiled into one module only: there must not be two registries. */
#ifndef MQI_GUARD_H
#define MQI_GUARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mqi_guard_range {
    atomic_uint turn;            /* odd: the fields below are being changed, or are of no range */
    atomic_uintptr_t start, end; /* whole pages */
    atomic_int writable;
    atomic_int cut; /* never reset: nothing brings the pages back */
    void *owner;    /* of who added it; not read here */
    struct mqi_guard_range *next_free;
} mqi_guard_range;

/* Guards the pages of a mapping, and makes sure that our handler is installed. NULL: no memory. */
mqi_guard_range *mqi_guard_add(void *start, size_t length, int writable, void *owner);
void mqi_guard_remove(mqi_guard_range *range);

/* Address space in which nothing is: every access is one to a missing page, until `mqi_guard_show`. NULL: no memory. */
void *mqi_guard_map_nothing(size_t length);

/* Puts zero pages, which may be written, over whole pages of such a range. 0: no memory. */
int mqi_guard_show(mqi_guard_range *range, size_t from, size_t to);

/* Takes them away again. 0: no memory. */
int mqi_guard_hide(mqi_guard_range *range, size_t from, size_t to);

/* The range that holds this byte, or NULL. Safe in a signal handler. */
mqi_guard_range *mqi_guard_find(const void *byte);

/* Whether anything read through the mapping until now may be zeros instead. NULL: memory that nobody can cut. */
static inline int mqi_guard_was_cut(const mqi_guard_range *range) {
    atomic_thread_fence(memory_order_acquire); /* what was read before was read before */
    return range != NULL && atomic_load_explicit(&range->cut, memory_order_relaxed);
}

/* Where a file ends inside a page, the rest of that page reads as zeros without a fault. Reading the mapping's last
 * byte causes the fault, unless only that page was cut. */
static inline void mqi_guard_touch(const uint8_t *last) { (void)*(volatile const uint8_t *)last; }

#endif
