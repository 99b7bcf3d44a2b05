"""Which broker wrote a store, as far as its files show; no file records the version.

The version decides which messages give index entries: from 5.4 on those with TAGS too. It is found, in this order, from
the newest entries of the index files; from what only 5.4 or newer leaves in the root; from the newest messages, whose
properties brokers before 5.2 (from 4.9.1 on) end without the separator that all later ones write.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from mqindex._rules import Broker, Rule, numbers_of
from mqindex.errors import MQIndexError, was_cut
from mqindex.files import disk
from mqindex.files.paths import base_name, join
from mqindex.files.places.place import Place, require_answer
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.report import Value
from mqindex.rocketmq.brokers import (
    BATCH_QUEUES,
    COMPACTION,
    EVERY,
    LONG_TOPICS,
    PROCESS_ID_KEPT,
    REFERENCE,
    ROCKSDB_OF_INDEXES,
    TAGS_INDEXED,
    TIMERS,
    UNSEPARATED,
    follows,
)
from mqindex.rocketmq.index.geometry_fit import Geometry
from mqindex.rocketmq.layout import MAGIC_MESSAGE_V2
from mqindex.rocketmq.log.frame_windows import find_in
from mqindex.rocketmq.log.log_entries import ALL_TAGS, NO_TAGS, LogSpan, Tags
from mqindex.rocketmq.log.log_files import probable_end
from mqindex.rocketmq.log.log_scan import first_frame
from mqindex.rocketmq.messages.body import INNER_BATCH
from mqindex.rocketmq.messages.log_columns import as_columns, column_scanner
from mqindex.rocketmq.metadata.topic_configs import TopicConfig
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.surveys.tags_survey import IndexedTags

_SAMPLE_BYTES = 4 << 20
_SAMPLE_ELSEWHERE = 512 << 10
_TRACES: Final = {  # what is in the root, and the rule by which a broker makes it
    "abort.bak": PROCESS_ID_KEPT, "timerwheel": TIMERS, "timerlog": TIMERS, "batchconsumequeue": BATCH_QUEUES,
    "compaction": COMPACTION, "rocksdbstore": ROCKSDB_OF_INDEXES,
}  # fmt: skip
_COLUMNS = ("phy_offset", "size", "topic", "sys_flag")
_SEPARATOR = 2


@dataclass(frozen=True, slots=True)
class InferredVersion:
    """`broker`: as far as it is known; `newest`: that in words. `tags`: where TAGS gave entries, by who was there."""

    broker: Broker
    newest: Value
    tags: Tags = NO_TAGS

    @property
    def known(self) -> bool:
        """Whether it is certain if TAGS give entries."""
        return self.broker.does(TAGS_INDEXED) is not None

    @property
    def number(self) -> str:
        """One with the rules that are applied."""
        if self.newest.source == "given":
            return str(self.newest.value)
        return "5.4.0" if self.broker.does(TAGS_INDEXED) else "5.0.0" if self.broker.does(BATCH_QUEUES) else REFERENCE

    @property
    def reported(self) -> Value:
        """What is known, for reports."""
        if self.tags in (ALL_TAGS, NO_TAGS):
            return self.newest
        changes = " and ".join(str(at) for at in self.tags.changes if at)
        source = f"{self.newest.source}; whether TAGS are indexed changes at phy offset {changes}"
        return Value(self.newest.value, source)


@dataclass(frozen=True, slots=True)
class LogTraces:
    """What the newest messages show. `no_separator`: their properties end as before 5.2; `since_5_1`: frames of 5.1.

    `batch_topics`: topics with records of many messages, which are in batch queues.
    """

    no_separator: bool = False
    since_5_1: bool = False
    batch_topics: frozenset[str] = frozenset()


def survey_version(
    options: StoreOptions,
    spans: Sequence[LogSpan],
    index_files: Sequence[str],
    pair: Geometry,
    traces: LogTraces,
    topics: Mapping[str, TopicConfig],
    unread: list[OSError],
) -> InferredVersion:
    """The version given, else the one that the files show, else the rules before 5.4, which are then not `known`.

    `topics`: of the configuration. `unread` gets the errors of index files that could not be read.
    """
    indexed = IndexedTags(index_files, spans, pair, unread)
    newest = _newest(options, indexed, traces, topics)
    return replace(newest, tags=indexed.all(follows(newest.broker, TAGS_INDEXED)))


def version_again(
    version: InferredVersion,
    spans: Sequence[LogSpan],
    index_files: Sequence[str],
    pair: Geometry,
    doubtful: Set[int] | None,
) -> InferredVersion:
    """The same, after another look at index files, by their numbers, that differ from the log by it; None: at those
    whose ends do.

    An error of one that cannot be read is raised: what it shows might be taken for damage.
    """
    indexed = IndexedTags(index_files, spans, pair)
    doubtful = indexed.refuting(version.tags) if doubtful is None else doubtful
    tags = indexed.again(version.tags, doubtful) if doubtful else version.tags
    refuse_unread(indexed.unread)
    return replace(version, tags=tags)


def refuse_unread(unread: Iterable[OSError]) -> None:
    """Raise the first error of a file that may show a setting; of a bad disk with what to do."""
    for error in unread:
        if error.errno != errno.EIO:
            raise error
        hint = "it may show by which rules its messages were indexed: move it elsewhere to go on without it"
        raise OSError(error.errno, f"{error.strerror}; {hint}", error.filename) from error


def _newest(
    options: StoreOptions, indexed: IndexedTags, traces: LogTraces, topics: Mapping[str, TopicConfig]
) -> InferredVersion:
    if options.broker_version is not None:
        return InferredVersion(options.broker, Value(options.broker_version, "given"))
    trace, rule = _trace_of_5(options.root, traces, topics) or (None, EVERY)
    least = numbers_of(rule.since or "0")
    tags = numbers_of(str(TAGS_INDEXED.since))
    shown = indexed.newest()
    if shown is None and least < tags and traces.no_separator:
        begin, end = map(numbers_of, UNSEPARATED.thresholds)
        source = "inferred from the properties of the newest messages"
        return InferredVersion(Broker(max(begin, least), end), Value("5.0 or 5.1" if least else "before 5.2", source))
    if shown is not None and not shown[0]:
        source = f"inferred from {base_name(shown[1])}"
        return InferredVersion(Broker(least, tags), Value("5.0 to 5.3" if least else "before 5.4", source))
    if shown is not None or least >= tags:
        source = f"inferred from {base_name(shown[1]) if shown else f'{trace}/'}"
        return InferredVersion(Broker(max(least, tags)), Value("5.4 or newer", source))
    if least:
        source = f"inferred from {trace}; the rules before 5.4 are applied"
        return InferredVersion(Broker(least), Value("5.0 or newer", source))
    return InferredVersion(Broker(), Value("unknown", "nothing shows it; the rules before 5.4 are applied"))


def _trace_of_5(root: str, traces: LogTraces, topics: Mapping[str, TopicConfig]) -> tuple[str, Rule] | None:
    """What shows the newest broker from 5.0 on, and the rule by which that left it in the store."""
    found = [(name, rule) for name, rule in _TRACES.items() if disk.is_there(join(root, name))]
    if found:
        return max(found, key=lambda one: numbers_of(str(one[1].since)))
    if traces.since_5_1 or traces.batch_topics:
        return "the newest messages", LONG_TOPICS if traces.since_5_1 else BATCH_QUEUES
    of_5 = any(config.attributes for config in topics.values())
    return ("config/topics.json", BATCH_QUEUES) if of_5 else None


def log_traces(spans: Sequence[LogSpan]) -> LogTraces:
    """Look at the newest few MiB of the log."""
    if not spans:
        return LogTraces()
    try:
        with spans[-1].open() as log:
            return _traces(log, spans[-1])
    except MQIndexError as error:
        if was_cut(error):
            raise
        require_answer(error, error.path)
        return LogTraces()


def _traces(log: MappedFile, span: LogSpan) -> LogTraces:
    stop = span.file_start + min(span.stop - span.file_start, log.size, probable_end(span.path))
    if isinstance(span.path, Place):  # few bytes; what imitates a frame inside a body is passed over soon
        begin = max(span.file_start, stop - _SAMPLE_ELSEWHERE)
        log.window(begin - span.file_start, stop - span.file_start)  # by one request
        at = find_in(log, span.file_start, begin, stop)
    else:
        at = first_frame(log, span.file_start, max(span.file_start, stop - _SAMPLE_BYTES), stop)
    if at < 0:
        return LogTraces()
    separated = unseparated = 0
    since_5_1 = False
    batch_topics: set[str] = set()
    window = log.window(at - span.file_start, stop - span.file_start)
    data = np.frombuffer(memoryview(window), np.uint8)
    for made in column_scanner(window, span.file_start, at, stop, _COLUMNS, check_crc=True):
        batch = as_columns(*made)
        begin = batch["phy_offset"] - span.file_start
        last = data[begin + batch["size"] - 1]  # properties end a frame; 0 is the length of none
        separated += int(np.count_nonzero(last == _SEPARATOR))
        unseparated += int(np.count_nonzero((last != _SEPARATOR) & (last != 0)))
        since_5_1 = since_5_1 or bool(np.any(data[begin + 7] == MAGIC_MESSAGE_V2 & 0xFF))
        inner = np.flatnonzero(batch["sys_flag"] & INNER_BATCH)
        if len(inner):
            topics = batch["topic"].to_pylist()
            batch_topics.update(topics[row] for row in inner)
    return LogTraces(unseparated > 0 and not separated, since_5_1, frozenset(batch_topics))
