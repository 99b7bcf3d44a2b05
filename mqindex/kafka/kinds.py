"""What a file of Kafka's is, by what it begins with: for files whose names do not say it.

Every batch and message begins alike (`DefaultRecordBatch`, `LegacyRecord`):

```
batch  | 0 base_offset i64 | 8 length of the rest i32 | 12 leader_epoch i32, of magic 0 and 1 crc u32 | 16 magic i8 |
```
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Final

from mqindex.files.reading.regular import reading

_HEAD: Final = struct.Struct(">qiIb")
_LENGTH_END: Final = 12  # the length counts from here
_LEAST: Final = {0: 26, 1: 34, 2: 61}  # bytes of a batch, by its magic
_LONGEST: Final = 64 << 20  # the broker's default limit is 1 MiB


def begins_with_batch(path: str | os.PathLike[str]) -> bool:
    """Whether a whole batch, or message of magic 0 or 1, is at the beginning of a file."""
    with reading(path) as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return False
        _, length, crc, magic = _HEAD.unpack(head)
        size = length + _LENGTH_END
        if magic not in _LEAST or not _LEAST[magic] <= size <= min(os.fstat(file.fileno()).st_size, _LONGEST):
            return False
        batch = head + file.read(size - len(head))
    # A file of units of a RocketMQ queue looks like messages of magic 0, were it not for the checksum.
    return bool(magic == 2 or zlib.crc32(batch[16:]) == crc)


def first_offset(path: str | os.PathLike[str]) -> int:
    """The offset that the first batch of a log names (of a wrapper of magic 0 or 1 that of its last message)."""
    with reading(path) as file:
        return int.from_bytes(file.read(8), "big", signed=True)
