"""The entries, batches and records that `mqindex dump` prints of Kafka's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from mqindex.cli import kafka_kinds as kinds
from mqindex.cli.formats import Columns

if TYPE_CHECKING:
    from mqindex.kafka import OffsetIndex, TimeIndex

__all__ = ["entry_columns"]

_BLOCK = 1 << 16


def entry_columns(kind: str, path: str) -> Iterator[Columns]:
    """The entries of an index file, before its tail of zeros."""
    return _ENTRIES[kind](path)


def _offsets(path: str) -> Iterator[Columns]:
    from mqindex.kafka import OffsetIndex

    with OffsetIndex.open(path) as index:
        yield from _places(index)


def _times(path: str) -> Iterator[Columns]:
    from mqindex.kafka import TimeIndex

    with TimeIndex.open(path) as index:
        yield from _places(index)


def _places(index: OffsetIndex | TimeIndex) -> Iterator[Columns]:
    import numpy as np

    from mqindex.kafka.zero_tail import entries_before_zeros

    stop = min(entries_before_zeros(index.path, index.entry_size), len(index))
    for first in range(0, max(stop, 1), _BLOCK):  # at least once: columns without rows have names, too
        last = min(first + _BLOCK, stop)
        yield {"number": np.arange(first, last), **index.entries(first, last)}


def _transactions(path: str) -> Iterator[Columns]:
    import numpy as np

    from mqindex.kafka import AbortedTxn, TransactionIndex

    with TransactionIndex.open(path) as index:
        rows = np.array(list(index.entries()), np.int64).reshape(-1, len(AbortedTxn._fields))
    yield {"number": np.arange(len(rows)), **{name: rows[:, i].copy() for i, name in enumerate(AbortedTxn._fields)}}


_ENTRIES: Final[dict[str, Callable[[str], Iterator[Columns]]]] = {
    kinds.OFFSET_INDEX: _offsets,
    kinds.TIME_INDEX: _times,
    kinds.TRANSACTION_INDEX: _transactions,
}
