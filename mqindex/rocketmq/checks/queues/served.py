"""Messages that consumers get of a queue and that a repair takes out of it, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from mqindex._native.consume_queue import decode_units
from mqindex.errors import MQIndexError
from mqindex.files.paths import join
from mqindex.files.places.place import without_unread
from mqindex.files.reading.sparse import SparseFile
from mqindex.rocketmq.layout import QUEUE_UNIT_SIZE
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.queue_files import queue_files
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.unit_places import Ranges, shared

MOST: Final = 10_000
"""Messages of a queue that are named in a report; all are counted."""

_SHOWN = 10
_LONGEST = 100  # characters of keys
_BLOCK = 1 << 16  # units read together


@dataclass(frozen=True, slots=True)
class ServedMessage:
    """One of them. `keys`: their beginning; None: it has none."""

    queue_offset: int
    phy_offset: int
    msg_id: str
    keys: str | None

    def __str__(self) -> str:
        name = f"id {self.msg_id}" if self.keys is None else f"keys {self.keys}"
        return f"queue offset {self.queue_offset}: phy offset {self.phy_offset}, {name}"


@dataclass(frozen=True, slots=True)
class ServedMessages:
    """All of a queue, as text the first ones. `count`: how many, perhaps fewer where `said` says "up to"."""

    said: str
    count: int
    messages: tuple[ServedMessage, ...]

    def __str__(self) -> str:
        some = self.messages[:_SHOWN]
        left, all_named = self.count - len(some), len(self.messages)
        more = [f"and {left} more (--json names {all_named})"] if left > 0 else []
        return "; ".join([self.said, *map(str, some), *more])


class Served(NamedTuple):
    """What to name: the units of a queue at some places, of messages at the phy offsets [low, high).

    `later`: those that came later, with the queue offsets of others.
    """

    name: QueueName
    later: bool
    places: Ranges
    low: int
    high: int


def name_served(options: StoreOptions, served: Served) -> tuple[ServedMessage, ...]:
    """The first `MOST` of them; those whose record cannot be read are left out, and what a broker deletes meanwhile."""
    found: list[ServedMessage] = []
    with suppress(MQIndexError, FileNotFoundError), CommitLog.open(options.commitlog) as log:
        for place, phy_offset, size in _units(join(options.consume_queue, served.name[0], str(served.name[1])), served):
            with without_unread(options.commitlog[0], MQIndexError):
                message = log.get_message(phy_offset, size)
                keys = None if message.keys is None else message.keys[:_LONGEST]
                found.append(ServedMessage(place, phy_offset, message.msg_id, keys))
            if len(found) == MOST:
                break
    return tuple(found)


def _units(path: str, served: Served) -> Iterator[tuple[int, int, int]]:
    """Their places, phy offsets and sizes, ascending by place."""
    for file in queue_files(path, QUEUE_UNIT_SIZE)[0]:
        begin = file.start // QUEUE_UNIT_SIZE
        with SparseFile(file.path) as opened:
            end = begin + opened.size // QUEUE_UNIT_SIZE
            for start, stop in shared(served.places, ((begin, end),)):
                for at in range(start, stop, _BLOCK):
                    until = min(at + _BLOCK, stop)
                    data = opened.read((at - begin) * QUEUE_UNIT_SIZE, (until - begin) * QUEUE_UNIT_SIZE)
                    phys, sizes, _ = decode_units(data, 0, until - at)
                    named = (sizes > 0) & (phys >= served.low) & (phys < served.high)
                    places = np.flatnonzero(named)
                    yield from zip((places + at).tolist(), phys[named].tolist(), sizes[named].tolist(), strict=True)
