"""Consume queues of real brokers: their units, their answers by time, and their bytes from their own puts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.rocketmq import CommitLog, ConsumeQueue, ConsumeQueueTable, tag_hash
from mqindex.rocketmq.log.log_entries import UNIT
from tests.reference.consume_queue import ConsumeQueue as Twin
from tests.support.golden import KILLED_CASES, STORE_CASES, case
from tests.support.tree import identities

STORES = [*STORE_CASES, *(f"{name}-after" for name in KILLED_CASES)]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[str, Any], Path]:
    """(what the broker said, the store's root)."""
    name = request.param.removesuffix("-after")
    if name != request.param:
        return case(name).truth_after, case(name).unpack_after(tmp_path)
    return case(name).truth, case(name).unpack(tmp_path)


def opened(truth: dict[str, Any], table: ConsumeQueueTable) -> Iterator[tuple[dict[str, Any], ConsumeQueue]]:
    """What the broker said of each queue, and the queue. Queues without a message have no directory."""
    for said in truth["consumeQueues"]:
        queue = table.get(said["topic"], said["queueId"])
        if queue is None:
            assert (said["min"], said["max"], said["units"]) == (0, 0, [])
        else:
            yield said, queue


def tags_code(unit: list[int]) -> int:
    """The third field, or what the extension unit at that address says."""
    return unit[3] if len(unit) > 3 else unit[2]


def test_units_minimum_and_maximum_are_the_brokers(store: tuple[dict[str, Any], Path]) -> None:
    truth, root = store
    before = identities(root)
    with ConsumeQueueTable.open(root / "consumequeue", ext_directory=root / "consumequeue_ext") as table:
        seen = set()
        for said, queue in opened(truth, table):
            seen.add((said["topic"], said["queueId"]))
            assert (queue.min_offset_in_queue, queue.max_offset_in_queue) == (said["min"], said["max"])
            units = queue.units()
            assert units["queue_offset"].tolist() == list(range(said["min"], said["max"]))
            assert units["phy_offset"].tolist() == [unit[0] for unit in said["units"]]
            assert units["size"].tolist() == [unit[1] for unit in said["units"]]
            assert units["tags_code"].tolist() == [tags_code(unit) for unit in said["units"]]
            assert queue.max_phy_offset == (sum(said["units"][-1][:2]) if said["units"] else -1)
        assert set(table.queues()) == seen and seen
        assert table.skipped == []
    assert identities(root) == before


def test_offsets_by_time_are_the_brokers(store: tuple[dict[str, Any], Path]) -> None:
    truth, root = store
    asked = 0
    with ConsumeQueueTable.open(root / "consumequeue") as table, CommitLog.open(root / "commitlog") as log:
        for said, queue in opened(truth, table):
            for name, ms in said.get("fileModifiedMs", {}).items():  # 4.x chooses the file by it
                os.utime(Path(queue.directory, name), ns=(ms * 1_000_000, ms * 1_000_000))
            queue.correct_min_offset(log.min_phy_offset)
            for question in said["offsetByTime"]:
                boundary = None if question["boundary"] == "NONE" else question["boundary"].lower()
                got = queue.get_offset_in_queue_by_time(question["ts"], log, boundary=boundary)
                assert got == question["offset"], (said["topic"], said["queueId"], question)
                asked += 1
    assert asked >= 12


@pytest.mark.parametrize("many", [True, False], ids=["in bulk", "one by one"])
def test_the_brokers_puts_give_the_brokers_bytes(
    store: tuple[dict[str, Any], Path], tmp_path: Path, many: bool
) -> None:
    truth, root = store
    out = tmp_path / "out"
    size = truth["config"]["mappedFileSizeConsumeQueue"]
    with ConsumeQueueTable.open(out, file_size=size, writable=True) as table:
        for said in truth["consumeQueues"]:
            rows = [(unit[0], said["min"] + n, unit[2], 0, unit[1], 0) for n, unit in enumerate(said["units"])]
            if not rows:
                continue
            queue = table.find_or_create(said["topic"], said["queueId"])
            if many:
                assert queue._put_units(np.array(rows, UNIT)) == (len(rows), 0, 0)
                assert queue._put_units(np.array(rows, UNIT)) == (0, len(rows), 0)
            else:
                assert all(queue.put_message_position_info(row[0], row[4], row[2], row[1]) for row in rows)
                assert not any(queue.put_message_position_info(row[0], row[4], row[2], row[1]) for row in rows[-3:])
        table.flush()
    assert queue_bytes(out) == queue_bytes(root / "consumequeue")


def test_the_twin_gives_the_brokers_bytes(store: tuple[dict[str, Any], Path]) -> None:
    truth, root = store
    for said in truth["consumeQueues"]:
        twin = Twin(truth["config"]["mappedFileSizeConsumeQueue"])
        for n, unit in enumerate(said["units"]):
            twin.put(unit[0], unit[1], unit[2], said["min"] + n)
        directory = root / "consumequeue" / said["topic"] / str(said["queueId"])
        found = {path.name: path.read_bytes() for path in directory.iterdir()} if said["units"] else {}
        assert {f"{start:020d}": bytes(data) for start, data in twin.files.items()} == found


def test_a_tag_selects_what_the_broker_would_send(store: tuple[dict[str, Any], Path]) -> None:
    truth, root = store
    with ConsumeQueueTable.open(root / "consumequeue", ext_directory=root / "consumequeue_ext") as table:
        for said, queue in opened(truth, table):
            codes = [tags_code(unit) for unit in said["units"]]
            for hashes in ([code] for code in {code & 0xFFFFFFFF for code in codes}):
                expected = [n for n, code in enumerate(codes) if code & 0xFFFFFFFF == hashes[0]]
                assert queue.select(hashes).tolist() == expected
            assert queue.select([]).tolist() == queue.select([12345]).tolist() == []


def test_a_tags_hash_is_the_one_in_its_unit(store: tuple[dict[str, Any], Path]) -> None:
    truth, root = store
    with ConsumeQueueTable.open(root / "consumequeue", ext_directory=root / "consumequeue_ext") as table:
        found = {name: dict(zip(u["phy_offset"].tolist(), u["tags_code"].tolist(), strict=True))
                 for name, u in ((name, table[name].units()) for name in table.queues())}  # fmt: skip
    compared = 0
    for message in truth["messages"]:
        tags = (message.get("properties") or {}).get("TAGS")
        code = found.get((message["topic"], message["queueId"]), {}).get(message["phyOffset"])
        if tags is not None and code is not None and message["topic"] != "SCHEDULE_TOPIC_XXXX":
            assert tag_hash(tags) == code
            compared += 1
    assert compared or "properties" not in truth["messages"][0]


def queue_bytes(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
