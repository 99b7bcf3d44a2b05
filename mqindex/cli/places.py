"""Where results may be written, not among a broker's files; and what is there after an interrupt."""

from __future__ import annotations

import os
from typing import Final

from mqindex.cli.kafka import kinds as kafka_kinds
from mqindex.cli.kinds import KINDS, kind_of
from mqindex.cli.rocketmq import kinds as rocketmq_kinds
from mqindex.cli.trouble import Trouble

__all__ = ["identity", "require_no_broker_file", "require_outside", "what_is_there"]

# Of a store's root and a log dir brokers read the names that they know; in these they read everything.
_READ_WHOLE: Final = {
    rocketmq_kinds.BATCH_QUEUE,
    rocketmq_kinds.COMMIT_LOG_DIR,
    rocketmq_kinds.EXT,
    rocketmq_kinds.INDEX_DIR,
    rocketmq_kinds.QUEUE,
    rocketmq_kinds.QUEUES,
}


def require_outside(out: str, home: str | None = None) -> None:
    """Refuse a place below a directory whose every file a broker reads, or below `home` or at it."""
    place = os.path.realpath(out)
    if home is not None:
        there = os.path.realpath(home)
        if os.path.commonpath([place, there]) == there:
            raise Trouble(f"{out}: expected a place outside of {home}, where brokers may stumble over it")
    above = os.path.dirname(place)
    while above != os.path.dirname(above):
        if (kind := _read_whole(above)) is not None:
            raise Trouble(f"{out}: expected a place outside of {above}: it is {KINDS[kind]}, whose broker reads it")
        above = os.path.dirname(above)


def _read_whole(directory: str) -> str | None:
    """The kind of such a directory. One that has a copy of an index file or of a segment is none by that alone."""
    # Here, as most commands write nothing.
    from mqindex.kafka.partition.partition_files import is_partition, partition_name

    try:
        kind = rocketmq_kinds.kind_of_directory(directory)
        if kind is None and partition_name(directory) is not None and is_partition(directory):
            return kafka_kinds.PARTITION
    except OSError:  # not there yet, or not to be listed
        return None
    if kind == rocketmq_kinds.INDEX_DIR and os.path.basename(directory) != "index":
        return None
    return kind if kind in _READ_WHOLE else None


def require_no_broker_file(out: str) -> None:
    """Refuse to overwrite a file that is a broker's, wherever it is."""
    if os.path.isfile(out) and (kind := kind_of(os.path.realpath(out))) is not None:
        raise Trouble(f"{out}: it is {KINDS[kind]}, which is not overwritten")


def identity(path: str) -> tuple[int, int] | None:
    """What tells a file or directory from another one in its place; None: nothing is there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def what_is_there(out: str, before: tuple[int, int] | None) -> str:
    """What is true of a result that appears by one rename, where an interrupt came. before : `identity` before."""
    now = identity(out)
    if now == before:
        return "nothing was changed"
    return f"{out} is complete" if now is not None else f"what was at {out} is in {out}.backup-..."
