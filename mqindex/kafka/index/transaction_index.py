"""`TransactionIndex`: the aborted transactions of a segment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from mqindex._native.numbers import whole_number
from mqindex._rules import Broker
from mqindex.columns.columns import Columns
from mqindex.errors import CorruptIndexError, OutOfOrderError
from mqindex.files import disk
from mqindex.files.paths import size_of
from mqindex.files.reading.sparse import SparseFile
from mqindex.files.results.whole_file import have_file
from mqindex.files.sync_trust import SyncTrust
from mqindex.kafka.brokers import ONE_BYTE_OF_VERSION, broker_of, follows
from mqindex.kafka.index.abstract_index import SegmentIndex
from mqindex.kafka.index.only_writer import hold_index, require_no_broker
from mqindex.kafka.layout import IndexKind

_ENTRY_SIZE = IndexKind.TRANSACTION.entry_size


class AbortedTxn(NamedTuple):
    """One aborted transaction: an entry of a `TransactionIndex`.

    Attributes
    ----------
    producer_id, first_offset : int, offsets are absolute
    last_offset : int, of its abort marker
    last_stable_offset : int, when it was aborted
    version : int, of the entry; brokers write 0

    Notes
    -----
    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.AbortedTxn`.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    version: int = 0


class TxnIndexSearchResult(NamedTuple):
    """What `TransactionIndex.collect_aborted_txns` answers.

    Attributes
    ----------
    aborted_transactions : list of AbortedTxn
    is_complete : bool; False: the next segment may hold more

    Notes
    -----
    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.TxnIndexSearchResult`.
    """

    aborted_transactions: list[AbortedTxn]
    is_complete: bool


def read_aborted(data: bytes) -> list[AbortedTxn]:
    """The whole entries in the bytes of a `.txnindex`."""
    entries = np.frombuffer(data, IndexKind.TRANSACTION.entry, len(data) // _ENTRY_SIZE)
    return list(map(AbortedTxn._make, entries[list(AbortedTxn._fields)].tolist()))


def is_refused_version(txn: AbortedTxn, broker: Broker) -> bool:
    """Whether a broker does not load an entry for its version: where that is not 0, or its first byte is more."""
    return txn.version >> 8 > 0 if follows(broker, ONE_BYTE_OF_VERSION) else txn.version != 0


def aborted_bytes(aborted: Iterable[AbortedTxn]) -> bytes:
    """The bytes of a `.txnindex`.

    >>> len(aborted_bytes([AbortedTxn(5, 102, 106, 107)]))
    34
    """
    return np.array([(txn.version, *txn[:4]) for txn in aborted], IndexKind.TRANSACTION.entry).tobytes()


def aborted_columns(aborted: Iterable[AbortedTxn]) -> Columns:
    """The fields of `AbortedTxn` as columns, int64."""
    rows = np.array(list(aborted), np.int64).reshape(-1, len(AbortedTxn._fields))
    return Columns({name: rows[:, i].copy() for i, name in enumerate(AbortedTxn._fields)})


def search_aborted(entries: Iterable[AbortedTxn], fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
    """The entries of a segment that touch the offsets [fetch_offset, upper_bound_offset).

    Source: Kafka 4.1.0 `TransactionIndex.collectAbortedTxns`.
    """
    found = []
    for txn in entries:
        if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound_offset:
            found.append(txn)
        if txn.last_stable_offset >= upper_bound_offset:
            return TxnIndexSearchResult(found, True)
    return TxnIndexSearchResult(found, False)


class TransactionIndex(SegmentIndex):
    """A `.txnindex` file; one that does not exist has no entries, and is made by the first `append`.

    For one thread at a time where it is written; one object at a time may have it open for writing, in one process:
    another is a `StoreInUseError`, and a forked child may not write. What follows the last whole entry is
    skipped, and cut by the first `append`; so is a hole at the file's end.

    Notes
    -----
    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.TransactionIndex`, `AbortedTxn`.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/00000000000000000100.txnindex"
    >>> with TransactionIndex.open(path, writable=True) as index:
    ...     index.append(AbortedTxn(producer_id=5, first_offset=102, last_offset=106, last_stable_offset=107))
    ...     index.collect_aborted_txns(100, 107).is_complete, [txn.producer_id for txn in index.entries()]
    (True, [5])
    """

    kind = IndexKind.TRANSACTION

    def __init__(self, path: str, base_offset: int, *, writable: bool) -> None:
        super().__init__(path, base_offset, writable=writable)
        self._holds = False  # from when on the file exists
        self._syncs = SyncTrust()
        if writable:
            require_no_broker(path)
            if disk.exists(path):
                self._hold()

    def entries(self) -> Iterator[AbortedTxn]:
        """Every entry, in the file's order.

        Raises
        ------
        CorruptIndexError : an entry of a version that no broker reads.
        """
        return iter(self._read())

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        """The aborted transactions that touch the offsets [fetch_offset, upper_bound_offset)."""
        fetch_offset = whole_number("fetch_offset", fetch_offset)
        return search_aborted(self._read(), fetch_offset, whole_number("upper_bound_offset", upper_bound_offset))

    def append(self, txn: AbortedTxn) -> None:
        """Append a transaction, which must end after the last one; brought to the disk by `flush`."""
        with self._lock:
            self._require_writable()
            have_file(self.path, b"")
            self._hold()
            known = self._read()
            if known and known[-1].last_offset >= txn.last_offset:
                raise OutOfOrderError(
                    "the transaction does not end after the last one", path=self.path, field="last_offset",
                    expected=f"more than {known[-1].last_offset}", got=txn.last_offset,
                )  # fmt: skip
            _write(self.path, aborted_bytes([txn]), len(known) * _ENTRY_SIZE)

    def truncate_to(self, offset: int) -> None:
        """Cut the file at the first transaction that ends at `offset` or after it."""
        offset = whole_number("offset", offset)
        with self._lock:
            self._require_writable()
            known = self._read()
            kept = next((at for at, txn in enumerate(known) if txn.last_offset >= offset), len(known))
            if kept < len(known):
                self._hold()
                _cut(self.path, kept * _ENTRY_SIZE)

    def sanity_check(self) -> None:
        """Raise `CorruptIndexError` where the broker would: a transaction that ends before the segment begins."""
        for number, txn in enumerate(self._read()):
            if txn.last_offset < self.base_offset:
                raise self._corrupt(number, "last_offset", f"{self.base_offset} or more", txn.last_offset)

    def flush(self) -> None:
        """Bring the file to the disk."""
        if self.writable and disk.exists(self.path):
            with self._syncs:
                disk.sync_file(self.path)

    def close(self) -> None:
        """May be called twice and changes no byte."""
        self._closed = True
        self._held.close()

    def __len__(self) -> int:
        return len(self._read())

    def _read(self) -> list[AbortedTxn]:
        self._require_open()
        try:
            with SparseFile(self.path) as file:
                data = b""
                for start, stop in file.stretches():
                    if start > len(data):
                        raise self._corrupt(
                            len(data) // _ENTRY_SIZE, "last_offset", "a transaction", "a hole of the file"
                        )
                    data += file.read(start, stop)
                data += bytes(min(file.size - len(data), -len(data) % _ENTRY_SIZE))  # the last one may end in a hole
        except FileNotFoundError:
            return []
        found = read_aborted(data)
        for number, txn in enumerate(found):
            if is_refused_version(txn, broker_of(None)):
                raise self._corrupt(number, "version", "0", txn.version)
        return found

    def _corrupt(self, number: int, field: str, expected: str, got: object) -> CorruptIndexError:
        return CorruptIndexError(
            "the index contradicts itself", path=self.path, at=number * _ENTRY_SIZE, field=field,
            expected=expected, got=got,
        )  # fmt: skip

    def _hold(self) -> None:
        if not self._holds:
            self._held.enter_context(hold_index(self.path))
            self._holds = True


def _write(path: str, data: bytes, at: int) -> None:
    """Write, and cut what follows; a write that fails leaves no whole entry of its own."""
    fd = disk.open_to_write(path)
    try:
        if size_of(path) > at:
            disk.resize(fd, at)
        try:
            disk.pwrite_all(fd, data, at)
        except OSError:
            with suppress(OSError):
                disk.resize(fd, at)
            raise
    finally:
        disk.close(fd)


def _cut(path: str, size: int) -> None:
    fd = disk.open_to_write(path)
    try:
        disk.resize(fd, size)
    finally:
        disk.close(fd)
