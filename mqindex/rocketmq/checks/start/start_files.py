"""What a broker sees of a store's directories and files before it has read any of them: names, lengths, first bytes."""

from __future__ import annotations

import itertools
import os
import stat
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import BinaryIO, Final, NamedTuple

from mqindex._native.commit_log import scan_at
from mqindex._native.consume_queue import check_units
from mqindex.errors import MQIndexError
from mqindex.files import paths
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.files.reading.opening import map_file
from mqindex.files.reading.regular import reading
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, kinds, layout
from mqindex.rocketmq.log.expiry import was_deleted
from mqindex.rocketmq.log.frame_windows import frame_window
from mqindex.rocketmq.metadata.checkpoint import Checkpoint

NO_FILE: Final = "a directory, not a file"
_RECORD_HEAD = 80  # bytes of a record that hold its store timestamp, whatever its hosts
_IPV6 = 0x10


class Entry(NamedTuple):
    """An entry of a directory; one whose status cannot be read has the length that Java gives it: 0."""

    path: str
    name: str
    directory: bool
    size: int
    status: os.stat_result | None


def listed(directories: Iterable[str]) -> list[Entry]:
    """What the directories hold, by name; nothing where there is no such directory."""
    entries: list[Entry] = []
    for directory in directories:
        try:
            with paths.scan(directory) as found:
                entries += filter(None, map(_entry, found))
        except (FileNotFoundError, NotADirectoryError):
            continue
    return sorted(entries, key=lambda one: one.name)


def _entry(found: paths.Entry) -> Entry | None:
    try:
        status = found.stat()
    except OSError as error:
        if was_deleted(error):
            return None
        require_answer(error, found.path)
        return Entry(found.path, found.name, False, 0, None)
    return Entry(found.path, found.name, stat.S_ISDIR(status.st_mode), status.st_size, status)


def is_log_file(one: Entry) -> bool:
    """By its name."""
    return not one.directory and kinds.offset_of(one.name) is not None


def number_of(one: Entry) -> int:
    """Where a log file begins."""
    return kinds.number_of(one.name) or 0


def log_file_size(entries: Sequence[Entry]) -> int | None:
    """The length of files that reach to the next one's name; None: no two files show it."""
    return usual(_reaching(entries))


def shows_length(entries: Sequence[Entry], size: int) -> bool:
    """Whether a file of this length reaches to the next one's name: where all are cut alike, none does."""
    return size in _reaching(entries)


def _reaching(entries: Sequence[Entry]) -> list[int]:
    files = [(number_of(one), one.size) for one in entries if is_log_file(one)]
    return [size for (start, size), (following, _) in itertools.pairwise(files) if start + size == following]


def usual(sizes: Sequence[int]) -> int | None:
    """The length that most files have, the largest of equally frequent ones; None: all are empty."""
    counted = Counter(size for size in sizes if size)
    return max(counted, key=lambda size: (counted[size], size), default=None)


def not_a_file(path: str) -> Finding:
    """A directory is in the place of a file that brokers from 5.0 on write."""
    return catalogue.NOT_A_FILE.finding(path, expected="a file", got="a directory")


# ---- a few bytes


def index_header(path: str) -> layout.IndexHeader:
    """What a broker reads of an index file: zeros where it is too short, for the broker makes it long enough."""
    return layout.IndexHeader.from_bytes(_head(path, layout.INDEX_HEADER_SIZE).ljust(layout.INDEX_HEADER_SIZE, b"\0"))


def checkpoint_of(root: str) -> Checkpoint:
    """All 0 where it cannot be read, as for a broker that finds none."""
    try:
        return Checkpoint.read(join(root, "checkpoint")) or Checkpoint()
    except OSError as error:
        require_answer(error, root)
        return Checkpoint()


class MessageHead(NamedTuple):
    """Fields of a record."""

    phy_offset: int
    store_timestamp: int


def message_at(path: str, position: int = 0) -> MessageHead | None:
    """The record at a position of a log file; None: none begins there."""
    head = _head(path, _RECORD_HEAD, position).ljust(_RECORD_HEAD, b"\0")
    (magic,), (phy_offset, sys_flag) = struct.unpack_from(">i", head, 4), struct.unpack_from(">qi", head, 28)
    if magic not in (layout.MAGIC_MESSAGE_V1, layout.MAGIC_MESSAGE_V2):
        return None
    return MessageHead(phy_offset, *struct.unpack_from(">q", head, 68 if sys_flag & _IPV6 else 56))


def first_sound_message(one: Entry) -> MessageHead | None:
    """The record at the begin of a log file; None: none begins there, or it is bad."""
    head, start = message_at(one.path), number_of(one)
    if head is None:
        return None
    try:
        with map_file(one.path) as log:
            _, sound = scan_at(frame_window(log, start, start), start, [start], check_crc=True)
    except (MQIndexError, OSError) as error:
        require_answer(error, one.path)
        return None
    return head if sound.all() else None


def begins_without_unit(path: str) -> bool:
    """Whether the first place of a queue's file holds no unit."""
    return not check_units(_head(path, layout.QUEUE_UNIT_SIZE).ljust(layout.QUEUE_UNIT_SIZE, b"\0"), 0, 1)


def entries_below(file: BinaryIO, first: int, entries: int, phy_offset: int) -> int:
    """How many entries of an index file are before the first one of a message at `phy_offset` or after it.

    first : the byte at which the entries begin, with the unused entry 0.
    """
    low, high = 1, entries + 1
    while low < high:
        middle = (low + high) // 2
        file.seek(first + layout.INDEX_ENTRY_SIZE * middle + 4)
        data = file.read(8)
        if len(data) == 8 and int.from_bytes(data, "big", signed=True) < phy_offset:
            low = middle + 1
        else:
            high = middle
    return low - 1


def _head(path: str, size: int, position: int = 0) -> bytes:
    try:
        with reading(path, buffered=False) as file:
            file.seek(position)
            return file.read(size)
    except OSError as error:
        require_answer(error, path)
        return b""
