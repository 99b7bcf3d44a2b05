"""All consume queues of a log in memory: what a rebuild must write, a unit at a time.

An uninterrupted broker puts each unit at its own queue offset (section 7.3). What it would not have met, holes and
repetitions, follows the table of `mqindex.rocketmq.queue.unit_places`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tests.reference.commit_log import Record
from tests.reference.consume_queue import BLANK, UNIT
from tests.reference.dispatch import Rules, units

__all__ = ["QueueFiles", "build_queues"]

EXT_UNIT = struct.Struct(">hqqh")


class QueueFiles:
    """One queue. `places`: queue offset -> the unit's 20 bytes; `ext`: (tags_code, store_timestamp) in order."""

    def __init__(self, file_size: int, ext_file_size: int | None = None) -> None:
        self.file_size = file_size
        self.places: dict[int, bytes] = {}
        self.blank: list[int] = []
        self.ext: list[tuple[int, int]] = []
        self.next = -1
        self.phy_offset = self.end = -1
        self.ext_file_size = ext_file_size

    def put(self, phy_offset: int, size: int, tags_code: int, queue_offset: int, store_timestamp: int | None) -> None:
        """`store_timestamp` None: the unit never has an extension unit."""
        if phy_offset == self.phy_offset:
            return
        self.phy_offset = phy_offset
        if queue_offset < 0 or queue_offset * 20 + self.file_size > 2**63 - 1:
            return
        place = queue_offset
        if self.next < 0:
            self.next = queue_offset
            self.blank += range(queue_offset - queue_offset % (self.file_size // 20), queue_offset)
        elif queue_offset == 0 and self.next > 0:
            self.places, self.blank, self.ext, self.next = {}, [], [], 0
        elif self.next < queue_offset:
            hole = queue_offset - self.next
            if hole > (phy_offset - self.end) // 91 + 1024:
                place = self.next
            else:
                self.blank += range(self.next, queue_offset)
        elif queue_offset < self.next:
            if queue_offset not in self.blank:
                return
            self.blank.remove(queue_offset)
        if store_timestamp is not None and self.ext_file_size is not None:
            in_file = (self.ext_file_size - 4) // 20
            number = len(self.ext)
            self.ext.append((tags_code, store_timestamp))
            tags_code = number // in_file * self.ext_file_size + number % in_file * 20 - 2**63
        self.places[place] = UNIT.pack(phy_offset, size, tags_code)
        self.next = max(self.next, place + 1)
        self.end = phy_offset + size

    def files(self) -> dict[str, bytes]:
        """Name -> content."""
        found: dict[int, bytearray] = {}
        for place in [*self.blank, *self.places]:
            start = 20 * place - 20 * place % self.file_size
            data = found.setdefault(start, bytearray(self.file_size))
            data[20 * place - start : 20 * place - start + 20] = self.places.get(place, BLANK)
        return {f"{start:020d}": bytes(data) for start, data in found.items()}

    def ext_files(self) -> dict[str, bytes]:
        """Name -> content of the extension files."""
        found: dict[str, bytes] = {}
        size = self.ext_file_size or 0
        in_file = (size - 4) // 20 or 1
        for first in range(0, len(self.ext), in_file):
            data = b"".join(EXT_UNIT.pack(20, code, time, 0) for code, time in self.ext[first : first + in_file])
            full = first + in_file < len(self.ext)
            found[f"{first // in_file * size:020d}"] = (data + b"\xff\xff" * full).ljust(size, b"\0")
        return found


def build_queues(
    messages: Iterable[Record], rules: Rules, file_size: int, ext_file_size: int | None = None
) -> dict[str, bytes]:
    """Path below the store -> content, of all queues and their extension files."""
    queues: dict[tuple[str, int], QueueFiles] = {}
    for message in messages:
        for number, unit in enumerate(units(message, rules)):
            queue = queues.setdefault((unit.topic, unit.queue_id), QueueFiles(file_size, ext_file_size))
            time = message.store_timestamp if number == 0 else None
            queue.put(message.phy_offset, message.size, unit.tags_code, unit.queue_offset, time)
    found = {}
    for (topic, queue_id), queue in queues.items():
        for name, data in queue.files().items():
            found[f"consumequeue/{topic}/{queue_id}/{name}"] = data
        for name, data in queue.ext_files().items():
            found[f"consumequeue_ext/{topic}/{queue_id}/{name}"] = data
    return found
