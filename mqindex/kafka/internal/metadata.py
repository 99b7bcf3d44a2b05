"""`decode_metadata`: what `__cluster_metadata` says of topics, partitions and their settings."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mqindex.columns.columns import Columns
from mqindex.errors import FormatError
from mqindex.kafka.internal.cursor import Cursor
from mqindex.kafka.internal.layouts import CONFIG, PARTITION, REMOVE_TOPIC, TOPIC, Layout
from mqindex.kafka.internal.rows import MARKER, UNREADABLE, control, made, of_rows, pairs

NAMES: Final = {
    0: "RegisterBroker", 1: "UnregisterBroker", 2: "Topic", 3: "Partition", 4: "Config", 5: "PartitionChange",
    7: "FenceBroker", 8: "UnfenceBroker", 9: "RemoveTopic", 10: "DelegationToken", 11: "UserScramCredential",
    12: "FeatureLevel", 14: "ClientQuota", 15: "ProducerIds", 17: "BrokerRegistrationChange", 18: "AccessControlEntry",
    19: "RemoveAccessControlEntry", 20: "NoOp", 21: "ZkMigrationState", 22: "RemoveUserScramCredential",
    23: "BeginTransaction", 24: "EndTransaction", 25: "AbortTransaction", 26: "RemoveDelegationToken",
    27: "RegisterController", 28: "ClearElr", 29: "UnregisterController",
}  # fmt: skip
"""By their api key. Source: Kafka 4.4.0 `MetadataRecordType`."""

_LAYOUTS: Final[dict[int, Layout]] = {2: TOPIC, 3: PARTITION, 4: CONFIG, 9: REMOVE_TOPIC}
_FRAME: Final = 1  # its version; the preview in 2.8 had another
_SHORT: Final = 2**15 - 1
_KINDS: Final = {
    "kind": str, "api_key": np.int32, "version": np.int32, "topic": str, "topic_id": str, "partition": np.int32,
    "leader": np.int32, "leader_epoch": np.int32, "replicas": str, "isr": str, "resource_type": np.int8,
    "resource": str, "name": str, "value": str, "problem": str,
}  # fmt: skip


def decode_metadata(records: Columns) -> Columns:
    """What the records of `__cluster_metadata` say, a row each; those of its snapshots (`.checkpoint`) are the same.

    Parameters
    ----------
    records : Columns with key and value, as for `decode_commits`.

    Returns
    -------
    Columns : kind text, api_key int32, version int32, topic text, topic_id text, partition int32, leader int32,
        leader_epoch int32, replicas text and isr text (as "1, 2"), resource_type int8 (2 of a topic, 4 of a broker, or,
        with an empty name, of all brokers), resource text, name text, value text (null: the setting is no longer made),
        problem text. What a row has not is null or -1.
        kind is the record's name without "Record": of Topic, Partition, Config and RemoveTopic the fields are given;
        "other": a name that is not known; "marker"; "unreadable": bytes that are none of this, and `problem` says why.

    Notes
    -----
    The values of settings are in the file as text, passwords among them.
    Source: Kafka 4.4.0 `MetadataRecordSerde`, `TopicRecord`, `PartitionRecord`, `ConfigRecord`, `RemoveTopicRecord`.

    Examples
    --------
    >>> from mqindex.columns.columns import BinaryColumn
    >>> data = b"", bytes.fromhex("01" "04" "00" "02" "07" "6f7264657273" "02" "61" "02" "39" "00")
    >>> key, value = (BinaryColumn(np.frombuffer(each, np.uint8), np.array([0, len(each)])) for each in data)
    >>> found = decode_metadata(Columns({"key": key, "value": value}))
    >>> [found[name].to_pylist() for name in ("kind", "resource", "name", "value")]
    [['Config'], ['orders'], ['a'], ['9']]
    """
    rows = [
        {"kind": MARKER} if marker else _row(value)
        for (_, value), marker in zip(pairs(records), control(records).tolist(), strict=True)
    ]
    return made(of_rows(_KINDS, rows), records)


def _row(value: bytes | None) -> dict[str, Any]:
    try:
        api_key, version, row = metadata_record(value or b"")
    except FormatError as error:
        return {"kind": UNREADABLE, "problem": str(error)}
    for name in ("replicas", "isr"):
        if name in row:
            row[name] = ", ".join(map(str, row[name]))
    return {"kind": NAMES.get(api_key, "other"), "api_key": api_key, "version": version, **row}


def metadata_record(value: bytes) -> tuple[int, int, dict[str, Any]]:
    """The api key, the version and the fields of one record; no fields where they are not read here.

    Raises
    ------
    FormatError : the bytes are no such record.
    """
    cursor = Cursor(value)
    frame, api_key, version = cursor.varint(), cursor.varint(), cursor.varint()
    if frame != _FRAME:
        raise FormatError("no known frame", field="frame version", expected=_FRAME, got=frame)
    if max(api_key, version) > _SHORT:
        raise FormatError("no api key and version", expected=f"{_SHORT} at most", got=max(api_key, version))
    if (layout := _LAYOUTS.get(api_key)) is None:
        return api_key, version, {}
    row = cursor.read(layout, version)
    if cursor.at != len(value):
        raise FormatError("bytes are left over", at=cursor.at, expected="the end of the record")
    return api_key, version, row
