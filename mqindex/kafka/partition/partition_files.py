"""The files of a partition, and the partitions of a log dir, as a broker that starts there would take them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, TypeVar

from mqindex.errors import BadMagicError
from mqindex.files import disk, lock
from mqindex.files.entries import leads_to_directory, leads_to_file
from mqindex.kafka.layout import MAX_BASE_OFFSET, IndexKind
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles

__all__ = [
    "METADATA_LOG",
    "OtherName",
    "PartitionDirectory",
    "PartitionFiles",
    "SegmentFiles",
    "duplicate_directories",
    "hold_lock",
    "hold_writers",
    "is_brokers",
    "is_partition",
    "list_partitions",
    "list_segments",
    "log_dir_of",
    "named_partition",
    "other_names",
    "partition_name",
    "partitions_of",
    "require_partition",
    "stray_directories",
    "while_files_go",
]

_SEGMENT_FILE = re.compile(r"([0-9]{20})\.(log|index|timeindex|txnindex|snapshot)", re.ASCII)
_OTHER_NAME = re.compile(r"([+-]?[0-9]+)\.(?:.*\.)?(log|index|timeindex|txnindex|snapshot)", re.ASCII)
_LONG = range(-(2**63), 2**63)
_INDEXES = tuple(f".{kind}" for kind in IndexKind)
_NUMBERED = re.compile(r"([0-9]+)\.", re.ASCII)
_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})(?:\.\S+-(?P<state>delete|future|stray))?", re.ASCII)
_MOST_NAMED = 5
_OTHERS = {"leader-epoch-checkpoint", "partition.metadata", "quorum-state"}
_OTHER_ENDINGS = (".checkpoint", ".checkpoint.deleted", ".checkpoint.part")  # the metadata log's own snapshots
_CACHE = "remote-log-index-cache"
_OF_A_LOG_DIR = (".lock", "meta.properties", ".kafka_cleanshutdown", "recovery-point-offset-checkpoint")

METADATA_LOG: Final = "__cluster_metadata-0"
"""The directory of the log that brokers with KRaft keep the cluster's metadata in."""

Result = TypeVar("Result")
State = Literal["delete", "future", "stray"]


class PartitionFiles(NamedTuple):
    """What a directory holds.

    Attributes
    ----------
    segments : by base offset. snapshots : of the producers' state, by offset.
    leftovers : what a starting broker deletes: `.deleted`, `.cleaned`, and files that a `.swap` replaces.
    orphans : index files without a log, which it deletes too. skipped : files that are no partition's.
    not_files : what has the name of a segment's file and is no file; it is skipped.
    """

    directory: str
    segments: tuple[SegmentFiles, ...]
    snapshots: dict[int, str]
    leftovers: tuple[str, ...]
    orphans: tuple[str, ...]
    skipped: tuple[str, ...]
    not_files: tuple[str, ...] = ()


class OtherName(NamedTuple):
    """A file with an offset and a segment's ending, but not of 20 digits and that ending. `meant`: the one that is."""

    path: str
    offset: int
    ending: str
    meant: str


class PartitionDirectory(NamedTuple):
    """A partition of a log dir. `state` None: in use; else "delete", "future" or "stray"."""

    path: str
    topic: str
    partition: int
    state: State | None


# ---- a partition


def list_segments(directory: str | os.PathLike[str]) -> PartitionFiles:
    """The segments that a broker would serve from `directory`, and what else is there. Nothing is changed.

    Notes
    -----
    Source: Kafka 4.1.0 `LogLoader.load`, whose deletions and renames are only simulated here. A name that makes the
    broker give up (`notes.log`) is skipped, and one that it takes for another (`30.log`): see `other_names`.
    """
    root = os.fspath(directory)
    names, others = _names(root)
    kept, gone = _swapped(root, names)
    segments: dict[int, dict[str, str]] = {}
    skipped = []
    for name in sorted(kept):
        match = _segment_file(name)
        if match is not None:
            segments.setdefault(int(match[1]), {})[match[2]] = os.path.join(root, kept[name])
        elif name not in _OTHERS and not name.endswith(_OTHER_ENDINGS):
            skipped.append(os.path.join(root, kept[name]))
    orphans = [files[kind] for files in segments.values() if "log" not in files for kind in IndexKind if kind in files]
    return PartitionFiles(
        root,
        tuple(
            SegmentFiles(base, files["log"], {kind: files[kind] for kind in IndexKind if kind in files})
            for base, files in sorted(segments.items())
            if "log" in files
        ),
        {base: files["snapshot"] for base, files in sorted(segments.items()) if "snapshot" in files},
        tuple(os.path.join(root, name) for name in sorted(gone)),
        tuple(orphans),
        tuple(skipped),
        tuple(os.path.join(root, name) for name in others if _segment_file(name) or name in _OTHERS),
    )


def other_names(files: PartitionFiles) -> Iterator[OtherName]:
    """The files that a broker takes for those of a segment by their names, and does not read.

    Notes
    -----
    Source: Kafka 4.1.0 `LogLoader.loadSegmentFiles`, `LogFileUtils.offsetFromFileName`: a log's offset is the number
    before the first dot, but the file that is opened, and made where there is none, has 20 digits in its name.
    """
    for path in files.skipped:
        match = _OTHER_NAME.fullmatch(os.path.basename(path))
        if match is not None and (offset := int(match[1])) in _LONG:
            name = f"{'-' if offset < 0 else ''}{abs(offset):020d}.{match[2]}"
            yield OtherName(path, offset, match[2], os.path.join(files.directory, name))


