"""A look at a store's consume queues before any work: the settings that their files show, and topics of other kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from mqindex._rules import Broker
from mqindex._settings import Setting
from mqindex.files.paths import base_name, join, size_of
from mqindex.report import Finding, Value
from mqindex.rocketmq import catalogue, layout
from mqindex.rocketmq.directories.rocksdb import config_in_rocksdb, queues_in_rocksdb
from mqindex.rocketmq.kinds import is_rocksdb, subdirectories
from mqindex.rocketmq.metadata.topic_configs import TopicConfig
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.queue_stages import BatchTopics
from mqindex.rocketmq.pipeline.surveys.delay_survey import delay_levels, seen_delays
from mqindex.rocketmq.queue.queue_files import queue_file_paths
from mqindex.rocketmq.queue.queue_rules import DELAY_LEVELS, SCHEDULE_TOPIC, QueueRules, queue_rules
from mqindex.rocketmq.settings import BATCH_FILE_SIZE, COMPACTION, EXT_FILE_SIZE, MESSAGE_DELAY_LEVEL, QUEUE_FILE_SIZE

_DEFAULT, _USUAL = "the broker's default", "the usual length of the files"


class FileLength(NamedTuple):
    """How long the files of queues below a directory are. `known`: an option or a file says it; else the default is
    taken. `usual`: as most of them are; None: there are none. `batch`: of batch queues.
    """

    setting: Setting[int]
    directory: str
    size: Value
    known: bool
    usual: int | None
    batch: bool


@dataclass(frozen=True, slots=True)
class QueueSurvey:
    """`settings` as a report shows them; `batch_topics`: those whose queues are batch queues. Picklable.

    `lengths`: of every sort of files that there are to be; `batch_file_size`: the one of batch queues.
    `known_levels`: the delay levels whose delays units show; None: the configuration says all. `rocksdb`: where the
    queues are instead, when they are in RocksDB; None: in files.
    `compacted`: the compacted topics, of the configuration or, where that has no topics, those that have files; none
    where a broker compacts none.
    `declared`: topics that config/topics.json gives batch queues; None: it cannot be read, or topics are elsewhere.
    """

    rules: QueueRules
    settings: tuple[tuple[str, Value], ...]
    batch_topics: frozenset[str]
    lengths: tuple[FileLength, ...]
    batch_file_size: int
    known_levels: frozenset[int] | None = None
    rocksdb: str | None = None
    declared: frozenset[str] | None = None
    compacted: frozenset[str] = frozenset()

    def batches(self, options: StoreOptions) -> BatchTopics:
        """For those that build queues."""
        return BatchTopics(self.batch_topics, self.batch_file_size, options.commitlog)


def survey_queues(
    options: StoreOptions,
    broker: Broker,
    batch_topics: frozenset[str],
    topics: Mapping[str, TopicConfig] | None,
    unread: list[OSError],
) -> QueueSurvey:
    """The settings: those given, else those that existing files show, else the broker's defaults.

    `batch_topics`: topics with batch queues, by the log's messages. `topics`: of the configuration; None: it cannot be
    read. `unread` gets the errors of files that could not be read.
    """
    files = _length(options, QUEUE_FILE_SIZE, options.consume_queue, layout.QUEUE_UNIT_SIZE)
    ext_files = _length(options, EXT_FILE_SIZE, options.consume_queue_ext_directory, 1)
    batch_files = _length(options, BATCH_FILE_SIZE, options.batch_consume_queue, layout.BATCH_UNIT_SIZE, True)
    rules = queue_rules(options, broker=broker, file_size=files.usual, ext_file_size=ext_files.usual)
    levels = options.given(MESSAGE_DELAY_LEVEL)
    delays = seen_delays(options, unread) if levels is None else {}
    rules = replace(rules, delay_levels=delay_levels(delays)) if delays else rules
    lengths = [files, batch_files] if rules.ext_file_size is None else [files, ext_files, batch_files]
    declared = None if topics is None else _having(topics, "queue.type", "BatchCQ")
    there = map(base_name, subdirectories(options.batch_consume_queue))
    batch_topics = batch_topics.union(declared or (), there)
    with_files = map(base_name, subdirectories(join(options.root, "compaction", "compactionCq")))
    compacted = _having(topics, "cleanup.policy", "COMPACTION") if topics else frozenset(with_files)
    settings = [(one.setting.reported, one.size) for one in lengths if batch_topics or not one.batch]
    if delays and rules.delay_levels != DELAY_LEVELS:
        source = f"inferred from the units of {SCHEDULE_TOPIC}"
        settings.append((MESSAGE_DELAY_LEVEL.reported, Value(rules.message_delay_level, source)))
    return QueueSurvey(
        rules=rules,
        settings=tuple(settings),
        batch_topics=batch_topics,
        lengths=tuple(lengths),
        batch_file_size=batch_files.size.value,
        known_levels=None if levels or options.broker_conf else frozenset(delays),
        rocksdb=queues_in_rocksdb(options),
        declared=None if config_in_rocksdb(options) is not None else declared,
        compacted=compacted if options.value(COMPACTION) else frozenset(),
    )


def queues_elsewhere(rocksdb: str) -> Finding:
    """No queue is read or written."""
    both = is_rocksdb(rocksdb) and bool(subdirectories(rocksdb))
    return (catalogue.QUEUES_PERHAPS_ELSEWHERE if both else catalogue.QUEUES_ELSEWHERE).finding(rocksdb)


def _length(options: StoreOptions, setting: Setting[int], directory: str, unit: int, batch: bool = False) -> FileLength:
    """The length that is set, else the one that most files of queues below `directory` have, else the default."""
    possible = [size for size in map(size_of, queue_file_paths(directory)) if size and size % unit == 0]
    sizes = Counter(size for size in possible if size >= (setting.least or 1))
    usual = max(sizes, key=lambda size: (sizes[size], size == setting.default, size), default=None)
    known = options.reported(setting) or (None if usual is None else Value(usual, _USUAL))
    if known is not None and known.value % unit:  # a broker cannot fill such a file
        known = None
    return FileLength(setting, directory, known or Value(setting.default, _DEFAULT), known is not None, usual, batch)


def _having(topics: Mapping[str, TopicConfig], attribute: str, value: str) -> frozenset[str]:
    return frozenset(topic for topic, config in topics.items() if config.attributes.get(attribute) == value)
