"""The files of a Kafka partition, drawn, and what their names say.

All integers are big-endian; i8 to i64 are signed, u32 is not. Numbers above a box are bytes from the beginning of what
is drawn, times are ms since the epoch. No file has a header: the name is the segment's base offset.

```
<log dir>/
+-- orders-0/                                a partition: <topic>-<number>
|   +-- 00000000000000000042.log             batches of records
|   +-- 00000000000000000042.index           offset -> position in the log, about every 4 KiB of log
|   +-- 00000000000000000042.timeindex       timestamp -> offset
|   +-- 00000000000000000042.txnindex        aborted transactions, where there are any
|   +-- 00000000000000000042.snapshot        the state of producers before that offset
|   +-- leader-epoch-checkpoint              epochs and their first offsets, text
+-- log-start-offset-checkpoint, ...         of every partition, text
+-- .kafka_cleanshutdown                     the last stop was clean
```

### Indexes

Class `OffsetIndex`, `TimeIndex` and `TransactionIndex` of `org.apache.kafka.storage.internals.log`. A relative offset
is an offset minus the segment's base offset, which only the file's name has. Offset and time index have keys that
strictly increase. The index of an active segment is as long as `max_index_size` allows: zeros follow its entries.

```
.index
0                 4          8
+-----------------+----------+
| relative_offset | position |
| i32             | i32      |
+-----------------+----------+
  of a batch's last   byte of the log at which the batch begins
  record
.timeindex
0           8                 12
+-----------+-----------------+
| timestamp | relative_offset |
| i64, ms   | i32             |
+-----------+-----------------+
  the largest so far; the offset of the record that has it

.txnindex
0         2             10             18            26                   34
+---------+-------------+--------------+-------------+--------------------+
| version | producer_id | first_offset | last_offset | last_stable_offset |
| i16     | i64         | i64          | i64         | i64                |
+---------+-------------+--------------+-------------+--------------------+
```

### Log

`DefaultRecordBatch`. A batch of magic 2 (0.11 and later); `crc` is CRC-32C of all bytes from 21 on, `length` counts
what follows it, and records may be compressed as a whole (attributes, bits 0 to 2):

```
batch
0             8        12             16      17    21           23                  27
+-------------+--------+--------------+-------+-----+------------+-------------------+
| base_offset | length | leader_epoch | magic | crc | attributes | last_offset_delta |
| i64         | i32    | i32          | i8    | u32 | i16        | i32               |
+-------------+--------+--------------+-------+-----+------------+-------------------+
27               35              43            51               53              57      61
+----------------+---------------+-------------+----------------+---------------+-------+---------+
| base_timestamp | max_timestamp | producer_id | producer_epoch | base_sequence | count | records |
| i64, ms        | i64, ms       | i64         | i16            | i32           | i32   |         |
+----------------+---------------+-------------+----------------+---------------+-------+---------+

record
+--------+------------+-----------------+--------------+------------+------------+-------------------+
| length | attributes | timestamp_delta | offset_delta | key        | value      | headers           |
| varint | i8         | varlong         | varint       | varint + n | varint + n | varint, then each |
+--------+------------+-----------------+--------------+------------+------------+-------------------+
```

`LegacyRecord`. Before that each message is a batch of its own, and a compressed one has messages in its value; `crc` is
CRC-32 of all bytes from 16 on, and magic 0 has no timestamp:

```
message
0        8        12    16      17           18          26
+--------+--------+-----+-------+------------+-----------+---------+---------+
| offset | length | crc | magic | attributes | timestamp | key     | value   |
| i64    | i32    | u32 | i8    | i8         | i64, ms   | i32 + n | i32 + n |
+--------+--------+-----+-------+------------+-----------+---------+---------+
```

### Producer snapshot

`ProducerStateManager`. Version 1 and a CRC-32C of all bytes from 6 on, then one row for each producer:

```
0         2     6       10
+---------+-----+-------+------------+
| version | crc | count | count rows |
| i16     | u32 | i32   |            |
+---------+-----+-------+------------+
row
0             8       10              14            22             26          34
+-------------+-------+---------------+-------------+--------------+-----------+
| producer_id | epoch | last_sequence | last_offset | offset_delta | timestamp |
| i64         | i16   | i32           | i64         | i32          | i64, ms   |
+-------------+-------+---------------+-------------+--------------+-----------+
34                  38                         46
+-------------------+--------------------------+
| coordinator_epoch | current_txn_first_offset |
| i32               | i64                      |
+-------------------+--------------------------+
                      -1: no transaction is open
```
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import numpy as np

from mqindex._native.numbers import int64, whole_number
from mqindex.errors import BadMagicError
from mqindex.files import disk
from mqindex.files.paths import base_name
from mqindex.files.places.place import given_path

MAX_LOG_SIZE: Final = 2**31 - 1  # positions have 32 bits
MAX_BASE_OFFSET: Final = 2**63 - 2**31
MIN_BATCH_SIZE: Final = 26  # bytes: a message of magic 0 without key and value


class IndexKind(StrEnum):
    """The index files of a segment; the value is the ending of a file's name.

    >>> IndexKind.TIME, IndexKind.TIME.label, [kind.entry_size for kind in IndexKind]
    (<IndexKind.TIME: 'timeindex'>, 'time-index', [8, 12, 34])
    """

    OFFSET = "index"
    TIME = "timeindex"
    TRANSACTION = "txnindex"

    @property
    def label(self) -> str:
        """Its name in findings and in the shell."""
        return f"{self.name.lower()}-index"

    @property
    def entry(self) -> np.dtype[np.void]:
        """The fields of an entry on the disk."""
        return _ENTRIES[self]

    @property
    def entry_size(self) -> int:
        """Bytes of an entry."""
        return self.entry.itemsize


_ENTRIES: Final = {
    IndexKind.OFFSET: np.dtype([("offset", ">i4"), ("position", ">i4")]),
    IndexKind.TIME: np.dtype([("timestamp", ">i8"), ("offset", ">i4")]),
    IndexKind.TRANSACTION: np.dtype(
        [
            ("version", ">i2"),
            ("producer_id", ">i8"),
            ("first_offset", ">i8"),
            ("last_offset", ">i8"),
            ("last_stable_offset", ">i8"),
        ]
    ),
}
_OPENERS: Final = {"log": "LogSegment", **{kind.value: f"{kind.name.title()}Index" for kind in IndexKind}}


def require_file(
    path: str | os.PathLike[str],
    ending: str,
    name: str = "path",
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """The path as str. `BadMagicError`: the name is of another file of a segment. A directory is an error, too.

    `name`: the argument's.
    """
    where = given_path(name, path, storage_options)
    if disk.is_directory(where):
        raise IsADirectoryError(
            errno.EISDIR, f"a directory; expected a .{ending} file. PartitionLog.open takes a directory", where
        )
    number, found, *_ = (*base_name(where).split("."), "")
    if number.isdigit() and found in _OPENERS and found != ending:  # a copy may have any name
        raise BadMagicError(
            "another file of a segment", path=where, expected=f"a .{ending} file", got=f".{found}",
            hint=f"{_OPENERS[found]}.open takes it",
        )  # fmt: skip
    return where


def base_offset_of(path: str | os.PathLike[str], given: int | None = None) -> int:
    """The base offset in a segment file's name, the digits before the first dot, where none is given.

    >>> base_offset_of("orders-0/00000000000000000042.index.deleted")
    42
    """
    if given is not None:
        return int64("base_offset", whole_number("base_offset", given))
    prefix = base_name(os.fspath(path)).partition(".")[0]
    if not (prefix.isascii() and prefix.isdigit()) or int(prefix) > MAX_BASE_OFFSET:
        raise BadMagicError(
            "the name has no base offset", path=path, expected="20 digits, a dot and more", got=prefix,
            hint="rename it, or give base_offset=",
        )  # fmt: skip
    return int(prefix)
