"""Verify of one file of a segment: what the partition's own verify says of it, and of an index without a log."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import BadMagicError
from mqindex.kafka import rebuild, repair, verify
from mqindex.report import Report
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, batch

ONE = LocalEngine(1)
TXN = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
FILES = (".log", ".index", ".timeindex", ".txnindex")


def files_of(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix in FILES)


def told(report: Report, *paths: str) -> list[str]:
    """The findings of some files, as text."""
    found = [finding for finding in report.findings if finding.kind != "index-unlike-rebuilt"]
    return sorted(str(finding) for finding in found if not paths or finding.path in paths)


def kinds(report: Report) -> list[tuple[str, str]]:
    return [(finding.severity, finding.kind) for finding in report.findings]


def check_as_whole(directory: Path, interval: int) -> None:
    """Of every file the same is told as with its partition; of an index, what its log says is told too."""
    whole = verify(directory, deep=True, index_interval_bytes=interval, engine=ONE)
    for path in files_of(directory):
        single = verify(path, deep=True, index_interval_bytes=interval, engine=ONE)
        beside = [path, path.with_suffix(".log")] if path.suffix != ".log" else map(path.with_suffix, FILES)
        assert told(single) == told(whole, *map(str, beside)), path
        assert single.segments == 1 or path.suffix in (".log", ".txnindex")
        assert single.path == str(path)


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_of_a_file_the_same_is_told_as_with_its_partition(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    interval = case.truth["config"].get("index.interval.bytes", 4096)
    check_as_whole(directory, interval)
    for path in files_of(directory):
        content = path.read_bytes()
        for wrong in (content[:-5], content[: len(content) // 2] + b"\x41" + content[len(content) // 2 + 1 :]):
            path.write_bytes(wrong)
            check_as_whole(directory, interval)
        path.write_bytes(content)


def transactions(directory: Path) -> PartitionWriter:
    """Three segments: a transaction that is committed, one that is aborted across two segments, and nothing more."""
    writer = PartitionWriter(directory, 10, index_interval=0)
    writer.append([KafkaRecord()], **TXN)
    writer.marker(5, abort=False)
    writer.append([KafkaRecord(timestamp=FIRST_TIME + 1)], **TXN)
    writer.roll()
    writer.marker(5, timestamp=FIRST_TIME + 2)
    writer.append([KafkaRecord(timestamp=FIRST_TIME + 3)])
    writer.roll()
    writer.append([KafkaRecord(timestamp=FIRST_TIME + 4)])
    writer.close()
    return writer


def test_what_is_open_before_a_segment_is_told_by_its_snapshot_or_the_segments_before(tmp_path: Path) -> None:
    transactions(tmp_path)
    index = tmp_path / f"{13:020d}.txnindex"
    assert index.read_bytes() == struct.pack(">h4q", 0, 5, 12, 13, 14)
    for path in (index, index.with_suffix(".log")):
        report = verify(path, index_interval_bytes=0, engine=ONE)
        assert (report.findings, report.segments) == ([], 2)
    lost = index.read_bytes()
    index.unlink()
    assert kinds(verify(index.with_suffix(".log"), index_interval_bytes=0, engine=ONE)) == [
        ("error", "transaction-index-missing")
    ]
    index.write_bytes(struct.pack(">h4q", 0, 5, 10, 13, 14))  # it hides what was committed a segment before
    report = verify(index, index_interval_bytes=0, engine=ONE)
    assert kinds(report) == [("error", "transaction-index-first-offset")]
    assert report.actions == [f"write {index.name} anew"]
    index.write_bytes(lost)


def test_only_what_belongs_to_the_file_would_be_repaired(tmp_path: Path) -> None:
    transactions(tmp_path)
    for ending in ("index", "timeindex"):
        (tmp_path / f"{10:020d}.{ending}").unlink()
    found = verify(tmp_path / f"{10:020d}.log", engine=ONE)
    assert found.actions == [f"write {10:020d}.index", f"write {10:020d}.timeindex"]
    assert verify(tmp_path / f"{13:020d}.index", index_interval_bytes=0, engine=ONE).findings == []


def test_a_torn_tail_is_one_only_at_the_end_of_the_partition(tmp_path: Path) -> None:
    writer = transactions(tmp_path)
    for path, severity in ((writer.path(), "warning"), (tmp_path / f"{10:020d}.log", "error")):
        with path.open("ab") as file:
            file.write(bytes.fromhex("00ff"))
        for ending in (".log", ".index"):
            report = verify(path.with_suffix(ending), index_interval_bytes=0, engine=ONE)
            assert kinds(report) == [(severity, "log-tail")], path


# ---- an index without a log


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """The indexes of one segment, elsewhere."""
    transactions(tmp_path / "t-0")
    (tmp_path / "alone").mkdir()
    for ending in FILES[1:]:
        shutil.copy(tmp_path / "t-0" / f"{13:020d}{ending}", tmp_path / "alone")
    return tmp_path / "alone" / f"{13:020d}.index"


@pytest.mark.parametrize("ending", FILES[1:])
def test_an_index_without_a_log_is_checked_by_itself(alone: Path, ending: str) -> None:
    path = alone.with_suffix(ending)
    report = verify(path, engine=ONE)
    assert report.ok
    assert kinds(report) == [("info", "log-missing")]
    size = {".index": 8, ".timeindex": 12, ".txnindex": 34}[ending]
    assert (report.files, report.segments, report.entries) == (1, 0, path.stat().st_size // size)
    path.write_bytes(path.read_bytes()[:-1])
    assert [kind for severity, kind in kinds(verify(path, engine=ONE)) if severity == "error"] == [
        {".index": "offset-index-length", ".timeindex": "time-index-length"}.get(ending, "transaction-index-length")
    ]
    assert files_of(alone.parent) == sorted(alone.with_suffix(each) for each in FILES[1:]), "nothing was made"


@pytest.mark.parametrize(
    ("ending", "content", "kind"),
    [
        (".index", struct.pack(">4i", 5, 100, 5, 200), "offset-index-order"),
        (".index", struct.pack(">2i", -5, 100), "offset-index-order"),
        (".timeindex", struct.pack(">qiqi", 9, 5, 8, 6), "time-index-order"),
        (".txnindex", struct.pack(">h4q", 0, 5, 1, 2, 3), "transaction-index-offset"),
        (".txnindex", struct.pack(">h4q", 7, 5, 13, 14, 15), "transaction-index-version"),
        (".txnindex", 2 * struct.pack(">h4q", 0, 5, 13, 14, 15), "transaction-index-order"),
    ],
)
def test_an_index_alone_that_contradicts_itself(alone: Path, ending: str, content: bytes, kind: str) -> None:
    alone.with_suffix(ending).write_bytes(content)
    report = verify(alone.with_suffix(ending), engine=ONE)
    assert kinds(report) == [("info", "log-missing"), ("error", kind)]
    assert report.actions == []


@pytest.mark.parametrize(("ending", "kind"), [(".index", "offset-index"), (".timeindex", "time-index")])
def test_zeros_behind_the_entries_of_an_index_alone_are_those_of_an_active_segment(
    alone: Path, ending: str, kind: str
) -> None:
    path = alone.with_suffix(ending)
    os.truncate(path, 1200)
    report = verify(path, engine=ONE)
    assert kinds(report) == [("info", "log-missing"), ("info", f"{kind}-unwritten")]


# ---- names


def test_a_copy_of_a_log_under_another_name_is_checked_without_indexes(tmp_path: Path) -> None:
    transactions(tmp_path / "t-0")
    copy = tmp_path / "copy.bin"
    shutil.copy(tmp_path / "t-0" / f"{13:020d}.log", copy)
    report = verify(copy, deep=True, engine=ONE)
    assert (report.ok, report.batches, kinds(report)) == (True, 2, [("info", "indexes-unknown")])
    data = copy.read_bytes()
    copy.write_bytes(data[:-1] + b"\xff" + data)
    assert not verify(copy, engine=ONE).ok


def test_files_on_their_way_in_or_out_are_taken_with_those_of_the_same_ending(tmp_path: Path) -> None:
    for suffix in (".deleted", ".cleaned", ".swap"):
        directory = tmp_path / f"t-{suffix}-0"
        transactions(directory)
        for path in sorted(directory.glob(f"{13:020d}.*")):
            path.rename(f"{path}{suffix}")
        for path in sorted(directory.glob(f"*{suffix}")):
            assert verify(path, index_interval_bytes=0, engine=ONE).findings == [], path


@pytest.mark.parametrize("name", ["notes.txt", "copy.index", f"{5:020d}.snapshot"])
def test_what_is_no_file_of_a_segment_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"text, and nothing else")
    with pytest.raises(BadMagicError, match="no file of a segment"):
        verify(tmp_path / name, engine=ONE)


def test_repair_and_rebuild_take_no_single_file(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.log").write_bytes(batch([KafkaRecord()]))
    for call in (lambda path: repair(path, engine=ONE), lambda path: rebuild(path, tmp_path / "out", engine=ONE)):
        with pytest.raises(NotADirectoryError):
            call(tmp_path / f"{0:020d}.log")
