"""A log dir and the partitions in it, by their names and what lies beside them; no file of a segment is opened."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mqindex.errors import BadMagicError
from mqindex.files import disk
from mqindex.files.paths import absolute, base_name, is_link, join, list_names, parent_of
from mqindex.kafka.kinds import CLEAN, PartitionDirectory, directories_in, is_brokers, is_partition, partition_name

_MOST_NAMED = 5
_CACHE = "remote-log-index-cache"


def list_partitions(log_dir: str | os.PathLike[str]) -> tuple[PartitionDirectory, ...]:
    """The partitions of a log dir, by topic and number, those in use before others of the same number."""
    found = [named for path in directories_in(log_dir) if (named := partition_name(path)) is not None]
    return tuple(sorted(found, key=lambda each: (each.topic, each.partition, each.state or "", each.path)))


def stray_directories(log_dir: str | os.PathLike[str]) -> tuple[str, ...]:
    """The directories in a log dir that are no partition, by name: with one of them no broker starts.

    Notes
    -----
    Source: Kafka 4.1.0 `LogManager.loadLogs`.
    """
    return tuple(
        path for path in sorted(directories_in(log_dir)) if base_name(path) != _CACHE and partition_name(path) is None
    )


def duplicate_directories(partitions: Iterable[PartitionDirectory]) -> list[tuple[str, str]]:
    """Directories of a partition that has one already, and that one. `partitions`: those of all log dirs of a broker.

    With two that are in use, or two that are to take its place, no broker starts. One of each is right in two log dirs:
    in the same one the broker fails when it renames the second. Any number may be there to be deleted.

    Notes
    -----
    Source: Kafka 4.1.0 `LogManager.loadLog`, `replaceCurrentWithFutureLog`.
    """
    known: dict[tuple[object, ...], str] = {}
    found = []
    for each in sorted(partitions, key=lambda one: one.state or ""):
        if each.state in (None, "future"):
            name = each.topic, each.partition
            first = known.setdefault((*name, each.state), each.path)
            beside = known.get((*name, None), first) if each.state else first
            if first != each.path:
                found.append((each.path, first))
            elif parent_of(beside) == parent_of(first) and beside != first:
                found.append((each.path, beside))
    return found


def partitions_of(directory: str | os.PathLike[str]) -> tuple[PartitionDirectory, ...]:
    """`directory` itself where it is a partition, else the partitions in it. A partition may have any name."""
    root = absolute(directory)
    return (named_partition(root),) if is_partition(root) else list_partitions(root)


def linked_partitions(directory: str) -> list[str]:
    """Those in a log dir that are links. What was named itself is none of them."""
    return [one.path for one in partitions_of(directory) if one.path != directory and is_link(one.path)]


def named_partition(directory: str | os.PathLike[str]) -> PartitionDirectory:
    """What the name of a partition's directory says; partition -1: it is no partition's name."""
    root = absolute(directory)
    return partition_name(root) or PartitionDirectory(root, base_name(root), -1, None)


def require_partition(directory: str) -> None:
    """`BadMagicError`: it has files or directories, none of them a partition's. An empty one may be a partition."""
    if is_partition(directory) or not list_names(directory):
        return
    found = [base_name(named.path) for named in list_partitions(directory)]
    more = ", ..." if len(found) > _MOST_NAMED else ""
    raise BadMagicError(
        "not a partition's directory", path=directory, expected="a segment's files, named by 20 digits",
        got=f"a log dir, with the partitions in it: {', '.join(found[:_MOST_NAMED])}{more}" if found else "other files",
        hint=f"pass {join(directory, found[0])}" if found else "pass <log dir>/<topic>-<partition>",
    )  # fmt: skip


def log_dir_of(directory: str | os.PathLike[str]) -> str:
    """The log dir that `directory` is, or in which it is a partition."""
    root = absolute(directory)
    return parent_of(root) if is_partition(root) else root


def homes_of(path: str) -> list[str]:
    """A partition or a log dir, or that of a file, and a partition's log dir: no cache belongs into one."""
    root = parent_of(absolute(path)) if disk.is_file(path) else absolute(path)
    try:
        log_dir = log_dir_of(root)
        return [root] if was_clean(log_dir) is None else list(dict.fromkeys((root, log_dir)))
    except (FileNotFoundError, PermissionError):  # who reads it tells
        return [root]


def places_of(directory: str) -> list[str]:
    """Where the files of a partition, or of a log dir, are: itself, a partition's log dir, and each partition in them.

    Any of them may lead to another disk: `mqindex.files.path_relations` finds out what is in one.
    """
    homes = homes_of(directory)
    return [*homes, *(one.path for home in homes for one in list_partitions(home))]


def was_clean(log_dir: str) -> bool | None:
    """Whether the broker closed the partitions of a log dir; None: it is none, by its files."""
    if disk.is_there(join(log_dir, CLEAN)):
        return True
    return False if is_brokers(log_dir) else None
