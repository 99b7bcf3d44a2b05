"""What a broker's next start would do with a log dir or a partition: would it start, what would it cut and delete?

Source: Kafka 4.1.0 `LogManager.loadLogs`, `LogLoader.load`, `UnifiedLog.parseTopicPartitionName`,
`CheckpointFileWithFailureHandler`, `KafkaRaftServer.initializeLogDirs`, `LogFileUtils.offsetFromFile`,
`ProducerStateManager.loadFromSnapshot`; 3.9.0 `KafkaServer.startup`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mqindex._words import plural
from mqindex.errors import CorruptIndexError
from mqindex.files import disk, lock
from mqindex.files.paths import base_name, join, parent_of, size_of, status_of
from mqindex.files.places.place import Place, require_answer
from mqindex.files.rights import is_shut, rights
from mqindex.kafka import catalogue
from mqindex.kafka.brokers import AFTER_RAFT, CHECKPOINT_STOPS, NUMBER_STOPS, RAFT, STRAY_STOPS, TOPIC_IDS, follows
from mqindex.kafka.checks.start.start_ids import id_text, missing_property, topic_id_of, wrong_property
from mqindex.kafka.directories.log_dir import duplicate_directories, list_partitions, stray_directories
from mqindex.kafka.directories.offset_checkpoint import ENTRY_NUMBER, Offsets, read_offsets
from mqindex.kafka.directories.partition_files import PartitionFiles, list_segments
from mqindex.kafka.directories.producer_state import read_snapshot
from mqindex.kafka.directories.survey import Survey
from mqindex.kafka.kinds import METADATA_LOG, PartitionDirectory, partition_name
from mqindex.kafka.layout import MAX_LOG_SIZE, IndexKind
from mqindex.kafka.partition.leader_epochs import read_epochs
from mqindex.report import Finding, Kind, Obstacle

_NUMBERED: Final = (".log", *(f".{kind}" for kind in IndexKind), ".snapshot", ".cleaned", ".swap")
_OFFLINE: Final = "a broker puts the log dir offline, and stops if it has no other"
_UNREAD: Final = f"no checkpoint that a broker reads: {_OFFLINE}"
NO_INDEX_FILE: Final = "no file, but something else that has the name of an index"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
_CLEANED: Final = "cleaner-offset-checkpoint"
_CHECKPOINTS: Final = {  # what a broker does without the entries; and where `NUMBER_STOPS` is not, without a number
    RECOVERY_POINTS: ("reads every segment after an unclean stop",) * 2,
    "log-start-offset-checkpoint": ("starts every log at its first segment",) * 2,
    HIGH_WATERMARKS: ("finds out anew what is replicated", "serves no partition of the log dir"),
    _CLEANED: ("compacts every log from its beginning", "compacts no log"),
}
_WITH_RAFT: Final = f"with KRaft, as every one {AFTER_RAFT.brokers}"
_OF_RAFT: Final = ("bootstrap.checkpoint", METADATA_LOG)


@dataclass(slots=True)
class StartFiles:
    """What prevents a start, what it would delete whatever the logs hold, and who holds the lock.

    `possible`: what prevents one or not, by something of the broker that is not known. `points`: up to which offset the
    log of a partition was on the disk. `replicated`: up to which all replicas had it. `cleaned`: up to which it was
    compacted, None: not known.
    """

    lock: lock.Holder
    lock_holder: str | None = None
    obstacles: list[Obstacle] = field(default_factory=list)
    possible: list[Obstacle] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    points: Offsets = field(default_factory=dict)
    replicated: Offsets = field(default_factory=dict)
    cleaned: Offsets | None = None

    def stop(self, kind: Kind, path: str, reason: str, brokers: str = "every") -> None:
        """A file with which no broker starts."""
        self.obstacles.append(Obstacle(path, reason, brokers))
        self.findings.append(kind.finding(path, got=reason))


def look_at_start(found: Survey) -> StartFiles:
    """A task: look at the names and the small files; nothing is written, no lock is taken."""
    held = lock.holder(join(found.log_dir, ".lock"))
    look = StartFiles(held, lock.program(held.pid))
    if not found.single:
        _look_at_directories(found, look)
        _look_at_properties(found, look)
        _look_at_deleted(found.root, look)
    _look_at_checkpoints(found, look)
    partitions: list[PartitionFiles] = []
    topics: dict[str, list[tuple[str, bytes]]] = {}  # the files with an id, and the ids
    for partition in found.partitions:
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
            files = list_segments(partition.path)
            partitions.append(files)
            topic_id = _look_at_partition(files, look)
            named = partition_name(partition.path)
            if named is not None and named.state == "delete":  # given by itself: those of a log dir are not surveyed
                look.deletes.append(partition.path)
            if topic_id is not None and named is not None and named.state is None:
                topics.setdefault(named.topic, []).append((_metadata_of(partition.path), topic_id))
            if held.state != "held" or held.pid == os.getpid():  # else a broker may be writing one
                _look_at_snapshots(files, look)
    for topic, ids in topics.items():
        _compare_ids(topic, ids, look)
    shut = None
    if not isinstance(found.root, Place):
        shut = shut_files(found.log_dir, partitions, single=found.single)
    if shut is not None:
        look.obstacles.append(shut[0])
        look.findings.append(shut[1])
    return look


# ---- the log dir


def _look_at_directories(found: Survey, look: StartFiles) -> None:
    for path in stray_directories(found.root):
        look.stop(catalogue.STRAY_DIRECTORY, path, "a directory that is not a partition")
    partitions = list_partitions(found.root)
    if found.options.broker.does(STRAY_STOPS):
        for each in partitions:
            if each.state == "stray":
                reason = "a directory that a newer broker put aside"
                look.stop(catalogue.STRAY_DIRECTORY, each.path, reason, STRAY_STOPS.brokers)
    look_at_duplicates(partitions, look)
    look.deletes += [each.path for each in partitions if each.state == "delete"]


def look_at_duplicates(partitions: Iterable[PartitionDirectory], look: StartFiles) -> None:
    """`partitions`: those of all log dirs of a broker."""
    for path, other in duplicate_directories(partitions):
        beside = parent_of(path) == parent_of(other)
        reason = f"a second directory of a partition, beside {base_name(other) if beside else other}"
        brokers = "every"
        if path.endswith("-future") and not other.endswith("-future"):
            brokers = "every but 3.9 with ZooKeeper"  # 3.9.1 and 3.9.2 with it stay up, and leave both
            reason += "; a broker starts, and puts the log dir offline when it renames this one to that"
        look.stop(catalogue.DUPLICATE_DIRECTORY, path, reason, brokers)


def _look_at_properties(found: Survey, look: StartFiles) -> None:
    path = join(found.root, "meta.properties")
    try:
        reason = wrong_property(path)
    except FileNotFoundError:
        _look_without_properties(found, path, look)
        return
    except ValueError as error:
        reason = str(error)
    if reason is not None:
        look.stop(catalogue.META_PROPERTIES, path, reason)
    elif (lacking := missing_property(path)) is not None:
        _look_without_property(found, path, lacking, look)


def _look_without_property(found: Survey, path: str, lacking: str, look: StartFiles) -> None:
    """A broker with ZooKeeper completes the file when it starts, one with KRaft stops."""
    raft = _uses_raft(found)
    if raft:
        look.stop(catalogue.PROPERTIES_INCOMPLETE, path, lacking)
    elif raft is None and not _is_copy(found):
        look.possible.append(Obstacle(path, lacking, _WITH_RAFT))
        look.findings.append(catalogue.PROPERTIES_OF_OLD.finding(path, got=lacking))


def _look_without_properties(found: Survey, path: str, look: StartFiles) -> None:
    """A broker with KRaft needs the file in each of its log dirs, one with ZooKeeper writes it where it is missing."""
    raft = _uses_raft(found)
    if _is_copy(found):
        look.findings.append(catalogue.PROPERTIES_OF_A_COPY.finding(path))
    elif raft is None:
        look.possible.append(Obstacle(path, "no such file", _WITH_RAFT))
        look.findings.append(catalogue.PROPERTIES_MISSING.finding(path))
    elif raft:
        look.stop(catalogue.PROPERTIES_MISSING, path, "no such file")
    else:
        look.findings.append(catalogue.PROPERTIES_WRITTEN_ANEW.finding(path))


def _is_copy(found: Survey) -> bool:
    """Whether a directory is a copy of partitions, and no broker's: each makes checkpoints when it starts."""
    return not any(disk.is_there(join(found.root, name)) for name in (*_CHECKPOINTS, *_OF_RAFT))


