"""`CommitLog` and the files it is made of."""

from __future__ import annotations

import gc
import ipaddress
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mqindex._native.log_columns import ColumnScanner
from mqindex.errors import BadMagicError, ClosedFileError, FileStateError, FormatError, MQIndexError, TruncatedFileError
from mqindex.files.reading.opening import map_file
from mqindex.rocketmq import CommitLog
from mqindex.rocketmq.log import commit_log, log_scan
from mqindex.rocketmq.log.commit_log import LogFile, last_file_with_frames
from mqindex.rocketmq.log.expiry import LOOK_AGAIN_SECONDS, LogExpiredError
from mqindex.rocketmq.log.log_files import data_end, list_log_files
from mqindex.rocketmq.log.log_scan import first_frame
from mqindex.rocketmq.messages import log_columns
from mqindex.rocketmq.messages.log_columns import as_columns
from mqindex.rocketmq.messages.message import read_message
from tests.support.golden import STORE_CASES, case
from tests.support.log_writer import LogMessage, LogWriter, frame, frame_size
from tests.support.small_store import small_messages

FILE_SIZE = 2048


def write(*directories: Path, count: int = 40, **options: Any) -> LogWriter:
    writer = LogWriter(*directories, **{"mapped_file_size": FILE_SIZE, **options})
    writer.write(*small_messages(count))
    return writer


def column(log: CommitLog, name: str, *args: Any, **options: Any) -> list[Any]:
    found: list[Any] = []
    for batch in log.scan(*args, columns=[name], **options):
        values = batch[name]
        found += values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()
    return found


# ---- files -----------------------------------------------------------------------------------------------------------


def test_files_of_several_directories_are_one_log(tmp_path: Path) -> None:
    writer = write(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    with CommitLog.open([tmp_path / "c", tmp_path / "a", str(tmp_path / "b")]) as log:
        assert [file.start for file in log.files] == list(range(0, writer.position, FILE_SIZE))
        assert column(log, "phy_offset") == [at for at, _ in writer.frames]
        assert log.skipped == []


def test_strangers_are_skipped_and_named(tmp_path: Path) -> None:
    write(tmp_path, count=5)
    (tmp_path / "123").write_bytes(b"x" * FILE_SIZE)
    (tmp_path / f"{FILE_SIZE:020d}").mkdir()
    (tmp_path / f"{2 * FILE_SIZE:020d}").touch()
    (tmp_path / f"{2**63 - 1:020d}").write_bytes(b"x")
    (tmp_path / ("9" * 20)).write_bytes(b"x")
    with CommitLog.open(tmp_path) as log:
        assert [os.path.basename(file.path) for file in log.files] == ["0" * 20]
        reasons = {os.path.basename(skipped.path): skipped.reason for skipped in log.skipped}
    assert reasons == {
        "123": "not a file named by 20 digits",
        f"{FILE_SIZE:020d}": "not a file named by 20 digits",
        f"{2 * FILE_SIZE:020d}": "an empty file",
        f"{2**63 - 1:020d}": "its offsets do not fit 64 bits",
        "9" * 20: "not a file named by 20 digits",
    }


def test_file_that_is_there_twice_is_taken_once(tmp_path: Path) -> None:
    writer = write(tmp_path / "a", count=5)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ("0" * 20)).write_bytes(writer.path(0).read_bytes())
    with CommitLog.open([tmp_path / "a", tmp_path / "b"]) as log:
        assert len(column(log, "phy_offset")) == 5
        assert len(log.skipped) == 1 and "same offset" in log.skipped[0].reason


def test_files_of_two_logs_are_not_one_log(tmp_path: Path) -> None:
    """The second one's messages were left out without a word."""
    writer = write(tmp_path / "a", count=5)
    data = bytearray(writer.path(0).read_bytes())
    data[63] ^= 1  # of another time
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ("0" * 20)).write_bytes(data)
    with pytest.raises(FileStateError, match=r"^two files begin at one offset of the log: ") as told:
        CommitLog.open([tmp_path / "a", tmp_path / "b"])
    assert str(tmp_path / "b") in str(told.value) and str(tmp_path / "a") in str(told.value)


def test_digits_of_any_script_name_a_file(tmp_path: Path) -> None:
    writer = write(tmp_path, count=5)
    writer.path(0).rename(tmp_path / "".join(chr(0x660 + int(digit)) for digit in "0" * 20))
    with CommitLog.open(tmp_path) as log:
        assert len(column(log, "phy_offset")) == 5


