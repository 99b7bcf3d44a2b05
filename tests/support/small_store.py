"""A store of a few index files, small enough to be rebuilt hundreds of times in a test."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from tests.reference.java import java_hash
from tests.reference.rebuild import build_index_bytes, log_files
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

__all__ = ["GEOMETRY", "OPTIONS", "QUEUE_FILE_SIZE", "make_small_store", "small_messages", "write_queues"]

GEOMETRY = (5, 16)
QUEUE_FILE_SIZE = 240
OPTIONS: dict[str, Any] = {"hash_slot_num": GEOMETRY[0], "index_num": GEOMETRY[1], "broker_version": "4.9.3"}


def small_messages(count: int = 44) -> list[LogMessage]:
    return [
        LogMessage(
            f"Topic{number % 3}",
            keys=f"k{number % 7} k{number}" if number % 4 else None,
            tags="TagA",
            uniq_key=f"C0A8010A1F902B193F2D{number:012X}" if number % 5 else None,
            body=bytes([65 + number % 26]) * (number % 50),
            store_timestamp=FIRST_TIME + number * 700,
            queue_offset=number // 3,
        )
        for number in range(count)
    ]


def write_queues(root: Path, messages: list[LogMessage], frames: list[tuple[int, int]]) -> None:
    """The consume queues of messages whose records lie at (offset, size), in files of 12 units."""
    for message, (phy_offset, size) in zip(messages, frames, strict=True):
        start, at = divmod(20 * message.queue_offset, QUEUE_FILE_SIZE)
        path = root / "consumequeue" / message.topic / str(message.queue_id) / f"{start * QUEUE_FILE_SIZE:020d}"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = bytearray(path.read_bytes() if path.exists() else bytes(QUEUE_FILE_SIZE))
        data[at : at + 20] = struct.pack(">qiq", phy_offset, size, java_hash(message.tags or ""))
        path.write_bytes(data)


def make_small_store(root: Path, *, count: int = 44, unclean: bool = False) -> Path:
    """A store with its log in 2 KiB files, and the index and the consume queues of a 4.9.3 broker."""
    writer = LogWriter(root / "commitlog", mapped_file_size=2048)
    messages = small_messages(count)
    writer.write(*messages)
    writer.create_next_file()
    write_queues(root, messages, writer.frames)
    (root / "index").mkdir()
    files = build_index_bytes(log_files(root / "commitlog"), *GEOMETRY, tags=False)
    for number, data in enumerate(files):
        (root / "index" / f"2023111422132{number:04d}").write_bytes(data)
    (root / "checkpoint").write_bytes(struct.pack(">3q", FIRST_TIME, FIRST_TIME, 0).ljust(4096, b"\0"))
    (root / "lock").write_bytes(b"lock")
    if unclean:
        (root / "abort").touch()
    return root
