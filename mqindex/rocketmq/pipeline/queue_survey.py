"""A look at a store's consume queues before any work: the settings that their files tell, and topics of other kinds."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mqindex.errors import FormatError
from mqindex.report import Value
from mqindex.rocketmq import layout
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.delay_survey import seen_delay_levels
from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC, QueueRules, queue_rules
from mqindex.rocketmq.side.topic_configs import read_topic_configs

__all__ = ["QueueSurvey", "survey_queues"]

_QUEUE_TYPE, _BATCH, _BATCH_DIRECTORY = "queue.type", "BatchCQ", "batchconsumequeue"
_SMALLEST_EXT_FILE = 24  # one unit and the mark behind the last


@dataclass(frozen=True, slots=True)
class QueueSurvey:
    """`settings` as a report shows them; `batch_topics`: those whose queues are batch queues. Picklable."""

    rules: QueueRules
    settings: tuple[tuple[str, Value], ...]
    batch_topics: frozenset[str]


def survey_queues(options: StoreOptions, broker_version: str) -> QueueSurvey:
    """What was given, else what the files that survive say, else the broker's defaults."""
    seen, ext_seen = _usual_size(options.consume_queue, layout.QUEUE_UNIT_SIZE), _usual_size(_ext(options), 1)
    rules = queue_rules(
        options,
        broker_version=broker_version,
        file_size=seen,
        ext_file_size=ext_seen if ext_seen is None or ext_seen >= _SMALLEST_EXT_FILE else None,
    )
    delays = seen_delay_levels(options) if options.delay_levels is None else None
    rules = rules if delays is None else replace(rules, delay_levels=delays)
    sizes = Value(rules.file_size, _source(options, "consume_queue_file_size", seen))
    settings = [("consume_queue_file_size", sizes)]
    if rules.ext_file_size is not None:
        source = _source(options, "consume_queue_ext_file_size", ext_seen)
        settings.append(("consume_queue_ext_file_size", Value(rules.ext_file_size, source)))
    if delays is not None:
        levels = " ".join(f"{delay // 1000}s" for delay in delays)
        settings.append(("message_delay_level", Value(levels, f"inferred from the units of {SCHEDULE_TOPIC}")))
    return QueueSurvey(rules, tuple(settings), _batch_topics(options.root))


def _ext(options: StoreOptions) -> str:
    return options.consume_queue_ext_directory


def _source(options: StoreOptions, name: str, seen: int | None) -> str:
    given = options.value(name)
    if given is not None:
        return given.source
    return "the broker's default" if seen is None else "the usual length of the files"


def _usual_size(directory: str, unit: int) -> int | None:
    """The length that most files of queues below `directory` have; None: there are none."""
    sizes = Counter(size for size in _file_sizes(directory) if size and size % unit == 0)
    return max(sizes, key=lambda size: (sizes[size], size == layout.QUEUE_FILE_SIZE, size), default=None)


def _file_sizes(directory: str) -> Iterator[int]:
    for topic in _subdirectories(directory):
        for queue in _subdirectories(topic):
            with os.scandir(queue) as entries:
                for entry in entries:
                    if len(entry.name) >= 20 and entry.name.isdecimal() and entry.is_file():
                        yield entry.stat().st_size


def _subdirectories(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _batch_topics(root: str) -> frozenset[str]:
    try:
        configured = read_topic_configs(os.path.join(root, "config"))
    except FormatError:  # told by verify; the directories tell as well
        configured = {}
    batch = {topic for topic, config in configured.items() if config.attributes.get(_QUEUE_TYPE) == _BATCH}
    return frozenset(batch | {os.path.basename(path) for path in _subdirectories(os.path.join(root, _BATCH_DIRECTORY))})
