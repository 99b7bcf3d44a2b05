"""Where the bytes are, and the few rules that every RocketMQ file shares. All integers are big-endian and signed.

An index file (`store/index/IndexFile.java`, `IndexHeader.java`) has three regions and no record of its own geometry:

```
byte 0                   header, 40 bytes
byte 40                  slots,   4 x hash_slot_num
byte 40 + 4 x slots      entries, 20 x index_num        (entry 0 is never used)

header   | 0 begin_timestamp i64 | 8 end_timestamp i64 | 16 begin_phy_offset i64 | 24 end_phy_offset i64
         | 32 hash_slot_count i32 | 36 index_count i32 |
slot     | number of the newest entry of its chain i32, 0: empty |
entry    | 0 key_hash i32 | 4 phy_offset i64 | 12 time_diff i32, seconds | 16 prev_index i32, 0: end of the chain |
```

>>> index_file_size(5_000_000, 20_000_000)
420000040

A commit-log file is named by its starting phy_offset, and holds frames back to back, then a blank:

```
frame    | 0 total_size i32 | 4 magic_code i32 | 8 body_crc i32 | 12 queue_id i32 | 16 flag i32 | 20 queue_offset i64
         | 28 phy_offset i64 | 36 sys_flag i32 | 40 born_timestamp i64 | 48 born_host 8 or 20 | store_timestamp i64
         | store_host 8 or 20 | reconsume_times i32 | prepared_transaction_offset i64 | body i32 + n
         | topic i8 (version 2: i16) + n | properties i16 + n |
blank    | 0 bytes left in the file i32 | 4 magic_code i32 | undefined |
```

Files of a consume queue are named by the byte at which they start in the queue (`store/ConsumeQueue.java`,
`ConsumeQueueExt.java`, `queue/BatchConsumeQueue.java`). The unit of queue offset q stands at byte 20 x q; extension
units have an address, their byte - 2^63, that stands in place of a unit's tags_code; a batch unit stands where the one
before it ends:

```
unit        | 0 phy_offset i64 | 8 size i32 | 12 tags_code i64 |
extension   | 0 size i16 | 2 tags_code i64 | 10 store_timestamp i64 | 18 bitmap_size i16 | bitmap n |
batch unit  | 0 phy_offset i64 | 8 size i32 | 12 tags_code i64 | 20 store_timestamp i64 | 28 msg_base_offset i64
            | 36 batch_size i16 | 38 compacted_offset i32 | 42 reserved i32 |
```
"""

from __future__ import annotations

import os
from typing import Final

from mqindex.errors import GeometryError

__all__ = [
    "BATCH_QUEUE_FILE_SIZE",
    "BATCH_UNIT_SIZE",
    "COMMIT_LOG_FILE_SIZE",
    "EXT_FILE_SIZE",
    "EXT_UNIT_SIZE",
    "HASH_SLOT_NUM",
    "INDEX_ENTRY_SIZE",
    "INDEX_HEADER_SIZE",
    "INDEX_NUM",
    "INDEX_SLOT_SIZE",
    "MAGIC_BLANK",
    "MAGIC_MESSAGE_V1",
    "MAGIC_MESSAGE_V2",
    "MAX_EXT_ADDRESS",
    "MAX_INDEX_FILE_SIZE",
    "MAX_TIMESTAMP",
    "QUEUE_FILE_SIZE",
    "QUEUE_UNIT_SIZE",
    "RUN_ENTRY_SIZE",
    "index_file_size",
    "number_of",
]

INDEX_HEADER_SIZE: Final = 40
INDEX_SLOT_SIZE: Final = 4
INDEX_ENTRY_SIZE: Final = 20
HASH_SLOT_NUM: Final = 5_000_000
INDEX_NUM: Final = 20_000_000

MAGIC_MESSAGE_V1: Final = -626843481
MAGIC_MESSAGE_V2: Final = -626843477
MAGIC_BLANK: Final = -875286124
COMMIT_LOG_FILE_SIZE: Final = 1 << 30

RUN_ENTRY_SIZE: Final = 20  # key_hash i32, phy_offset i64, store_timestamp i64: ours, native byte order, scratch only
MAX_TIMESTAMP: Final = 2**63 - 1

QUEUE_UNIT_SIZE: Final = 20
QUEUE_FILE_SIZE: Final = 6_000_000
EXT_UNIT_SIZE: Final = 20  # without a bitmap
EXT_FILE_SIZE: Final = 48 << 20
MAX_EXT_ADDRESS: Final = -(2**31) - 1  # a tags code up to here is the address of an extension unit
BATCH_UNIT_SIZE: Final = 46
BATCH_QUEUE_FILE_SIZE: Final = 13_800_000

MAX_INDEX_FILE_SIZE: Final = 2**31 - 1  # the broker computes positions in 32 bits


def index_file_size(hash_slot_num: int, index_num: int) -> int:
    """Bytes of an index file of this geometry; `GeometryError` for one that no broker can map."""
    if hash_slot_num < 1 or index_num < 1:
        raise GeometryError("no such geometry", expected="1 or more of each", got=f"{hash_slot_num} and {index_num}")
    size = INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * hash_slot_num + INDEX_ENTRY_SIZE * index_num
    if size > MAX_INDEX_FILE_SIZE:
        raise GeometryError(
            "an index file of this geometry is larger than a broker can map",
            expected=f"{MAX_INDEX_FILE_SIZE} bytes or less",
            got=size,
            hint="choose a smaller hash_slot_num or index_num",
        )
    return size


def number_of(name: str | os.PathLike[str]) -> int | None:
    """The number that a file is named by, in any script's digits as the broker accepts them; None: not a number.

    >>> number_of("store/commitlog/00000000001073741824"), number_of("٠٠٠٧"), number_of("1.bak")
    (1073741824, 7, None)
    """
    digits = os.path.basename(os.fspath(name))
    return int(digits) if digits.isdecimal() and int(digits) < 2**63 else None
