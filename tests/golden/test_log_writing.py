"""Appending the golden messages again gives the brokers' logs: every byte, blanks included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.rocketmq import CommitLog, NewMessage
from mqindex.rocketmq.messages.log_columns import COLUMNS
from tests.support.golden import STORE_CASES, StoreCase

GoldenStore = Callable[[str], tuple[StoreCase, Path]]


@pytest.mark.parametrize("name", STORE_CASES)
def test_columns_of_a_scan_give_the_broker_s_files(name: str, golden_store: GoldenStore, tmp_path: Path) -> None:
    chosen, root = golden_store(name)
    columns = scanned(root)
    with again(chosen, tmp_path) as log:
        offsets = []
        for start, stop, whole in requests(columns, chosen.truth["blanks"]):
            rows = {name: columns[name][start:stop] for name in columns}
            offsets.extend(log.append_messages(rows, whole=whole).phy_offsets.tolist())
    assert offsets == columns["phy_offset"]
    check_files(chosen, root, tmp_path)


@pytest.mark.parametrize("name", [name for name in STORE_CASES if name != "medium-493"])  # its truth is short
def test_messages_appended_one_by_one_give_the_broker_s_files(
    name: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store(name)
    columns = scanned(root)
    said, moved = chosen.truth["messages"], 0
    with again(chosen, tmp_path) as log:
        for start, stop, whole in requests(columns, chosen.truth["blanks"]):
            messages = [new_message(said[i], columns, i, columns["properties"][i].encode()) for i in range(start, stop)]
            queue_offsets = [said[i]["queueOffset"] for i in range(start, stop)]
            if whole:
                moved += 1
                log.append_messages(messages, queue_offset=queue_offsets, whole=True)
                continue
            for i, message, queue_offset in zip(range(start, stop), messages, queue_offsets, strict=True):
                result = log.append_message(message, queue_offset=queue_offset)
                assert (result.phy_offset, result.size, result.msg_id) == (
                    said[i]["phyOffset"], said[i]["size"], said[i]["msgId"],
                )  # fmt: skip
    assert moved <= len(chosen.truth["blanks"])
    check_files(chosen, root, tmp_path)


@pytest.mark.parametrize("name", ["basic-493", "basic-550", "crc-v2-lmq-550", "ipv6-batch-ext-493", "rolls-493"])
def test_properties_by_name_are_put_together_as_the_broker_does(
    name: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    """Of messages that were sent alone: a batch's block is the producer's and the batch's, one behind the other."""
    chosen, root = golden_store(name)
    columns = scanned(root)
    said, by_name = chosen.truth["messages"], 0
    with again(chosen, tmp_path) as log:
        for i, message in enumerate(said):
            block = columns["properties"][i]
            pairs = [item.split("\x01", 1) for item in block.split("\x02") if "\x01" in item]
            if len(pairs) < 2 or message["properties"] != dict(pairs) or is_of_batch(block, chosen):
                continue
            new = new_message(message, columns, i, dict(pairs))
            result = log.append_message(new, queue_offset=message["queueOffset"])
            (stored,) = log.scan(result.phy_offset, columns=["properties"])
            without_crc = len(block) - 20 if "__CRC32#" in message["properties"] else len(block)
            assert stored["properties"][0][:without_crc] == block[:without_crc]
            assert len(stored["properties"][0]) == len(block)
            by_name += 1
    assert by_name > 100


def scanned(root: Path) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    with CommitLog.open(root / "commitlog") as log:
        for batch in log.scan(columns=COLUMNS):
            for name in columns:
                columns[name] += (
                    batch[name].tolist() if isinstance(batch[name], np.ndarray) else batch[name].to_pylist()
                )
    return columns


def again(chosen: StoreCase, tmp_path: Path) -> CommitLog:
    return CommitLog.open(
        tmp_path / "again" / "commitlog", writable=True, config=chosen.truth["config"], broker_version=chosen.version
    )


def requests(columns: dict[str, list[Any]], blanks: list[list[int]]) -> Iterator[tuple[int, int, bool]]:
    """Rows [start, stop), and whether they were one request: a batch that moved though its first message would fit."""
    offsets, sizes = np.array(columns["phy_offset"]), np.array(columns["size"])
    start = 0
    for at, length in blanks:
        first = int(np.searchsorted(offsets, at))
        if first < len(sizes) and sizes[first] + 8 <= length:
            yield start, first, False
            start = first + int(np.searchsorted(np.cumsum(sizes[first:]), length - 8, side="right")) + 1
            yield first, start, True
    yield start, len(sizes), False


def new_message(said: dict[str, Any], columns: dict[str, list[Any]], i: int, properties: Any) -> NewMessage:
    """As the broker tells it, but for the hosts' ports, which it does not tell."""
    return NewMessage(
        said["topic"], columns["body"][i], queue_id=said["queueId"], properties=properties, flag=said["flag"],
        sys_flag=said["sysFlag"], born_timestamp=said["bornTimestamp"], born_host=columns["born_host"][i],
        store_timestamp=said["storeTimestamp"], store_host=columns["store_host"][i],
        reconsume_times=said["reconsumeTimes"], prepared_transaction_offset=said["preparedTransactionOffset"],
    )  # fmt: skip


def is_of_batch(block: str, chosen: StoreCase) -> bool:
    """Its block came from the producer as it was."""
    return "batch" in chosen.truth["features"] and "WAIT\x01true" not in block


def check_files(chosen: StoreCase, root: Path, tmp_path: Path) -> None:
    end = chosen.truth["maxPhyOffset"]
    paths = sorted(path for path in (root / "commitlog").iterdir() if int(path.name) < end)
    written = sorted((tmp_path / "again" / "commitlog").iterdir())
    assert [path.name for path in written] == [path.name for path in paths]
    for path, ours in zip(paths, written, strict=True):
        assert ours.read_bytes()[: end - int(path.name)] == path.read_bytes()[: end - int(path.name)], path.name
        assert ours.stat().st_size == path.stat().st_size
