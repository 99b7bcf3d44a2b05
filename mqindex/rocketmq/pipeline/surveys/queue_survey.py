"""A look at a store's consume queues before any work: the settings that their files show, and topics of other kinds."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace

from mqindex._rules import Broker
from mqindex.errors import FormatError
from mqindex.report import Finding, Value
from mqindex.rocketmq import catalogue, layout
from mqindex.rocketmq.metadata.topic_configs import read_topic_configs
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.queue_stages import BatchTopics
from mqindex.rocketmq.pipeline.surveys.delay_survey import delay_levels, seen_delays
from mqindex.rocketmq.queue.queue_files import queue_file_paths, subdirectories
from mqindex.rocketmq.queue.queue_rules import DELAY_LEVELS, SCHEDULE_TOPIC, QueueRules, queue_rules
from mqindex.rocketmq.rocksdb import config_in_rocksdb, queues_in_rocksdb

_QUEUE_TYPE, _BATCH = "queue.type", "BatchCQ"
_DEFAULT_SIZES = (layout.QUEUE_FILE_SIZE, layout.BATCH_FILE_SIZE)
_DEFAULT, _USUAL = "the broker's default", "the usual length of the files"


@dataclass(frozen=True, slots=True)
class QueueSurvey:
    """`settings` as a report shows them; `batch_topics`: those whose queues are batch queues. Picklable.

    `size_known`, `ext_size_known`: an option or a file says how long the queues' files and their extension files are.
    `known_levels`: the delay levels whose delays units show; None: the configuration says all. `rocksdb`: where the
    queues are instead, when they are in RocksDB; None: in files. `usual_size`: of the files that are there.
    `declared`: topics that config/topics.json gives batch queues; None: it cannot be read, or topics are elsewhere.
    `batch_file_size`, `batch_size_known`, `usual_batch_size`: the same of batch queues.
    """

    rules: QueueRules
    settings: tuple[tuple[str, Value], ...]
    batch_topics: frozenset[str]
    size_known: bool = True
    ext_size_known: bool = True
    known_levels: frozenset[int] | None = None
    rocksdb: str | None = None
    usual_size: int | None = None
    declared: frozenset[str] | None = None
    batch_file_size: int = layout.BATCH_FILE_SIZE
    batch_size_known: bool = True
    usual_batch_size: int | None = None

    def batches(self, options: StoreOptions) -> BatchTopics:
        """For those that build queues."""
        return BatchTopics(self.batch_topics, self.batch_file_size, options.commitlog)


def survey_queues(
    options: StoreOptions, broker: Broker, batch_topics: frozenset[str], unread: list[OSError]
) -> QueueSurvey:
    """The settings: those given, else those that existing files show, else the broker's defaults.

    `batch_topics`: topics with batch queues, by the log's messages. `unread` gets the errors of files that could not
    be read.
    """
    seen, ext_seen = _usual_size(options.consume_queue, layout.QUEUE_UNIT_SIZE), _usual_size(_ext(options), 1)
    rules = queue_rules(
        options,
        broker=broker,
        file_size=seen,
        ext_file_size=ext_seen if ext_seen is None or ext_seen >= layout.SMALLEST_EXT_FILE_SIZE else None,
    )
    delays = seen_delays(options, unread) if options.delay_levels is None else {}
    rules = replace(rules, delay_levels=delay_levels(delays)) if delays else rules
    given = options.value("consume_queue_file_size")
    known = given or (None if seen is None else Value(seen, _USUAL))
    settings = [("consume_queue_file_size", known or Value(rules.file_size, _DEFAULT))]
    if rules.ext_file_size is not None:
        source = _source(options, "consume_queue_ext_file_size", ext_seen)
        settings.append(("consume_queue_ext_file_size", Value(rules.ext_file_size, source)))
    if delays and rules.delay_levels != DELAY_LEVELS:
        source = f"inferred from the units of {SCHEDULE_TOPIC}"
        settings.append(("message_delay_level", Value(rules.message_delay_level, source)))
    declared, there = _declared(options), map(os.path.basename, subdirectories(options.batch_consume_queue))
    batch_topics = batch_topics.union(declared or (), there)
    batch_seen = _usual_size(options.batch_consume_queue, layout.BATCH_UNIT_SIZE)
    batch_size = options.batch_queue_file_size or batch_seen
    if batch_size is not None and batch_size % layout.BATCH_UNIT_SIZE:  # a broker cannot fill such a file
        batch_size = None
    if batch_topics:
        source = _source(options, "batch_queue_file_size", batch_seen)
        settings.append(("batch_queue_file_size", Value(batch_size or layout.BATCH_FILE_SIZE, source)))
    return QueueSurvey(
        rules=rules,
        settings=tuple(settings),
        batch_topics=batch_topics,
        declared=None if config_in_rocksdb(options) is not None else declared,
        size_known=known is not None,
        ext_size_known=rules.ext_file_size is None
        or bool(ext_seen or options.consume_queue_ext_file_size or options.broker_conf),
        known_levels=None if options.delay_levels or options.broker_conf else frozenset(delays),
        rocksdb=queues_in_rocksdb(options),
        usual_size=seen,
        batch_file_size=batch_size or layout.BATCH_FILE_SIZE,
        batch_size_known=batch_size is not None,
        usual_batch_size=batch_seen,
    )


def queues_elsewhere(rocksdb: str) -> Finding:
    """No queue is read or written."""
    return catalogue.QUEUES_ELSEWHERE.finding(rocksdb)


def _ext(options: StoreOptions) -> str:
    return options.consume_queue_ext_directory


def _source(options: StoreOptions, name: str, seen: int | None) -> str:
    given = options.value(name)
    if given is not None:
        return given.source
    return _DEFAULT if seen is None else _USUAL


def _usual_size(directory: str, unit: int) -> int | None:
    """The length that most files of queues below `directory` have; None: there are none."""
    sizes = Counter(size for size in map(os.path.getsize, queue_file_paths(directory)) if size and size % unit == 0)
    return max(sizes, key=lambda size: (sizes[size], size in _DEFAULT_SIZES, size), default=None)


def _declared(options: StoreOptions) -> frozenset[str] | None:
    """None: verify reports why, and the directories show the topics too. Without the file a broker has no topics."""
    try:
        configured = read_topic_configs(os.path.join(options.root, "config"))
    except FormatError:
        return None
    return frozenset(topic for topic, config in configured.items() if config.attributes.get(_QUEUE_TYPE) == _BATCH)