def test_directory_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        CommitLog.open(tmp_path / "absent")
    write(tmp_path / "a", count=40)
    with pytest.raises(FileNotFoundError, match="absent"):
        CommitLog.open([tmp_path / "a", tmp_path / "absent"])


def test_directory_whose_turn_has_not_come_may_be_absent(tmp_path: Path) -> None:
    write(tmp_path / "a", count=5)
    assert len(list_log_files([tmp_path / "a", tmp_path / "b"])) == 1


def test_overlapping_files_are_clipped(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}").write_bytes(bytes(100))
    (tmp_path / f"{60:020d}").write_bytes(bytes(100))
    assert [(file.start, file.size) for file in list_log_files([tmp_path])] == [(0, 60), (60, 100)]


def test_log_without_files(tmp_path: Path) -> None:
    with CommitLog.open(tmp_path) as log:
        assert (log.min_phy_offset, log.max_phy_offset, list(log.scan())) == (0, 0, [])
        with pytest.raises(FormatError, match="not in the log"):
            log.get_message(0)


def test_mapped_file_size_is_compared(tmp_path: Path) -> None:
    writer = write(tmp_path)
    CommitLog.open(tmp_path, mapped_file_size=FILE_SIZE).close()
    with pytest.raises(FormatError, match="mappedFileSizeCommitLog"):
        CommitLog.open(tmp_path, mapped_file_size=4096)
    os.truncate(writer.path(writer.position), 1000)
    CommitLog.open(tmp_path, mapped_file_size=FILE_SIZE).close()


