/* An index file with the entries of each slot side by side, so that a look-up reads one or two pages and not one an
 * entry. A broker serves it and continues to write after it.
 *
 * Entries 1 .. index_count-1 are in the order (slot, number in the file before); prev_index of each is its neighbour
 * before it, 0 for the slot's first, and the slot holds the last of them. So a walk finds the same entries as before,
 * in their order. The header is that of the file before: its fields are of the log's first and last entry, wherever
 * they are. With another number of slots every entry goes to `key_hash % hash_slot_num`, and hash_slot_count is
 * counted. */
#ifndef MQI_INDEX_SORT_H
#define MQI_INDEX_SORT_H

#include "mqi_index_file.h"

enum { MQI_INDEX_CHANGED = -2 }; /* somebody wrote to the entries meanwhile; `to` is then not valid */

/* `to` is zero-filled and has room for all entries of `from`. MQI_OK, MQI_NO_MEMORY or MQI_INDEX_CHANGED.
 * Private memory: at most 40 MiB, and as a rule a two-hundredth of the file. */
int mqi_index_sort(const mqi_index_file *from, mqi_index_file *to);

#endif
