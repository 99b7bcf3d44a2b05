"""How far a store's log was dispatched, as its index and its queues show."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from mqindex._native.commit_log import scan_at
from mqindex._native.log_extract import Extractor
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.expiry import read_again
from mqindex.rocketmq.log.growing_log import LogChangedError
from mqindex.rocketmq.log.log_entries import RUN_ENTRY, UNIT
from mqindex.rocketmq.log.log_files import LogFile, list_log_files

if TYPE_CHECKING:
    from mqindex.rocketmq.index.index_file import IndexFile
    from mqindex.rocketmq.index.index_service import IndexService
    from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
    from mqindex.rocketmq.queue.queue_rules import QueueRules

_BLOCK = 1 << 20  # entries decoded together


def dispatched_offset(
    directories: Sequence[str | os.PathLike[str]],
    index: IndexService | None,
    queues: ConsumeQueueTable | None,
    *,
    tags: bool,
    rules: QueueRules | None = None,
) -> int:
    """The phy offset after the last message that index and queues have; where they have none, the log's minimum.

    Both must be as a clean exit leaves them: what only one of them has is taken for messages without keys or without
    units.

    Raises
    ------
    LogChangedError
        The last message of the index or of a queue is not the one that the log holds there.
    """
    return read_again(lambda: _dispatched_offset(list_log_files(directories), index, queues, tags, rules))


def _dispatched_offset(
    files: Sequence[LogFile],
    index: IndexService | None,
    queues: ConsumeQueueTable | None,
    tags: bool,
    rules: QueueRules | None,
) -> int:
    end = files[0].start if files else 0
    if index is not None:
        end = max(end, _end_of_index(files, index, tags=tags))
    if queues is not None:
        end = max(end, _end_of_queues(files, queues, rules))
    if files and end > files[-1].stop:
        raise LogChangedError("the log ends before what was dispatched from it", expected=end, got=files[-1].stop)
    return end


def _end_of_index(files: Sequence[LogFile], index: IndexService, *, tags: bool) -> int:
    """After the message of the newest entry, which must have the entries that the index ends with."""
    filled = [file for file in index.files if file.header.index_count > 1]
    if not filled:
        return 0
    at = filled[-1].header.end_phy_offset
    size = _frame_size(files, at)
    if size is None:
        return at
    # a broker of the other rule for TAGS may have written the end, before an upgrade
    if not any(_ends_with(filled, at, _hashes(files, at, tags=either)) for either in (tags, not tags)):
        raise LogChangedError("the index ends with another message than the log has there", path=filled[-1].path, at=at)
    return at + size


def _ends_with(filled: Sequence[IndexFile], at: int, expected: list[int]) -> bool:
    """Whether the last entries are those of the message at `at`."""
    found: list[int] = []
    for file in reversed(filled):
        count = file.header.index_count
        if not found and _holds_moved(file, at, expected):
            return True
        tail = file.entries(max(1, count - len(expected)), count)
        mine = tail["key_hash"][tail["phy_offset"] == at].tolist()
        found = (mine + found)[-len(expected) :]
        if len(found) == len(expected) or len(mine) < count - 1:
            break
    return found == expected


def _holds_moved(file: IndexFile, at: int, expected: list[int]) -> bool:
    """Whether the message's entries are among those that `optimize` brought together, with no later entry after them.

    Their order is lost, and the first of them may be at the end of the file before; a message indexed twice has all of
    them twice.
    """
    count = file.header.index_count
    if file._order().entries < max(count - 1, 2):
        return False
    found: Counter[int] = Counter()
    for start in range(1, count, _BLOCK):
        block = file.entries(start, min(start + _BLOCK, count))
        found.update(block["key_hash"][block["phy_offset"] == at].tolist())
    times = -(-found.total() // len(expected)) if expected else 0
    return times > 0 and found <= Counter(expected * times)


def _end_of_queues(files: Sequence[LogFile], queues: ConsumeQueueTable, rules: QueueRules | None) -> int:
    """After the message of the unit that leads furthest into the log; the unit must be that message's."""
    filled = [queue for queue in queues.values() if queue.max_offset_in_queue > queue.min_offset_in_queue]
    furthest = max(filled, key=lambda queue: queue.max_phy_offset, default=None)
    if furthest is None or furthest.max_phy_offset < 0:
        return 0
    last = furthest.units(furthest.max_offset_in_queue - 1)
    at, size, code = (int(last[name][-1]) for name in ("phy_offset", "size", "tags_code"))
    there = _frame_size(files, at)
    if there is not None and (there != size or (rules is not None and code not in _tags_codes(files, at, rules))):
        raise LogChangedError(
            "a queue ends with another message than the log has there", path=furthest.directory, at=at
        )
    return at + size


def _frame_size(files: Sequence[LogFile], at: int) -> int | None:
    """The size of the frame there; None: the log begins later. `LogChangedError`: no frame is there."""
    if files and at < files[0].start:
        return None
    for file in files:
        if file.start <= at < file.stop:
            with file.open() as log:
                frames, valid = scan_at(log.map, file.start, np.array([at], np.int64))
            if valid[0]:
                return int(frames["size"][0])
    raise LogChangedError("the log has no message where one was dispatched", at=at)


def _hashes(files: Sequence[LogFile], at: int, *, tags: bool) -> list[int]:
    """The key hashes of the message there."""
    with _file_of(files, at) as (log, start):
        walk = Extractor(log.map, start, at, at + 1, tags=tags)
        return [int(key_hash) for chunk in walk for key_hash in np.frombuffer(chunk, RUN_ENTRY)["key_hash"]]


def _tags_codes(files: Sequence[LogFile], at: int, rules: QueueRules) -> list[int]:
    """The tags codes of the units of the message there."""
    with _file_of(files, at) as (log, start):
        walk = Extractor(log.map, start, at, at + 1, queues=rules.table())
        return [int(code) for _ in walk for code in np.frombuffer(walk.units, UNIT)["tags_code"]]


@contextmanager
def _file_of(files: Sequence[LogFile], at: int) -> Iterator[tuple[MappedFile, int]]:
    (file,) = (file for file in files if file.start <= at < file.stop)
    with file.open() as log:
        yield log, file.start
