"""The writer of logs: the document's example byte for byte, and golden logs written again from their truth."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from tests.reference.commit_log import MESSAGE_V2, Record, scan_log
from tests.reference.rebuild import log_files
from tests.support.golden import STORE_CASES, case
from tests.support.log_writer import LogMessage, LogWriter, frame

EXAMPLE = bytes.fromhex(
    "0000007adaa320a73610a68600000003000000000000000000000007000000000000040000000000"
    "0000018bcfe56800c0a800010000d4310000018bcfe568050a00000200002a9f0000000000000000000000000000000568656c6c6f"
    "06546f7069634100144b455953016b31206b3202544147530154616741"
)


def test_frame_is_the_document_s_example() -> None:
    message = LogMessage(
        "TopicA", keys="k1 k2", tags="TagA", body=b"hello", queue_id=3, queue_offset=7,
        born_timestamp=1700000000000, store_timestamp=1700000000005,
    )  # fmt: skip
    assert frame(message, 1024) == EXAMPLE


@pytest.mark.parametrize("name", [name for name in STORE_CASES if "batch" not in case(name).truth["features"]])
def test_log_written_again_from_its_messages_has_the_broker_s_bytes(name: str, tmp_path: Path) -> None:
    log = case(name).unpack(tmp_path) / "commitlog"
    messages, _, end = scan_log(log_files(log))
    size = case(name).truth["config"]["mappedFileSizeCommitLog"]
    writer = LogWriter(tmp_path / "again", mapped_file_size=size)
    assert writer.write(*map(as_written, messages)) == [message.phy_offset for message in messages]
    assert writer.position == end
    for start, data in log_files(tmp_path / "again"):
        assert data[: end - start] == (log / f"{start:020d}").read_bytes()[: end - start]


def test_batch_that_does_not_fit_moves_as_a_whole(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, mapped_file_size=1024)
    writer.write(LogMessage(body=bytes(600)))
    assert writer.write_batch([LogMessage(body=bytes(100))] * 3)[0] == 1024


def test_imitation_is_a_record_to_whoever_looks_at_its_place(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    outer, first, second = writer.write_imitation(LogMessage(uniq_key="outer"), [LogMessage(uniq_key="inner")] * 2)
    ((_, data),) = log_files(tmp_path)
    assert data[first:].startswith(frame(LogMessage(uniq_key="inner"), first))
    assert data[second:].startswith(frame(LogMessage(uniq_key="inner"), second))
    assert [message.phy_offset for message in scan_log(log_files(tmp_path))[0]] == [outer]


def test_directories_take_files_in_turn(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "b", tmp_path / "a", mapped_file_size=256)
    writer.write(*[LogMessage(body=bytes(100))] * 3)
    assert [path.parent.name for path in map(writer.path, (0, 256, 512))] == ["a", "b", "a"]
    assert len(log_files(tmp_path / "a", tmp_path / "b")) == 3


def test_torn_tail_leaves_the_records_before(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    first, second = writer.write(LogMessage(), LogMessage())
    writer.tear(keep=60)
    writer.create_next_file()
    messages, damage, end = scan_log(log_files(tmp_path))
    assert ([message.phy_offset for message in messages], damage, end) == ([first], [], second)


def as_written(record: Record) -> LogMessage:
    return LogMessage(
        topic=record.topic.decode(), body=record.body, store_timestamp=record.store_timestamp,
        born_timestamp=record.born_timestamp, born_host=host(record.born_host), store_host=host(record.store_host),
        queue_id=record.queue_id, queue_offset=record.queue_offset, flag=record.flag, sys_flag=record.sys_flag,
        reconsume_times=record.reconsume_times, prepared_transaction_offset=record.prepared_transaction_offset,
        properties=record.properties, version=2 if record.magic == MESSAGE_V2 else 1,
    )  # fmt: skip


def host(data: bytes) -> tuple[str, int]:

    return str(ipaddress.ip_address(data[:-4])), int.from_bytes(data[-4:], "big")
