"""What a broker keeps in topics of its own, decoded from its files, is what its administrator's client says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex import kafka
from mqindex.cli.kafka.facts import kafka_facts
from mqindex.columns.columns import Columns
from tests.peer.kafka.broker import Broker
from tests.peer.kafka.client import Commit, Outgoing, Transaction
from tests.peer.kafka.conftest import on_the_newer
from tests.peer.kafka.workload import FIRST_TIME
from tests.peer.maven import PeerError

pytestmark = on_the_newer

GROUPS = ("app", "größe", "forgotten")
COMMITS = {
    "app": [(3, 0, "one"), (7, -1, ""), (42, 0, "größe")],
    "größe": [(5, 2, "x" * 300)],
    "forgotten": [(6, 0, "x")],
}
TOPIC, OTHER, PLAIN = "orders", "paid", "plain"
INTERVALS = {TOPIC: 700, OTHER: 2000, PLAIN: None}


@pytest.fixture
def broker(version: str, tmp_path: Path) -> Iterator[Broker]:
    snapshots = {"metadata.log.max.record.bytes.between.snapshots": 1500}  # so that there are some
    broker = Broker(version, tmp_path, {"offsets.topic.num.partitions": 3, **snapshots})
    try:
        broker.launch()
        broker.client.wait_until_ready()
        broker.wait_until_ready()
        yield broker
    except PeerError as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        broker.close()


def test_commits_transactions_and_markers_are_what_the_broker_says(
    broker: Broker, tmp_path: Path, proven: Callable[[str], None]
) -> None:
    client = broker.client
    client.create_producer("plain", "none", "plain")
    for topic, interval in INTERVALS.items():
        how = {} if interval is None else {"index.interval.bytes": interval}
        client.create_topic(topic, {"retention.ms": -1, **how})
        for _ in range(50):
            client.send("plain", topic, [Outgoing(FIRST_TIME, b"k", b"v" * 100)] * 5)
    client.create_producer("paying", "none", "transactional")
    for commit in (True, False, True):
        client.begin("paying")
        client.send("paying", TOPIC, [Outgoing(FIRST_TIME)])
        client.end("paying", commit=commit)
    client.begin("paying")
    for topic in (TOPIC, OTHER):
        client.send("paying", topic, [Outgoing(FIRST_TIME)])
    for group in GROUPS:
        client.commit(group, TOPIC, COMMITS[group])
    client.commit("app", OTHER, [(1, 0, "")])
    client.forget("forgotten", TOPIC)
    said = {group: client.commits(group) for group in GROUPS}
    transaction = client.transaction("paying")
    opened = {topic: client.open_transactions(topic) for topic in INTERVALS}
    assert {topic: info(broker.partition(topic)) for topic in INTERVALS} == opened  # while the broker holds them
    broker.stop()
    assert {topic: info(broker.partition(topic)) for topic in INTERVALS} == opened  # by the snapshots of the stop
    assert [len(found) for _, found in opened.values()] == [1, 1, 0]
    proven("info: the last stable offset and the open transactions, as listOffsets and describeProducers")

    commits = [kafka.decode_commits(records) for records in of(broker, "__consumer_offsets")]
    assert {group: newest(commits, group) for group in GROUPS} == said
    assert said["forgotten"] == [] and len(said["app"]) == 2
    offsets = [row["offset"] for row in rows(commits) if row["group"] == "app" and row["topic"] == TOPIC]
    assert offsets == [3, 7, 42]  # a group's commits over time
    assert {row["kind"] for row in rows(commits)} == {"commit", "deleted", "group"}

    states = rows(kafka.decode_transactions(records) for records in of(broker, "__transaction_state"))
    assert Transaction(
        states[-1]["state"], states[-1]["producer_id"], states[-1]["producer_epoch"], states[-1]["timeout_ms"],
        int(states[-1]["start_time"].astype(np.int64)), ", ".join(sorted(states[-1]["partitions"].split(", "))),
    ) == transaction  # fmt: skip
    assert [row["state"] for row in states].count("CompleteAbort") == 1

    markers = rows(kafka.decode_markers(records) for records in of(broker, TOPIC))
    assert [row["kind"] for row in markers if row["kind"]] == ["commit", "abort", "commit"]
    metadata = rows(kafka.decode_metadata(records) for records in of(broker, "__cluster_metadata"))
    assert {TOPIC, OTHER} <= {row["topic"] for row in metadata if row["kind"] == "Topic"}
    assert not [row for row in metadata if row["kind"] in ("unreadable", "other")]
    snapshots = broker.log_dir.glob("__cluster_metadata-0/*.checkpoint")
    assert max(int(path.name[:20]) for path in snapshots) > 0
    report = kafka.rebuild(broker.log_dir, tmp_path / "out")
    assert "2 partitions: the topic's, by the metadata log" in report.settings["index_interval_bytes"].source
    for topic in INTERVALS:
        for path in broker.partition(topic).glob("*.index"):
            assert (tmp_path / "out" / path.parent.name / path.name).read_bytes() == path.read_bytes()
        assert (broker.partition(topic) / f"{0:020d}.index").stat().st_size
    proven("a rebuild of a log dir gives each topic its own index.interval.bytes, by the metadata log and its snapshot")
    proven(f"{len(offsets)} commits of a group over time, as listConsumerGroupOffsets; transactions; markers; metadata")


def info(partition: Path) -> tuple[int, list[tuple[int, int]]]:
    seen = kafka_facts("partition", str(partition))["glance"]["transactions"]
    return seen["last_stable_offset"], [(one["producer_id"], one["first_offset"]) for one in seen["producers"]]


def of(broker: Broker, topic: str) -> Iterator[Columns]:
    """Every record of a topic, control records among them."""
    for directory in sorted(broker.log_dir.glob(f"{topic}-*")):
        with kafka.PartitionLog.open(directory) as log:
            for segment in log.segments:
                yield from segment.records()


def rows(parts: Any) -> list[dict[str, Any]]:
    return [dict(zip(part, row, strict=True)) for part in parts for row in zip(*part.values(), strict=True)]


def newest(commits: list[Columns], group: str) -> list[Commit]:
    """The last commit for each partition, where it was not deleted since."""
    last = {(row["topic"], row["partition"]): row for row in rows(commits) if row["group"] == group and row["topic"]}
    return [
        Commit(topic, int(partition), int(row["offset"]), int(row["leader_epoch"]), row["metadata"])
        for (topic, partition), row in sorted(last.items())
        if row["kind"] == "commit"
    ]
