"""The `.txnindex` of a segment against the transactions that its partition's log shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._words import plural
from mqindex.files.regular import regular
from mqindex.kafka import catalogue
from mqindex.kafka.index.transaction_index import AbortedTxn, read_aborted
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.partition.transactions import ABORT, BEGIN, EVENT
from mqindex.report import Finding

__all__ = ["Markers", "check_transactions", "check_transactions_alone", "refused_version"]

_ENTRY_SIZE = IndexKind.TRANSACTION.entry_size


class Markers:
    """Where each producer's transactions of a partition ended and began, from the events of all its segments.

    `end`: the offset after the log's last record.
    """

    def __init__(self, events: Sequence[npt.NDArray[Any]], end: int) -> None:
        self.end = end
        self._ends: dict[int, dict[int, int]] = {}
        self.begins: set[int] = set()
        for producer, offset, kind in np.concatenate([*events, np.empty(0, EVENT)]).tolist():
            if kind == BEGIN:
                self.begins.add(offset)
            else:
                self._ends.setdefault(producer, {})[offset] = kind

    def at(self, producer: int, offset: int) -> int | None:
        """What a marker of this producer says there; None: there is none."""
        return self._ends.get(producer, {}).get(offset)

    def began_in(self, start: int, stop: int) -> bool:
        """Whether a transaction began in [start, stop)."""
        return any(start <= offset < stop for offset in self.begins)

    def any_in(self, producer: int, start: int, stop: int) -> bool:
        """Whether a transaction of this producer ended in [start, stop)."""
        return any(start <= offset < stop for offset in self._ends.get(producer, ()))


def check_transactions(
    path: str,
    data: bytes | None,
    expected: Sequence[AbortedTxn],
    markers: Markers,
    *,
    open_end: bool,
    log_start: int = 0,
) -> list[Finding]:
    """Findings of one `.txnindex`; `data` None: it is missing. `open_end`: its last entries may not have been written.
    `log_start`: no reader goes below it, so an entry of a transaction that ended there does no harm.

    The cleaner keeps the entries as they were written, though it removes batches at a transaction's beginning. A
    follower may have written a later last stable offset: that of a transaction in the same append, which a truncation
    may have removed since. Neither misleads a consumer, as long as no transaction began in between: a search that ends
    at the entry would miss that one (Kafka 4.1.0 `TransactionIndex.collectAbortedTxns`). Of many findings of one kind
    the first is reported, with their number.
    """
    return _first_of_each(_findings(path, data, expected, markers, open_end, log_start))


def check_transactions_alone(path: str, base_offset: int) -> tuple[list[Finding], int]:
    """Findings of a `.txnindex` without its log, and how many entries it has: length, versions, order, and that none
    ends before the segment begins, for which a broker recovers the segment.
    """
    with open(path, "rb", opener=regular) as file:
        data = file.read()
    entries = read_aborted(data)
    kind, expected = catalogue.TRANSACTION_INDEX_OFFSET, f"{base_offset} or more"
    early = [
        kind.finding(path, number * _ENTRY_SIZE, "last_offset", expected, txn.last_offset)
        for number, txn in enumerate(entries)
        if txn.last_offset < base_offset
    ]
    return _first_of_each([*_shape(path, data, entries), *early]), len(entries)


def refused_version(data: bytes, base_offset: int) -> int | None:
    """The version (one byte, for a broker) with which no broker loads the segment; None: a broker loads it.

    At an entry that ends before the segment begins a broker stops the check, and writes the file anew.
    Source: Kafka 4.1.0 `TransactionIndex.sanityCheck`, `LogLoader.loadSegmentFiles`.
    """
    for txn in read_aborted(data):
        if txn.version >> 8 > 0:
            return txn.version >> 8
        if txn.last_offset < base_offset:
            break
    return None


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
    path: str, data: bytes | None, expected: Sequence[AbortedTxn], markers: Markers, open_end: bool, log_start: int
) -> Iterator[Finding]:
    entries = read_aborted(data or b"")
    yield from _shape(path, data or b"", entries)
    known = {(txn.producer_id, txn.last_offset): txn for txn in expected}
    found = set()
    for number, txn in enumerate(entries):
        at = number * _ENTRY_SIZE
        wanted = known.get((txn.producer_id, txn.last_offset))
        if wanted is None:
            yield _unknown(path, at, txn, markers, log_start)
        else:
            found.add((txn.producer_id, txn.last_offset))
            yield from _compare(path, at, txn, wanted, markers, log_start)
    missing = [txn for key, txn in known.items() if key not in found and txn.last_offset >= log_start]
    yield from _missing(path, data, missing, open_end)


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
        if txn.last_offset <= last:
            expected = f"more than {last}"
            yield catalogue.TRANSACTION_INDEX_ORDER.finding(path, at, "last_offset", expected, txn.last_offset)
        last = max(last, txn.last_offset)


def _missing(path: str, data: bytes | None, missing: Sequence[AbortedTxn], open_end: bool) -> Iterator[Finding]:
    if not missing:
        return
    expected = f"{plural(len(missing), 'aborted transaction')} more, the first at offset {missing[0].last_offset}"
    kind, got = catalogue.TRANSACTION_INDEX_INCOMPLETE, "none"
    if data is None:
        kind, got = catalogue.TRANSACTION_INDEX_MISSING, "no file"
    if open_end:  # a broker may still be writing them
        kind = replace(kind, severity="warning")
    yield kind.finding(path, expected=expected, got=got)


def _unknown(path: str, at: int, txn: AbortedTxn, markers: Markers, log_start: int) -> Finding:
    """An entry of a transaction that the log does not show aborted there: harmless where nothing of it is left."""
    said = markers.at(txn.producer_id, txn.last_offset)
    misleads = txn.last_offset >= log_start and (
        said not in (None, ABORT) or markers.any_in(txn.producer_id, txn.first_offset, txn.last_offset)
    )
    kind = catalogue.TRANSACTION_INDEX_UNKNOWN if misleads else catalogue.TRANSACTION_GONE
    return kind.finding(path, at, None, "a transaction that was aborted", _said(txn))


def _compare(
    path: str, at: int, txn: AbortedTxn, expected: AbortedTxn, markers: Markers, log_start: int
) -> Iterator[Finding]:
    if txn.first_offset != expected.first_offset:
        hides = txn.last_offset >= log_start and (
            txn.first_offset > expected.first_offset
            or markers.any_in(txn.producer_id, txn.first_offset, expected.first_offset)
        )
        kind = catalogue.TRANSACTION_INDEX_FIRST_OFFSET if hides else catalogue.TRANSACTION_CLEANED
        yield kind.finding(path, at + 10, "first_offset", expected.first_offset, txn.first_offset)
    stable = txn.last_stable_offset
    if stable != expected.last_stable_offset:
        early = stable > max(expected.last_stable_offset, log_start)
        end = expected.last_offset + 1
        alone = expected.last_stable_offset == end and not markers.began_in(end, stable)
        followed = early and alone and stable <= markers.end
        kind = catalogue.TRANSACTION_INDEX_LAST_STABLE_OFFSET if early else catalogue.LAST_STABLE_OFFSET_EARLIER
        if followed:
            kind = catalogue.LAST_STABLE_OFFSET_OF_FOLLOWER
        yield kind.finding(path, at + 26, "last_stable_offset", expected.last_stable_offset, stable)


def _said(txn: AbortedTxn) -> str:
    return f"producer {txn.producer_id}, offsets {txn.first_offset}..{txn.last_offset}"
