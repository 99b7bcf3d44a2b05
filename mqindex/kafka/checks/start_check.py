"""What a broker's next start would do with a log dir or a partition: would it start, what would it cut and delete?

Source: Kafka 4.1.0 `LogManager.loadLogs`, `LogLoader.load`, `UnifiedLog.parseTopicPartitionName`, `MetaProperties`,
`CheckpointFile`, `PartitionMetadataReadBuffer`, `LogFileUtils.offsetFromFile`, `ProducerStateManager.loadFromSnapshot`.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from mqindex._words import plural
from mqindex.errors import CorruptIndexError
from mqindex.files import lock
from mqindex.files.entries import leads_to_directory
from mqindex.kafka import catalogue
from mqindex.kafka.checks.start_rights import shut_files
from mqindex.kafka.layout import MAX_LOG_SIZE, IndexKind
from mqindex.kafka.partition.leader_epochs import read_epochs
from mqindex.kafka.partition.offset_checkpoint import Offsets, read_offsets, split_fields, text_lines, whole_number
from mqindex.kafka.partition.partition_files import PartitionFiles, list_segments, partition_name
from mqindex.kafka.partition.producer_state import read_snapshot
from mqindex.kafka.partition.survey import Survey
from mqindex.report import Finding, Kind, Obstacle

__all__ = ["StartFiles", "look_at_start"]

_CACHE: Final = "remote-log-index-cache"
_NUMBERED: Final = (".log", *(f".{kind}" for kind in IndexKind), ".snapshot", ".cleaned", ".swap")
_LARGEST: Final = 1 << 20
_BLANK: Final = " \t\f"
_PROPERTY: Final = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{0,4}|.?)", re.DOTALL)
_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_RESERVED: Final = 100
_OFFLINE: Final = "a broker puts the log dir offline, and stops if it has no other"


@dataclass(slots=True)
class StartFiles:
    """What prevents a start, what it would delete whatever the logs hold, and who holds the lock.

    `points`: by a partition's name, up to which offset its log was on the disk.
    """

    lock: lock.Holder
    lock_holder: str | None = None
    obstacles: list[Obstacle] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    points: Offsets = field(default_factory=dict)

    def stop(self, kind: Kind, path: str, reason: str, brokers: str = "every") -> None:
        """A file with which no broker starts."""
        self.obstacles.append(Obstacle(path, reason, brokers))
        self.findings.append(kind.finding(path, got=reason))


def look_at_start(found: Survey) -> StartFiles:
    """A task: look at the names and the small files; nothing is written, no lock is taken."""
    held = lock.holder(os.path.join(found.log_dir, ".lock"))
    look = StartFiles(held, lock.program(held.pid))
    if not found.single:
        _look_at_directories(found.root, look)
        _look_at_properties(os.path.join(found.root, "meta.properties"), look)
    _look_at_checkpoints(found.log_dir, look)
    partitions: list[PartitionFiles] = []
    topics: dict[str, list[tuple[str, bytes]]] = {}  # the files with an id, and the ids
    for partition in found.partitions:
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
            files = list_segments(partition.path)
            partitions.append(files)
            topic_id = _look_at_partition(files, look)
            named = partition_name(partition.path)
            if topic_id is not None and named is not None and named.state is None:
                topics.setdefault(named.topic, []).append((_metadata_of(partition.path), topic_id))
            if held.state != "held" or held.pid == os.getpid():  # else a broker may be writing one
                _look_at_snapshots(files, look)
    for topic, ids in topics.items():
        _compare_ids(topic, ids, look)
    shut = shut_files(found.log_dir, partitions, single=found.single)
    if shut is not None:
        look.obstacles.append(shut[0])
        look.findings.append(shut[1])
    return look


# ---- the log dir


def _look_at_directories(log_dir: str, look: StartFiles) -> None:
    with os.scandir(log_dir) as entries:
        names = sorted(entry.name for entry in entries if leads_to_directory(entry) and entry.name != _CACHE)
    for name in names:
        path = os.path.join(log_dir, name)
        named = partition_name(path)
        if named is None:
            look.stop(catalogue.STRAY_DIRECTORY, path, "a directory that is not a partition")
        elif named.state == "delete":
            look.deletes.append(path)


def _look_at_properties(path: str, look: StartFiles) -> None:
    try:
        properties = _properties(text_lines(path, _LARGEST, encoding="latin-1"))
        reason = _wrong_property(properties)
    except FileNotFoundError:
        return
    except ValueError as error:
        reason = str(error)
    if reason is not None:
        look.stop(catalogue.META_PROPERTIES, path, reason)


def _properties(lines: Iterable[str]) -> dict[str, str]:
    """As Java's `Properties.load`: a backslash at a line's end continues it; elsewhere it begins an escape."""
    found, left = {}, iter(lines)
    for line in left:
        whole = line.lstrip(_BLANK)
        if not whole or whole[0] in "#!":
            continue
        while re.search(r"(?<!\\)(\\\\)*\\$", whole):
            whole = whole[:-1] + next(left, "").lstrip(_BLANK)
        key, value = _PROPERTY.fullmatch(whole).groups()  # type: ignore[union-attr]
        found[_ESCAPE.sub(_unescaped, key)] = _ESCAPE.sub(_unescaped, value)
    return found


def _unescaped(match: re.Match[str]) -> str:
    name = match[1]
    if name[0] != "u":
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(name, name)
    if len(name) != 5:
        raise ValueError("an escape \\u without four hexadecimal digits")
    return chr(int(name[1:], 16))


def _wrong_property(properties: dict[str, str]) -> str | None:
    version = _whole(properties, "version")
    if version not in (None, 0, 1):
        return f"version {version}"
    name = "node.id" if version == 1 else "broker.id"
    _whole(properties, name)
    if "directory.id" in properties and _is_reserved(_uuid(properties["directory.id"])):
        return f"directory.id {properties['directory.id'][:80]!r}"
    missing = [each for each in ("cluster.id", name) if version == 1 and each not in properties]
    return f"no {missing[0]}" if missing else None


def _whole(properties: dict[str, str], name: str) -> int | None:
    """A property that must be a whole number, if it is there; a `ValueError` where it is none."""
    try:
        return whole_number(properties[name], 32) if name in properties else None
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


def _look_at_checkpoints(log_dir: str, look: StartFiles) -> None:
    for name, kind in (
        ("recovery-point-offset-checkpoint", catalogue.RECOVERY_POINTS),
        ("log-start-offset-checkpoint", catalogue.LOG_START_OFFSETS),
    ):
        path = os.path.join(log_dir, name)
        try:
            offsets = read_offsets(path)
        except CorruptIndexError as error:
            look.findings.append(kind.finding(path, expected=error.expected, got=error.got))
        else:
            if name.startswith("recovery"):
                look.points = offsets


# ---- a partition


def _look_at_partition(files: PartitionFiles, look: StartFiles) -> bytes | None:
    """The topic's id, where there is one, is the answer."""
    path = files.directory
    look.deletes += [*files.leftovers, *files.orphans]
    for stray in (*files.skipped, *files.leftovers):
        name = os.path.basename(stray)
        if name.endswith(_NUMBERED) and not _is_long(name.partition(".")[0]):
            look.stop(catalogue.STRAY_SEGMENT_FILE, stray, "a segment's extension without an offset before it")
    for segment in files.segments:
        if os.path.getsize(segment.log) > MAX_LOG_SIZE:
            reason = f"longer than {MAX_LOG_SIZE} bytes"
            look.obstacles.append(Obstacle(segment.log, reason))  # verify finds it anyway, and so the next one
    try:
        read_epochs(path)
    except CorruptIndexError as error:
        look.obstacles.append(Obstacle(str(error.path), f"no checkpoint that a broker reads: {_OFFLINE}"))
    try:
        return _topic_id(_metadata_of(path))
    except ValueError as error:
        look.stop(catalogue.PARTITION_METADATA, _metadata_of(path), str(error), brokers="from 2.8 on")
    return None


