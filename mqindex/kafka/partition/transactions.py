"""Transactions of a partition, replayed from its log: what the `.txnindex` of each segment has.

A segment gives its *events*: of a producer's batches between two markers the first, and every marker. They are few, and
those of all segments, in order, show which transactions each abort marker ends, wherever those began.
"""

from __future__ import annotations

import bisect
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.guard import check_whole
from mqindex.errors import FormatError, was_cut
from mqindex.kafka.directories.producer_state import OpenTransactions
from mqindex.kafka.index.transaction_index import AbortedTxn
from mqindex.kafka.log.batches import codec_of, is_control
from mqindex.kafka.log.records import payload_of

EVENT: Final = np.dtype([("producer_id", "=i8"), ("offset", "=i8"), ("kind", "i1")])
"""offset: the batch's base offset. kind: BEGIN, ABORT, COMMIT, or what else a marker says, which ends nothing; GOES_ON:
of a transaction that began below the log's start, the first record above it.
"""

ABORT: Final = 0
COMMIT: Final = 1
BEGIN: Final = -1
GOES_ON: Final = -2
_NEITHER: Final = 2

_RECORDS = 61
_MARKER = (0x00, 0x00, 0x00, 0x08)  # after its length: attributes, time and offset delta 0, a key of 4 bytes


def events_of(rows: npt.NDArray[Any], log: Any, log_start: int = 0) -> npt.NDArray[Any]:
    """The events among the transactional and control batches of one segment (`Recovered.transactional`).

    log : the segment's bytes, from which the markers are read.
    """
    if not len(rows):
        return np.empty(0, EVENT)
    control = is_control(rows)
    wanted = control.copy()
    order = np.argsort(rows["producer_id"], kind="stable")
    producers, markers = rows["producer_id"][order], control[order]
    begins = ~markers
    begins[1:] &= (producers[1:] != producers[:-1]) | markers[:-1]
    wanted[order] |= begins
    kept = rows[wanted]
    events = np.empty(len(kept), EVENT)
    events["producer_id"], events["offset"], events["kind"] = kept["producer_id"], kept["base_offset"], BEGIN
    marked = control[wanted]
    events["kind"][marked] = _marker_kinds(kept[marked], log)
    if rows["base_offset"].min() >= log_start:
        return events
    above = ~markers & (rows["last_offset"][order] >= log_start)
    first = above & (begins | ~np.concatenate([[False], above[:-1]]))
    first &= ~(begins & (rows["base_offset"][order] >= log_start))
    going = rows[np.sort(order[first])]
    more = np.empty(len(going), EVENT)
    more["producer_id"], more["offset"], more["kind"] = going["producer_id"], going["base_offset"], GOES_ON
    np.maximum(more["offset"], log_start, out=more["offset"])
    both = np.concatenate([events, more])
    return both[np.argsort(both["offset"], kind="stable")]


def events_from(events: npt.NDArray[Any], log_start: int) -> npt.NDArray[Any]:
    """The events that are left to one who knows nothing of what is below the log's start."""
    left = events[events["offset"] >= log_start]
    left["kind"][left["kind"] == GOES_ON] = BEGIN
    return left


def _marker_kinds(rows: npt.NDArray[Any], log: Any) -> npt.NDArray[np.int8]:
    """What each control batch says. An empty one (the cleaner took the record) and an unknown one say nothing."""
    kinds = np.full(len(rows), _NEITHER, np.int8)
    held = (rows["count"] > 0) & (rows["size"] > _RECORDS)
    plain = np.flatnonzero(held & (rows["size"] >= _RECORDS + 9) & (codec_of(rows) == 0))
    octets = np.frombuffer(log, np.uint8)
    head = octets[rows["position"][plain, None] + np.arange(_RECORDS, _RECORDS + 9)]
    usual = (head[:, 0] < 0x80) & (head[:, 1:5] == _MARKER).all(axis=1) & (head[:, 5] < 0x80)
    said = head[usual, 7].astype(np.int32) << 8 | head[usual, 8]
    kinds[plain[usual]] = np.minimum(said, _NEITHER)
    held[plain[usual]] = False
    for at in np.flatnonzero(held).tolist():
        kinds[at] = _kind(_first_key(_first_record(rows, at, log)))
    check_whole(log)
    return kinds


def _first_record(rows: npt.NDArray[Any], at: int, log: Any) -> bytes:
    """The first bytes of a batch's records; nothing where they do not decompress."""
    try:
        payload = payload_of(log, rows, at)
    except FormatError as error:
        if was_cut(error):
            raise
        return b""
    start = int(rows["position"][at]) + _RECORDS
    return bytes(log[start : start + min(int(rows["size"][at]) - _RECORDS, 64)]) if payload is None else payload[:64]


def _kind(key: bytes) -> int:
    """The type in a marker's key: version i16, type i16."""
    if len(key) < 4 or key[0] >= 0x80:
        return _NEITHER
    return min(int.from_bytes(key[2:4], "big"), _NEITHER)


def _first_key(record: bytes) -> bytes:
    """The first bytes of the first record's key."""
    at = _after_varint(record, 0) + 1  # the length, the attributes
    at = _after_varint(record, _after_varint(record, at))  # the deltas of time and offset
    start = _after_varint(record, at)
    number = sum((octet & 0x7F) << 7 * n for n, octet in enumerate(record[at:start]))
    return b"" if number & 1 else record[start : start + min(number >> 1, 4)]


def _after_varint(data: bytes, at: int) -> int:
    while at < len(data) and data[at] >= 0x80:
        at += 1
    return at + 1


class Replay:
    """The open transactions of a partition, which of them each abort marker ends, and how many were `committed`.

    `lone`: abort markers of which nothing but the marker is there, as transactions that begin at their end.

    Notes
    -----
    Source: Kafka 4.1.0 `ProducerAppendInfo.append`, `ProducerStateManager.lastStableOffset`, `completeTxn`.

    Examples
    --------
    >>> replay = Replay(((5, 100),))
    >>> events = np.array([(10, 102, BEGIN), (10, 106, ABORT), (5, 107, COMMIT)], EVENT)
    >>> replay.run(events)
    [AbortedTxn(producer_id=10, first_offset=102, last_offset=106, last_stable_offset=100, version=0)]
    >>> replay.open, replay.committed
    ({}, 1)
    """

    def __init__(self, begun: OpenTransactions = ()) -> None:
        self.open: dict[int, int] = dict(begun)
        self.committed = 0
        self.lone: list[AbortedTxn] = []
        self._by_offset = sorted((offset, producer) for producer, offset in self.open.items())

    def run(self, events: npt.NDArray[Any]) -> list[AbortedTxn]:
        """Process the events of the next segment; returns the transactions that were aborted in it."""
        aborted = []
        for producer, offset, kind in events.tolist():
            first = self.open.get(producer)
            if kind == BEGIN:
                if first is None:
                    self.open[producer] = offset
                    bisect.insort(self._by_offset, (offset, producer))
            elif first is None and kind == ABORT:
                self.lone.append(AbortedTxn(producer, offset, offset, self._oldest_but(producer, offset + 1)))
            elif first is not None and kind in (ABORT, COMMIT):
                if kind == ABORT:
                    aborted.append(AbortedTxn(producer, first, offset, self._oldest_but(producer, offset + 1)))
                self.committed += kind == COMMIT
                del self.open[producer]
                del self._by_offset[bisect.bisect_left(self._by_offset, (first, producer))]
        return aborted

    def _oldest_but(self, producer: int, default: int) -> int:
        return next((first for first, other in self._by_offset if other != producer), default)
