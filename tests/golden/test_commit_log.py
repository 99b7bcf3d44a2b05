"""`CommitLog` against what the brokers dispatched."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import CommitLog
from tests.reference.commit_log import scan_log
from tests.reference.rebuild import log_files
from tests.support.golden import STORE_CASES, StoreCase

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)
COLUMNS = {  # of a scan: name in the truth
    "topic": "topic",
    "queue_id": "queueId",
    "queue_offset": "queueOffset",
    "phy_offset": "phyOffset",
    "size": "size",
    "store_timestamp": "storeTimestamp",
    "born_timestamp": "bornTimestamp",
    "sys_flag": "sysFlag",
    "keys": "keys",
    "uniq_key": "uniqKey",
}
ATTRIBUTES = {
    **COLUMNS,
    "flag": "flag",
    "body_crc": "bodyCRC",
    "reconsume_times": "reconsumeTimes",
    "prepared_transaction_offset": "preparedTransactionOffset",
    "msg_id": "msgId",
}
ABSENT = {"keys", "uniqKey"}


def told(said: dict[str, Any], name: str) -> Any:
    return (said[name] or None) if name in ABSENT else said[name]


@each_store
@pytest.mark.parametrize("check_crc", [False, True])
def test_scan_gives_the_messages_that_the_broker_dispatched(
    name: str, check_crc: bool, golden_store: GoldenStore
) -> None:
    chosen, root = golden_store(name)
    messages = chosen.truth["messages"]
    with CommitLog.open(root / "commitlog") as log:
        columns = gathered(log.scan(check_crc=check_crc))
        assert (log.min_phy_offset, log.max_phy_offset) == (
            chosen.truth["minPhyOffset"],
            chosen.truth["maxPhyOffset"],
        )
    for column, key in COLUMNS.items():
        assert columns[column] == [told(said, key) for said in messages], column
    if "properties" in messages[0]:
        assert columns["tags"] == [(said["properties"] or {}).get("TAGS") for said in messages]


@each_store
def test_scan_gives_only_the_columns_that_were_asked_for(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    with CommitLog.open(root / "commitlog") as log:
        columns = gathered(log.scan(columns=["phy_offset", "topic"]))
    assert set(columns) == {"phy_offset", "topic"}
    assert columns["topic"] == [said["topic"] for said in chosen.truth["messages"]]


@each_store
def test_scan_of_a_range_gives_the_messages_that_begin_in_it(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    offsets = [said["phyOffset"] for said in chosen.truth["messages"]]
    start, stop = offsets[len(offsets) // 3], offsets[len(offsets) // 2] + 1
    with CommitLog.open(root / "commitlog") as log:
        found = gathered(log.scan(start, stop, columns=["phy_offset"]))["phy_offset"]
    assert found == [offset for offset in offsets if start <= offset < stop]


@each_store
def test_message_has_what_the_broker_said_of_it(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    records = {record.phy_offset: record for record in scan_log(log_files(root / "commitlog"))[0]}
    with CommitLog.open(root / "commitlog") as log:
        for said in chosen.truth["messages"]:
            message = log.get_message(said["phyOffset"])
            for attribute, key in ATTRIBUTES.items():
                if key in said:
                    assert getattr(message, attribute) == told(said, key), attribute
            if "properties" in said:
                assert message.properties == (said["properties"] or {})
            stored = records[said["phyOffset"]].body
            assert message.body == (zlib.decompress(stored) if said["sysFlag"] & 1 else stored)


@each_store
def test_message_with_its_size_given_is_the_same(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    with CommitLog.open(root / "commitlog") as log:
        for said in chosen.truth["messages"][:50]:
            assert log.get_message(said["phyOffset"], said["size"]) == log.get_message(said["phyOffset"])


def gathered(batches: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for batch in batches:
        for name, values in batch.items():
            columns.setdefault(name, []).extend(values.to_pylist() if hasattr(values, "to_pylist") else values.tolist())
    return columns
