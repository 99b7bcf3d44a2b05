"""Appends of many megabytes: the same bytes as in small portions, taken back where they fail, whole after a kill."""

from __future__ import annotations

import errno
import os
import random
import resource
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex._native.log_writer import NUMBERS, Frames
from mqindex._native.pieces import constant_piece, pieces_of_sequence
from mqindex.columns.columns import BinaryColumn
from mqindex.errors import FileStateError
from mqindex.files import tmpfile
from mqindex.rocketmq import CommitLog, NewMessage
from mqindex.rocketmq.log.writing import log_writer
from tests.reference.commit_log import scan_log
from tests.reference.rebuild import log_files
from tests.support.killed import killed
from tests.support.own_process import run_apart

FILE_SIZE = 16 << 20
TIMES = {"born_timestamp": 1_700_000_000_000, "store_timestamp": 1_700_000_000_001}


def open_log(directory: Path, **options: Any) -> CommitLog:
    return CommitLog.open(directory, **{"mapped_file_size": FILE_SIZE, "writable": True, **options})


def messages(first: int, stop: int, body: int = 1000) -> dict[str, Any]:
    numbers = np.arange(first, stop)
    data = np.repeat((numbers % 251).astype(np.uint8), body)
    bodies = BinaryColumn(data, np.arange(stop - first + 1, dtype=np.int64) * body)
    return {"topic": "TopicTest", "body": bodies, "queue_offset": numbers, "tags": "TagA", **TIMES}


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


@pytest.fixture(scope="module")
def portions(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[int], dict[str, bytes]]:
    """What appends of a few messages give."""
    directory = tmp_path_factory.mktemp("portions") / "commitlog"
    offsets: list[int] = []
    with open_log(directory) as log:
        for first in range(0, 36_000, 500):
            offsets += log.append_messages(messages(first, first + 500)).phy_offsets.tolist()
    return offsets, contents(directory)


