"""Where a growing log ends: growth, new files, torn messages, damage, and a log that is another one."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from mqindex.rocketmq import CommitLog
from mqindex.rocketmq.log import growing_log
from mqindex.rocketmq.log.log_tail import LogTail
from tests.support.golden import STORE_CASES, case
from tests.support.log_writer import LogMessage, LogWriter, frame_size

FILE = 2048


@pytest.fixture
def writer(tmp_path: Path) -> LogWriter:
    return LogWriter(tmp_path / "log", mapped_file_size=FILE)


@pytest.fixture
def tail(writer: LogWriter) -> Iterator[LogTail]:
    opened = LogTail(writer.directories)
    yield opened
    opened.close()
    opened.close()


def soon(tail: LogTail, end: int) -> bool:
    """Files that come or go are noticed ten times a second."""
    deadline = time.monotonic() + 120
    while tail.end() != end and time.monotonic() < deadline:
        time.sleep(0.02)
    return tail.end() == end


@pytest.mark.parametrize("name", STORE_CASES)
def test_end_is_that_of_a_log_at_rest(name: str, tmp_path: Path) -> None:
    log = case(name).unpack(tmp_path) / "commitlog"
    tail = LogTail([log])
    with CommitLog.open(log) as opened:
        assert tail.end() == opened.max_phy_offset
    tail.close()


def test_end_follows_the_messages_over_the_files(writer: LogWriter, tail: LogTail, rng: Random) -> None:
    assert tail.end() == 0
    for number in range(60):
        (at,) = writer.write(LogMessage(body=bytes(rng.randrange(300)), queue_offset=number))
        assert tail.end() == at + writer.frames[-1][1]
        assert tail.end() == tail.end()
        if rng.random() < 0.2:
            writer.create_next_file()
            assert tail.end() == at + writer.frames[-1][1]
    assert len(list(writer.directories[0].iterdir())) > 4


def test_file_that_ended_in_a_blank_ends_where_the_next_begins(writer: LogWriter, tail: LogTail) -> None:
    writer.write(LogMessage())
    writer.write_blank()
    assert tail.end() == FILE
    writer.create_next_file()
    assert tail.end() == FILE
    writer.write(LogMessage())
    assert tail.end() == FILE + frame_size(LogMessage())


def test_message_that_is_still_being_written_is_waited_for(
    writer: LogWriter, tail: LogTail, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, second = writer.write(LogMessage(), LogMessage(tags="the properties come last"))
    path, end = writer.path(second), writer.position
    whole = path.read_bytes()
    path.write_bytes(whole[: end - 5].ljust(FILE, b"\0"))
    seen = []

    def finish_writing(seconds: float) -> None:
        seen.append(path.read_bytes() == whole)
        with path.open("r+b") as file:
            file.write(whole)

    monkeypatch.setattr(growing_log.time, "sleep", finish_writing)
    assert tail.end() == end
    assert seen[:2] == [False, True], "what was seen torn is looked at again when it is whole"


def test_half_a_message_does_not_count(writer: LogWriter, tail: LogTail) -> None:
    first, second = writer.write(LogMessage(), LogMessage(body=b"the second"))
    path, end = writer.path(second), writer.position
    whole = path.read_bytes()
    for cut in range(second - first, end - 30, 7):
        path.write_bytes(whole[:cut].ljust(FILE, b"\0"))
        assert tail.end() == second
    path.write_bytes(whole)
    assert tail.end() == end


def test_damage_is_passed_where_the_log_goes_on_in_the_next_file(writer: LogWriter, tail: LogTail) -> None:
    writer.write(LogMessage())
    assert tail.end() == writer.position
    second, _ = writer.write(LogMessage(), LogMessage())
    with writer.path(second).open("r+b") as file:
        file.seek(second + 4)
        file.write(b"oops")
    assert tail.end() == second
    writer.create_next_file()
    assert tail.end() == second
    writer.write_blank()
    writer.write(LogMessage())
    assert soon(tail, writer.position)


def test_log_that_was_cut_ends_earlier(writer: LogWriter, tail: LogTail) -> None:
    offsets = writer.write(*[LogMessage(queue_offset=number) for number in range(30)])
    assert tail.end() == writer.position
    for path in writer.directories[0].iterdir():
        if int(path.name) > offsets[3]:
            path.unlink()
    path = writer.path(offsets[3])
    path.write_bytes(path.read_bytes()[: offsets[3]].ljust(FILE, b"\0"))
    assert soon(tail, offsets[3])


def test_files_that_expire_change_nothing(writer: LogWriter, tail: LogTail) -> None:
    writer.write(*[LogMessage(queue_offset=number) for number in range(60)])
    assert tail.end() == writer.position
    for path in sorted(writer.directories[0].iterdir())[:-1]:
        path.unlink()
    assert tail.end() == writer.position


def test_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        LogTail([tmp_path / "gone"]).end()


def test_copy_begins_anew(writer: LogWriter, tail: LogTail) -> None:
    writer.write(LogMessage())
    tail.end()
    copied = pickle.loads(pickle.dumps(tail))
    assert copied.end() == writer.position
    copied.close()


def test_idle_log_is_not_read_again(writer: LogWriter, tail: LogTail, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.write(LogMessage())
    tail.end()
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("nothing is new"))
    assert tail.end() == writer.position
