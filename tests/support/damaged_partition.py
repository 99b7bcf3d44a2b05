"""A partition of small segments with one place of damage: what disks and crashes leave, and what is left of it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

__all__ = ["DAMAGE", "SEGMENTS", "Damage", "damaged_partition"]

SEGMENTS: Final = (0, 68, 136)
_END: Final = 200
_BATCH: Final = 4  # records


class Damage(NamedTuple):
    """Offsets [first, last] are lost. `kind`: what a walk says of it; `framed`: the bad batch's length is right."""

    segment: int
    first: int
    last: int
    kind: str
    framed: bool = False

    @property
    def left(self) -> list[int]:
        """The offsets that can be read."""
        return [offset for offset in range(_END) if not self.first <= offset <= self.last]


DAMAGE: Final = {
    "flip": Damage(68, 80, 83, "bad-crc", framed=True),  # the records no longer parse
    "value": Damage(68, 80, 83, "bad-crc", framed=True),  # they do
    "zero": Damage(68, 80, 87, "bad-length"),
    "size68": Damage(68, 80, 83, "bad-length"),  # a length far beyond the log
    "size136": Damage(136, 148, 151, "bad-length"),
    "short": Damage(68, 80, 83, "bad-length"),
    "head": Damage(68, 68, 71, "bad-length"),  # the first bytes of a segment are zeros
    "cut": Damage(68, 132, 135, "tail"),  # a segment that is not the last ends inside a batch
}


def damaged_partition(directory: Path, kind: str | None = None) -> Path:
    """200 records in batches of 4, three segments; the damage of this kind, None: none. The path of its log."""
    writer = PartitionWriter(directory, index_interval=200)
    for offset in range(0, _END, _BATCH):
        if offset in SEGMENTS[1:]:
            writer.roll()
        numbers = range(offset, offset + _BATCH)
        writer.append([KafkaRecord(b"value-%03d" % number, b"k", FIRST_TIME + number) for number in numbers])
    writer.close()
    if kind is None:
        return directory / f"{SEGMENTS[-1]:020d}.log"
    damage = DAMAGE[kind]
    path = directory / f"{damage.segment:020d}.log"
    content = bytearray(path.read_bytes())
    size = 12 + struct.unpack_from(">i", content, 8)[0]
    at = (damage.first - damage.segment) // _BATCH * size
    if kind == "flip":
        content[at + 61] ^= 0x40
    elif kind == "value":
        content[content.index(b"value-081")] ^= 1
    elif kind == "zero":
        content[at : at + 2 * size] = bytes(2 * size)
    elif kind == "head":
        content[:50] = bytes(50)
    elif kind == "cut":
        del content[-9:]
    else:
        struct.pack_into(">i", content, at + 8, 3 if kind == "short" else size - 12 | 0x40000000)
    path.write_bytes(content)
    return path
