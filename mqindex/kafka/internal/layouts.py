"""How what brokers keep in topics of their own is laid out: a table each, as the brokers' own message definitions.

Source: Kafka 4.4.0, the `.json` definitions of the same names.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_ANY: Final = 2**15


class Field(NamedTuple):
    """One field. `kind`: int8 to int64, uint16, string, uuid; with `?` behind it may be null, with `[]` before it there
    are several, which are structures of the fields `of` where nothing follows. In versions `since` to `until`.
    """

    name: str
    kind: str
    since: int = 0
    until: int = _ANY
    of: tuple[Field, ...] = ()


class Layout(NamedTuple):
    """A structure. `last`: its newest version. From the version `flexible` on lengths are varints, and tagged fields
    may follow.
    """

    name: str
    last: int
    flexible: int
    fields: tuple[Field, ...]

    def of(self, version: int) -> tuple[Field, ...]:
        """The fields of a version."""
        return tuple(field for field in self.fields if field.since <= version <= field.until)


OFFSET_COMMIT_KEY: Final = Layout(
    "OffsetCommitKey", 1, _ANY, (Field("group", "string"), Field("topic", "string"), Field("partition", "int32"))
)
OFFSET_COMMIT_VALUE: Final = Layout(
    "OffsetCommitValue",
    4,
    4,
    (
        Field("offset", "int64"),
        Field("leader_epoch", "int32", since=3),
        Field("metadata", "string"),
        Field("commit_time", "int64"),
        Field("expire_time", "int64", since=1, until=1),
    ),
)
GROUP_KEY: Final = Layout("GroupMetadataKey", 2, _ANY, (Field("group", "string"),))

TRANSACTION_KEY: Final = Layout("TransactionLogKey", 0, _ANY, (Field("transactional_id", "string"),))
TRANSACTION_VALUE: Final = Layout(
    "TransactionLogValue",
    1,
    1,
    (
        Field("producer_id", "int64"),
        Field("producer_epoch", "int16"),
        Field("timeout_ms", "int32"),
        Field("state", "int8"),
        Field("partitions", "[]?", of=(Field("topic", "string"), Field("partitions", "[]int32"))),
        Field("update_time", "int64"),
        Field("start_time", "int64"),
    ),
)

_VOTER: Final = (Field("id", "int32"), Field("directory_id", "uuid", since=1))
_ENDPOINT: Final = (Field("name", "string"), Field("host", "string"), Field("port", "uint16"))
END_OF_TRANSACTION: Final = Layout("EndTxnMarker", 0, _ANY, (Field("coordinator_epoch", "int32"),))
LEADER_CHANGE: Final = Layout(
    "LeaderChangeMessage",
    1,
    0,
    (
        Field("version", "int16"),
        Field("leader", "int32"),
        Field("voters", "[]", of=_VOTER),
        Field("granting_voters", "[]", of=_VOTER),
    ),
)
SNAPSHOT_HEADER: Final = Layout(
    "SnapshotHeaderRecord", 0, 0, (Field("version", "int16"), Field("last_contained_time", "int64"))
)
SNAPSHOT_FOOTER: Final = Layout("SnapshotFooterRecord", 0, 0, (Field("version", "int16"),))
KRAFT_VERSION: Final = Layout("KRaftVersionRecord", 0, 0, (Field("version", "int16"), Field("kraft_version", "int16")))
KRAFT_VOTERS: Final = Layout(
    "VotersRecord",
    0,
    0,
    (
        Field("version", "int16"),
        Field("voters", "[]", of=(
            Field("id", "int32"),
            Field("directory_id", "uuid"),
            Field("endpoints", "[]", of=_ENDPOINT),
            Field("kraft_versions", "{}", of=(Field("least", "int16"), Field("greatest", "int16"))),
        )),
    ),
)  # fmt: skip

TOPIC: Final = Layout("TopicRecord", 0, 0, (Field("topic", "string"), Field("topic_id", "uuid")))
PARTITION: Final = Layout(
    "PartitionRecord",
    2,
    0,
    (
        Field("partition", "int32"),
        Field("topic_id", "uuid"),
        Field("replicas", "[]int32"),
        Field("isr", "[]int32"),
        Field("removing_replicas", "[]int32"),
        Field("adding_replicas", "[]int32"),
        Field("leader", "int32"),
        Field("leader_epoch", "int32"),
        Field("partition_epoch", "int32"),
        Field("directories", "[]uuid", since=1),
    ),
)
CONFIG: Final = Layout(
    "ConfigRecord",
    0,
    0,
    (
        Field("resource_type", "int8"),
        Field("resource", "string"),
        Field("name", "string"),
        Field("value", "string?"),
    ),
)
REMOVE_TOPIC: Final = Layout("RemoveTopicRecord", 0, 0, (Field("topic_id", "uuid"),))