@pytest.mark.parametrize("nameless", [True, False])
@pytest.mark.parametrize("calls", [1, 3])
def test_many_at_once_are_the_bytes_of_few_at_a_time(
    portions: tuple[list[int], dict[str, bytes]],
    calls: int,
    nameless: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named: list[str] = []
    real = log_writer.create_log_file

    def create(path: str, size: int) -> None:
        named.append(path)
        real(path, size)

    monkeypatch.setattr(log_writer, "create_log_file", create)
    if not nameless:
        monkeypatch.setattr(tmpfile, "_NAMELESS", None)
    directory = tmp_path / "store" / "commitlog"
    offsets: list[int] = []
    with open_log(directory) as log:
        for first in range(0, 36_000, 36_000 // calls):
            offsets += log.append_messages(messages(first, first + 36_000 // calls)).phy_offsets.tolist()
        assert log.flush() == log.flushed_phy_offset == log.max_phy_offset
        assert [file.start for file in log.files] == [0, FILE_SIZE, 2 * FILE_SIZE]
    assert offsets == portions[0]
    assert contents(directory) == portions[1]
    assert len(named) == (1 if nameless and sys.platform == "linux" else 3)
    assert [path.name for path in directory.parent.iterdir()] == ["commitlog"]
    assert len({(path.stat().st_mode, path.stat().st_nlink) for path in directory.iterdir()}) == 1


def test_a_message_longer_than_a_part_of_the_buffer_goes_with_the_others(tmp_path: Path) -> None:
    bodies = [bytes([n]) * size for n, size in enumerate((100, 2_000_000, 100, 300_000, 2_000_000))]
    with open_log(tmp_path) as log:
        log.append_messages({"topic": "T", "body": bodies, "queue_offset": range(5)})
    assert [record.body for record in scan_log(log_files(tmp_path))[0]] == bodies


def test_a_short_part_waits_for_the_long_one_before_it(tmp_path: Path) -> None:
    bodies, host = [b"L" * 40_000_000, b"s"], constant_piece(bytes(8))
    texts = (
        constant_piece(b"T"), pieces_of_sequence("body", bodies), *[constant_piece(None)] * 4, host, host,
    )  # fmt: skip
    frames = Frames(
        2, texts, (np.zeros(1, np.int64),) * len(NUMBERS), separator=True, append_crc=False, long_topics=True,
        max_body=1 << 26, max_frame=1 << 26,
    )  # fmt: skip
    with (tmp_path / "00000000000000000000").open("wb") as file:
        frames.append(file.fileno(), 0, bytearray(90_000_000), 0, 1 << 27, 1 << 27)
    assert [record.body for record in scan_log(log_files(tmp_path))[0]] == bodies


NO_THREAD = """
    import os, resource, sys
    from pathlib import Path
    from mqindex.rocketmq import CommitLog

    rows = {"topic": "T", "body": [bytes([n % 251]) * 1000 for n in range(5000)], "queue_offset": range(5000)}
    times = {"born_timestamp": 1, "store_timestamp": 1, "born_host": "1.2.3.4:5", "store_host": "1.2.3.4:5"}
    with CommitLog.open(sys.argv[1], writable=True, mapped_file_size=16 << 20) as log:
        log.append_messages({"topic": "T", "body": [b"first"], "queue_offset": [0], **times})
        if os.getuid() == 0:
            os.setresuid(65534, 65534, 0)  # for root there is no limit
        before = resource.getrlimit(resource.RLIMIT_NPROC)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, before[1]))
        try:
            os.fork()
        except BlockingIOError:
            log.append_messages({**rows, **times})
        resource.setrlimit(resource.RLIMIT_NPROC, before)
        os.setresuid(*os.getresuid()[2:] * 3)
        log.append_messages({**rows, **times})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts threads against the limit of processes")
def test_an_append_where_no_thread_can_be_had(tmp_path: Path) -> None:
    run_apart(NO_THREAD, tmp_path)
    records = scan_log(log_files(tmp_path))[0]
    assert [record.body[:1] for record in records] == [b"f", *[bytes([n % 251]) for n in range(5000)] * 2]


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("limit", [3_000_000, 3_000_001, 9_999_999])
def test_a_write_that_fails_in_the_middle_leaves_nothing(limit: int, tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append_messages(messages(0, 2500))
        end = log.max_phy_offset
        with no_file_longer_than(limit), pytest.raises(OSError, match="File too large") as raised:
            log.append_messages(messages(2500, 12_500))
        assert raised.value.errno == errno.EFBIG
        assert log.max_phy_offset == end
        assert not Path(log.files[0].path).read_bytes()[end:].strip(b"\0")
        log.append_messages(messages(2500, 12_500))
        assert sum(batch.num_rows for batch in log.scan()) == 12_500


def test_what_stands_where_the_next_file_goes_is_not_overwritten(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append_messages(messages(0, 10_000))
        (tmp_path / f"{FILE_SIZE:020d}").write_bytes(b"precious")
        with pytest.raises(FileStateError, match="something is already"):
            log.append_messages(messages(10_000, 20_000))
        assert log.max_phy_offset < FILE_SIZE
    assert (tmp_path / f"{FILE_SIZE:020d}").read_bytes() == b"precious"


WORD = struct.Struct("c")


def appended_until_killed(directory: Path, answer: int, first: int) -> None:
    with open_log(directory) as log:
        while True:
            log.append_messages(messages(first, first + 12_000))
            first += 12_000
            os.write(answer, b".")


def test_killed_anywhere_keeps_what_was_appended(tmp_path: Path, rng: random.Random) -> None:
    """Bytes that a process has written survive it, synced or not."""
    directory, first = tmp_path / "commitlog", 0
    for _ in range(8):
        said = killed(
            lambda pipe, first=first: appended_until_killed(directory, pipe, first),
            WORD,
            words=1,
            seconds=rng.random() * 0.02,
        )
        with open_log(directory) as log:
            offsets = [n for batch in log.scan() for n in batch["queue_offset"].tolist()]
            log.append_message(NewMessage("TopicTest"), queue_offset=len(offsets))
        assert offsets == list(range(len(offsets)))
        assert len(offsets) >= first + 12_000 * len(said)
        first = len(offsets) + 1
        for path in directory.iterdir():
            assert path.stat().st_size == FILE_SIZE
