"""The indexes of one segment, opened when they are first needed, while a broker may trim or delete them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from mqindex.errors import TruncatedFileError
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.fork_lock import new_lock
from mqindex.kafka.index.offset_index import OffsetIndex
from mqindex.kafka.index.time_index import TimeIndex
from mqindex.kafka.index.transaction_index import TransactionIndex
from mqindex.kafka.layout import IndexKind

_T = TypeVar("_T")
_CLASSES: Final[Mapping[IndexKind, Any]] = {
    IndexKind.OFFSET: OffsetIndex,
    IndexKind.TIME: TimeIndex,
    IndexKind.TRANSACTION: TransactionIndex,
}


class OpenedIndexes(Closable):
    """Read-only. `path`: of the segment's log; `paths`: where its indexes are, or may be. Safe from several threads."""

    _thing = "segment"

    def __init__(self, path: str, base_offset: int, paths: Mapping[IndexKind, str]) -> None:
        self.path = path
        self.base_offset = base_offset
        self.paths = paths
        self._lock = new_lock()
        self._opened: dict[IndexKind, Any] = {}

    def get(self, kind: IndexKind) -> Any:
        """The index; None: it was missing at its first use."""
        with self._lock:
            self._require_open()
            if kind not in self._opened:
                path = self.paths.get(kind)
                self._opened[kind] = None
                if path is not None and disk.is_there(path):
                    with contextlib.suppress(FileNotFoundError):  # deleted just now
                        self._opened[kind] = _CLASSES[kind].open(path, base_offset=self.base_offset)
            return self._opened[kind]

    def ask(self, kind: IndexKind, question: Callable[[Any], _T]) -> _T | None:
        """The result of `question` on an index; None: it is missing.

        A broker trims the indexes of a segment that it rolls: such a file is mapped again.
        """
        index = self.get(kind)
        try:
            return None if index is None else question(index)
        except TruncatedFileError:
            with self._lock:
                if self._opened.get(kind) is index:
                    del self._opened[kind]  # not closed: another thread may be using it
        index = self.get(kind)
        return None if index is None else question(index)

    def close(self) -> None:
        """May be called twice; a look-up that still runs ends normally."""
        with self._lock:
            self._closed = True
            opened, self._opened = self._opened, {}
        for index in opened.values():
            if index is not None:
                index.close()
