"""How topics are set: each one's `index.interval.bytes`, from KRaft's own log where that lies in the same log dir."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mqindex.columns.columns import BinaryColumn, Columns
from mqindex.errors import MQIndexError
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.kafka.directories.offset_checkpoint import text_lines
from mqindex.kafka.directories.partition_files import PartitionFiles, while_files_go
from mqindex.kafka.internal.markers import decode_markers
from mqindex.kafka.internal.metadata import metadata_record
from mqindex.kafka.kinds import METADATA_LOG, MetadataSnapshot, is_partition, partition_name
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.settings import INDEX_INTERVAL
from mqindex.report import Value

_TOPIC, _CONFIG, _REMOVE_TOPIC, _BEGIN, _END, _ABORT = 2, 4, 9, 23, 24, 25  # api keys
_WANTED: Final = (_TOPIC, _CONFIG, _REMOVE_TOPIC, _BEGIN, _END, _ABORT)
_OF_TOPIC, _OF_BROKER = 2, 4  # types of resources
_NAMES: Final = {_OF_TOPIC: INDEX_INTERVAL.name, _OF_BROKER: f"log.{INDEX_INTERVAL.name}"}
_NO_KEYS: Final = np.zeros(0, np.uint8)
_MOST_TEXT: Final = 1 << 16

_Change = tuple[int, dict[str, Any]]


class _Unknown(Exception):
    """The log does not say all that is needed."""


@dataclass(slots=True)
class TopicSettings:
    """What the metadata log of a log dir says. `node`: the id of the log dir's broker; None: it is not known."""

    node: str | None = None
    _ids: dict[str, str] = field(default_factory=dict)  # by topic
    _topics: dict[str, str] = field(default_factory=dict)  # by id
    _intervals: dict[tuple[int, str], int] = field(default_factory=dict)  # by type and name of what they are set for

    def interval_of(self, partition: str) -> Value | None:
        """The `index.interval.bytes` of a partition's directory; None: it is not set there, but by the broker's own
        properties or by default; or it is another topic's of this name.
        """
        named = partition_name(partition)
        if named is None or named.state not in (None, "future") or named.topic not in self._ids:
            return None
        if _stated(join(partition, "partition.metadata"), "topic_id") not in (None, self._ids[named.topic]):
            return None
        if (own := self._intervals.get((_OF_TOPIC, named.topic))) is not None:
            return Value(own, "the topic's, by the metadata log")
        if self.node is None and any(kind == _OF_BROKER and name for kind, name in self._intervals):
            return None
        of_broker = (self._intervals.get((_OF_BROKER, name)) for name in (self.node or "", ""))
        found = next((value for value in of_broker if value is not None), None)
        return None if found is None else Value(found, "the broker's, by the metadata log")

    def apply(self, change: _Change) -> None:
        """Take a record into account."""
        api_key, row = change
        if api_key == _TOPIC:
            topic, topic_id = _text(row["topic"]), _text(row["topic_id"])
            self._ids[topic], self._topics[topic_id] = topic_id, topic
        elif api_key == _REMOVE_TOPIC:
            topic = self._topics.pop(_text(row["topic_id"]), "")
            self._ids.pop(topic, None)
            self._intervals.pop((_OF_TOPIC, topic), None)
        elif row["name"] == _NAMES.get(row["resource_type"], "").encode():
            resource = row["resource_type"], _text(row["resource"])
            self._intervals.pop(resource, None)
            if row["value"] is not None:
                self._intervals[resource] = _interval(row["value"])


def topic_settings(log_dir: str) -> TopicSettings | None:
    """What the metadata log that lies in a log dir says of its topics; None: there is none, or it does not say all.

    It is read from its newest snapshot on. A broker has it in `metadata.log.dir`, by default the first of `log.dirs`.
    What a broker's own properties say is in no log.

    Notes
    -----
    Source: Kafka 4.4.0 `ConfigurationControlManager`, `ReplicationControlManager`, `KafkaRaftLog`; the changes of a
    metadata transaction count when it ends.
    """
    directory = join(log_dir, METADATA_LOG)
    try:
        if not is_partition(directory):
            return None
        changes = while_files_go(directory, lambda files: list(_changes(files)))
        made = TopicSettings(_stated(join(log_dir, "meta.properties"), "node.id", "broker.id"))
        for change in changes:
            made.apply(change)
        return made
    except (MQIndexError, ImportError, _Unknown, OSError) as error:
        require_answer(error, directory)
        return None


def _changes(files: PartitionFiles) -> Iterator[_Change]:
    """What happened to topics and settings, in order, without what was taken back."""
    held: list[_Change] | None = None
    for value in _values(files):
        api_key, _, row = metadata_record(value)
        if api_key == _BEGIN:
            held = []
        elif api_key == _ABORT:
            held = None
        elif api_key == _END:
            yield from held or ()
            held = None
        elif held is not None:
            held.append((api_key, row))
        else:
            yield api_key, row


def _values(files: PartitionFiles) -> Iterator[bytes]:
    """The records that may be wanted, of the newest snapshot and of the log behind it."""
    snapshot = max(files.metadata_snapshots, default=None)
    expected = 0
    if snapshot is not None:
        expected = snapshot.end
        yield from _of_snapshot(snapshot)
    for each in files.segments:
        if each.next_base_offset is not None and each.next_base_offset <= expected:
            continue
        with LogSegment._of_files(each) as segment:
            for records in segment.records(columns=("offset", "value", "is_control")):
                offsets = records["offset"]
                new = offsets >= expected
                if not new.any():
                    continue
                if offsets[new][0] != expected:
                    raise _Unknown  # the records between are missing
                expected = int(offsets[-1]) + 1
                yield from _wanted(records, new)
            if segment.damage:
                raise _Unknown


def _of_snapshot(snapshot: MetadataSnapshot) -> Iterator[bytes]:
    with LogSegment.open(snapshot.path, base_offset=0) as segment:
        last = None
        for last in segment.records(columns=("key", "value", "is_control")):
            yield from _wanted(last, np.ones(last.num_rows, np.bool_))
        if segment.damage or last is None or decode_markers(last)["kind"][-1] != "snapshot-footer":
            raise _Unknown


def _wanted(records: Columns, new: Any) -> Iterator[bytes]:
    """The values of the `new` records of the kinds that are wanted. Their second byte is an api key below 128."""
    values: BinaryColumn = records["value"]
    starts, sizes = values.offsets[:-1], np.diff(values.offsets)
    api_keys = values.data[np.minimum(starts + 1, max(len(values.data) - 1, 0))] if len(values.data) else _NO_KEYS
    if not len(api_keys):
        return
    for number in np.flatnonzero(new & ~records["is_control"] & (sizes > 1) & np.isin(api_keys, _WANTED)).tolist():
        yield values[number]


def _interval(value: bytes) -> int:
    try:
        return INDEX_INTERVAL.given(int(value))
    except ValueError:
        raise _Unknown from None


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _stated(path: str, *names: str) -> str | None:
    """What a file with a line for each name says of the first of these that is there; None: it does not."""
    try:
        lines = text_lines(path, _MOST_TEXT, encoding="latin-1")
    except ValueError:
        return None
    except OSError as error:
        require_answer(error, path)
        return None
    found = dict(line.replace(":", "=", 1).split("=", 1) for line in lines if "=" in line or ":" in line)
    return next((found[name].strip() for name in names if name in found), None)
