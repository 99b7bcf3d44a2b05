"""A real broker writes; mqindex reads everything back equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mqindex.rocketmq import CommitLog, IndexService, Message, MessageStore, offsets_for_time, scan, verify
from tests.peer.rocketmq.client import Received
from tests.peer.rocketmq.conftest import Written

COMPRESSED = 1


def as_received(message: Message, version: str) -> Received:
    """A message of ours in the shape of the client's, which in 5.x takes away the bit of what it has decompressed."""
    return Received(
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.phy_offset,
        message.size,
        message.sys_flag & (~COMPRESSED if version >= "5" else -1),
        message.flag,
        message.born_timestamp,
        message.store_timestamp,
        message.reconsume_times,
        message.prepared_transaction_offset,
        message.body_crc,
        message.uniq_key or "",
        message.msg_id,
        message.body,
        message.properties,
    )


def keys_of(message: Message) -> list[str]:
    return (message.keys or "").split(" ")


def test_every_message_is_read_as_the_client_reads_it(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    said = written[version].answers
    with CommitLog.open(written[version].store / "commitlog") as log:
        for message in said.messages:
            assert as_received(log.get_message(message.phy_offset), version) == message
        scanned = [int(at) for batch in log.scan(columns=["phy_offset"], check_crc=True) for at in batch["phy_offset"]]
    assert {message.phy_offset for message in said.messages} <= set(scanned)
    for topic in {message.topic for message in said.messages}:
        rows = [
            row
            for batch in scan(written[version].store, topic=topic, columns=["queue_id", "queue_offset", "body"])
            for row in zip(batch["queue_id"].tolist(), batch["queue_offset"].tolist(), batch["body"], strict=True)
        ]
        sent = {(m.queue_id, m.queue_offset, m.body) for m in said.messages if m.topic == topic}
        assert sent <= set(rows) and len(rows) == len(set(rows)), topic
    proven(f"{len(said.messages)} of {len(scanned)} messages consumed, each read by mqindex with every field equal")


def test_every_key_is_found_as_the_broker_finds_it(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    store, said = written[version].store, written[version].answers
    with (
        IndexService.open(store / "index", hash_slot_num=100, index_num=400) as index,
        CommitLog.open(store / "commitlog") as log,
    ):
        for (topic, key), wanted in said.by_key.items():
            offsets = sorted(index.query_offset(topic, key).phy_offsets.tolist())
            messages = [log.get_message(at) for at in offsets]
            assert [m.phy_offset for m in messages if m.topic == topic and key in keys_of(m)] == wanted, key
        for (topic, key), wanted in said.by_unique_key.items():
            offsets = sorted(index.query_offset(topic, key).phy_offsets.tolist())
            messages = [log.get_message(at) for at in offsets]
            assert [m.phy_offset for m in messages if m.topic == topic and m.uniq_key == key] == wanted, key
    proven(f"{len(said.by_key)} keys and {len(said.by_unique_key)} unique keys answered by mqindex as by the broker")


def test_every_queue_is_consumed_as_the_client_consumes_it(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    before = written[version]
    said, boundary = before.answers, None if version < "5" else "lower"
    with open_store(before) as store:
        for (topic, queue_id), wanted in said.queues.items():
            assert [as_received(m, version) for m in consume(store, topic, queue_id)] == wanted
            columns = store.get_messages(topic, queue_id, 0, max_msg_nums=10_000, columns=["phy_offset"]).messages
            assert columns["phy_offset"].tolist() == [message.phy_offset for message in wanted]
        for (topic, queue_id, tag), offsets in said.by_tag.items():
            assert [message.phy_offset for message in consume(store, topic, queue_id, tag)] == offsets
        for (topic, queue_id, when), offset in said.by_time.items():
            queue = store.consume_queue(topic, queue_id)
            assert queue is not None
            assert queue.get_offset_in_queue_by_time(when, store.commit_log, boundary=boundary) == offset
        for when in dict.fromkeys(when for _, _, when in said.by_time):
            found = offsets_for_time(before.store, when, boundary=boundary)
            queues = zip(found["topic"].to_pylist(), found["queue_id"].tolist(), strict=True)
            answers = dict(zip(queues, found["offset"].tolist(), strict=True))
            asked_now = {(topic, number): offset for (topic, number, at), offset in said.by_time.items() if at == when}
            assert {queue: answers[queue] for queue in asked_now} == asked_now
        for offset_id, wanted_message in said.by_offset_id.items():
            viewed = store.view_message(offset_id)
            assert viewed is not None
            assert as_received(viewed, version) == wanted_message
    asked = f"{len(said.queues)} queues, {len(said.by_tag)} tags, {len(said.by_time)} times"
    proven(f"{asked} and {len(said.by_offset_id)} offset ids: MessageStore answers as the client was answered")


def test_an_exact_query_needs_no_client_that_filters(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    said = written[version].answers
    with open_store(written[version]) as store:
        for (topic, key), wanted in said.by_key.items():
            assert [m.phy_offset for m in store.query_message(topic, key, exact=True).messages] == wanted
    proven(f"{len(said.by_key)} exact queries give what the client is left with after it has filtered")


def open_store(before: Written) -> MessageStore:
    log = before.store / "commitlog"
    return MessageStore.open(
        before.store, config=before.broker.conf, commitlog=log, broker_version=before.broker.version
    )


def consume(store: MessageStore, topic: str, queue_id: int, tags: str | None = None) -> Iterator[Message]:
    """A whole queue, request after request."""
    at = 0
    while True:
        got = store.get_message(topic, queue_id, at, tags=tags)
        yield from got.messages
        if got.next_begin_offset >= got.max_offset:
            return
        at = got.next_begin_offset


def test_a_clean_stop_leaves_a_clean_store(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    report = verify(
        written[version].store,
        deep=True,
        config=written[version].broker.conf,
        commitlog=written[version].store / "commitlog",
    )
    assert report.findings == [], report.findings
    assert report.ok
    proven(f"verify --deep finds nothing in {report.messages} messages and {report.entries} index entries")
