"""A log dir and the partitions in it, by their names and what lies beside them; no file of a segment is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple

from mqindex.errors import BadMagicError
from mqindex.files import disk
from mqindex.files.entries import leads_to_directory, leads_to_file

SEGMENT_FILE: Final = re.compile(r"([0-9]{20})\.(log|index|timeindex|txnindex|snapshot)", re.ASCII)
"""The name of a segment's file."""
OTHER_FILES: Final = frozenset(("leader-epoch-checkpoint", "partition.metadata", "quorum-state"))
"""What else a broker puts into a partition."""
METADATA_LOG: Final = "__cluster_metadata-0"
"""The directory of the log that brokers with KRaft keep the cluster's metadata in."""

_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})(?:\.\S+-(?P<state>delete|future|stray))?", re.ASCII)
_MOST_NAMED = 5
_CACHE = "remote-log-index-cache"
_CLEAN = ".kafka_cleanshutdown"
_OF_A_LOG_DIR = (".lock", "meta.properties", _CLEAN, "recovery-point-offset-checkpoint")

State = Literal["delete", "future", "stray"]


class PartitionDirectory(NamedTuple):
    """A partition of a log dir. `state` None: in use; else "delete", "future" or "stray"."""

    path: str
    topic: str
    partition: int
    state: State | None


def list_partitions(log_dir: str | os.PathLike[str]) -> tuple[PartitionDirectory, ...]:
    """The partitions of a log dir, by topic and number, those in use before others of the same number.

    Notes
    -----
    Source: Kafka 4.1.0 `LocalLog.parseTopicPartitionName`: the last dash separates topic and number.
    """
    found = [named for path in _directories(log_dir) if (named := partition_name(path)) is not None]
    return tuple(sorted(found, key=lambda each: (each.topic, each.partition, each.state or "", each.path)))


def stray_directories(log_dir: str | os.PathLike[str]) -> tuple[str, ...]:
    """The directories in a log dir that are no partition, by name: with one of them no broker starts.

    Notes
    -----
    Source: Kafka 4.1.0 `LogManager.loadLogs`.
    """
    return tuple(
        path
        for path in sorted(_directories(log_dir))
        if os.path.basename(path) != _CACHE and partition_name(path) is None
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
            elif os.path.dirname(beside) == os.path.dirname(first) and beside != first:
                found.append((each.path, beside))
    return found


def _directories(log_dir: str | os.PathLike[str]) -> list[str]:
    root = os.fspath(log_dir)
    with os.scandir(root) as entries:
        return [os.path.join(root, entry.name) for entry in entries if leads_to_directory(entry)]


def partitions_of(directory: str | os.PathLike[str]) -> tuple[PartitionDirectory, ...]:
    """`directory` itself where it is a partition, else the partitions in it. A partition may have any name."""
    root = os.path.abspath(directory)
    return (named_partition(root),) if is_partition(root) else list_partitions(root)


def linked_partitions(directory: str) -> list[str]:
    """Those in a log dir that are links. What was named itself is none of them."""
    return [one.path for one in partitions_of(directory) if one.path != directory and os.path.islink(one.path)]


def named_partition(directory: str | os.PathLike[str]) -> PartitionDirectory:
    """What the name of a partition's directory says; partition -1: it is no partition's name."""
    root = os.path.abspath(directory)
    return partition_name(root) or PartitionDirectory(root, os.path.basename(root), -1, None)


def is_partition(directory: str | os.PathLike[str]) -> bool:
    """True if there is a file of a segment in it, or one that a broker puts into an empty partition; or nothing, but it
    has the name of one, and a broker's files lie beside it.
    """
    files, others = files_in(os.fspath(directory))
    if files or others:
        return any(SEGMENT_FILE.match(name) or name in OTHER_FILES for name in files)
    path = os.path.abspath(directory)
    return partition_name(path) is not None and is_brokers(os.path.dirname(path))


def is_brokers(log_dir: str) -> bool:
    """Whether a file is in a directory that a broker puts into its log dir, and nowhere else."""
    return any(disk.is_there(os.path.join(log_dir, name)) for name in _OF_A_LOG_DIR)


def require_partition(directory: str) -> None:
    """`BadMagicError`: it has files or directories, none of them a partition's. An empty one may be a partition."""
    if is_partition(directory) or not os.listdir(directory):
        return
    found = [os.path.basename(named.path) for named in list_partitions(directory)]
    more = ", ..." if len(found) > _MOST_NAMED else ""
    raise BadMagicError(
        "not a partition's directory", path=directory, expected="a segment's files, named by 20 digits",
        got=f"a log dir, with the partitions in it: {', '.join(found[:_MOST_NAMED])}{more}" if found else "other files",
        hint=f"pass {os.path.join(directory, found[0])}" if found else "pass <log dir>/<topic>-<partition>",
    )  # fmt: skip


def partition_name(path: str) -> PartitionDirectory | None:
    """What a directory's name says; None: it is not a partition's name."""
    match = _PARTITION.fullmatch(os.path.basename(path))
    if match is None or int(match["partition"]) >= 2**31:
        return None
    state: Any = match["state"]
    return PartitionDirectory(path, match["topic"], int(match["partition"]), state)


def log_dir_of(directory: str | os.PathLike[str]) -> str:
    """The log dir that `directory` is, or in which it is a partition."""
    root = os.path.abspath(directory)
    return os.path.dirname(root) if is_partition(root) else root


def places_of(directory: str) -> list[str]:
    """Where the files of a partition, or of a log dir, are: itself, a partition's log dir, and each partition in them.

    Any of them may lead to another disk: `mqindex.files.path_relations` finds out what is in one.
    """
    root = os.path.abspath(directory)
    log_dir = log_dir_of(root)
    homes = [root] if was_clean(log_dir) is None else list(dict.fromkeys((root, log_dir)))
    return [*homes, *(one.path for home in homes for one in list_partitions(home))]


def was_clean(log_dir: str) -> bool | None:
    """Whether the broker closed the partitions of a log dir; None: it is none, by its files."""
    if disk.is_there(os.path.join(log_dir, _CLEAN)):
        return True
    return False if is_brokers(log_dir) else None


def files_in(root: str) -> tuple[set[str], list[str]]:
    """The names of files, and sorted those of other things."""
    files: set[str] = set()
    others: set[str] = set()
    with os.scandir(root) as entries:
        for entry in entries:
            (files if leads_to_file(entry) else others).add(entry.name)
    return files, sorted(others)
