# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""The calls of one key, directly from the kernel: a Python frame would cost about as much as a look-up."""

from libc.stdint cimport int64_t

from mqindex._native.index_entries cimport IndexEntries, put_one
from mqindex._native.keys cimport hash_of
from mqindex._native.numbers cimport doubt_period, is_doubtful, time_of, whole

from mqindex.errors import ClosedFileError


cdef class SingleCalls:
    """The calls of one key, a base class."""

    cdef IndexEntries core
    cdef bint sparse, elsewhere

    def _bind_core(self, IndexEntries core not None, bint sparse, bint elsewhere):
        """Set the core that the calls use.

        For a sparse file `_reserve` is called before each put, for one elsewhere `_select_elsewhere` to select.
        """
        self.core = core
        self.sparse, self.elsewhere = sparse, elsewhere

    def put_key(self, object key, object phy_offset, object store_timestamp):
        """Append an entry for a whole `topic#key`.

        Parameters
        ----------
        phy_offset : int
        store_timestamp : int, ms since the epoch, an aware datetime or a datetime64

        Returns
        -------
        bool
            False: the file is full. Everything else that goes wrong raises.

        Notes
        -----
        Source: RocketMQ 4.9.3, `IndexFile.putKey`.

        Examples
        --------
        >>> import tempfile
        >>> from mqindex.rocketmq import IndexFile
        >>> with IndexFile.create(tempfile.mkdtemp() + "/index", hash_slot_num=5, index_num=2) as index:
        ...     [index.put_key("TopicTest#MessageKey", phy_offset, 1_700_000_000_000) for phy_offset in (200, 400)]
        [True, False]
        """
        if self.core is None:
            raise ClosedFileError("the index file was never opened")
        if self.sparse:
            self._reserve(1)
        cdef int64_t offset = whole(phy_offset, "phy_offset")
        cdef int64_t timestamp = time_of(store_timestamp, "store_timestamp")
        return put_one(self.core, hash_of(key), offset, timestamp)

    def select_phy_offset(
        self, object key, *, object max_num=64, object begin=0, object end=9223372036854775807
    ):
        """Physical offsets of a whole `topic#key`, newest first, exactly as the broker answers.

        Parameters
        ----------
        max_num : int, most offsets to return
        begin, end : int, ms since the epoch, or an aware datetime or a datetime64; both inclusive
            Compared with entry times of 1 s resolution; the walk stops at the first entry before `begin`. A begin
            after the end, and times in seconds, are answered as the broker does, with a UserWarning.

        Returns
        -------
        ndarray of int64, shape (h,)

        Notes
        -----
        Only hashes are compared: an offset may belong to another key, the message shows which.
        Source: RocketMQ 4.9.3, `IndexFile.selectPhyOffset`.

        Examples
        --------
        >>> import tempfile
        >>> from mqindex.rocketmq import IndexFile
        >>> with IndexFile.create(tempfile.mkdtemp() + "/index", hash_slot_num=5, index_num=8) as index:
        ...     stored = index.put_keys(["T#a", "T#b", "T#a"], [200, 400, 600], [1_700_000_000_000] * 3)
        ...     index.select_phy_offset("T#a").tolist(), index.select_phy_offset("T#a", max_num=1).tolist()
        ([600, 200], [600])
        """
        if self.core is None:
            raise ClosedFileError("the index file was never opened")
        cdef int64_t first = time_of(begin, "begin")
        cdef int64_t last = time_of(end, "end")
        if is_doubtful(first, last):
            doubt_period(first, last)
        if self.elsewhere:
            return self._select_elsewhere(hash_of(key), whole(max_num, "max_num"), first, last)
        return self.core.select_phy_offset(key, whole(max_num, "max_num"), first, last)

    def _select_between(self, object key, int64_t max_num, int64_t begin, int64_t end):
        """`select_phy_offset` with times in ms that were checked before."""
        if self.core is None:
            raise ClosedFileError("the index file was never opened")
        if self.elsewhere:
            return self._select_elsewhere(hash_of(key), max_num, begin, end)
        return self.core.select_phy_offset(key, max_num, begin, end)