def _look_at_snapshots(files: PartitionFiles, look: StartFiles) -> None:
    for path in files.snapshots.values():
        try:
            read_snapshot(path)
        except CorruptIndexError as error:
            found = catalogue.PRODUCER_SNAPSHOT.finding(path, error.at, error.field, error.expected, error.got)
            look.findings.append(found)


def _is_long(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text, re.ASCII) is not None and -(2**63) <= int(text) < 2**63


# ---- the topic of a partition


def _metadata_of(partition: str) -> str:
    return os.path.join(partition, "partition.metadata")


def _topic_id(path: str) -> bytes | None:
    """The id in a partition's metadata; None: there is no file. A `ValueError` says why a broker cannot read it."""
    try:
        lines = [*text_lines(path, _LARGEST), "", ""]
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ValueError("expected UTF-8 text, got other bytes") from None
    try:
        version = whole_number(split_fields(lines[0], 2, r":\s+")[1], 32)
    except ValueError:
        version = -1
    if version < 0:
        raise ValueError(f"expected version: 0, got {lines[0][:80]!r}")
    try:
        found = _uuid(split_fields(lines[1], 2, r":\s+")[1])
    except ValueError:
        found = None
    if found is None or not any(found):
        raise ValueError(f"expected topic_id: and 22 characters, got {lines[1][:80]!r}")
    return found


def _uuid(text: str) -> bytes | None:
    """As `Uuid.fromString`: 16 bytes in the alphabet of URLs, with or without the two signs that fill them up."""
    return base64.urlsafe_b64decode(text[:22] + "==") if _UUID.fullmatch(text) else None


def _is_reserved(found: bytes | None) -> bool:
    """Whether it is no id of a directory (Kafka 4.1.0 `DirectoryId.reserved`)."""
    return found is None or int.from_bytes(found, "big") < _RESERVED


def _compare_ids(topic: str, found: list[tuple[str, bytes]], look: StartFiles) -> None:
    """All partitions of a topic have its id; which one that is, most of them say."""
    (usual, count), *_ = Counter(each for _, each in found).most_common(1)
    for path, each in found:
        if each != usual:
            expected = f"{_text(usual)}, as {plural(count, 'other partition')} of {topic}"
            look.findings.append(catalogue.TOPIC_ID.finding(path, None, "topic_id", expected, _text(each)))


def _text(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
