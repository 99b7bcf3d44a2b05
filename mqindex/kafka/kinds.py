"""What a directory or a file of Kafka's is: by its name, by what lies in it or beside it, by what it begins with.

A segment's files are named by 20 digits, its base offset. Every batch and message begins alike (`DefaultRecordBatch`,
`LegacyRecord`), which shows a log under another name:

```
batch  | 0 base_offset i64 | 8 length of the rest i32 | 12 leader_epoch i32, of magic 0 and 1 crc u32 | 16 magic i8 |
```
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from typing import Any, Final, Literal, NamedTuple

from mqindex.files import disk
from mqindex.files.entries import leads_to_directory, leads_to_file
from mqindex.files.paths import absolute, base_name, join, parent_of, scan, size_of
from mqindex.files.places.place import Place
from mqindex.files.reading.regular import reading
from mqindex.kafka.layout import IndexKind

State = Literal["delete", "future", "stray"]

OTHER_FILES: Final = frozenset(("leader-epoch-checkpoint", "partition.metadata", "quorum-state"))
"""What else than segments a broker puts into a partition."""
METADATA_LOG: Final = "__cluster_metadata-0"
"""The directory of the log that brokers with KRaft keep the cluster's metadata in."""
CLEAN: Final = ".kafka_cleanshutdown"
OF_LOG_DIR: Final = (
    *(CLEAN, "cleaner-offset-checkpoint", "log-start-offset-checkpoint", "meta.properties"),
    *("recovery-point-offset-checkpoint", "replication-offset-checkpoint"),
)
"""What a broker puts into its log dir, and nowhere else; its lock has a name that others use, too."""
LOCK: Final = ".lock"

_SEGMENT: Final = re.compile(
    r"([0-9]{20})\.(log|index|timeindex|txnindex|snapshot)((?:\.(?:deleted|cleaned|swap))?)", re.ASCII
)
_METADATA_SNAPSHOT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint", re.ASCII)
_KINDS: Final = {"log": "segment", "snapshot": "producer-snapshot", **{kind.value: kind.label for kind in IndexKind}}
_OTHER_NAME: Final = re.compile(r"([+-]?[0-9]+)\.(?:.*\.)?(log|index|timeindex|txnindex|snapshot)", re.ASCII)
_PARTITION: Final = re.compile(
    r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})(?:\.\S+-(?P<state>delete|future|stray))?", re.ASCII
)
_LONG: Final = range(-(2**63), 2**63)

_HEAD: Final = struct.Struct(">qiIb")
_LENGTH_END: Final = 12  # the length counts from here
_LEAST: Final = {0: 26, 1: 34, 2: 61}  # bytes of a batch, by its magic
_LONGEST: Final = 64 << 20  # the broker's default limit is 1 MiB


# ---- names


class SegmentName(NamedTuple):
    """The name of a segment's file. `after`: "", or ".deleted", ".cleaned", ".swap" of a file that goes or comes."""

    base_offset: int
    ending: str
    after: str


class MetadataSnapshot(NamedTuple):
    """A snapshot of the metadata log. `end`: the offset of the first record that is not in it, of that leader epoch."""

    end: int
    epoch: int
    path: str


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


def segment_name(path: str) -> SegmentName | None:
    """What the name of a segment's file says; None: it is not one. The offset may be larger than a broker takes."""
    match = _SEGMENT.fullmatch(base_name(path))
    return None if match is None else SegmentName(int(match[1]), match[2], match[3])


def segment_file(base_offset: int, ending: str, after: str = "") -> str:
    """The name of a segment's file: the reverse of `segment_name`.

    >>> segment_file(42, "log", ".deleted")
    '00000000000000000042.log.deleted'
    """
    return f"{base_offset:020d}.{ending}{after}"


def metadata_snapshot(path: str) -> MetadataSnapshot | None:
    """What the name of a snapshot of the metadata log says; None: it is not one.

    Notes
    -----
    Source: Kafka 4.4.0 `Snapshots.filenameFromSnapshotId`.
    """
    match = _METADATA_SNAPSHOT.fullmatch(base_name(path))
    return None if match is None else MetadataSnapshot(int(match[1]), int(match[2]), path)


def is_deleted(path: str) -> bool:
    """Whether a broker has deleted a segment's file and not yet removed it."""
    named = segment_name(path)
    return named is not None and named.after == ".deleted"


def beside(path: str, ending: str) -> str:
    """Where another file of the segment is that `path` is of. What goes or comes has others of its kind beside it.

    >>> beside("t-0/00000000000000000042.log.deleted", "index")
    't-0/00000000000000000042.index.deleted'
    """
    name, named = base_name(path), segment_name(path)
    stem, after = (os.path.splitext(name)[0], "") if named is None else (name[:20], named.after)
    return join(parent_of(path), f"{stem}.{ending}{after}")


