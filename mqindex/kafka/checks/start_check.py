"""What a broker's next start would do with a log dir or a partition: would it start, what would it cut and delete?

Source: Kafka 4.1.0 `LogManager.loadLogs`, `LogLoader.load`, `UnifiedLog.parseTopicPartitionName`, `MetaProperties`,
`CheckpointFile`, `PartitionMetadataReadBuffer`, `LogFileUtils.offsetFromFile`, `ProducerStateManager.loadFromSnapshot`.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from mqindex._words import plural
from mqindex.errors import CorruptIndexError
from mqindex.files import lock
from mqindex.files.entries import leads_to_directory
from mqindex.files.regular import reading_text
from mqindex.kafka import catalogue
from mqindex.kafka.checks.start_rights import shut_files
from mqindex.kafka.layout import MAX_LOG_SIZE, IndexKind
from mqindex.kafka.partition.leader_epochs import read_epochs
from mqindex.kafka.partition.offset_checkpoint import Offsets, read_offsets
from mqindex.kafka.partition.partition_files import PartitionFiles, list_segments, partition_name
from mqindex.kafka.partition.producer_state import read_snapshot
from mqindex.kafka.partition.survey import Survey
from mqindex.report import Finding, Kind, Obstacle

__all__ = ["StartFiles", "look_at_start"]

_CACHE: Final = "remote-log-index-cache"
_NUMBERED: Final = (".log", *(f".{kind}" for kind in IndexKind), ".snapshot", ".cleaned", ".swap")
_LARGEST: Final = 1 << 20
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
        with reading_text(path, encoding="latin-1") as file:
            lines = file.read(_LARGEST).splitlines()
    except FileNotFoundError:
        return
    properties = dict(_property(line.strip()) for line in lines if line.strip() and line.strip()[0] not in "#!")
    reason = _wrong_property(properties)
    if reason is not None:
        look.stop(catalogue.META_PROPERTIES, path, reason)


def _property(line: str) -> tuple[str, str]:
    key, value, *_ = [*re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1), ""]
    return key, value


def _wrong_property(properties: dict[str, str]) -> str | None:
    version = properties.get("version", "0")
    if version not in ("0", "1"):
        return f"version {version}"
    name = "node.id" if version == "1" else "broker.id"
    number = properties.get(name)
    if number is not None and not re.fullmatch(r"[+-]?\d+", number, re.ASCII):
        return f"{name} {number!r}"
    missing = [each for each in ("cluster.id", name) if version == "1" and each not in properties]
    return f"no {missing[0]}" if missing else None


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
        with reading_text(path, errors="replace") as file:
            lines = [*file.read(_LARGEST).splitlines(), "", ""]
    except FileNotFoundError:
        return None
    first, second = (re.split(r":\s+", line) for line in lines[:2])
    if len(first) != 2 or not re.fullmatch(r"[+-]?0+", first[1], re.ASCII):
        raise ValueError(f"expected version: 0, got {lines[0][:80]!r}")
    found = _uuid(second[1]) if len(second) == 2 else None
    if found is None:
        raise ValueError(f"expected topic_id: and 22 characters, got {lines[1][:80]!r}")
    return found


def _uuid(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == 16 and any(raw) else None


def _compare_ids(topic: str, found: list[tuple[str, bytes]], look: StartFiles) -> None:
    """All partitions of a topic have its id; which one that is, most of them say."""
    (usual, count), *_ = Counter(each for _, each in found).most_common(1)
    for path, each in found:
        if each != usual:
            expected = f"{_text(usual)}, as {plural(count, 'other partition')} of {topic}"
            look.findings.append(catalogue.TOPIC_ID.finding(path, None, "topic_id", expected, _text(each)))


def _text(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
