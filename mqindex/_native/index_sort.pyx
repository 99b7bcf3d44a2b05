# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""RocketMQ's index file from one buffer to another, the entries of each slot brought together."""

from mqindex._native.index_entries cimport IndexEntries, mqi_index_file, pthread_mutex_lock, pthread_mutex_unlock

from mqindex.errors import FileStateError


cdef extern from "mqi_status.h" nogil:
    cdef enum:
        MQI_OK
        MQI_NO_MEMORY


cdef extern from "mqi_index_sort.h" nogil:
    int mqi_index_sort(const mqi_index_file* source, mqi_index_file* target) noexcept


def sort_into(IndexEntries source not None, IndexEntries target not None):
    """Fill the zeroed `target` with the entries of `source` in the order of their slots, and its header.

    It must have room for them all. `FileStateError`: somebody wrote to the source meanwhile, and the target is not
    valid.
    """
    cdef int status
    source.enter(False)
    try:
        target.enter(True)
        try:
            with nogil:
                pthread_mutex_lock(&target.writers)
                status = mqi_index_sort(&source.file, &target.file)
                pthread_mutex_unlock(&target.writers)
        finally:
            target.leave(True)
    finally:
        source.leave(False)
    if status == MQI_NO_MEMORY:
        raise MemoryError
    if status != MQI_OK:
        raise FileStateError(
            "the index file was written meanwhile", path=source.path,
            hint="stop the broker first, or optimize a copy of the store")