def _uses_raft(found: Survey) -> bool | None:
    """Whether the broker of a log dir has KRaft and no ZooKeeper; None: not known."""
    broker = found.options.broker
    if broker.does(RAFT) is False:
        return False
    if broker.does(AFTER_RAFT):
        return True
    return any(disk.is_there(join(found.root, name)) for name in _OF_RAFT) or None


def _look_at_checkpoints(found: Survey, look: StartFiles) -> None:
    for name, (consequence, effect) in _CHECKPOINTS.items():
        path = join(found.log_dir, name)
        try:
            offsets = read_offsets(path)
        except CorruptIndexError as error:
            number = error.field == ENTRY_NUMBER
            rule = NUMBER_STOPS if number else CHECKPOINT_STOPS
            if follows(found.options.broker, rule):
                look.obstacles.append(Obstacle(path, _UNREAD, rule.brokers))
            kind = catalogue.OFFSET_CHECKPOINT_NUMBER if number else catalogue.OFFSET_CHECKPOINT
            fields = (error.field, error.expected, error.got)
            look.findings.append(kind.finding(path, None, *fields, consequence=consequence, effect=effect))
        else:
            if name == RECOVERY_POINTS:
                look.points = offsets
            elif name == HIGH_WATERMARKS:
                look.replicated = offsets
            elif name == _CLEANED and disk.is_there(path):
                look.cleaned = offsets


