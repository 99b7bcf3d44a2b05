"""The `.txnindex` of a segment against the transactions that its partition's log shows."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._rules import Broker
from mqindex._words import plural
from mqindex.files.reading.sparse import SparseFile
from mqindex.kafka import catalogue
from mqindex.kafka.index.transaction_index import AbortedTxn, is_refused_version, read_aborted
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.partition.transactions import ABORT, BEGIN, COMMIT, EVENT, GOES_ON
from mqindex.report import Finding, Kind

_ENTRY_SIZE = IndexKind.TRANSACTION.entry_size


class Markers:
    """Where each producer's transactions of a partition ended and began, from the events of all its segments.

    `end`: the offset after the log's last record. `lone`: abort markers of which nothing but the marker is there.
    """

    def __init__(self, events: Sequence[npt.NDArray[Any]], end: int, lone: Sequence[AbortedTxn] = ()) -> None:
        self.end = end
        self._stable = {(txn.producer_id, txn.last_offset): txn.last_stable_offset for txn in lone}
        self._ends: dict[int, list[tuple[int, int]]] = {}  # producer -> offsets and kinds
        self._begins: dict[int, list[int]] = {}
        rows = np.concatenate([*events, np.empty(0, EVENT)])
        rows = rows[rows["kind"] != GOES_ON]
        rows = rows[np.argsort(rows["offset"], kind="stable")]
        self._offsets, self._all_begins = set(rows["offset"].tolist()), rows["offset"][rows["kind"] == BEGIN].tolist()
        for producer, offset, kind in rows.tolist():
            if kind == BEGIN:
                self._begins.setdefault(producer, []).append(offset)
            else:
                self._ends.setdefault(producer, []).append((offset, kind))

    def began_in(self, start: int, stop: int) -> bool:
        """Whether a transaction began in [start, stop)."""
        return _any_in(self._all_begins, start, stop)

    def ended_in(self, producer: int, start: int, stop: int) -> bool:
        """Whether a transaction of this producer ended in [start, stop)."""
        end = self._next_end(producer, start)
        return end is not None and end[0] < stop

    def hides(self, txn: AbortedTxn) -> bool:
        """Whether an entry hides records that were committed: a consumer leaves out all that its producer wrote, from
        its first offset to the next abort marker.
        """
        end = self._next_end(txn.producer_id, txn.first_offset)
        if end is None:
            return False
        offset, kind = end
        if offset > txn.last_offset:
            return kind == COMMIT and _any_in(self._begins.get(txn.producer_id, []), txn.first_offset, offset)
        return offset < txn.last_offset or kind != ABORT

    def has_another_at(self, txn: AbortedTxn) -> bool:
        """Whether the log has something else where the abort marker of an entry must have been."""
        end = self._next_end(txn.producer_id, txn.last_offset)
        return txn.last_offset in self._offsets and (end is None or end[0] != txn.last_offset)

    def aborts_at(self, txn: AbortedTxn) -> bool:
        """Whether the abort marker of an entry is there."""
        return self._next_end(txn.producer_id, txn.last_offset) == (txn.last_offset, ABORT)

    def stable_at(self, txn: AbortedTxn) -> int:
        """The last stable offset at the end of a transaction of which the log shows no more than its abort marker."""
        return self._stable.get((txn.producer_id, txn.last_offset), txn.last_offset + 1)

    def _next_end(self, producer: int, offset: int) -> tuple[int, int] | None:
        ends = self._ends.get(producer, [])
        at = bisect_left(ends, (offset, BEGIN))
        return ends[at] if at < len(ends) else None


def _any_in(offsets: Sequence[int], start: int, stop: int) -> bool:
    at = bisect_left(offsets, start)
    return at < len(offsets) and offsets[at] < stop


def check_transactions(
    path: str,
    data: bytes | None,
    expected: Sequence[AbortedTxn],
    seen: Sequence[AbortedTxn],
    markers: Markers,
    *,
    base_offset: int,
    open_end: bool,
    log_start: int,
    lost: Kind,
) -> list[Finding]:
    """Findings of one `.txnindex`; `data` None: it is missing. `open_end`: its last entries may not have been written.
    `log_start`: no reader goes below it, so an entry of a transaction that ended there does no harm.
    `lost`: what is said of a file that is missing.

    `expected`: the transactions that the whole log shows, `seen`: that it shows from its start on. A broker that was
    stopped by a crash, or truncated, reads its log from there, and forgets what lies below: its entries may be either.

    The cleaner keeps the entries as they were written, though it removes batches at a transaction's beginning. A
    follower may have written a later last stable offset: that of a transaction in the same append, which a truncation
    may have removed since. Neither misleads a consumer, as long as no transaction began in between: a search that ends
    at the entry would miss that one (Kafka 4.1.0 `TransactionIndex.collectAbortedTxns`). Of many findings of one kind
    the first is reported, with their number.

    An entry may outlive its transaction: the cleaner removes the batches first, then marker and entry together, and
    0.11.0 the marker before the entry. Older brokers wrote one also for a marker without batches, beginning there.
    Source: Kafka 0.11.0, 2.0 and 4.1.0 `CleanedTransactionMetadata.onControlBatchRead`, `ProducerAppendInfo`.
    """
    early = _before(path, read_aborted(data or b""), base_offset)
    return _first_of_each([*_findings(path, data, expected, seen, markers, open_end, log_start, lost), *early])


def check_transactions_alone(path: str, base_offset: int) -> tuple[list[Finding], int]:
    """Findings of a `.txnindex` without its log, and how many entries it has: length, versions, offsets and order, and
    that none ends before the segment begins, for which a broker recovers the segment. A hole counts as one entry.
    """
    with SparseFile(path) as file:
        start, stop = next(file.stretches(), (0, 0))
        end = 0 if start else stop
        data = file.read(0, min(file.size, end - end % -_ENTRY_SIZE + _ENTRY_SIZE))
    entries = read_aborted(data)
    return _first_of_each([*_shape(path, data, entries), *_before(path, entries, base_offset)]), len(entries)


def refused_entry(data: bytes, base_offset: int, broker: Broker) -> AbortedTxn | None:
    """The entry at which a broker's check of a `.txnindex` ends: it has a version with which no broker loads the
    segment, or ends before the segment begins, and then a broker recovers the segment; None: all are good.

    Source: Kafka 4.1.0 `TransactionIndex.sanityCheck`, `LogLoader.loadSegmentFiles`.
    """
    return next(
        (txn for txn in read_aborted(data) if is_refused_version(txn, broker) or txn.last_offset < base_offset), None
    )


def _first_of_each(findings: Iterable[Finding]) -> list[Finding]:
    first: dict[tuple[str, str], Finding] = {}
    count: Counter[tuple[str, str]] = Counter()
    for finding in findings:
        first.setdefault((finding.severity, finding.kind), finding)
        count[finding.severity, finding.kind] += 1
    many = {alike: f"{plural(number, 'entry')} of this kind" for alike, number in count.items() if number > 1}
    return [
        replace(finding, hint="; ".join(filter(None, [many.get(alike), finding.hint]))) if alike in many else finding
        for alike, finding in first.items()
    ]


def _findings(
    path: str,
    data: bytes | None,
    expected: Sequence[AbortedTxn],
    seen: Sequence[AbortedTxn],
    markers: Markers,
    open_end: bool,
    log_start: int,
    lost: Kind,
) -> Iterator[Finding]:
    entries = read_aborted(data or b"")
    yield from _shape(path, data or b"", entries)
    known, above = _by_end(expected), _by_end(seen)
    found = set()
    for number, txn in enumerate(entries):
        at, key = number * _ENTRY_SIZE, (txn.producer_id, txn.last_offset)
        if key not in known:
            yield from _unknown(path, at, txn, markers, log_start)
        else:
            found.add(key)
            yield from _compare(path, at, txn, known[key], above.get(key), markers, log_start)
    missing = [txn for key, txn in above.items() if key not in found and txn.last_offset >= log_start]
    yield from _missing(path, missing, open_end, lost if data is None else None)


def _by_end(aborted: Iterable[AbortedTxn]) -> dict[tuple[int, int], AbortedTxn]:
    return {(txn.producer_id, txn.last_offset): txn for txn in aborted}


def _shape(path: str, data: bytes, entries: Sequence[AbortedTxn]) -> Iterator[Finding]:
    """What a file shows without its log."""
    if len(data) % _ENTRY_SIZE:
        expected = f"a multiple of {_ENTRY_SIZE} bytes"
        yield catalogue.TRANSACTION_INDEX_LENGTH.finding(path, expected=expected, got=len(data))
    last = -1
    for number, txn in enumerate(entries):
        at = number * _ENTRY_SIZE
        if txn.version != 0:
            yield catalogue.TRANSACTION_INDEX_VERSION.finding(path, at, "version", 0, txn.version)
        if not 0 <= txn.first_offset <= txn.last_offset:
            expected = f"0..{txn.last_offset}"
            yield catalogue.TRANSACTION_INDEX_RANGE.finding(path, at + 10, "first_offset", expected, txn.first_offset)
        if txn.last_stable_offset < 0:
            got = txn.last_stable_offset
            yield catalogue.TRANSACTION_INDEX_RANGE.finding(path, at + 26, "last_stable_offset", "0 or more", got)
        if txn.last_offset <= last:
            expected = f"more than {last}"
            yield catalogue.TRANSACTION_INDEX_ORDER.finding(path, at, "last_offset", expected, txn.last_offset)
        last = max(last, txn.last_offset)


def _missing(path: str, missing: Sequence[AbortedTxn], open_end: bool, lost: Kind | None) -> Iterator[Finding]:
    if not missing:
        return
    expected = f"{plural(len(missing), 'aborted transaction')} more, the first at offset {missing[0].last_offset}"
    kind, got = lost or catalogue.TRANSACTION_INDEX_INCOMPLETE, "no file" if lost else "none"
    if open_end:  # a broker may still be writing them
        kind = replace(kind, severity="warning")
    yield kind.finding(path, expected=expected, got=got)


def _before(path: str, entries: Sequence[AbortedTxn], base_offset: int) -> Iterator[Finding]:
    """Entries that end before the segment begins."""
    kind, expected = catalogue.TRANSACTION_INDEX_OFFSET, f"{base_offset} or more"
    for number, txn in enumerate(entries):
        if txn.last_offset < base_offset:
            yield kind.finding(path, number * _ENTRY_SIZE, "last_offset", expected, txn.last_offset)


def _unknown(path: str, at: int, txn: AbortedTxn, markers: Markers, log_start: int) -> Iterator[Finding]:
    """An entry of a transaction that the log does not show aborted there: harmless where nothing of it is left but its
    marker, and where it ends no search that must go on.
    """
    kind = catalogue.TRANSACTION_RECORDS_GONE if markers.aborts_at(txn) else catalogue.TRANSACTION_GONE
    if txn.last_offset >= log_start and markers.hides(txn):
        kind = catalogue.TRANSACTION_INDEX_UNKNOWN
    elif txn.last_offset >= log_start and markers.has_another_at(txn):
        kind = catalogue.TRANSACTION_ELSEWHERE
    yield kind.finding(path, at, None, "a transaction that was aborted", _said(txn))
    stable = markers.stable_at(txn)
    if txn.last_offset < markers.end and _is_early(txn, stable, markers, log_start):  # else the log was cut by a crash
        kind, got = catalogue.LAST_STABLE_OFFSET_OF_GONE, txn.last_stable_offset
        yield kind.finding(path, at + 26, "last_stable_offset", f"{stable} or less", got)


def _compare(
    path: str,
    at: int,
    txn: AbortedTxn,
    expected: AbortedTxn,
    seen: AbortedTxn | None,
    markers: Markers,
    log_start: int,
) -> Iterator[Finding]:
    """An entry of a known transaction; `seen`: as the records above the log's start show it, None: there are none."""
    if txn.first_offset != expected.first_offset:
        hides = seen is not None and (
            txn.first_offset > seen.first_offset
            or markers.ended_in(txn.producer_id, txn.first_offset, expected.first_offset)
        )
        kind = catalogue.TRANSACTION_INDEX_FIRST_OFFSET if hides else catalogue.TRANSACTION_CLEANED
        yield kind.finding(path, at + 10, "first_offset", expected.first_offset, txn.first_offset)
    stable = expected.last_stable_offset
    if txn.last_stable_offset != stable:
        kind = catalogue.LAST_STABLE_OFFSET_EARLIER
        if _is_early(txn, markers.stable_at(txn) if seen is None else seen.last_stable_offset, markers, log_start):
            kind = catalogue.TRANSACTION_INDEX_LAST_STABLE_OFFSET
        elif txn.last_stable_offset > max(stable, log_start):
            kind = catalogue.LAST_STABLE_OFFSET_OF_FOLLOWER
        yield kind.finding(path, at + 26, "last_stable_offset", stable, txn.last_stable_offset)


def _is_early(txn: AbortedTxn, expected: int, markers: Markers, log_start: int) -> bool:
    """Whether a search may end too early at an entry: one that is not as a follower writes it.

    `expected`: the last stable offset that the log shows.
    """
    stable, end = txn.last_stable_offset, txn.last_offset + 1
    followed = expected == end and stable <= markers.end and not markers.began_in(end, stable)
    return stable > max(expected, log_start) and not followed


def _said(txn: AbortedTxn) -> str:
    return f"producer {txn.producer_id}, offsets {txn.first_offset}..{txn.last_offset}"
