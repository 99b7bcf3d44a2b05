"""One writer at a time for an index file of a segment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mqindex.files import lock
from mqindex.files.paths import absolute, join, parent_of


@contextmanager
def hold_index(path: str) -> Iterator[None]:
    """Be the only writer of this package in an index file; `StoreInUseError` too where a broker holds its log dir."""
    with lock.hold_file(path, "index"):
        require_no_broker(path)  # now: who holds the log dir from here on finds the file held
        yield


def require_no_broker(path: str) -> None:
    """`StoreInUseError` where another process holds the log dir of an index file, which need not exist."""
    lock.require_free(join(parent_of(parent_of(absolute(path))), ".lock"))
