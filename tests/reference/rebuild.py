"""The whole job in memory: a commit log becomes index files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.reference.commit_log import Record, index_strings, scan_log
from tests.reference.index_service import IndexService

__all__ = ["build_index", "build_index_bytes", "log_files"]


def log_files(*directories: Path) -> list[tuple[int, bytes]]:
    """(start, content) of the files of one log, in order of their names; those of length 0 left out."""
    paths = sorted((path for directory in directories for path in directory.iterdir()), key=lambda path: path.name)
    return [
        (int(path.name), path.read_bytes())
        for path in paths
        if path.is_file() and len(path.name) == 20 and path.name.isdigit() and path.stat().st_size
    ]


def build_index(messages: Iterable[Record], hash_slot_num: int, index_num: int, *, tags: bool) -> IndexService:
    """What a broker would have built that saw these messages and never stopped."""
    service = IndexService(hash_slot_num, index_num)
    for message in messages:
        service.build_index(index_strings(message, tags=tags), message.phy_offset, message.store_timestamp)
    return service


def build_index_bytes(
    files: Iterable[tuple[int, bytes]], hash_slot_num: int, index_num: int, *, tags: bool
) -> list[bytes]:
    """The content of each index file, in order."""
    messages, _, _ = scan_log(list(files))
    return [bytes(file.data) for file in build_index(messages, hash_slot_num, index_num, tags=tags).files]
