"""The golden partitions below `tests/data/kafka`: their names, their truth, and a copy to work on."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.archives import unpack

__all__ = ["DATA", "PARTITION_CASES", "PartitionCase", "damaged"]

DATA = Path(__file__).resolve().parent.parent / "data" / "kafka"
PARTITION_CASES = sorted(path.parent.name for path in DATA.glob("*/part.tar.gz"))


@dataclass(frozen=True)
class PartitionCase:
    """One partition and what Kafka's classes said of it."""

    name: str

    @property
    def truth(self) -> dict[str, Any]:
        return _truth(self.name)

    def unpack(self, directory: Path) -> Path:
        """`closed/`, `live/`, ... below a fresh directory."""
        root = directory / self.name
        unpack(DATA / self.name / "part.tar.gz", root)
        return root

    def closed(self, directory: Path) -> Path:
        """The partition's directory after a clean stop."""
        return self.unpack(directory) / "closed" / self.truth["partition"]


def damaged(content: bytes, operations: list[list[Any]]) -> bytes:
    """A copy of a file with the operations of a damage case applied in order."""
    data = bytearray(content)
    for name, *values in operations:
        if name == "truncate":
            del data[values[0] :]
        elif name == "append":
            data += bytes.fromhex(values[0])
        elif name == "zeros":
            data += bytes(values[0])
        elif name == "write":
            new = bytes.fromhex(values[1])
            data[values[0] : values[0] + len(new)] = new
        elif name == "xor":
            data[values[0]] ^= values[1]
        else:
            raise ValueError(name)
    return bytes(data)


@cache
def _truth(name: str) -> dict[str, Any]:
    with gzip.open(DATA / name / "truth.json.gz") as stream:
        loaded: dict[str, Any] = json.load(stream)
    return loaded
