"""A store of a log and its consume queues, written with struct alone; and units that a broker would not write."""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.reference.java import java_hash
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter, frame_size

__all__ = ["UNITS_A_FILE", "make_queued_store", "tagged", "write_units"]

UNITS_A_FILE = 50
Unit = tuple[int, int, int]


def tagged(count: int, tags: Sequence[str | None] = ("TagA", "TagB", None), **same: object) -> list[LogMessage]:
    """Messages of one queue, their tags in turn."""
    return [
        LogMessage(
            "Topic", keys=f"k{n}", tags=tags[n % len(tags)], uniq_key=f"U{n}", body=b"b" * (n % 7),
            queue_offset=n, store_timestamp=FIRST_TIME + n, **same,  # type: ignore[arg-type]
        )
        for n in range(count)
    ]  # fmt: skip


def make_queued_store(root: Path, messages: Iterable[LogMessage], *, start: int = 0, file_size: int = 4096) -> Path:
    """The messages' log from offset `start` on, and their queues."""
    writer = LogWriter(root / "commitlog", mapped_file_size=file_size, start=start)
    queues: dict[tuple[str, int], list[tuple[int, Unit]]] = defaultdict(list)
    for message in messages:
        (place,) = writer.write(message)
        unit = place, frame_size(message), java_hash(message.tags) if message.tags else 0
        queues[message.topic, message.queue_id].append((message.queue_offset, unit))
    for (topic, queue_id), units in queues.items():
        write_units(root, topic, queue_id, [unit for _, unit in units], first=units[0][0])
    return root


def write_units(root: Path, topic: str, queue_id: int, units: Sequence[Unit], *, first: int = 0) -> None:
    """These units from queue offset `first` on, in files of full length."""
    directory = root / "consumequeue" / topic / str(queue_id)
    directory.mkdir(parents=True, exist_ok=True)
    for queue_offset, unit in enumerate(units, first):
        start = queue_offset // UNITS_A_FILE * UNITS_A_FILE * 20
        path = directory / f"{start:020d}"
        if not path.exists():
            path.touch()
            os.truncate(path, UNITS_A_FILE * 20)
        with path.open("r+b") as file:
            file.seek(queue_offset * 20 - start)
            file.write(struct.pack(">qiq", *unit))
