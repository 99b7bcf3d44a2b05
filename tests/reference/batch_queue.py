"""All batch queues of a log in memory, a unit at a time: section 7.7 of the format document.

Left out are records whose numbers cannot be: a broker does not get beyond them, or ends its queue there.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterable

from tests.reference.commit_log import Record
from tests.reference.dispatch import Rules, units

__all__ = ["BATCH_UNIT", "batch_numbers", "build_batch_queues"]

BATCH_UNIT = struct.Struct(">qiqqqhii")


def batch_numbers(record: Record) -> tuple[int, int] | None:
    """The queue offset of the first message, and how many they are; None: impossible."""
    said = record.property_map
    if "INNER_NUM" not in said or "INNER_BASE" not in said:
        numbers = [record.queue_offset, 1]
    else:
        texts = (said["INNER_BASE"], said["INNER_NUM"])
        numbers = [int(text) if re.fullmatch(r"[+-]?\d+", text) else -1 for text in texts]
    base, count = numbers
    return (base, count) if 0 <= base < 2**63 - 2**15 and 0 < count < 2**15 else None


def build_batch_queues(
    records: Iterable[Record], rules: Rules, file_size: int, topics: Collection[str]
) -> dict[str, bytes]:
    """Path below the store -> content, of the batch queues of these topics."""
    queues: dict[tuple[str, int], list[bytes]] = {}
    for record in records:
        unit, numbers = next(iter(units(record, rules)), None), batch_numbers(record)
        if unit is None or numbers is None or unit.topic not in topics:
            continue
        base, count = numbers
        if base == 0:  # the topic was created again
            queues.pop((unit.topic, unit.queue_id), None)
        packed = BATCH_UNIT.pack(unit.phy_offset, unit.size, unit.tags_code, unit.store_timestamp, base, count, -1, 0)
        queues.setdefault((unit.topic, unit.queue_id), []).append(packed)
    found = {}
    for (topic, queue_id), line in queues.items():
        in_file = file_size // BATCH_UNIT.size
        for first in range(0, len(line), in_file):
            data = b"".join(line[first : first + in_file]).ljust(file_size, b"\0")
            found[f"batchconsumequeue/{topic}/{queue_id}/{first * BATCH_UNIT.size:020d}"] = data
    return found
