"""The files of a RocketMQ store, drawn, and the few rules that all of them share.

All integers are big-endian and signed. Numbers above a box are bytes from the beginning of what is drawn; i8 to i64 are
integers of that many bits. Times are ms since the epoch, but for time_diff: seconds since the file's begin_timestamp.

```
<store>/
+-- commitlog/00000000001073741824                      every message, in the order of arrival
+-- consumequeue/<topic>/<queueId>/00000000000006000000 a unit for each message of one queue
+-- consumequeue_ext/<topic>/<queueId>/...              more about some of these messages (enableConsumeQueueExt)
+-- batchconsumequeue/<topic>/<queueId>/...             queues of topics of type BatchCQ (5.0 and later)
+-- index/20231114221320000                             key -> places of messages in the commit log
+-- config/topics.json, consumerOffset.json, ...        JSON, each with a .bak of the save before
+-- mqindex-index/...                                   mqindex's own: `mqindex.rocketmq.sidecar.layout`
+-- checkpoint                                          up to where the files are known to be on the disk
+-- abort                                               there while a broker runs, and after an unclean end
+-- lock                                                locked while a broker runs
```

### Index file

`store/index/IndexFile`, `IndexHeader`, the same in 4.0 to 5.5. The name is the local time of creation. There
are three regions, and no record of how many slots and entries there are (the *geometry*):

```
+----------------------+ 0
| header               |
+----------------------+ 40
| slots, 4 bytes each  |   slot s, i32: the number of the newest entry of its chain, 0: no entry
+----------------------+ 40 + 4 * hash_slot_num
| entries, 20 bytes    |   entry n begins at 40 + 4 * hash_slot_num + 20 * n; entry 0 is never used
+----------------------+ 40 + 4 * hash_slot_num + 20 * index_num

header
0                 8               16                 24               32                36            40
+-----------------+---------------+------------------+----------------+-----------------+-------------+
| begin_timestamp | end_timestamp | begin_phy_offset | end_phy_offset | hash_slot_count | index_count |
| i64, ms         | i64, ms       | i64              | i64            | i32             | i32         |
+-----------------+---------------+------------------+----------------+-----------------+-------------+
                                                                  used slots        number of the next entry
entry
0          4            12          16           20
+----------+------------+-----------+------------+
| key_hash | phy_offset | time_diff | prev_index |
| i32      | i64        | i32, s    | i32        |
+----------+------------+-----------+------------+
  of topic#key                      the entry before it in the same slot, 0: the chain ends
```

A look-up goes from the newest entry of a slot to ever older ones:

```
key_hash("T#k") % hash_slot_num = 3       slots      entries
                                         +----+     +-----------------------------------+
                                       3 | 17 | --> | 17: key_hash ...  prev_index = 9  | --+
                                         +----+     +-----------------------------------+   |
                                                    |  9: key_hash ...  prev_index = 0  | <-+
                                                    +-----------------------------------+
```

>>> index_file_size(5_000_000, 20_000_000)
420000040

### Commit log

`store/CommitLog`. A file is named by the phy_offset of its first byte. It holds frames back to back, then a blank
that fills the file. Numbers from 56 on are those of IPv4 hosts; an IPv6 host has 16 bytes more (sys_flag bits 0x10: the
born host, 0x20: the store host):

```
frame
0            4            8          12         16     20             28           36         40
+------------+------------+----------+----------+------+--------------+------------+----------+
| total_size | magic_code | body_crc | queue_id | flag | queue_offset | phy_offset | sys_flag |
| i32        | i32        | i32      | i32      | i32  | i64          | i64        | i32      |
+------------+------------+----------+----------+------+--------------+------------+----------+
40               48          56                64           72                76                            84
+----------------+-----------+-----------------+------------+-----------------+-----------------------------+
| born_timestamp | born_host | store_timestamp | store_host | reconsume_times | prepared_transaction_offset |
| i64, ms        | 8 or 20   | i64, ms         | 8 or 20    | i32             | i64                         |
+----------------+-----------+-----------------+------------+-----------------+-----------------------------+
84         88
+----------+----------+--------------------+-----------+----------------+----------------+
| body_len | body     | topic_len          | topic     | properties_len | properties     |
| i32      | body_len | i8, version 2: i16 | topic_len | i16            | properties_len |
+----------+----------+--------------------+-----------+----------------+----------------+

blank
0                        4            8
+------------------------+------------+-----------+
| bytes left in the file | magic_code | undefined |
| i32                    | i32        |           |
+------------------------+------------+-----------+
```

`magic_code` is one of `MAGIC_MESSAGE_V1`, `MAGIC_MESSAGE_V2` (topics of more than 127 bytes, 5.1 and later) and
`MAGIC_BLANK`. A host is an address of 4 or 16 bytes and a port, i32. Properties are `name 01 value 02` each, bytes 1
and 2 as separators; KEYS, UNIQ_KEY and, from 5.4 on, TAGS become index entries.

### Consume queues

`store/ConsumeQueue`, `store/ConsumeQueueExt`, `store/queue/BatchConsumeQueue`. A file is named by the byte of the
queue at which it begins. The unit of queue offset q begins at byte 20 * q of its queue:

```
unit
0            8      12          20
+------------+------+-----------+
| phy_offset | size | tags_code |
| i64        | i32  | i64       |
+------------+------+-----------+
               of the frame, the hash of TAGS; in SCHEDULE_TOPIC_XXXX the time of delivery, ms
```

An extension unit has an address, its byte - 2^63, which is in the unit in place of the tags_code (`MAX_EXT_ADDRESS`
and below):

```
extension unit
0      2           10                18            20
+------+-----------+-----------------+-------------+-------------+
| size | tags_code | store_timestamp | bitmap_size | bitmap      |
| i16  | i64       | i64, ms         | i16         | bitmap_size |
+------+-----------+-----------------+-------------+-------------+
```

A batch unit begins where the one before it ends; it is one batch of messages:

```
batch unit
0            8      12          20                28                36           38                 42         46
+------------+------+-----------+-----------------+-----------------+------------+------------------+----------+
| phy_offset | size | tags_code | store_timestamp | msg_base_offset | batch_size | compacted_offset | reserved |
| i64        | i32  | i64       | i64, ms         | i64             | i16        | i32              | i32      |
+------------+------+-----------+-----------------+-----------------+------------+------------------+----------+
```

### Checkpoint

`store/StoreCheckpoint`, 4096 bytes; `mqindex.rocketmq.Checkpoint` has the fields. In older brokers' files the last
three are zeros:

```
0            8            16          24               32            40                48
+------------+------------+-----------+----------------+-------------+-----------------+-------+
| physic_msg | logics_msg | index_msg | master_flushed | confirm_phy | logics_physical | zeros |
| i64, ms    | i64, ms    | i64, ms   | i64            | i64         | i64             |       |
+------------+------------+-----------+----------------+-------------+-----------------+-------+
```
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from mqindex.columns.limits import whole_number_from
from mqindex.errors import GeometryError

INDEX_HEADER_SIZE: Final = 40
INDEX_HEADER_FIELDS: Final = {
    "begin_timestamp": 0,
    "end_timestamp": 8,
    "begin_phy_offset": 16,
    "end_phy_offset": 24,
    "hash_slot_count": 32,
    "index_count": 36,
}
INDEX_SLOT_SIZE: Final = 4
INDEX_ENTRY_SIZE: Final = 20
INDEX_ENTRY_FIELDS: Final = {"key_hash": 0, "phy_offset": 4, "time_diff": 12, "prev_index": 16}
HASH_SLOT_NUM: Final = 5_000_000
INDEX_NUM: Final = 20_000_000

MAGIC_MESSAGE_V1: Final = -626843481
MAGIC_MESSAGE_V2: Final = -626843477
MAGIC_BLANK: Final = -875286124
COMMIT_LOG_FILE_SIZE: Final = 1 << 30

RUN_ENTRY_SIZE: Final = 20  # key_hash i32, phy_offset i64, store_timestamp i64: ours, native byte order, scratch only
MAX_TIMESTAMP: Final = 2**63 - 1

QUEUE_UNIT_SIZE: Final = 20
BLANK_UNIT_SIZE: Final = 2**31 - 1  # as the size in a blank unit, whose other fields are 0
QUEUE_FILE_SIZE: Final = 6_000_000
EXT_UNIT_SIZE: Final = 20  # without a bitmap
EXT_FILE_SIZE: Final = 48 << 20
SMALLEST_EXT_FILE_SIZE: Final = 24  # one unit and the mark after the last
FIRST_EXT_ADDRESS: Final = -(2**63)  # of an extension's byte 0
MAX_EXT_ADDRESS: Final = -(2**31) - 1  # a tags code up to here is the address of an extension unit
BATCH_UNIT_SIZE: Final = 46
BATCH_FILE_SIZE: Final = 300_000 * BATCH_UNIT_SIZE
CHECKPOINT_SIZE: Final = 4096

MAX_INDEX_FILE_SIZE: Final = 2**31 - 1  # the broker computes positions in 32 bits


class IndexHeader(NamedTuple):
    """The header of an index file, as the broker has it in memory: `IndexFile.header`.

    Source: RocketMQ 4.9.3 `store/index/IndexHeader`.

    >>> IndexHeader.from_bytes(bytes(36) + (17).to_bytes(4, "big")).index_count
    17
    """

    begin_timestamp: int
    """Store timestamp of the first entry, ms; in a rolled file without entries the seed."""
    end_timestamp: int
    """Store timestamp of the entry written last, which need not be the largest."""
    begin_phy_offset: int
    """Of the first entry; in a rolled file without entries the seed."""
    end_phy_offset: int
    """Of the last entry."""
    hash_slot_count: int
    """Used slots; up to broker 4.7.0 the entries."""
    index_count: int
    """Number of the next entry, 1 in a file without entries (whose bytes may still say 0)."""

    @classmethod
    def from_bytes(cls, data: bytes) -> IndexHeader:
        """The fields as they are in `data`, a file's first 40 bytes or more."""
        return cls(*_INDEX_HEADER.unpack_from(data))


