# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True, embedsignature=True, embedsignature.format=python, auto_pickle=False
# cython: autotestdict=False
"""Units of consume queues: on their way from a log (arrays of `rocketmq.log.log_entries.UNIT`), and in a queue file.

`buf` is always the bytes of one file from its start. A position is the number of a 20-byte unit in it; what is left
over after the last whole unit does not count.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from mqindex._native.arrays cimport copy_of
from mqindex._native.consume_queue cimport MQI_UNIT_SIZE, mqi_unit_take, mqi_units_check, mqi_units_take
from mqindex._native.memory cimport Pinned, integers, target_of


cdef extern from "mqi_consume_queue.h" nogil:
    ctypedef struct mqi_queue_unit:
        int64_t phy_offset

    ctypedef struct mqi_unit_append:
        int64_t next_offset
        int64_t max_phy_offset
        int64_t repeated
        int64_t misplaced

    int64_t mqi_units_count(const mqi_queue_unit* units, int64_t n, int64_t queues, int64_t* offsets) noexcept
    void mqi_units_sort(
        const mqi_queue_unit* units, int64_t n, int64_t queues, mqi_queue_unit* out, int64_t* offsets) noexcept
    int64_t mqi_units_line(const mqi_queue_unit* units, int64_t n, int64_t phy_offset, int64_t limit) noexcept
    int64_t mqi_units_sound(const mqi_queue_unit* units, int64_t n) noexcept
    int64_t mqi_units_encode(
        mqi_unit_append* end, const mqi_queue_unit* units, int64_t n, uint8_t* out) noexcept
    void mqi_units_decode(
        const uint8_t* units, int64_t n, int64_t* phy_offsets, int32_t* sizes, int64_t* tags_codes) noexcept
    int64_t mqi_units_select(
        const uint8_t* units, int64_t n, int64_t first, const int32_t* hashes, int64_t k, int64_t* out) noexcept
    int64_t mqi_units_compare(
        const uint8_t* queue, int64_t places, int64_t first_offset, const mqi_queue_unit* units, int64_t n,
        int64_t* out) noexcept

    ctypedef struct mqi_unit_line:
        const uint8_t* unit
        int64_t left
        int64_t next
        int64_t phy_offset
        int64_t last_end

    int64_t mqi_units_match(
        mqi_unit_line* lines, int64_t queues, const mqi_queue_unit* units, int64_t n, mqi_queue_unit* rest,
        int64_t* found) noexcept


cdef extern from "mqi_unit_tally.h" nogil:
    ctypedef struct mqi_buffer:
        uint8_t* data
        int64_t size

    ctypedef struct mqi_unit_tally:
        int64_t every
        mqi_buffer sums
        mqi_buffer kept

    mqi_unit_tally mqi_unit_tally_begin(int64_t every, uint64_t seed) noexcept
    int64_t mqi_unit_tally_add(mqi_unit_tally* t, const mqi_queue_unit* units, int64_t n) noexcept
    void mqi_unit_tally_free(mqi_unit_tally* t) noexcept


cdef Pinned _units(object units, bint writable=False, str name="units"):
    """A one-dimensional array of units."""
    cdef Pinned rows = Pinned(units, sizeof(mqi_queue_unit), writable)
    if rows.view.ndim != 1 or rows.view.itemsize != sizeof(mqi_queue_unit):
        raise TypeError(f"{name}: expected a contiguous, one-dimensional array of {sizeof(mqi_queue_unit)} bytes a row")
    return rows


cdef Pinned _hashes(object hashes):
    return integers(hashes, sizeof(int32_t))


cdef int _require_range(Pinned rows, int64_t start, int64_t stop) except -1:
    cdef int64_t places = rows.n // MQI_UNIT_SIZE
    if not 0 <= start <= stop <= places:
        raise ValueError(f"start, stop: expected positions 0..{places} in order, got {start} and {stop}")
    return 0


def group_units(units, int64_t n_queues, out=None, /):
    """Units sorted by queue, in their order within each: `(units, offsets int64[n_queues + 1])`.

    Those of queue k are `units[offsets[k]:offsets[k + 1]]`. Units of one queue alone are given back as they are; others
    go to `out`, an array that is as long at least, or to a new one. A queue that is not in 0..n_queues - 1 is a
    ValueError.
    """
    import numpy as np

    cdef Pinned source = _units(units), target, starts
    cdef int64_t bad, n = source.n, k
    cdef int64_t* offset
    if n_queues < 0:
        raise ValueError(f"n_queues: expected 0 or more, got {n_queues}")
    offsets = np.empty(n_queues + 1, np.int64)
    starts = target_of(offsets)
    offset = <int64_t*>starts.view.buf
    with nogil:
        bad = mqi_units_count(<const mqi_queue_unit*>source.view.buf, n, n_queues, offset)
    if bad >= 0:
        raise ValueError(f"units: expected queues 0..{n_queues - 1}, got {units[bad]['queue']} at {bad}")
    for k in range(n_queues):
        if offset[k + 1] - offset[k] == n:
            return units, offsets
    if out is None:
        out = np.empty_like(units)
    target = _units(out, True, "out")
    if target.n < n:
        raise ValueError(f"out: expected room for {n}, got {target.n}")
    with nogil:
        mqi_units_sort(
            <const mqi_queue_unit*>source.view.buf, n, n_queues, <mqi_queue_unit*>target.view.buf, offset)
    return out[:n], offsets


def count_in_line(units, int64_t phy_offset, int64_t limit, /):
    """How many units, from the first on, follow each other without anything odd.

    Each message is after the one before it, the first after `phy_offset`; the queue offsets are consecutive, 0 or
    more and below `limit`.
    """
    cdef Pinned source = _units(units)
    return mqi_units_line(<const mqi_queue_unit*>source.view.buf, source.n, phy_offset, limit)


def are_sound(units, /):
    """Whether all units have a phy_offset of 0 or more and a size above 0."""
    cdef Pinned source = _units(units)
    return mqi_units_sound(<const mqi_queue_unit*>source.view.buf, source.n) != 0


def encode_units(units, int64_t next_offset, int64_t max_phy_offset, /):
    """Units of one queue as the broker appends them where its next unit has the queue offset `next_offset`.

    A message that ends at `max_phy_offset` or before is there already; so is one whose queue offset is not 0 and is
    before the next place. One whose queue offset is greater is written nevertheless, as by the broker.
    Returns `(data uint8[20 * m], max_phy_offset, repeated, misplaced)`.
    """
    import numpy as np

    cdef Pinned source = _units(units), target
    cdef int64_t n = source.n, written
    cdef mqi_unit_append end
    end.next_offset, end.max_phy_offset, end.repeated, end.misplaced = next_offset, max_phy_offset, 0, 0
    if next_offset < 0:
        raise ValueError(f"next_offset: expected 0 or more, got {next_offset}")
    data = np.empty(n * MQI_UNIT_SIZE, np.uint8)
    target = target_of(data)
    with nogil:
        written = mqi_units_encode(&end, <const mqi_queue_unit*>source.view.buf, n, <uint8_t*>target.view.buf)
    return data[:written * MQI_UNIT_SIZE], end.max_phy_offset, end.repeated, end.misplaced


def decode_units(buf, int64_t start, int64_t stop, /):
    """Columns of the units at the positions [start, stop): `(phy_offset int64, size int32, tags_code int64)`."""
    import numpy as np

    cdef Pinned queue = Pinned(buf), first, second, third
    _require_range(queue, start, stop)
    cdef int64_t n = stop - start
    columns = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64)
    first, second, third = (target_of(column) for column in columns)
    with nogil:
        mqi_units_decode(
            <const uint8_t*>queue.view.buf + start * MQI_UNIT_SIZE, n, <int64_t*>first.view.buf,
            <int32_t*>second.view.buf, <int64_t*>third.view.buf)
    queue.whole()
    return columns


def select_tags(buf, int64_t start, int64_t stop, hashes, /):
    """The positions in [start, stop) whose tags code has one of `hashes` (int32) as its low 32 bits: int64[m].

    An address of an extension unit does not show the tags, so its position is included.
    """
    import numpy as np

    cdef Pinned queue = Pinned(buf), wanted = _hashes(hashes), target
    cdef int64_t found
    _require_range(queue, start, stop)
    positions = np.empty(stop - start, np.int64)
    target = target_of(positions)
    with nogil:
        found = mqi_units_select(
            <const uint8_t*>queue.view.buf + start * MQI_UNIT_SIZE, stop - start, start,
            <const int32_t*>wanted.view.buf, wanted.n, <int64_t*>target.view.buf)
    queue.whole()
    if found < 0:
        raise MemoryError
    return positions[:found].copy()


@cython.final
cdef class UnitTally:
    """Counts units by their queue, and keeps one of each `every` (1 to 2^31), at random.

    Of the same `seed` (0 to 2^64 - 1) the same units are kept, however they come. For one thread.
    """

    cdef mqi_unit_tally tally

    def __init__(self, int64_t every, uint64_t seed, /):
        if self.tally.every:
            raise TypeError("a UnitTally is made once")
        if not 1 <= every <= 1 << 31:
            raise ValueError(f"every: expected 1 to {1 << 31}, got {every}")
        self.tally = mqi_unit_tally_begin(every, seed)

    def __dealloc__(self):
        mqi_unit_tally_free(&self.tally)

    def add(self, units, /):
        """Count the next units."""
        cdef Pinned source = _units(units)
        cdef int64_t done
        if not self.tally.every:
            raise TypeError("a UnitTally that was not made")
        # with the interpreter's lock: some µs, and a wait for it takes longer
        done = mqi_unit_tally_add(&self.tally, <const mqi_queue_unit*>source.view.buf, source.n)
        if done < 0:
            raise MemoryError
        if done < source.n:
            raise ValueError(f"units: expected queues of 0 or more, got {units[done]['queue']} at {done}")

    def sums(self):
        """Messages and bytes of each queue, int64[n, 2]: of all queues up to the greatest number, or of more."""
        return copy_of(<const int64_t*>self.tally.sums.data, self.tally.sums.size // sizeof(int64_t)).reshape(-1, 2)

    def kept(self):
        """The units that are kept, 40 bytes each: int64[5 * m]."""
        return copy_of(<const int64_t*>self.tally.kept.data, self.tally.kept.size // sizeof(int64_t))


@cython.final
cdef class UnitTaker:
    """Takes the units for a consumer: up to `room`, from one file of a queue after the other.

    hashes : int32, of which the low 32 bits of a tags code must be one, as for `select_tags`; None: every unit passes.
    parts : int64[2, m]: where the files of the log begin, ascending, and where their data ends. A message is in one of
    them as a whole, or it is gone.
    codes : whether to return the tags codes.
    """

    cdef mqi_unit_take to
    cdef Pinned wanted, parts
    cdef list pinned
    cdef tuple taken

    def __init__(self, hashes, parts, int64_t room, /, *, bint codes=False):
        import numpy as np

        if self.pinned is not None:
            raise TypeError("a UnitTaker is made once")
        if room < 0:
            raise ValueError(f"room: expected 0 or more, got {room}")
        cdef Pinned files = Pinned(parts, sizeof(int64_t))
        cdef Pinned offsets, phys, sizes, tags
        if parts.dtype != np.int64 or parts.ndim != 2 or len(parts) != 2:
            raise TypeError("parts: expected an array int64[2, m]")
        self.wanted = None if hashes is None else _hashes(hashes)
        self.parts = files
        self.to.files = files.n // 2
        self.to.starts = <const int64_t*>files.view.buf
        self.to.stops = self.to.starts + self.to.files
        self.taken = (
            np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32),
            np.empty(room, np.int64) if codes else None)
        offsets, phys, sizes = (target_of(column) for column in self.taken[:3])
        self.pinned = [offsets, phys, sizes]
        self.to.queue_offsets = <int64_t*>offsets.view.buf
        self.to.phy_offsets = <int64_t*>phys.view.buf
        self.to.sizes = <int32_t*>sizes.view.buf
        if codes:
            tags = target_of(self.taken[3])
            self.pinned.append(tags)
            self.to.tags_codes = <int64_t*>tags.view.buf
        self.to.room = room

    def take(self, buf, int64_t start, int64_t stop, int64_t first_queue_offset, /):
        """Take from the positions [start, stop) of a file that begins with `first_queue_offset`.

        Returns the position after the last that was read: less than `stop` where there is no more room.
        """
        cdef Pinned queue = Pinned(buf)
        cdef int64_t seen, k = -1
        cdef const int32_t* hashes = NULL
        if self.pinned is None:
            raise TypeError("a UnitTaker that was not made")
        _require_range(queue, start, stop)
        if self.wanted is not None:
            k, hashes = self.wanted.n, <const int32_t*>self.wanted.view.buf
        with nogil:
            seen = mqi_units_take(
                &self.to, hashes, k, <const uint8_t*>queue.view.buf + start * MQI_UNIT_SIZE, stop - start,
                first_queue_offset + start)
        queue.whole()
        if seen < 0:
            raise MemoryError
        return start + seen

    @property
    def found(self):
        """How many units were taken."""
        return self.to.found

    @property
    def gone(self):
        """How many of them lead to messages that the log does not have: their size is 0."""
        return self.to.gone

    @property
    def full(self):
        """Whether there is no room for more."""
        return self.to.found == self.to.room

    def columns(self):
        """`(queue_offset int64, phy_offset int64, size int32, tags_code int64 or None)` of the units taken."""
        cdef int64_t n = self.to.found
        if n == self.to.room:
            return self.taken
        return tuple([None if column is None else column[:n] for column in self.taken])


def unit_at(buf, int64_t position, /):
    """`(phy_offset, size, tags_code)` of one unit."""
    cdef Pinned queue = Pinned(buf)
    cdef int64_t phy_offset, tags_code
    cdef int32_t size
    _require_range(queue, position, position + 1)
    mqi_units_decode(
        <const uint8_t*>queue.view.buf + position * MQI_UNIT_SIZE, 1, &phy_offset, &size, &tags_code)
    queue.whole()
    return phy_offset, size, tags_code


def check_units(buf, int64_t start, int64_t stop, /):
    """The first position in [start, stop) whose unit is not valid (phy_offset below 0 or size not above 0), or stop."""
    cdef Pinned queue = Pinned(buf)
    cdef int64_t valid
    _require_range(queue, start, stop)
    with nogil:
        valid = mqi_units_check(<const uint8_t*>queue.view.buf + start * MQI_UNIT_SIZE, stop - start)
    queue.whole()
    return start + valid


def compare_units(buf, int64_t first_queue_offset, units, /):
    """Numbers of the units that are not at their places in a file that begins with `first_queue_offset`: int64[m].

    Compared are phy_offset, size and tags_code. A place outside the file holds nothing.
    """
    import numpy as np

    cdef Pinned queue = Pinned(buf), source = _units(units), target
    cdef int64_t n = source.n, places = queue.n // MQI_UNIT_SIZE, found
    numbers = np.empty(n, np.int64)
    target = target_of(numbers)
    with nogil:
        found = mqi_units_compare(
            <const uint8_t*>queue.view.buf, places, first_queue_offset,
            <const mqi_queue_unit*>source.view.buf, n, <int64_t*>target.view.buf)
    queue.whole()
    return numbers[:found].copy()


@cython.final
cdef class UnitLines:
    """Compares units with the files of their queues while they come, in the log's order; for one thread.

    A queue's line is a place, and the bytes of its file from there on. If the next unit is not what is there, the line
    ends, and all units of that queue are left over until it is begun again.
    """

    cdef mqi_unit_line* lines
    cdef list data

    def __cinit__(self):
        self.data = []

    def __dealloc__(self):
        free(self.lines)

    def match(self, units, rest, int64_t at, /):
        """Skip the units that are at their places; the others go to `rest[at:]`, which must have room.

        Returns how many were compared, and where `rest` ends now. If they are fewer than all, the line of the next
        unit's queue must be begun, or ended.
        """
        cdef Pinned source = _units(units), target = _units(rest, True, "rest")
        cdef int64_t n = source.n, queues = len(self.data), seen, found
        if not 0 <= at <= target.n - n:
            raise ValueError(f"rest: expected room for {n} more at {at}, got {target.n}")
        with nogil:
            seen = mqi_units_match(
                self.lines, queues, <const mqi_queue_unit*>source.view.buf, n,
                <mqi_queue_unit*>target.view.buf + at, &found)
        return seen, at + found

    def begin(self, int32_t queue, int64_t place, int64_t phy_offset, int64_t last_end, bytes data, /):
        """From `place` on the queue's file has `data`; the last unit was that of the message [phy_offset, last_end)."""
        cdef mqi_unit_line* line = self.line(queue)
        self.data[queue] = data
        line.unit, line.left = data, len(data) // MQI_UNIT_SIZE or -1
        line.next, line.phy_offset, line.last_end = place, phy_offset, last_end

    def end(self, int32_t queue, bint again, /):
        """Units of this queue are left over from now on; `again`: `match` stops at the next one, for a new line."""
        self.line(queue).left = 0 if again else -1

    def __getitem__(self, int32_t queue):
        """Where a line is: the next place, and of the last message before it `phy_offset` and end."""
        cdef mqi_unit_line* line = self.line(queue)
        return line.next, line.phy_offset, line.last_end

    cdef mqi_unit_line* line(self, int32_t queue) except NULL:
        cdef mqi_unit_line* lines
        cdef Py_ssize_t known = len(self.data), room
        if queue < 0:
            raise IndexError(queue)
        if queue >= known:
            room = 2 * <Py_ssize_t>queue + 16
            lines = <mqi_unit_line*>realloc(self.lines, room * sizeof(mqi_unit_line))
            if lines == NULL:
                raise MemoryError
            self.lines = lines
            memset(lines + known, 0, (room - known) * sizeof(mqi_unit_line))
            self.data += [None] * (room - known)
        return self.lines + queue