def test_data_end_of_a_sparse_file_is_that_of_its_data(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    assert data_end(path) in {0, 64 << 20}  # the latter: a file system that does not tell
    with path.open("r+b") as file:
        file.seek(10 << 20)
        file.write(b"x")
    assert 10 << 20 < data_end(path) <= 64 << 20
    path.write_bytes(b"x" * 10)
    assert data_end(path) == 10


def test_last_file_with_frames_is_not_the_one_made_in_advance(tmp_path: Path) -> None:
    writer = write(tmp_path)
    writer.create_next_file()
    files = list_log_files([tmp_path])
    assert last_file_with_frames(files) == len(files) - 2
    assert last_file_with_frames(files[-1:]) == last_file_with_frames([]) == -1


# ---- scan ------------------------------------------------------------------------------------------------------------


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    write(tmp_path, count=3)
    with CommitLog.open(tmp_path) as log:
        assert list(next(log.scan(columns=["keys", "phy_offset", "keys"]))) == ["keys", "phy_offset"]
        assert set(next(log.scan())) == set(log_columns.COLUMNS) - {"body", "properties"}
        assert next(log.scan(columns=[])).num_rows > 0


@pytest.mark.parametrize("unknown", ["nope", "Topic"])
def test_unknown_column_is_refused_at_once_with_the_known_ones(unknown: str, tmp_path: Path) -> None:
    with CommitLog.open(tmp_path) as log:
        with pytest.raises(ValueError, match=rf"topic, queue_id.*{unknown!r}"):
            log.scan(columns=["topic", unknown])
        with pytest.raises(TypeError, match="columns"):
            log.scan(columns="topic")


def test_columns_of_mixed_hosts(tmp_path: Path) -> None:
    hosts = [("10.0.0.1", 1), ("2001:db8::1", 10911), ("10.0.0.1", 1), ("255.255.255.255", 65535), ("::", 0)]
    messages = [LogMessage(born_host=host, store_host=hosts[-1 - at]) for at, host in enumerate(hosts)]
    LogWriter(tmp_path).write(*messages)
    with CommitLog.open(tmp_path) as log:
        for name in ("born_host", "store_host", "msg_id"):
            singly = [getattr(log.get_message(at), name) for at in column(log, "phy_offset")]
            assert column(log, name) == singly, name
        assert column(log, "born_host") == [
            "10.0.0.1:1", "[2001:db8:0:0:0:0:0:1]:10911", "10.0.0.1:1", "255.255.255.255:65535", "[0:0:0:0:0:0:0:0]:0",
        ]  # fmt: skip


def test_body_and_properties_are_given_as_stored(tmp_path: Path) -> None:
    LogWriter(tmp_path).write(
        LogMessage(body=b"\xff\0", properties=b"K\x01v\x02"), LogMessage(body=b"", properties=b"")
    )
    with CommitLog.open(tmp_path) as log:
        assert column(log, "body") == [b"\xff\0", b""]
        assert column(log, "properties") == ["K\x01v\x02", ""]


def test_scan_reaches_arrow_with_bodies_as_binary(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    write(tmp_path, count=12)
    with CommitLog.open(tmp_path) as log:
        names = [*log_columns.COLUMNS]
        (table, *_) = (pyarrow.table(batch) for batch in log.scan(columns=names))
        types = dict(zip(table.column_names, map(str, table.schema.types), strict=True))
        assert types["body"] == "binary" and types["keys"] == types["store_host"] == "string"
        assert types["phy_offset"] == "int64" and types["queue_id"] == "int32"
        assert table["keys"].to_pylist() == next(log.scan(columns=["keys"]))["keys"].to_pylist()
        assert table["keys"].null_count == 3


def test_malformed_text_is_replaced(tmp_path: Path) -> None:
    LogWriter(tmp_path).write(LogMessage(properties=b"KEYS\x01a\xffb\x02TAGS\x01\xc3\x28"))
    with CommitLog.open(tmp_path) as log:
        assert column(log, "keys") == ["a\ufffdb"] == [log.get_message(0).keys]
        assert column(log, "tags") == ["\ufffd("]


def test_large_bodies_make_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LogWriter(tmp_path, mapped_file_size=1 << 20)
    writer.write(*[LogMessage(body=bytes(10_000))] * 30)
    monkeypatch.setattr(log_columns, "_MAX_BULKY_BYTES", 35_000)
    with CommitLog.open(tmp_path) as log:
        rows = [batch.num_rows for batch in log.scan(columns=["body"])]
        assert sum(rows) == 30 and max(rows) <= 4
        assert [batch.num_rows for batch in log.scan(columns=["size"])] == [30]


def test_batches_have_at_most_so_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_columns, "_MAX_ROWS", 7)
    writer = write(tmp_path)
    with CommitLog.open(tmp_path) as log:
        rows = [batch.num_rows for batch in log.scan()]
        assert max(rows) == 7 and sum(rows) == len(writer.frames)


def test_range_that_begins_inside_a_message_leaves_it_out(tmp_path: Path) -> None:
    writer = write(tmp_path)
    starts = [at for at, _ in writer.frames]
    with CommitLog.open(tmp_path) as log:
        for start in range(-5, writer.position + 300, 97):
            for stop in (start, start + 1, start + 500, None):
                expected = [at for at in starts if start <= at < (1 << 62 if stop is None else stop)]
                assert column(log, "phy_offset", start, stop) == expected, (start, stop)
        assert log.damage == []


def test_range_that_begins_inside_an_imitated_message(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, mapped_file_size=1 << 16)
    writer.write(*small_messages(20))
    outer, *inner = writer.write_imitation(LogMessage(keys="outer"), [LogMessage(keys="fake")] * 20)
    (after,) = writer.write(LogMessage(keys="after"))
    with CommitLog.open(tmp_path) as log:
        for start in [outer + 1, inner[0], inner[0] + 1, inner[-1]]:
            assert column(log, "phy_offset", start) == [after]
            assert column(log, "phy_offset", start, after) == []


def test_imitation_further_back_than_the_walk_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk begins inside a body of imitations, leaves it, and is among real messages when it reaches the start."""
    monkeypatch.setattr(log_scan, "_LOOK_BACK", 6000)
    first = frame(LogMessage(keys="first"), 0)
    inside, body = len(first) + 88, b""
    while len(body) < 4000:
        body += frame(LogMessage(keys="fake", body=b"x" * 50), inside + len(body))
    data = first + frame(LogMessage(keys="outer", body=body + b"?" * 11), len(first))
    starts = []
    while len(data) < 12_000:
        starts.append(len(data))
        data += frame(LogMessage(keys="real"), len(data))
    (tmp_path / "0").write_bytes(data)
    with map_file(str(tmp_path / "0")) as log:
        for start in range(len(first) + 5000, len(data), 41):
            expected = next((at for at in starts if at >= start), -1)
            assert first_frame(log, 0, start, len(data)) == expected


def test_damage_in_an_earlier_file_is_recorded_once_and_passed_over(tmp_path: Path) -> None:
    writer = write(tmp_path)
    victim, size = writer.frames[3]
    writer.overwrite(victim + 4, b"\0\0\0\0")
    with CommitLog.open(tmp_path) as log:
        for _ in range(2):
            assert column(log, "phy_offset") == [at for at, _ in writer.frames if at != victim]
        (one,) = log.damage
        assert (one.path, one.at, one.stop, one.kind) == (str(writer.path(0)), victim, victim + size, "bad-magic")
        assert "magic_code" in str(one) and "expected 0xDAA320A7" in str(one) and "got 0x00000000" in str(one)
        assert f"from phy offset {victim} to {victim + size}, {size} bytes" in str(one)


def test_bad_record_in_the_last_file_is_the_end(tmp_path: Path) -> None:
    writer = write(tmp_path)
    last_start = writer.position // FILE_SIZE * FILE_SIZE
    victim = [at for at, _ in writer.frames if at >= last_start][1]
    writer.overwrite(victim + 28, b"\xff")
    with CommitLog.open(tmp_path) as log:
        assert column(log, "phy_offset")[-1] == [at for at, _ in writer.frames if at < victim][-1]
        (said,) = log.damage
        assert (log.max_phy_offset, said.at) == (victim, victim)
        assert "the log ends here, and" in str(said) and said.behind


def test_checksums_are_compared_in_the_last_file_always_in_the_others_if_asked(tmp_path: Path) -> None:
    messages = small_messages()
    for wrong in (7, 38):
        messages[wrong] = LogMessage(body=b"text", crc=1)
    writer = LogWriter(tmp_path, mapped_file_size=FILE_SIZE)
    starts = writer.write(*messages)
    with CommitLog.open(tmp_path) as log:
        assert log.max_phy_offset == starts[38]
        assert column(log, "phy_offset") == starts[:38]
        assert [stretch.at for stretch in log.damage] == [starts[38]]
        assert column(log, "phy_offset", check_crc=True) == [*starts[:7], *starts[8:38]]
        assert sorted(stretch.at for stretch in log.damage) == [starts[7], starts[38]]
        assert (log.damage[0].kind, log.damage[0].field) == ("bad-crc", "body_crc")


def test_end_of_a_log_whose_last_file_is_full(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, mapped_file_size=1024)
    size = frame_size(LogMessage())
    writer.write(*[LogMessage()] * ((1024 - 8) // size))
    writer.write_blank()
    with CommitLog.open(tmp_path) as log:
        assert log.max_phy_offset == writer.position == 1024


def test_scan_after_close_is_an_error_and_close_may_be_called_twice(tmp_path: Path) -> None:
    writer = write(tmp_path)
    log = CommitLog.open(tmp_path)
    batches = log.scan()
    next(batches)
    log.get_message(0)
    log.close()
    log.close()
    for call in (lambda: next(batches), lambda: log.get_message(0), log.scan, lambda: log.max_phy_offset):
        with pytest.raises(ClosedFileError):
            call()
    assert log.min_phy_offset == 0 and writer.position > 0


def test_scan_that_is_given_up_leaves_nothing_open(tmp_path: Path) -> None:
    write(tmp_path)
    with CommitLog.open(tmp_path) as log:
        batches = log.scan()
        batch = next(batches)
        del batches
        gc.collect()
        assert batch["topic"].to_pylist()[0] == "Topic0"


def test_file_that_shrank_is_an_error(tmp_path: Path) -> None:
    writer = write(tmp_path)
    with CommitLog.open(tmp_path) as log:
        batches = log.scan()
        next(batches)
        log.get_message(0)
        for file in log.files:
            os.truncate(file.path, 100)
        with pytest.raises(TruncatedFileError, match="shrank"):
            next(batches)
        with pytest.raises(TruncatedFileError, match="shrank"):
            log.get_message(0)
        with pytest.raises(MQIndexError):
            log.get_message(writer.frames[-1][0])


# ---- one message -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [LogMessage(keys="k1 k2", tags="TagA", body=b"body"), LogMessage(body=b"body")])
def test_a_cut_at_any_byte_never_changes_a_message(tmp_path: Path, message: LogMessage) -> None:
    """A file that was cut inside a page reads as zeros up to the page's end; the file was seen whole just before."""
    writer = LogWriter(tmp_path, mapped_file_size=1 << 16)
    writer.write(LogMessage(body=b"first"), message)
    (first, _), (at, size) = writer.frames
    path, data = writer.path(at), writer.path(at).read_bytes()
    for cut in range(at + size, at - 1, -1):
        with CommitLog.open(tmp_path) as log:
            expected = log.get_message(at)
            os.truncate(path, cut)
            if cut == at + size:
                with suppress(TruncatedFileError):  # where its last byte is a zero, the file's length is compared
                    assert log.get_message(at) == expected
                continue
            for place in (at, first):  # after the first error the file is looked at again
                with pytest.raises(TruncatedFileError, match=r"shrank|was cut"):
                    log.get_message(place)
        path.write_bytes(data)


def test_a_deleted_file_is_seen_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = write(tmp_path)
    now = 100.0
    monkeypatch.setattr(commit_log, "monotonic", lambda: now)
    with CommitLog.open(tmp_path) as log:
        expected = log.get_message(0)
        writer.path(0).unlink()
        now += 0.9 * LOOK_AGAIN_SECONDS
        assert log.get_message(0) == expected
        now += 0.2 * LOOK_AGAIN_SECONDS
        with pytest.raises(LogExpiredError):
            log.get_message(0)


def test_message_at_a_wrong_place_is_an_error_that_says_so(tmp_path: Path) -> None:
    writer = write(tmp_path)
    with CommitLog.open(tmp_path) as log:
        with pytest.raises(BadMagicError, match="no frame begins here") as caught:
            log.get_message(1)
        assert (caught.value.path, caught.value.at) == (str(writer.path(0)), 1)
        with pytest.raises(BadMagicError, match="blank that fills the file"):
            log.get_message(sum(writer.frames[[at < FILE_SIZE for at, _ in writer.frames].index(False) - 1]))
        for outside in (-1, log.files[-1].stop, 1 << 62):
            with pytest.raises(FormatError, match=f"not in the log.*got {outside}"):
                log.get_message(outside)


def test_size_is_compared_if_given(tmp_path: Path) -> None:
    writer = write(tmp_path)
    at, size = writer.frames[5]
    with CommitLog.open(tmp_path) as log:
        assert log.get_message(at, size).size == size
        with pytest.raises(FormatError, match=f"expected {size + 1}, got {size}"):
            log.get_message(at, size + 1)


def test_few_files_are_mapped_at_a_time(tmp_path: Path) -> None:
    writer = write(tmp_path, count=400)
    with CommitLog.open(tmp_path) as log:
        assert len(log.files) > 20
        for at, _ in writer.frames:
            log.get_message(at)
        if Path("/proc/self/maps").exists():
            assert Path("/proc/self/maps").read_text().count(str(tmp_path)) <= 4


def test_messages_from_several_threads(tmp_path: Path) -> None:
    writer = write(tmp_path, count=400)
    wrong: list[Any] = []

    def read(log: CommitLog, first: int) -> None:
        for at, size in writer.frames[first::4]:
            message = log.get_message(at, size)
            if message.phy_offset != at:
                wrong.append(message)
        if column(log, "phy_offset") != [at for at, _ in writer.frames]:
            wrong.append(first)

    with CommitLog.open(tmp_path) as log:
        threads = [threading.Thread(target=read, args=(log, first)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


# ---- the brokers' own stores -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORE_CASES)
def test_hosts_blanks_and_lengths_of_a_brokers_log(name: str, tmp_path: Path) -> None:
    store = case(name)
    truth = store.truth
    wanted = {"born_host": "bornHost", "store_host": "storeHost", "msg_id": "msgId", "body": "bodyLen"}
    with CommitLog.open(store.unpack(tmp_path) / "commitlog") as log:
        for mine, theirs in wanted.items():
            if theirs not in truth["messages"][0]:
                continue
            found = column(log, mine)
            if mine.endswith("host"):
                found = [host.rpartition(":")[0].strip("[]") for host in found]
            elif mine == "body":
                found = list(map(len, found))
            assert found == [said[theirs] for said in truth["messages"]], mine
        assert log.damage == []


def test_logfile_knows_its_stop() -> None:
    assert LogFile("x", 100, 50).stop == 150


def test_hosts_and_ids_of_neighbours_that_have_one_host_or_almost() -> None:
    hosts = [("10.0.0.2", 10911), ("10.0.0.2", 10911), ("10.0.0.2", 10912), ("10.0.0.1", 10912), ("::1", 10912),
             ("::1", 10912), ("10.0.0.2", 10911), ("fe80::dead:beef", 1), ("255.255.255.255", 65535)]  # fmt: skip
    data, expected = b"", []
    for host in hosts:
        at, address = len(data), ipaddress.ip_address(host[0])
        data += frame(LogMessage(store_host=host, born_host=hosts[0]), at)
        expected.append((address.packed + host[1].to_bytes(4, "big") + at.to_bytes(8, "big")).hex().upper())
    names = ("phy_offset", "store_host", "born_host", "msg_id")
    ((made, _),) = ColumnScanner(data, 0, 0, len(data), names, max_bytes=len(data))
    columns = as_columns(made, len(hosts))
    parts = columns["store_host"].to_pylist()
    assert parts == [read_message(data, 0, at).store_host for at in columns["phy_offset"].tolist()]
    assert parts[2] == "10.0.0.2:10912" and parts[4] == parts[5] == "[0:0:0:0:0:0:0:1]:10912"
    assert columns["msg_id"].to_pylist() == expected
    assert columns["born_host"].to_pylist() == ["10.0.0.2:10911"] * len(hosts)
