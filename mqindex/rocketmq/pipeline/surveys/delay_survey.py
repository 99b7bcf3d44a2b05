"""The delay levels of a broker, inferred from the units of delayed messages: store time and time of delivery.

No file records `messageDelayLevel`. Where it is not given and was not the default, the queues of `SCHEDULE_TOPIC_XXXX`
would all look wrong, and be "repaired" to other times of delivery.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import IO

from mqindex._native.consume_queue import decode_units
from mqindex.errors import MQIndexError
from mqindex.files import disk
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.files.reading.regular import reading
from mqindex.rocketmq.layout import QUEUE_UNIT_SIZE
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.expiry import was_deleted
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.queue_files import queue_files
from mqindex.rocketmq.queue.queue_rules import DELAY_LEVELS, SCHEDULE_TOPIC

_SAMPLE = 16  # units at an end of a queue that are read
_MOST_LEVELS = 100
_UNKNOWN = 1000  # ms, the broker's delay for a level that it does not know


def seen_delays(options: StoreOptions, unread: list[OSError]) -> dict[int, int]:
    """The delays in ms of the levels whose units agree on one, by level.

    `unread` gets the error of a file that could not be read.
    """
    home = join(options.consume_queue, SCHEDULE_TOPIC)
    if not disk.is_directory(home):
        return {}
    try:
        with CommitLog._as_set(options) as log:
            queues = {level: join(home, str(level - 1)) for level in range(1, _MOST_LEVELS + 1)}  # of each level one
            seen = {level: _delay(queue, level, log) for level, queue in queues.items() if disk.is_directory(queue)}
    except MQIndexError as error:
        require_answer(error, error.path)
        return {}
    except OSError as error:
        if was_deleted(error):
            raise  # by a broker; the survey begins again
        require_answer(error, home)
        unread.append(error)
        return {}
    return {level: delay for level, delay in seen.items() if delay is not None}


def delay_levels(seen: Mapping[int, int]) -> tuple[int, ...]:
    """The delays of all levels, level 1 first: those seen, else the default ones.

    >>> delay_levels({2: 7000})[:3]
    (1000, 7000, 10000)
    """
    most = max(len(DELAY_LEVELS), *seen, 0)
    default = (*DELAY_LEVELS, *[_UNKNOWN] * (most - len(DELAY_LEVELS)))
    return tuple(seen.get(level, default[level - 1]) for level in range(1, most + 1))


def _delay(directory: str, level: int, log: CommitLog) -> int | None:
    """What the units of one level agree on, in whole seconds; None: nothing."""
    delays = {_delay_of(unit, level, log) for unit in _units(directory)} - {None}
    delay = delays.pop() if len(delays) == 1 else None
    return delay if delay is not None and delay > 0 and delay % 1000 == 0 else None


def _units(directory: str) -> Iterator[tuple[int, int, int]]:
    """phy_offset, size and tags_code at the beginning of a queue's first file, and at the end of its last one."""
    files, _ = queue_files(directory, QUEUE_UNIT_SIZE)
    for one in files[:1]:
        with reading(one.path) as file:
            yield from _units_from(file, 0)
    for one in files[-1:]:
        with reading(one.path) as file:
            yield from _units_from(file, max(_end(file) - _SAMPLE, 0))


def _units_from(file: IO[bytes], place: int) -> Iterator[tuple[int, int, int]]:
    file.seek(place * QUEUE_UNIT_SIZE)
    data = file.read(_SAMPLE * QUEUE_UNIT_SIZE)
    columns = decode_units(data, 0, len(data) // QUEUE_UNIT_SIZE)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _end(file: IO[bytes]) -> int:
    """The place after a file's last unit: zeros follow, up to the length that the file was created with."""

    def is_free(place: int) -> bool:
        file.seek(place * QUEUE_UNIT_SIZE)
        return not any(file.read(QUEUE_UNIT_SIZE))

    return bisect_left(range(file.seek(0, os.SEEK_END) // QUEUE_UNIT_SIZE), True, key=is_free)


def _delay_of(unit: tuple[int, int, int], level: int, log: CommitLog) -> int | None:
    """The delay of one unit; None where it does not lead to a message of this level, or has a tag's hash instead."""
    phy_offset, size, tags_code = unit
    if -(2**31) <= tags_code < 2**31:
        return None
    try:
        message = log.get_message(phy_offset, size) if phy_offset >= 0 and size > 0 else None
    except MQIndexError as error:
        require_answer(error, error.path)
        return None
    if message is None or (message.topic, message.queue_id) != (SCHEDULE_TOPIC, level - 1):
        return None
    return tags_code - message.store_timestamp if message.properties.get("DELAY") == str(level) else None
