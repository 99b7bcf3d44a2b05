"""`MessageStore` on every golden store: what it reads, and what it answers to queries, is what the broker said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from mqindex.columns.columns import BinaryColumn
from mqindex.rocketmq import CommitLog, Message, MessageStore, NewMessage, verify
from mqindex.rocketmq.messages.log_columns import COLUMNS
from tests.support.golden import KILLED_CASES, STORE_CASES, StoreCase, case
from tests.support.tree import index_bytes

pytestmark = pytest.mark.filterwarnings("ignore:begin .* is after end:UserWarning")  # the broker was asked so too

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)
NAMES = {
    "topic": "topic",
    "queueId": "queue_id",
    "queueOffset": "queue_offset",
    "phyOffset": "phy_offset",
    "size": "size",
    "storeTimestamp": "store_timestamp",
    "bornTimestamp": "born_timestamp",
    "sysFlag": "sys_flag",
    "flag": "flag",
    "bodyCRC": "body_crc",
    "reconsumeTimes": "reconsume_times",
    "preparedTransactionOffset": "prepared_transaction_offset",
    "uniqKey": "uniq_key",
    "msgId": "msg_id",
}


@each_store
def test_every_message_is_seen_by_its_place_and_by_its_id(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    with MessageStore.open(root) as opened:
        for said in chosen.truth["messages"]:
            message = opened.look_message_by_offset(said["phyOffset"])
            assert message is not None
            check_fields(message, said)
            assert opened.view_message(message.msg_id.lower()) == message
            assert opened.look_message_by_offset(said["phyOffset"] + 1) is None
        assert opened.look_message_by_offset(chosen.truth["maxPhyOffset"]) is None
        assert opened.look_message_by_offset(-1) is None


@each_store
@pytest.mark.parametrize("config", [False, True], ids=["inferred", "config given"])
def test_queries_give_the_messages_that_the_broker_gave(name: str, config: bool, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    with MessageStore.open(root, config=chosen.truth["config"] if config else None) as opened:
        check_queries(opened, chosen.truth)


@pytest.mark.parametrize("name", KILLED_CASES)
def test_queries_are_answered_after_a_crash_too(name: str, tmp_path: Path) -> None:
    with MessageStore.open(case(name).unpack_after(tmp_path)) as opened:
        check_queries(opened, case(name).truth_after)


@each_store
def test_exact_queries_keep_only_messages_that_have_the_key(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    with MessageStore.open(root) as opened:
        for asked in chosen.truth["queryMessage"]:
            window = {"begin": asked["begin"], "end": asked["end"]}
            everything = opened.query_message(asked["topic"], asked["key"], max_num=10**6, **window).messages
            mine = [message for message in dict.fromkeys(map(place, everything)) if has_key(message, asked, chosen)]
            exact = opened.query_message(
                asked["topic"], asked["key"], max_num=asked["maxNum"], exact=True, **window
            ).messages
            assert list(map(place, exact)) == mine[max(len(mine) - asked["maxNum"], 0) :]


@each_store
def test_whole_queues_are_read_message_by_message_and_in_bulk(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    with MessageStore.open(root) as opened:
        assert opened.queues == sorted((q["topic"], q["queueId"]) for q in simple_queues(chosen))
        for said in simple_queues(chosen):
            queue = said["topic"], said["queueId"]
            places = [unit[0] for unit in said["units"]]
            answers = list(pulls(opened, *queue, said["min"]))
            assert [m.phy_offset for answer in answers for m in answer.messages] == places
            assert {(answer.min_offset, answer.max_offset) for answer in answers} == {(said["min"], said["max"])}
            bulk = opened.get_messages(*queue, said["min"], max_msg_nums=10**6, columns=list(COLUMNS))
            assert (bulk.status, bulk.next_begin_offset) == ("FOUND" if places else "NO_MESSAGE_IN_QUEUE", said["max"])
            assert bulk.messages["phy_offset"].tolist() == places
            check_columns(bulk.messages, [m for answer in answers for m in answer.messages])


@each_store
def test_a_subscription_gets_the_messages_with_its_tags(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    # units of delayed messages hold the time of delivery in place of a hash, in further queues too
    delayed = {m["phyOffset"] for m in chosen.truth["messages"] if m["topic"] == "SCHEDULE_TOPIC_XXXX"}
    with MessageStore.open(root) as opened:
        for said in simple_queues(chosen):
            queue = said["topic"], said["queueId"]
            places = [unit[0] for unit in said["units"] if unit[0] not in delayed]
            messages = list(map(opened.look_message_by_offset, places))
            every = {m.tags for m in messages if m is not None and m.tags is not None and "||" not in m.tags}
            for tags in [{tag} for tag in every] + [every]:
                expression = " || ".join(sorted(tags)) or "none"
                wanted = [m.phy_offset for m in messages if m is not None and m.tags in tags]
                single = [m.phy_offset for a in pulls(opened, *queue, said["min"], expression) for m in a.messages]
                bulk = opened.get_messages(*queue, said["min"], max_msg_nums=10**6, tags=expression)
                assert single == bulk.messages["phy_offset"].tolist() == wanted


@each_store
def test_the_checkpoint_is_the_file_s(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    with MessageStore.open(root) as opened:
        found = opened.checkpoint
        assert found is not None
        assert found.index_msg_timestamp <= max(m["storeTimestamp"] for m in chosen.truth["messages"])
        assert opened.consumer_offsets == {}


def check_queries(opened: MessageStore, truth: dict[str, Any]) -> None:
    cap = truth["config"]["maxMsgsNumBatch"]
    for asked in truth["queryMessage"]:
        answer = opened.query_message(
            asked["topic"], asked["key"], max_num=min(asked["maxNum"], cap), begin=asked["begin"], end=asked["end"]
        )
        assert [message.phy_offset for message in answer.messages] == asked["phy"]
        last = answer.index_last_update_timestamp, answer.index_last_update_phy_offset
        assert last == (asked["lastTs"], asked["lastPhy"])


def check_fields(message: Message, said: dict[str, Any]) -> None:
    names = NAMES.keys() & said.keys()
    assert len(names) >= 9
    assert {name: getattr(message, NAMES[name]) for name in names} == {name: said[name] for name in names}
    assert (message.keys or "") == (said["keys"] or "")
    assert len(message.stored_body) == said["bodyLen"]
    assert message.properties == (said.get("properties", message.properties) or {})
    for host, mine in ((said.get("bornHost"), message.born_host), (said.get("storeHost"), message.store_host)):
        assert host is None or ip_address(mine.rpartition(":")[0].strip("[]")) == ip_address(host)


def check_columns(columns: Any, messages: list[Message]) -> None:
    for name in COLUMNS:
        if name == "body":
            assert columns["body"].to_pylist() == [message.stored_body for message in messages]
        elif name != "properties":
            values = columns[name]
            mine = values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()
            assert mine == [getattr(message, name) for message in messages], name


def pulls(opened: MessageStore, topic: str, queue_id: int, offset: int, tags: str | None = None) -> Any:
    """What a consumer gets that goes on where it was told to, until the queue ends."""
    while True:
        answer = opened.get_message(topic, queue_id, offset, tags=tags)
        assert offset < answer.next_begin_offset or answer.status in ("OFFSET_OVERFLOW_ONE", "NO_MESSAGE_IN_QUEUE")
        yield answer
        if answer.status in ("OFFSET_OVERFLOW_ONE", "NO_MESSAGE_IN_QUEUE"):
            return
        offset = answer.next_begin_offset


def simple_queues(chosen: StoreCase) -> list[dict[str, Any]]:
    return [said for said in chosen.truth["consumeQueues"] if said["type"] == "SimpleCQ" and said["units"]]


def place(message: Message) -> int:
    return message.phy_offset


def has_key(phy_offset: int, asked: dict[str, Any], chosen: StoreCase) -> bool:
    said = next(said for said in chosen.truth["messages"] if said["phyOffset"] == phy_offset)
    mine = [said["uniqKey"], *(said["keys"] or "").split(" ")]
    if chosen.truth["tagsIndexed"] and said["properties"]:
        mine.append("T#" + said["properties"].get("TAGS", ""))
    return said["topic"] == asked["topic"] and asked["key"] in mine


# Delayed messages were changed when they came, with their properties in another order; extension files are not written.
REPEATABLE = sorted(set(STORE_CASES) - {"tx-delay-lmq-493", "crc-v2-lmq-550", "ipv6-batch-ext-493"})


@pytest.mark.parametrize("name", REPEATABLE)
def test_messages_put_again_give_the_broker_s_files_byte_for_byte(
    name: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store(name)
    again = tmp_path / "again"
    with (
        CommitLog.open(root / "commitlog") as log,
        MessageStore.open(again, config=chosen.truth["config"], broker_version=chosen.version, writable=True) as made,
    ):
        for messages, whole in requests(log, chosen):
            made.put_messages(messages, whole=whole)
    assert written(again) == written(root)


def requests(log: CommitLog, chosen: StoreCase) -> Iterator[tuple[list[NewMessage], bool]]:
    """The messages file by file; where a batch had moved to the next file, as much of it as makes it move again."""
    blanks = (blank[1] for blank in chosen.truth["blanks"])
    left = 0
    for file in log.files:
        batches = log.scan(file.start, file.stop, columns=list(COLUMNS))
        rows = [(message, size) for batch in batches for message, size in new_messages(batch)]
        total = count = 0
        while left and rows and total + 8 <= left:
            total += rows[count][1]
            count += 1
        yield [message for message, _ in rows[:count]], True
        yield [message for message, _ in rows[count:]], False
        left = next(blanks, 0)


def new_messages(batch: Any) -> Iterator[tuple[NewMessage, int]]:
    properties = batch["properties"]
    blocks = BinaryColumn(properties.data, properties.offsets).to_pylist()
    names = [
        "topic", "queue_id", "flag", "sys_flag", "born_timestamp", "born_host", "store_timestamp", "store_host",
        "reconsume_times", "prepared_transaction_offset", "body",
    ]  # fmt: skip
    columns = [batch[name].to_pylist() if hasattr(batch[name], "to_pylist") else batch[name].tolist() for name in names]
    for values, block, size in zip(zip(*columns, strict=True), blocks, batch["size"].tolist(), strict=True):
        yield NewMessage(properties=block, **dict(zip(names, values, strict=True))), size


def written(root: Path) -> tuple[dict[str, bytes], list[bytes]]:
    """Log and queues by name, but for files that were made in advance; index files in their order."""
    parts = [path for part in ("commitlog", "consumequeue") for path in (root / part).rglob("*") if path.is_file()]
    contents = {str(path.relative_to(root)): path.read_bytes() for path in parts}
    return {name: data for name, data in contents.items() if any(data)}, index_bytes(root)


@each_store
def test_a_broker_s_store_is_written_on(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    config = chosen.truth["config"]
    lengths = {(said["topic"], said["queueId"]): said["max"] for said in simple_queues(chosen)}
    for again in range(2):
        with MessageStore.open(root, config=config, broker_version=chosen.version, writable=True) as opened:
            for (topic, queue_id), length in lengths.items():
                if not topic.startswith("%LMQ%"):
                    key = f"mine-{queue_id}"
                    put = opened.put_message(NewMessage(topic, b"more", queue_id=queue_id, keys=key, tags="Mine"))
                    assert put.queue_offset == length + again
                    assert len(opened.query_message(topic, key, exact=True).messages) == again + 1
            check_queries_of_old(opened, chosen.truth)
    assert not (root / "abort").exists()
    report = verify(root, config=config, broker_version=chosen.version, deep=True)
    assert [finding for finding in report.findings if finding.severity == "error"] == []


def check_queries_of_old(opened: MessageStore, truth: dict[str, Any]) -> None:
    """Every message that the broker's index led to is still found."""
    for asked in truth["queryMessage"]:
        answer = opened.query_message(
            asked["topic"], asked["key"], max_num=10**6, begin=asked["begin"], end=asked["end"]
        )
        assert set(asked["phy"]) <= set(map(place, answer.messages))
