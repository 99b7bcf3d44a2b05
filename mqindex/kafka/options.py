"""Partition options: the topic settings that shape index files and that no file of a partition holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from mqindex._rules import Broker
from mqindex.kafka.brokers import LOST_INDEXES_LEFT, METADATA_INDEXES_TRIMMED, REFERENCE, broker_of, follows
from mqindex.kafka.settings import INDEX_INTERVAL, INDEX_SIZE
from mqindex.report import Value


class PartitionArguments(TypedDict, total=False):
    """The options of everything that reads a partition's index files or writes them, by keyword.

    Parameters
    ----------
    kafka_version : as "3.9.1"; None: the rules of 4.4. Up to 1.1 the offset index gets first offsets.
    index_interval_bytes : the topic's index.interval.bytes, which no file of a partition has; None: as the metadata log
        (`__cluster_metadata-0`) in the same log dir says that it is set; else as the entries of intact .index files of
        closed segments show it; where they show none, or fit 4096: that.
    max_index_size : bytes (segment.index.bytes); a segment with more entries is refused, as by the broker.
    check_crc : False: batches with a wrong checksum count as good, and only headers are read.
    storage_options : of a path that is a URL, as of `obstore.store.from_url`, for `hdfs://` the configuration of
        hdfs-native; None: what the storage finds in the environment.
    """

    kafka_version: str | None
    index_interval_bytes: int | None
    max_index_size: int
    check_crc: bool
    storage_options: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """Checked options; picklable. `kafka_version` None: the rules of 4.4."""

    kafka_version: str | None
    index_interval_bytes: int
    max_index_size: int
    check_crc: bool
    interval_source: str = "given"
    other_intervals: tuple[int, ...] = ()  # the least and the greatest that its source allows
    is_of_metadata: bool = False  # KRaft's own log

    @property
    def broker(self) -> Broker:
        """As far as its version is known."""
        return broker_of(self.kafka_version)

    @property
    def makes_lost_indexes(self) -> bool:
        """Whether a segment without its `.index` is recovered when it is loaded, however the broker was stopped."""
        return not follows(self.broker, LOST_INDEXES_LEFT)

    @property
    def trims_indexes(self) -> bool:
        """Whether a broker that stops cuts an open index behind its last entry."""
        return not self.is_of_metadata or follows(self.broker, METADATA_INDEXES_TRIMMED)

    def of_metadata_log(self) -> PartitionOptions:
        """Those of KRaft's own log, of which nobody sets these two. Source: Kafka 3.9.0 `KafkaMetadataLog.apply`."""
        interval, size = INDEX_INTERVAL.default, INDEX_SIZE.default
        return replace(self, index_interval_bytes=interval, max_index_size=size, is_of_metadata=True)

    def settings(self) -> dict[str, Value]:
        """What a report says was used, and where it came from."""
        version = Value(REFERENCE, "default") if self.kafka_version is None else Value(self.kafka_version, "given")
        return {
            "kafka_version": version,
            "index_interval_bytes": Value(self.index_interval_bytes, self.interval_source),
            "max_index_size": _value(self.max_index_size, INDEX_SIZE.default),
        }


def partition_options(
    *,
    kafka_version: str | None = None,
    index_interval_bytes: int | None = None,
    max_index_size: int = INDEX_SIZE.default,
    check_crc: bool = True,
    storage_options: Mapping[str, Any] | None = None,
) -> PartitionOptions:
    """Check what was given, before anything is read; `storage_options` are the paths'.

    >>> partition_options(kafka_version="3.9.1").settings()["kafka_version"]
    Value(value='3.9.1', source='given')
    """
    broker_of(kafka_version)
    return PartitionOptions(
        kafka_version,
        INDEX_INTERVAL.given(INDEX_INTERVAL.default if index_interval_bytes is None else index_interval_bytes),
        INDEX_SIZE.given(max_index_size),
        bool(check_crc),
        "default" if index_interval_bytes is None else "given",
    )


def _value(used: int, default: int) -> Value:
    return Value(used, "default" if used == default else "given")