def other_name(path: str) -> OtherName | None:
    """What a broker takes a file for that has no segment's name; None: for nothing.

    Notes
    -----
    Source: Kafka 4.1.0 `LogLoader.loadSegmentFiles`, `LogFileUtils.offsetFromFileName`: a log's offset is the number
    before the first dot, but the file that is opened, and made where there is none, has 20 digits in its name.
    """
    match = _OTHER_NAME.fullmatch(base_name(path))
    if match is None or (offset := int(match[1])) not in _LONG:
        return None
    name = f"{'-' if offset < 0 else ''}{segment_file(abs(offset), match[2])}"
    return OtherName(path, offset, match[2], join(parent_of(path), name))


def partition_name(path: str) -> PartitionDirectory | None:
    """What a directory's name says; None: it is not a partition's name.

    Notes
    -----
    Source: Kafka 4.1.0 `LocalLog.parseTopicPartitionName`: the last dash separates topic and number.
    """
    match = _PARTITION.fullmatch(base_name(path))
    if match is None or int(match["partition"]) >= 2**31:
        return None
    state: Any = match["state"]
    return PartitionDirectory(path, match["topic"], int(match["partition"]), state)


# ---- results elsewhere


def require_finished(path: str) -> None:
    """See `mqindex.files.results.finished`; what `rebuild` makes is a partition with its indexes, or a log dir."""
    if not isinstance(path, Place):
        return
    from mqindex.files.results import finished  # here: files of this machine need none of it

    if segment_name(path) is None or not disk.is_there(beside(path, "log")):  # no result has logs
        finished.require_finished(path, *above_in_result(path))


def above_in_result(path: str) -> list[str]:
    """The directories above a file, a partition or a log dir that may be the result's with it, nearest first."""
    above = [] if segment_name(path) is None else [parent_of(path)]
    return [*above, *([] if partition_name([path, *above][-1]) is None else [parent_of([path, *above][-1])])]


# ---- directories


def kind_of_directory(path: str) -> str | None:
    """The kind of a directory, by what is in it; None: none of ours."""
    if is_partition(path):
        return "partition"
    holds = is_log_dir(path) or any(partition_name(one) and is_partition(one) for one in directories_in(path))
    return "log-dir" if holds else None


def is_partition(directory: str | os.PathLike[str]) -> bool:
    """True if there is a file of a segment in it, or one that a broker puts into an empty partition; or it has the name
    of one, and a broker's files lie beside it, or one is in it that a broker takes for a segment's.
    """
    files, _ = files_in(os.fspath(directory))
    if any(_SEGMENT.match(name) or name in OTHER_FILES for name in files):
        return True
    path = absolute(directory)
    return partition_name(path) is not None and (any(map(other_name, files)) or is_brokers(parent_of(path)))


def is_log_dir(path: str) -> bool:
    """Whether a file is in a directory that shows it for a log dir."""
    return any(disk.is_file(join(path, name)) for name in OF_LOG_DIR)


def is_brokers(log_dir: str) -> bool:
    """Whether a broker used a directory with partitions: one of its files is there, or its lock."""
    return any(disk.is_there(join(log_dir, name)) for name in (LOCK, *OF_LOG_DIR))


def directories_in(root: str | os.PathLike[str]) -> list[str]:
    """The paths of the directories in one."""
    with scan(os.fspath(root)) as entries:
        return [entry.path for entry in entries if leads_to_directory(entry)]


def files_in(root: str) -> tuple[set[str], list[str]]:
    """The names of files, and sorted those of other things."""
    files: set[str] = set()
    others: set[str] = set()
    with scan(root) as entries:
        for entry in entries:
            (files if leads_to_file(entry) else others).add(entry.name)
    return files, sorted(others)


# ---- files


def kind_of_name(path: str) -> str | None:
    """The kind of a file that has the name of a segment's; None: its name does not show it. It must be readable."""
    found = segment_name(path)
    if found is None:
        return None
    with reading(path):
        return _KINDS[found.ending]


def begins_with_batch(path: str | os.PathLike[str]) -> bool:
    """Whether a whole batch, or message of magic 0 or 1, is at the beginning of a file."""
    with reading(path) as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return False
        _, length, crc, magic = _HEAD.unpack(head)
        size = length + _LENGTH_END
        if magic not in _LEAST or not _LEAST[magic] <= size <= min(size_of(os.fspath(path)), _LONGEST):
            return False
        batch = head + file.read(size - len(head))
    # A file of units of a RocketMQ queue looks like messages of magic 0, were it not for the checksum.
    return bool(magic == 2 or zlib.crc32(batch[16:]) == crc)


def first_offset(path: str | os.PathLike[str]) -> int:
    """The offset that the first batch of a log names (of a wrapper of magic 0 or 1 that of its last message)."""
    with reading(path) as file:
        return int.from_bytes(file.read(8), "big", signed=True)
