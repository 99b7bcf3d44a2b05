"""The sidecars of optimised index files, drawn: they are mqindex's own, no broker's.

They are beside `index/` and never in it: `mqindex-index/<name of the index file>.fence` for each file, and one
`mqindex-index/keys.filter` for all that were optimised. All integers are big-endian.

In an optimised index file the entries 1 .. `covered` are in the order of their slots. The fence has the slot of the
first entry that begins in each page of 4096 bytes of the file, from the page of entry 1 to that of the last one
covered, u32 each; the filter says which key hashes cannot be there. So a look-up reads the page of its answer, and
mostly none for a key that is absent. A fence begins with a header:

```
fence
0       8         12              16          20        24                32                 40
+-------+---------+---------------+-----------+---------+-----------------+------------------+
| magic | version | hash_slot_num | index_num | covered | begin_timestamp | begin_phy_offset |
|       | i32     | i32           | i32       | i32     | i64, ms         | i64              |
+-------+---------+---------------+-----------+---------+-----------------+------------------+
40              48               56       60      64     72        76         80
+---------------+----------------+--------+-------+------+---------+----------+
| end_timestamp | end_phy_offset | sample | pages | size | content | checksum |
| i64, ms       | i64            | u32    | i32   | i64  | u32     | u32      |
+---------------+----------------+--------+-------+------+---------+----------+
```

The times and offsets are those of the index file's header; the two of the end change when it grows. `sample` is the
CRC-32C of its entries 1-200, of 200 from the middle on, and of the last 200 that are covered: a file that was built
anew in the order of the log has the same header, but not these. Opening the index file compares them, which reads some
pages; `verify` compares every entry. `size` is the whole fence's; `content` is the CRC-32C of the slots, `checksum`
that of the 76 bytes before it. A fence is not used if it differs from its file in any of these, or if the file has
grown. A reader that has the file open compares its header at every look-up, the rest where somebody has written to it
since (by its times, as the system tells them; what is stored through a memory map may show late), and never uses a
fence again that did not fit once. A filter it never uses again once somebody has written to that.

```
filter
0       8         12              16          20      24     32        36         40
+-------+---------+---------------+-----------+-------+------+---------+----------+
| magic | version | hash_slot_num | index_num | files | size | content | checksum |
|       | i32     | i32           | i32       | i32   | i64  | u32     | u32      |
+-------+---------+---------------+-----------+-------+------+---------+----------+
```

After its header a filter has 44 bytes for each file: the fields `covered` to `sample` of the file's fence and its
`content`, which say that the filter is of this file; the filter's `content` is the CRC-32C of all these. A file whose
fence is not among them, 1024 at most, may hold everything.

Then come the places of the rows and the rows, which `src_c/mqi_key_filter.h` draws; their `seed` is `content`. A row is
for some neighbouring slots of all files, so that a look-up in all of them reads it once. Where a row's checksum is
wrong, any file may hold any key of it.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

MAGIC_FENCE: Final = b"MQIFENCE"
FENCE_VERSION: Final = 1
FENCE_HEADER_SIZE: Final = 80
FENCE_SAMPLE: Final = 200  # entries in a row, on one page or two
MAGIC_FILTER: Final = b"MQFILTER"
FILTER_VERSION: Final = 2
FILTER_HEADER_SIZE: Final = 40
FILTER_FILE_SIZE: Final = 44
FILTER_MOST_FILES: Final = 1024  # a row is read for all of them
FILTER_ROW_START_SIZE: Final = 8


class FenceHeader(NamedTuple):
    """The header of a fence but for its checksum; it is mqindex's own, no broker's."""

    magic: bytes
    version: int
    hash_slot_num: int
    index_num: int
    covered: int
    begin_timestamp: int
    begin_phy_offset: int
    end_timestamp: int
    end_phy_offset: int
    sample: int
    pages: int
    size: int
    content: int

    @classmethod
    def from_bytes(cls, data: bytes) -> FenceHeader:
        """The fields as they are in `data`, 76 bytes or more."""
        return cls(*_FENCE_HEADER.unpack_from(data))

    def to_bytes(self) -> bytes:
        """The 76 bytes before the checksum."""
        return _FENCE_HEADER.pack(*self)

    def of_filter(self) -> bytes:
        """The 44 bytes by which a filter knows the same file."""
        return _FILTER_FILE.pack(*self[4:10], self.content)


_FENCE_HEADER = struct.Struct(">8s4i4qIiqI")
_FILTER_FILE = struct.Struct(">i4q2I")


class FilterHeader(NamedTuple):
    """The header of a key filter but for its checksum; it is mqindex's own, no broker's."""

    magic: bytes
    version: int
    hash_slot_num: int
    index_num: int
    files: int
    size: int
    content: int

    @classmethod
    def from_bytes(cls, data: bytes) -> FilterHeader:
        """The fields as they are in `data`, 36 bytes or more."""
        return cls(*_FILTER_HEADER.unpack_from(data))

    def to_bytes(self) -> bytes:
        """The 36 bytes before the checksum."""
        return _FILTER_HEADER.pack(*self)


_FILTER_HEADER = struct.Struct(">8s4iqI")
