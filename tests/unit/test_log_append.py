"""Appending to a commit log: what a message becomes, what is refused, and who may write."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex._native.group_commit import GroupCommit, allocate
from mqindex.columns.columns import BinaryColumn, StringColumn
from mqindex.errors import (
    CapacityError,
    ClosedFileError,
    FileStateError,
    FormatError,
    ReadOnlyFileError,
    StoreInUseError,
)
from mqindex.rocketmq import AppendMessageResult, CommitLog, NewMessage
from tests.reference.commit_log import MESSAGE_V2, Record, scan_log
from tests.reference.rebuild import log_files
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter, frame

HOSTS = {"born_host": "192.168.0.1:54321", "store_host": "10.0.0.2:10911"}
TIMES = {"born_timestamp": FIRST_TIME - 5, "store_timestamp": FIRST_TIME}


def open_log(directory: Path, **options: Any) -> CommitLog:
    return CommitLog.open(directory, **{"mapped_file_size": 4096, "writable": True, **options})


def stored(directory: Path) -> list[Record]:
    records, damage, _ = scan_log(log_files(directory))
    assert damage == []
    return records


def test_result_names_the_place_and_the_message_is_read_back(tmp_path: Path) -> None:
    message = NewMessage("TopicA", b"hello", queue_id=3, keys="k1 k2", tags="TagA", **HOSTS, **TIMES)
    with open_log(tmp_path) as log:
        log.append_message(NewMessage("T"), queue_offset=0)
        result = log.append_message(message, queue_offset=7)
        at = log.get_message(result.phy_offset)
    expected = LogMessage("TopicA", keys="k1 k2", tags="TagA", body=b"hello", queue_id=3, queue_offset=7)
    assert (tmp_path / f"{0:020d}").read_bytes()[92 : 92 + 122] == frame(expected, 92)
    assert result == AppendMessageResult(92, 122, "0A00000200002A9F000000000000005C", FIRST_TIME, 7, "PUT_OK")
    assert (at.msg_id, at.body, at.keys, at.queue_offset) == (result.msg_id, b"hello", "k1 k2", 7)


def test_store_host_and_times_are_the_store_s_own_where_not_given(tmp_path: Path) -> None:
    config = {"brokerIP1": "2001:db8::1", "listenPort": 10912}
    with open_log(tmp_path, config=config) as log:
        result = log.append_message(NewMessage("T", b"x"), queue_offset=0)
        many = log.append_messages([NewMessage("T", b"x")] * 2, queue_offset=[1, 2])
        first, second = log.get_message(result.phy_offset), log.get_message(int(many.phy_offsets[1]))
    assert first.store_host == first.born_host == second.store_host == "[2001:db8:0:0:0:0:0:1]:10912"
    assert result.msg_id == first.msg_id == "20010DB800000000000000000000000100002AA0" + 16 * "0"
    assert first.sys_flag == second.sys_flag == 0x30
    assert abs(first.store_timestamp - second.store_timestamp) < 60_000


@pytest.mark.parametrize(
    ("version", "separator"), [("4.9.0", True), ("4.9.1", False), ("5.1.4", False), ("5.2.0", True)]
)
def test_block_ends_as_the_version_ends_it(version: str, separator: bool, tmp_path: Path) -> None:
    with open_log(tmp_path, broker_version=version) as log:
        log.append_message(
            NewMessage("T", properties={"a": "1", "gone": None, "__RMQ.TRANSIENT.x": "y"}), queue_offset=0
        )
        log.append_message(NewMessage("T", properties={"a": "1"}, tags="t"), queue_offset=0)
        log.append_message(NewMessage("T"), queue_offset=0)
        log.append_messages({"topic": "T", "queue_offset": [3], "tags": ["t"], "properties": [{"a": "1"}]})
    end = b"\2" * separator
    assert [record.properties for record in stored(tmp_path)] == [
        b"a\x011" + end, b"a\x011\2TAGS\1t" + end, b"", b"a\x011\2TAGS\1t" + end,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (b"a\0011\2__CRC32#\x011234567890\2", b"a\0011\2"),
        (b"__CRC32#\x011234567890\2", b""),
        (b"a\0011\2__CRC32#\x011234567890x", b"a\0011\2__CRC32#\x011234567890x\2"),
        (b"a\0011\2my__CRC32#\x011234567890\2", b"a\0011\2my__CRC32#\x011234567890\2"),
    ],
)
def test_only_a_whole_checksum_of_before_gives_way_to_the_new_one(block: bytes, kept: bytes, tmp_path: Path) -> None:
    with open_log(tmp_path, broker_version="5.5.0", config={"enabledAppendPropCRC": "true"}) as log:
        log.append_messages({"topic": "T", "queue_offset": [0], "properties": [block]})
    (record,) = stored(tmp_path)
    assert record.properties[:-20] == kept and record.properties[-20:-11] == b"__CRC32#\x01"


def test_long_topic_makes_a_record_of_version_2_where_brokers_read_it(tmp_path: Path) -> None:
    with open_log(tmp_path, broker_version="5.1.0") as log:
        log.append_message(NewMessage("t" * 127), queue_offset=0)
        log.append_message(NewMessage("t" * 128), queue_offset=0)
    assert [record.magic == MESSAGE_V2 for record in stored(tmp_path)] == [False, True]
    for options in ({}, {"broker_version": "5.5.0", "config": {"autoMessageVersionOnTopicLen": "false"}}):
        with (
            open_log(tmp_path, **options) as log,
            pytest.raises(CapacityError, match=r"topic.*127 bytes or less, got 128"),
        ):
            log.append_message(NewMessage("t" * 128), queue_offset=0)


@pytest.mark.parametrize(
    ("version", "body", "refused"),
    [
        ("4.9.3", 4006, False),
        ("4.9.3", 4007, True),
        ("4.9.4", 4096, False),
        ("5.5.0", 4096, False),
        ("5.5.0", 4097, True),
    ],
)
def test_largest_message_is_the_broker_s(version: str, body: int, refused: bool, tmp_path: Path) -> None:
    options = {"mapped_file_size": 1 << 16, "broker_version": version, "config": {"maxMessageSize": 4098}}
    options["config"] = {"maxMessageSize": 4098 if version == "4.9.3" else 4096}
    with open_log(tmp_path, **options) as log:
        if refused:
            with pytest.raises(CapacityError, match="larger than a broker takes"):
                log.append_message(NewMessage("T", bytes(body)), queue_offset=0)
        else:
            log.append_message(NewMessage("T", bytes(body)), queue_offset=0)
    assert len(stored(tmp_path)) == (not refused)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"topic": ""}, ValueError, "topic"),
        ({"properties": {"": "x"}}, ValueError, "properties"),
        ({"properties": {"a": "x\x02y"}}, ValueError, "properties"),
        ({"tags": "a\x02b"}, ValueError, "tags"),
        ({"properties": {"TAGS": "a"}, "tags": "b"}, ValueError, "tags"),
        ({"properties": {"a": "x" * 32766}}, CapacityError, "properties.*32767"),
        ({"queue_id": 2**31}, ValueError, "queue_id"),
        ({"born_host": "nowhere"}, ValueError, "born_host.*nowhere"),
        ({"born_host": "[::1:10911"}, ValueError, "born_host.*::1"),
        ({"store_host": "1.2.3.4:99999999999"}, ValueError, "_host.*99999999999"),
        ({"body": bytes(5000)}, CapacityError, "fit a file"),
    ],
)
def test_what_no_broker_takes_is_refused_and_nothing_written(
    change: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    good = {"topic": "T", "body": b"x", "tags": None}
    with open_log(tmp_path, broker_version="5.5.0") as log:
        with pytest.raises(error, match=words):
            log.append_message(NewMessage(**{**good, **change}), queue_offset=0)
        with pytest.raises(error, match=words):
            log.append_messages([NewMessage(**good), NewMessage(**{**good, **change})], queue_offset=[0, 1])
        assert log.max_phy_offset == 0
    assert stored(tmp_path) == []


def test_batch_of_one_request_moves_as_a_whole(tmp_path: Path) -> None:
    messages = [NewMessage("T", bytes(1000))] * 3
    with open_log(tmp_path) as log:
        log.append_message(NewMessage("T", bytes(1500)), queue_offset=0)
        assert log.append_messages(messages, queue_offset=[1, 2, 3], whole=True).phy_offsets[0] == 4096
        with pytest.raises(CapacityError, match="fit a file"):
            log.append_messages(messages * 2, queue_offset=range(6), whole=True)
    assert [record.phy_offset // 4096 for record in stored(tmp_path)] == [0, 1, 1, 1]


def test_prepared_and_rolled_back_messages_have_no_place_in_a_queue(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append_messages({"topic": "T", "queue_offset": [5] * 4, "sys_flag": [0, 4, 8, 12]})
    assert [record.queue_offset for record in stored(tmp_path)] == [5, 0, 5, 0]


def columns_of_every_kind() -> dict[str, dict[str, Any]]:
    pa, pd, pl = pytest.importorskip("pyarrow"), pytest.importorskip("pandas"), pytest.importorskip("polars")
    plain: dict[str, Any] = {
        "topic": ["TopicA", "TopicB", "TopicA"], "body": [b"one", None, b"three"], "queue_id": [1, 2, 3],
        "queue_offset": [10, 11, 12], "tags": [None, "é", "t"], "keys": ["a b", None, "消息"],
    }  # fmt: skip
    text, ends = np.frombuffer("a b消息".encode(), np.uint8), np.array([0, 3, 3, 9])
    ours = {**plain, "keys": StringColumn(text, ends, np.array([True, False, True]))}
    ours["body"] = BinaryColumn(np.frombuffer(b"onethree", np.uint8), np.array([0, 3, 3, 8]))
    table = pa.table(plain)
    odd = {"topic": pa.array(plain["topic"]).dictionary_encode(), "tags": pa.array(plain["tags"], pa.large_string())}
    odd |= {"keys": pa.array(plain["keys"], pa.string_view()), "queue_id": pa.array([1, 2, 3], pa.int8())}
    chunked = pa.chunked_array([["TopicA"], ["TopicB", "TopicA"]])
    return {
        "lists": plain, "tuples": {name: tuple(column) for name, column in plain.items()}, "columns": ours,
        "objects": {name: np.array(column, object) if name not in ("queue_id", "queue_offset") else np.array(column)
                    for name, column in plain.items()},
        "table": table, "chunks": pa.concat_tables([table[:1], table[1:]]), "batch": table.to_batches()[0],
        "sliced": pa.concat_tables([table, table]).combine_chunks().to_batches()[0].slice(3),
        "odd": {**plain, **odd}, "chunked": {**plain, "topic": chunked},
        "pandas": pd.DataFrame(plain), "polars": pl.DataFrame(plain),
    }  # fmt: skip


def test_columns_of_every_origin_give_the_same_frames(tmp_path: Path) -> None:
    expected = None
    for kind, messages in columns_of_every_kind().items():
        with open_log(tmp_path / kind) as log:
            result = log.append_messages(messages)
            end = log.max_phy_offset
        facts = [
            (record.topic, record.body, record.queue_id, record.queue_offset, record.properties)
            for record in stored(tmp_path / kind)
        ]
        if expected is None:
            expected = facts
        assert facts == expected, kind
        assert int(result.sizes.sum()) == end
    assert expected is not None
    assert expected[1] == (b"TopicB", b"", 2, 11, "TAGS\1é".encode())


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"topic": None}, ValueError, "a column topic"),
        ({"queue_offset": None}, ValueError, "a column queue_offset"),
        ({"color": [1, 2]}, ValueError, "color"),
        ({"body": [b"x"]}, ValueError, "one length"),
        ({"body": [1, 2]}, TypeError, "body.*int in row 0"),
        ({"queue_id": ["a", "b"]}, TypeError, "queue_id"),
        ({"queue_id": [1, 2**31]}, ValueError, "queue_id"),
        ({"topic": ["T", None]}, ValueError, "row 1"),
        ({"tags": ["a", "b"], "properties": ["", "TAGS\x01c"]}, ValueError, "tags.*row 1"),
        ({"born_host": ["1.2.3.4:1", "1.2.3.4"]}, ValueError, "born_host.*row 1"),
        ({"keys": StringColumn(np.zeros(1, np.uint8), np.array([0, 1, 2]))}, ValueError, "keys: row 1"),
    ],
)
def test_wrong_columns_are_named_and_nothing_is_written(
    change: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    messages = {"topic": ["T", "T"], "queue_offset": [0, 1], **change}
    with open_log(tmp_path) as log:
        with pytest.raises(error, match=words):
            log.append_messages({name: column for name, column in messages.items() if column is not None})
        assert log.max_phy_offset == 0


@pytest.mark.parametrize("delay", ["soon", "1.5", "99999999999", "-", "+"])
def test_a_delay_that_ends_the_log_for_every_reader_is_refused(tmp_path: Path, delay: str) -> None:
    """It was acknowledged; the next opening cut the log there, and with it all that came behind."""
    waits = {"topic": "SCHEDULE_TOPIC_XXXX", "body": b"x", "properties": {"DELAY": delay}}
    with open_log(tmp_path) as log:
        with pytest.raises(ValueError, match="properties: expected a number as DELAY"):
            log.append_message(NewMessage(**waits), queue_offset=0)
        with pytest.raises(ValueError, match="properties: expected a number as DELAY"):
            log.append_messages(
                {
                    **waits,
                    "topic": ["T", waits["topic"]],
                    "body": [b"a", b"b"],
                    "properties": [b"", f"DELAY\x01{delay}".encode()],
                    "queue_offset": [0, 0],
                }
            )
        assert log.max_phy_offset == 0
        for level in ("3", "+3", "-3"):
            log.append_message(NewMessage(waits["topic"], b"x", properties={"DELAY": level}), queue_offset=0)
        log.append_message(NewMessage("T", b"x", properties={"DELAY": delay}), queue_offset=0)
    assert len(stored(tmp_path)) == 4


def test_no_rows_are_no_messages(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for nothing in ([], {"topic": [], "queue_offset": []}):
            result = log.append_messages(nothing, queue_offset=[])
            assert (len(result.phy_offsets), len(result.sizes), log.max_phy_offset) == (0, 0, 0)


def test_message_larger_than_the_buffer_is_written_whole(tmp_path: Path) -> None:
    body = bytes(range(256)) * 12_000
    with open_log(tmp_path, mapped_file_size=1 << 22) as log:
        log.append_messages({"topic": "T", "queue_offset": [0, 1, 2], "body": [b"a", body, b"b"]})
        assert [log.get_message(int(record.phy_offset)).body for record in stored(tmp_path)] == [b"a", body, b"b"]


def test_sync_flush_returns_when_the_bytes_are_on_the_disk(tmp_path: Path) -> None:
    with open_log(tmp_path, flush="sync") as log:
        for number in range(12):
            log.append_message(NewMessage("T", bytes(700)), queue_offset=number)
            assert log.flushed_phy_offset == log.max_phy_offset
        log.append_messages([NewMessage("T", bytes(700))] * 9, queue_offset=range(9))
        assert log.flushed_phy_offset == log.max_phy_offset


def test_sync_flush_has_blocks_ready_before_the_bytes_come(tmp_path: Path) -> None:
    for flush in ("async", "sync"):
        with open_log(tmp_path / flush, flush=flush, mapped_file_size=1 << 18) as log:
            log.append_message(NewMessage("T", b"x"), queue_offset=0)
            end = log.flush()
            (file,) = log.files
            assert (os.stat(file.path).st_blocks * 512 >= 1 << 18) == (flush == "sync")
            assert Path(file.path).read_bytes()[end:] == bytes((1 << 18) - end)
            log.append_messages({"topic": "T", "queue_offset": [1, 2], "body": [bytes(200_000)] * 2})
            log.append_message(NewMessage("T", bytes(30_000)), queue_offset=3)  # in the next file
            assert [os.path.getsize(file.path) for file in log.files] == [1 << 18] * 2
        assert [record.queue_offset for record in stored(tmp_path / flush)] == [0, 1, 2, 3]


def test_blocks_that_cannot_be_had_before_the_bytes_come_are_no_error() -> None:
    reading, writing = os.pipe()
    assert not allocate(writing, 0, 4096)
    os.close(reading), os.close(writing)


def test_who_waits_for_bytes_that_are_committed_later(tmp_path: Path) -> None:
    group = GroupCommit(0)
    group.switch_to(os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY))
    group.commit(100)
    group.wait_for(100)
    waiting = threading.Thread(target=group.wait_for, args=(150,))
    waiting.start()
    waiting.join(0.1)
    assert (waiting.is_alive(), group.flushed) == (True, 100)
    group.commit(150)
    waiting.join()
    assert group.flushed == 150
    group.close()


def test_async_flush_follows_by_interval_and_pages(tmp_path: Path) -> None:
    config = {"flushIntervalCommitLog": "10", "flushCommitLogLeastPages": "2", "flushDiskType": "ASYNC_FLUSH"}
    with open_log(tmp_path, mapped_file_size=1 << 20, config=config) as log:
        log.append_message(NewMessage("T", bytes(9000)), queue_offset=0)
        wait_for(lambda: log.flushed_phy_offset == log.max_phy_offset)
        log.append_message(NewMessage("T"), queue_offset=1)
        assert log.flushed_phy_offset < log.max_phy_offset
        assert log.flush() == log.max_phy_offset == log.flushed_phy_offset


def test_async_flush_is_thorough_now_and_then(tmp_path: Path) -> None:
    config = {"flushIntervalCommitLog": 10, "flushCommitLogThoroughInterval": 30}
    with open_log(tmp_path, config=config) as log:
        log.append_message(NewMessage("T"), queue_offset=0)
        wait_for(lambda: log.flushed_phy_offset == log.max_phy_offset)


def wait_for(condition: Any) -> None:
    for _ in range(12_000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came")


def test_many_callers_wait_for_the_disk_together(tmp_path: Path) -> None:
    results: list[AppendMessageResult] = []

    def call(log: CommitLog) -> None:
        for number in range(60):
            result = log.append_message(NewMessage("T", b"%d" % number), queue_offset=number)
            assert log.flushed_phy_offset >= result.phy_offset + result.size
            results.append(result)

    with open_log(tmp_path, flush="sync") as log:
        threads = [threading.Thread(target=call, args=(log,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 480
    assert sorted(result.phy_offset for result in results) == [record.phy_offset for record in stored(tmp_path)]


def test_failed_sync_is_told_to_every_later_append(tmp_path: Path) -> None:
    log = open_log(tmp_path, flush="sync")
    log.append_message(NewMessage("T"), queue_offset=0)
    reading, writing = os.pipe()
    assert log._appender is not None
    log._appender.writer.group.switch_to(writing)  # a pipe cannot be synced
    with pytest.raises(OSError, match="Invalid argument"):
        log.append_message(NewMessage("T"), queue_offset=1)
    with pytest.raises(FileStateError, match="open the log again"):
        log.append_message(NewMessage("T"), queue_offset=2)
    with pytest.raises(OSError, match="Invalid argument"):
        log.close()
    os.close(reading)
    with open_log(tmp_path) as log:
        log.append_message(NewMessage("T"), queue_offset=2)
    assert [record.queue_offset for record in stored(tmp_path)] == [0, 1, 2]


def test_second_writer_is_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    with open_log(tmp_path / "commitlog") as log:
        log.append_message(NewMessage("T"), queue_offset=0)
        with pytest.raises(StoreInUseError):
            open_log(tmp_path / "commitlog")
        with CommitLog.open(tmp_path / "commitlog") as reader:
            assert reader.max_phy_offset == log.max_phy_offset
            with pytest.raises(ReadOnlyFileError):
                reader.append_message(NewMessage("T"), queue_offset=0)
    open_log(tmp_path / "commitlog").close()


def test_closed_log_says_so_and_closes_twice(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.close()
    log.close()
    with pytest.raises(ClosedFileError):
        log.append_message(NewMessage("T"), queue_offset=0)


def test_log_of_a_broker_is_continued_where_it_ended(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=2048)
    writer.write(*[LogMessage(body=bytes(300), queue_offset=number) for number in range(9)])
    writer.create_next_file()
    with open_log(tmp_path / "commitlog", mapped_file_size=None) as log:
        assert log.max_phy_offset == writer.position
        log.append_messages([NewMessage("TopicTest", bytes(300))] * 9, queue_offset=range(9, 18))
    assert [record.queue_offset for record in stored(tmp_path / "commitlog")] == list(range(18))
    assert not list(tmp_path.glob("mqindex-backup-*"))


def test_bytes_behind_the_end_are_saved_before_they_are_zeroed(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=4096)
    writer.write(LogMessage(), LogMessage())
    end = writer.position
    path = writer.path(0)
    with path.open("r+b") as file:
        file.seek(end)
        file.write(b"torn" + bytes(50) + b"more")
    open_log(tmp_path / "commitlog", mapped_file_size=None).close()
    assert path.read_bytes()[end:] == bytes(4096 - end)
    (backup,) = tmp_path.glob("mqindex-backup-*/commitlog/*")
    assert (backup.name, backup.read_bytes()) == (f"{0:020d}.{end}", b"torn" + bytes(50) + b"more")
    open_log(tmp_path / "commitlog", mapped_file_size=None).close()
    assert len(list(tmp_path.glob("mqindex-backup-*/commitlog/*"))) == 1


def test_files_of_another_length_are_refused(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, mapped_file_size=2048)
    writer.write(*[LogMessage(body=bytes(900))] * 3)
    with pytest.raises(FormatError, match="mapped_file_size"):
        open_log(tmp_path, mapped_file_size=4096)


def test_last_file_of_a_copy_that_was_cut_is_filled_up(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, mapped_file_size=2048)
    writer.write(*[LogMessage(body=bytes(900))] * 3)
    os.truncate(writer.path(2048), 1100)
    with open_log(tmp_path, mapped_file_size=None) as log:
        log.append_message(NewMessage("T"), queue_offset=0)
    assert writer.path(2048).stat().st_size == 2048
    assert len(stored(tmp_path)) == 4


def test_new_files_go_to_the_directories_in_turn_but_never_to_a_frozen_one(tmp_path: Path) -> None:
    directories = [tmp_path / name / "commitlog" for name in "cab"]
    config = {"readOnlyCommitLogStorePaths": str(directories[0])}
    with CommitLog.open(directories, writable=True, mapped_file_size=1024, config=config) as log:
        log.append_messages([NewMessage("T", bytes(700))] * 4, queue_offset=range(4))
        assert [Path(file.path).parent.parent.name for file in log.files] == ["a", "b", "a", "b"]
        assert sum(batch.num_rows for batch in log.scan()) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"flush": "never"}, "flush: expected sync or async"),
        ({"config": {"flushDiskType": "SOON"}}, "flushDiskType"),
        ({"config": {"flushIntervalCommitLog": "-1"}}, "flushIntervalCommitLog"),
        ({"config": {"enabledAppendPropCRC": "maybe"}}, "enabledAppendPropCRC"),
        ({"config": {"brokerIP1": "here"}}, "brokerIP1"),
        ({"broker_version": "new"}, "broker_version"),
    ],
)
def test_wrong_settings_are_named(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        open_log(tmp_path / "commitlog", **options)
