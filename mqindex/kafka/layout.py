"""Where the bytes of Kafka's index files are. All integers are big-endian and signed; files have no header.

```
.index      | 0 relative_offset i32 | 4 position i32 |                                    strictly increasing
.timeindex  | 0 timestamp i64 | 8 relative_offset i32 |                                   timestamps strictly increasing
.txnindex   | 0 version i16 | 2 producer_id i64 | 10 first_offset i64 | 18 last_offset i64 | 26 last_stable_offset i64 |
```

A relative offset is an offset minus the segment's base offset, which only the file's name tells. An index of an active
segment is as long as `max_index_size` allows, zeros behind its entries.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from mqindex.errors import BadMagicError

__all__ = [
    "MAX_INDEX_SIZE",
    "MAX_LOG_SIZE",
    "OFFSET_ENTRY_SIZE",
    "TIME_ENTRY_SIZE",
    "TRANSACTION_ENTRY_SIZE",
    "base_offset_of",
    "require_file",
]

OFFSET_ENTRY_SIZE: Final = 8
TIME_ENTRY_SIZE: Final = 12
TRANSACTION_ENTRY_SIZE: Final = 34
MAX_INDEX_SIZE: Final = 10_485_760
MAX_LOG_SIZE: Final = 2**31 - 1  # positions have 32 bits
MAX_BASE_OFFSET: Final = 2**63 - 2**31


_OPENERS: Final = {
    "log": "LogSegment", "index": "OffsetIndex", "timeindex": "TimeIndex", "txnindex": "TransactionIndex",
}  # fmt: skip


def require_file(path: str | os.PathLike[str], kind: str) -> str:
    """The path as str. `BadMagicError`: the name is of another file of a segment. A directory is an error, too."""
    where = os.fspath(path)
    if os.path.isdir(where):
        raise IsADirectoryError(
            errno.EISDIR, f"a directory; expected a .{kind} file. PartitionLog.open takes a directory", where
        )
    number, found, *_ = (*os.path.basename(where).split("."), "")
    if number.isdigit() and found in _OPENERS and found != kind:  # a copy may have any name
        raise BadMagicError(
            "another file of a segment", path=where, expected=f"a .{kind} file", got=f".{found}",
            hint=f"{_OPENERS[found]}.open takes it",
        )  # fmt: skip
    return where


def base_offset_of(path: str | os.PathLike[str]) -> int:
    """The base offset in a segment file's name: what stands before the first dot.

    >>> base_offset_of("orders-0/00000000000000000042.index.deleted")
    42
    """
    prefix = os.path.basename(os.fspath(path)).partition(".")[0]
    if not (prefix.isascii() and prefix.isdigit()) or int(prefix) > MAX_BASE_OFFSET:
        raise BadMagicError(
            "the name tells no base offset", path=path, expected="20 digits, a dot and more", got=prefix,
            hint="rename it, or give base_offset=",
        )  # fmt: skip
    return int(prefix)