def while_files_go(directory: str, use: Callable[[PartitionFiles], Result]) -> Result:
    """Call `use` with a partition's files; if one disappears meanwhile, with a new listing: brokers delete segments.

    If a file is missing though the listing stays the same, the caller gets the `FileNotFoundError`.
    """
    before: PartitionFiles | None = None
    while True:
        files = list_segments(directory)
        try:
            return use(files)
        except FileNotFoundError:
            if files == before:
                raise
            before = files


def _swapped(root: str, names: set[str]) -> tuple[dict[str, str], set[str]]:
    """Final names and the names they have now; and names that are deleted (the first three passes of a load)."""
    if not any(name.endswith((".deleted", ".cleaned", ".swap")) for name in names):
        return {name: name for name in names}, set()
    gone = {name for name in names if name.endswith(".deleted") and not name.endswith(".checkpoint.deleted")}
    cleaned = {name for name in names if name.endswith(".cleaned")}
    swaps = {name for name in names if name.endswith(".swap")}
    first_cleaned = min((offset for name in cleaned if (offset := _number(name)) is not None), default=None)
    if first_cleaned is not None:
        gone |= {name for name in swaps if (offset := _number(name)) is not None and offset >= first_cleaned}
    gone |= cleaned
    swaps -= gone
    logs = [
        SegmentFiles(int(match[1]), os.path.join(root, name))
        for name in swaps
        if (match := _segment_file(name.removesuffix(".swap"))) is not None and match[2] == "log"
    ]
    low = min((files.base_offset for files in logs), default=0)
    high = max(map(_next_offset, logs), default=0)
    plain = names - gone - swaps
    gone |= {name for name in plain if (offset := _number(name)) is not None and low <= offset < high}
    kept = {name: name for name in plain - gone}
    for name in swaps:
        final = name.removesuffix(".swap")
        if final in kept:
            gone.add(final)
        kept[final] = name
    return kept, gone


def _next_offset(files: SegmentFiles) -> int:
    with LogSegment.of_files(files) as segment:
        return segment.next_offset


def _names(root: str) -> tuple[set[str], list[str]]:
    """The names of files, and sorted those of other things."""
    files: set[str] = set()
    others: set[str] = set()
    with os.scandir(root) as entries:
        for entry in entries:
            (files if leads_to_file(entry) else others).add(entry.name)
    return files, sorted(others)


def _segment_file(name: str) -> re.Match[str] | None:
    match = _SEGMENT_FILE.fullmatch(name)
    return None if match is None or int(match[1]) > MAX_BASE_OFFSET else match


def _number(name: str) -> int | None:
    match = _NUMBERED.match(name)
    return None if match is None else int(match[1])


# ---- a log dir


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
    """Directories of a partition that has one already, and that one: with two of them no broker starts.

    A partition may have a second one that is to take the first one's place, and any number that are to be deleted.

    Notes
    -----
    Source: Kafka 4.1.0 `LogManager.loadLog`.
    """
    known: dict[tuple[object, ...], str] = {}
    found = []
    for each in partitions:
        if each.state in (None, "future"):
            first = known.setdefault((each.topic, each.partition, each.state), each.path)
            if first != each.path:
                found.append((each.path, first))
    return found


def _directories(log_dir: str | os.PathLike[str]) -> list[str]:
    root = os.fspath(log_dir)
    with os.scandir(root) as entries:
        return [os.path.join(root, entry.name) for entry in entries if leads_to_directory(entry)]


def partitions_of(directory: str | os.PathLike[str]) -> tuple[PartitionDirectory, ...]:
    """`directory` itself where it is a partition, else the partitions in it. A partition may have any name."""
    root = os.path.abspath(directory)
    return (named_partition(root),) if is_partition(root) else list_partitions(root)


def named_partition(directory: str | os.PathLike[str]) -> PartitionDirectory:
    """What the name of a partition's directory says; partition -1: it is no partition's name."""
    root = os.path.abspath(directory)
    return partition_name(root) or PartitionDirectory(root, os.path.basename(root), -1, None)


def is_partition(directory: str | os.PathLike[str]) -> bool:
    """True if there is a file of a segment in it, or one that a broker puts into an empty partition; or nothing, but it
    has the name of one, and a broker's files lie beside it.
    """
    files, others = _names(os.fspath(directory))
    if files or others:
        return any(_SEGMENT_FILE.match(name) or name in _OTHERS for name in files)
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


# ---- its lock


def hold_lock(log_dir: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Hold the log dir's `.lock` as a broker would, so that none starts meanwhile; a file that is missing is not made.

    Raises
    ------
    StoreInUseError : a broker runs, or this process holds it already.

    Notes
    -----
    Source: Kafka 4.1.0 `LogManager.lockLogDirs`.
    """
    return lock.hold(os.path.join(os.fspath(log_dir), ".lock"), create=False)


@contextmanager
def hold_writers(partitions: Iterable[str], log_dir: str) -> Iterator[None]:
    """Hold the log dir's `.lock`, and be the only writer of this package in the indexes of some of its partitions.

    They are only tried: there may be more of them than files may be open.
    """
    with hold_lock(log_dir):
        for path in chain.from_iterable(map(_index_paths, partitions)):
            with suppress(OSError), lock.hold_file(path, "index"):  # who cannot open it does not write it
                pass
        yield


def _index_paths(directory: str) -> list[str]:
    """The index files in a directory; none where it is gone."""
    try:
        names = _names(directory)[0]
    except FileNotFoundError:
        return []
    return [os.path.join(directory, name) for name in names if name.removesuffix(".swap").endswith(_INDEXES)]


def log_dir_of(directory: str | os.PathLike[str]) -> str:
    """The log dir that `directory` is, or in which it is a partition."""
    root = os.path.abspath(directory)
    return os.path.dirname(root) if is_partition(root) else root
