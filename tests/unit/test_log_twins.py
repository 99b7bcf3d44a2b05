"""Files that have one place in a log, and files that come and go while its directories are listed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mqindex import rocketmq
from mqindex.errors import FileStateError
from mqindex.rocketmq import CommitLog
from mqindex.rocketmq.log import log_files
from mqindex.rocketmq.log.log_files import list_log_files
from tests.support.log_writer import LogWriter
from tests.support.small_store import GEOMETRY, make_small_store, small_messages

FILE_SIZE = 2048


def offsets(*directories: Path) -> list[int]:
    with CommitLog.open(directories) as log:
        return [at for batch in log.scan(columns=["phy_offset"]) for at in batch["phy_offset"].tolist()]


def log(directory: Path, count: int = 40, file_size: int = FILE_SIZE, start: int = 0) -> LogWriter:
    writer = LogWriter(directory, mapped_file_size=file_size, start=start)
    writer.write(*small_messages(count))
    return writer


def test_logs_that_overlap_at_other_offsets_are_refused(tmp_path: Path) -> None:
    """The messages of the first one ended where the second began, without a word."""
    log(tmp_path / "a"), log(tmp_path / "b", file_size=3000, start=3000)
    place = re.escape(str(tmp_path))
    said = (
        rf"^a file of the log reaches into another one: {place}/a/0*2048 at byte 952: expected .* got {place}/b/0*3000;"
    )
    with pytest.raises(FileStateError, match=said):
        CommitLog.open([tmp_path / "a", tmp_path / "b"])
    store = make_small_store(tmp_path / "store")
    with pytest.raises(FileStateError, match=r"^a file of the log reaches into another one: "):
        rocketmq.rebuild(
            store, tmp_path / "out", parts=("index",), hash_slot_num=GEOMETRY[0], index_num=GEOMETRY[1],
            commitlog=[store / "commitlog", tmp_path / "b"],
        )  # fmt: skip


def test_a_file_that_goes_on_after_one_inside_it_is_refused(tmp_path: Path) -> None:
    """What came after the inner file's begin, in the midst of a message, was in no row."""
    whole = log(tmp_path / "a", file_size=16384).path(0).read_bytes()
    (tmp_path / "b").mkdir()
    for stop in (4096, 16384):
        (tmp_path / "b" / f"{2048:020d}").write_bytes(whole[2048:stop])
        with pytest.raises(FileStateError, match="reaches into"):
            CommitLog.open([tmp_path / "a", tmp_path / "b"])


def test_zeros_after_the_end_of_a_file_are_nothing(tmp_path: Path) -> None:
    before = offsets(log(tmp_path).directories[0])
    with (tmp_path / f"{0:020d}").open("ab") as file:
        file.truncate(3000)
    assert offsets(tmp_path) == before


@pytest.mark.parametrize("older", ["a", "b"])
@pytest.mark.parametrize("zeros", [False, True])
def test_of_two_copies_the_older_one_never_stands_for_the_newer(tmp_path: Path, older: str, zeros: bool) -> None:
    """The first in the order of names was read, also where it had fewer messages."""
    newer = "b" if older == "a" else "a"
    messages = 200
    whole = log(tmp_path / newer, messages, 65536).path(0).read_bytes()
    shorter = log(tmp_path / older, messages - 60, 65536).path(0)
    data = shorter.read_bytes()
    end = len(data.rstrip(b"\0"))
    assert whole.startswith(data[:end]), "a log only grows"
    shorter.write_bytes(data[:end].ljust(65536 if zeros else end, b"\0"))
    if older == "b":
        assert len(offsets(tmp_path / "a", tmp_path / "b")) == messages
        return
    with pytest.raises(FileStateError, match=r"two files begin at one offset of the log: .*of two copies the longer"):
        CommitLog.open([tmp_path / "a", tmp_path / "b"])


def test_files_that_expire_while_they_are_listed_leave_no_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest had been seen, the next was gone: as if a file were missing inside the log."""
    log(tmp_path)
    names = [file.path for file in list_log_files([tmp_path])]
    take = log_files._take

    def expire(entry: Any, found: Any, skipped: Any) -> None:
        if entry.path == names[1]:
            for path in names[:2]:
                Path(path).unlink(missing_ok=True)
        take(entry, found, skipped)

    monkeypatch.setattr(log_files, "_take", expire)
    assert [file.path for file in list_log_files([tmp_path])] == names[2:]


def test_files_that_come_while_directories_are_listed_leave_no_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LogWriter(tmp_path / "a", tmp_path / "b", mapped_file_size=FILE_SIZE)
    whole.write(*small_messages(40))
    files = list_log_files([tmp_path / "a", tmp_path / "b"])
    later = {file.path: Path(file.path).read_bytes() for file in files[2:4]}
    for file in files[2:]:
        Path(file.path).unlink()
    take = log_files._take

    def come(entry: Any, found: Any, skipped: Any) -> None:
        take(entry, found, skipped)
        if entry.path == files[0].path:
            for path, data in later.items():
                Path(path).write_bytes(data)

    monkeypatch.setattr(log_files, "_take", come)
    assert list_log_files([tmp_path / "a", tmp_path / "b"]) == files[:4]