# ---- a partition


def _look_at_partition(files: PartitionFiles, look: StartFiles) -> bytes | None:
    """The topic's id, where there is one, is the answer."""
    path = files.directory
    look.deletes += [*files.leftovers, *files.orphans]
    for stray in (*files.skipped, *files.leftovers):
        name = base_name(stray)
        if name.endswith(_NUMBERED) and not _is_long(name.partition(".")[0]):
            look.stop(catalogue.STRAY_SEGMENT_FILE, stray, "a segment's extension without an offset before it")
    for segment in files.segments:
        if size_of(segment.log) > MAX_LOG_SIZE:
            reason = f"longer than {MAX_LOG_SIZE} bytes"
            look.obstacles.append(Obstacle(segment.log, reason))  # verify finds it anyway, and so the next one
    try:
        read_epochs(path)
    except CorruptIndexError as error:
        look.obstacles.append(Obstacle(str(error.path), _UNREAD))
    try:
        return topic_id_of(_metadata_of(path))
    except ValueError as error:
        require_answer(error, path)
        look.stop(catalogue.PARTITION_METADATA, _metadata_of(path), str(error), TOPIC_IDS.brokers)
    return None


def _look_at_deleted(log_dir: str, look: StartFiles) -> None:
    """Partitions that are being deleted: a broker loads their segments, which it recovers only without a `.index`."""
    for each in list_partitions(log_dir):
        own = StartFiles(look.lock)
        if each.state == "delete":
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                files = list_segments(each.path)
                _look_at_partition(files, own)
                own.obstacles += _unopened(files)
        look.obstacles += own.obstacles
        look.findings += [catalogue.DELETED_NOT_LOADED.finding(one.path, got=one.reason) for one in own.obstacles]


def _unopened(files: PartitionFiles) -> Iterator[Obstacle]:
    """What is no file in the place of an index that is opened when a segment is loaded."""
    for segment in files.segments:
        recovered = not disk.is_there(segment.place_of(IndexKind.OFFSET))
        for kind in (IndexKind.TRANSACTION, *((IndexKind.TIME,) if recovered else ())):
            place = segment.place_of(kind)
            if disk.is_there(place) and not disk.is_file(place):
                yield Obstacle(place, NO_INDEX_FILE)


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
    return join(partition, "partition.metadata")


def _compare_ids(topic: str, found: list[tuple[str, bytes]], look: StartFiles) -> None:
    """All partitions of a topic have its id; which one that is, most of them say."""
    (usual, count), *_ = Counter(each for _, each in found).most_common(1)
    for path, each in found:
        if each != usual:
            expected = f"{id_text(usual)}, as {plural(count, 'other partition')} of {topic}"
            look.findings.append(catalogue.TOPIC_ID.finding(path, None, "topic_id", expected, id_text(each)))


def shut_files(log_dir: str, partitions: Iterable[PartitionFiles], *, single: bool) -> tuple[Obstacle, Finding] | None:
    """The first file or directory that the owner of the newest segment may not write, and how many there are.

    A broker opens every `.log` and `.txnindex` for writing when it loads them, the indexes at the latest when they are
    used, and makes files in every directory. It runs as the owner of its newest segment, unless that is root.
    Source: Kafka 4.1.0 `FileRecords.open`, `TransactionIndex`, `AbstractIndex.createAndAssignMmap`.
    """
    found = [*(() if single else _looked_at([log_dir])), *_looked_at(_opened(partitions))]
    logs = [status for path, status in found if path.endswith(".log")]
    owner = max(logs, key=lambda status: status.st_mtime_ns, default=None)
    shut = [(path, status) for path, status in found if owner is not None and is_shut(status, owner)]
    if owner is None or not shut:
        return None
    path, status = shut[0]
    wanted, got = f"writable for user {owner.st_uid}", rights(status)
    return (
        Obstacle(path, "the owner of the log may not write it"),
        catalogue.NOT_WRITABLE.finding(path, expected=wanted, got=got, count=len(shut)),
    )


def _opened(partitions: Iterable[PartitionFiles]) -> Iterator[str]:
    for files in partitions:
        yield files.directory
        for segment in files.segments:
            yield from segment.paths


def _looked_at(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    for path in paths:
        try:
            yield path, status_of(path)
        except FileNotFoundError:  # deleted meanwhile
            continue
