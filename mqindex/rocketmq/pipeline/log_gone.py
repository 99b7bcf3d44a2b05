"""Whether a commit log, or a part of it, is missing, though index or queues have entries for its messages.

A volume may not be mounted, or a directory be wrong. If it were taken for an empty log, a store would lose its index
and its queues.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence

from mqindex.errors import MQIndexError
from mqindex.files import disk
from mqindex.files.regular import regular
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, store
from mqindex.rocketmq.index.compare import next_entry
from mqindex.rocketmq.index.geometry import Geometry
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.layout import INDEX_HEADER_SIZE, QUEUE_UNIT_SIZE, IndexHeader
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.queue_files import queue_file_paths

__all__ = ["find_log_gone"]


def find_log_gone(
    options: StoreOptions, files: Sequence[LogFile], spans: Sequence[LogSpan], pair: Geometry | None
) -> Finding | None:
    """An error where the log, its newest files, or one directory of several are missing; None: nothing of it is.

    An unclean exit before anything had reached the disk may leave a first file without any message, and the next one,
    which a broker makes beforehand.
    """
    if 0 < len(files) <= 2 and not spans and store.was_unclean(options.root):
        return None
    if not spans:
        witness = next(_witnesses(options), None)
        if witness is None:
            return None
        got = f"no message in it, but entries in {os.path.relpath(witness, options.root)}"
        return catalogue.LOG_MISSING.finding(options.commitlog[0], expected="the commit log", got=got)
    empty = [directory for directory in options.commitlog if not _has_files(directory)]
    if len(options.commitlog) > 1 and empty:
        hole = next((one.stop for one, two in itertools.pairwise(spans) if one.stop < two.file_start), None)
        if hole is None and _newest_indexed(options) >= spans[-1].stop:
            hole = spans[-1].stop
        if hole is not None:  # else a directory whose turn has not come yet
            got = f"no file in it, and no log from phy offset {hole} on"
            return catalogue.LOG_MISSING.finding(empty[0], expected="its share of the commit log", got=got)
    return _newest_gone(options, files[-1].stop, pair) if pair is not None else None


def _newest_gone(options: StoreOptions, stop: int, pair: Geometry) -> Finding | None:
    """Whether the index has a message of a log file after the last one: brokers make a file before they write to it."""
    for path, end in _indexed(options):
        if end >= stop and _has_entry(path, pair, end):
            got = f"no file from phy offset {stop} on, but entries up to {end} in {os.path.relpath(path, options.root)}"
            return catalogue.LOG_MISSING.finding(options.commitlog[-1], expected="the newest files of the log", got=got)
    return None


def _has_entry(path: str, pair: Geometry, phy_offset: int) -> bool:
    """A damaged header does not count."""
    try:
        with IndexFile.open_known(path, pair) as index:
            return bool((index.entries(1, next_entry(index))["phy_offset"] == phy_offset).any())
    except (MQIndexError, OSError):
        return False


def _has_files(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return any(entry.name.isdecimal() for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _witnesses(options: StoreOptions) -> Iterator[str]:
    """Files with entries of messages."""
    yield from (path for path, _ in _indexed(options))
    for path in queue_file_paths(options.consume_queue):
        with open(path, "rb", opener=regular) as file:
            if any(file.read(QUEUE_UNIT_SIZE)):
                yield path


def _newest_indexed(options: StoreOptions) -> int:
    return max((end for _, end in _indexed(options)), default=-1)


def _indexed(options: StoreOptions) -> Iterator[tuple[str, int]]:
    """Index files with entries, and the phy offset of the last one."""
    for path in store.index_paths(options.index):
        if disk.is_file(path):
            with open(path, "rb", opener=regular) as file:
                head = file.read(INDEX_HEADER_SIZE)
            if len(head) == INDEX_HEADER_SIZE and (header := IndexHeader.from_bytes(head)).index_count > 1:
                yield path, header.end_phy_offset
