"""The rules of Kafka's brokers that differ by version: each is one row, and every command asks the same row."""

from __future__ import annotations

import re
from typing import Final

from mqindex._rules import Broker, Rule, numbers_of

REFERENCE: Final = "4.4.0"
"""The version whose rules are taken where none is given."""

_OLDEST: Final = "0.11"

FIRST_OFFSETS_INDEXED: Final = Rule(
    "the offset index gets the first offset of a batch, later its last one",
    None, "2.0", "LogSegment.recover",
)  # fmt: skip
LOST_INDEXES_LEFT: Final = Rule(
    "a segment without its .index gets an empty one; others recover the segment when they load it",
    "1.1", "2.3", "Log.loadSegmentFiles, LazyIndex",
)  # fmt: skip
CHECKPOINT_STOPS: Final = Rule(
    "an offset checkpoint that cannot be read puts the log dir offline",
    "1.0", None, "LogManager.loadLogs, CheckpointFileWithFailureHandler.read",
)  # fmt: skip
NUMBER_STOPS: Final = Rule(
    "so does one of which only a number in an entry cannot be read",
    "1.0", "3.1", "CheckpointFile.read, OffsetCheckpointFile.Formatter",
)  # fmt: skip
RAFT: Final = Rule("a broker may have KRaft", "2.8", None, "KafkaRaftServer")
AFTER_RAFT: Final = Rule("every broker has KRaft, and none ZooKeeper", "4.0", None, "KafkaRaftServer")
TOPIC_IDS: Final = Rule("a partition has its topic's id", "2.8", None, "PartitionMetadataFile.read")
STRAY_STOPS: Final = Rule(
    "a directory that a newer broker put aside as stray is no partition",
    None, "3.6.1", "UnifiedLog.parseTopicPartitionName",
)  # fmt: skip
ONE_BYTE_OF_VERSION: Final = Rule(
    "of the version in an entry of a transaction index only the first byte is looked at",
    None, "4.4", "TransactionIndex.iterable, AbortedTxn.version",
)  # fmt: skip
METADATA_INDEXES_TRIMMED: Final = Rule(
    "the indexes of the metadata log are trimmed when the broker stops",
    None, "4.4", "KafkaRaftLog.close",
)  # fmt: skip

RULES: Final = tuple(rule for rule in globals().values() if isinstance(rule, Rule))


def broker_of(kafka_version: str | None) -> Broker:
    """The broker of a version that was given, None: of any from 0.11 on.

    >>> broker_of("3.5.2").does(STRAY_STOPS), broker_of(None).does(STRAY_STOPS)
    (True, None)
    """
    if kafka_version is None:
        return Broker(numbers_of(_OLDEST))
    if not isinstance(kafka_version, str):
        raise TypeError(f"kafka_version: expected numbers and dots, as '3.9.1', got {kafka_version!r:.80}")
    if re.fullmatch(r"\d+(\.\d+)+", kafka_version, re.ASCII) is None:
        raise ValueError(f"kafka_version: expected numbers and dots, as 3.9.1, got {kafka_version!r}")
    if numbers_of(kafka_version) < numbers_of(_OLDEST):
        raise ValueError(f"kafka_version: expected {_OLDEST} or later, got {kafka_version}")
    return Broker.of(kafka_version)


def follows(broker: Broker, rule: Rule) -> bool:
    """Whether it does what a rule says; where that depends on a version that was not given, as the newest one does."""
    done = broker.does(rule)
    return bool(Broker.of(REFERENCE).does(rule)) if done is None else done