_INDEX_HEADER = struct.Struct(">4q2i")


class Order(NamedTuple):
    """The entries 1 .. `entries` are in the order of their slots, each linked to its neighbour of the same slot.

    `moved`: no broker wrote them so, their offsets go down somewhere. `first_phy_offset`, `last_phy_offset`: the
    smallest and the greatest of them.
    """

    entries: int
    moved: bool
    first_phy_offset: int
    last_phy_offset: int


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


def given_geometry(
    hash_slot_num: int | None, index_num: int | None, *, least: int = 2, name: str = "index_num"
) -> tuple[int | None, int | None]:
    """The two numbers of a geometry, as every call takes them; None: not given.

    least : of `index_num`; 1 for a single file, which then never takes an entry. name : what it was given as.

    >>> given_geometry(5, None)
    (5, None)
    >>> given_geometry(5, 0)
    Traceback (most recent call last):
    mqindex.errors.GeometryError: index_num: expected a whole number from 1 to 2147483647, got 0
    >>> given_geometry(5, 1)
    Traceback (most recent call last):
    mqindex.errors.GeometryError: a file of this geometry holds no entry: expected index_num 2 or more, got 1
    """
    slots = None if hash_slot_num is None else _positive("hash_slot_num", hash_slot_num)
    entries = None if index_num is None else _capacity(index_num, least, name)
    return slots, entries


def whole_geometry(hash_slot_num: int, index_num: int, *, least: int = 2) -> tuple[int, int]:
    """The same where both must be given."""
    return _positive("hash_slot_num", hash_slot_num), _capacity(index_num, least)


def _capacity(index_num: int, least: int, name: str = "index_num") -> int:
    """Entry 0 is never used: a broker with maxIndexNum 1 creates files without end for its first key."""
    number = _positive(name, index_num)
    if number < least:
        raise GeometryError("a file of this geometry holds no entry", expected=f"{name} 2 or more", got=number)
    return number


def _positive(name: str, number: int) -> int:
    try:
        return whole_number_from(1, name, number)
    except ValueError as error:
        raise GeometryError(str(error)) from None
