"""Kafka's partitions elsewhere: rebuilt and verified as they are on this machine, through windows of any size."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import FileStateError, OutputExistsError, ReadOnlyFileError
from mqindex.files.places import remote_file
from mqindex.files.places.place import place_of
from mqindex.files.results import elsewhere
from mqindex.kafka import (
    LogSegment,
    OffsetIndex,
    PartitionLog,
    TimeIndex,
    TransactionIndex,
    rebuild,
    repair,
    undo_repair,
    verify,
)
from mqindex.kafka.directories.partition_files import list_segments
from mqindex.kafka.log import batch_windows
from mqindex.report import Report
from tests.golden.test_kafka_rebuild import every_case, index_files, options
from tests.support.elsewhere import MemoryStorage, Ways, memory
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_damage import DAMAGE, INTERVAL, filled_log_dir
from tests.support.kafka_log_dir import ONE
from tests.support.kafka_writer import KafkaRecord, PartitionWriter, snapshot
from tests.support.nightly import one_of

__all__ = ["memory"]  # a fixture

HOW: dict[str, Any] = {"index_interval_bytes": INTERVAL, "engine": ONE}
NEEDS_A_DISK = {"files-elsewhere", "not-writable"}


def narrow(monkeypatch: pytest.MonkeyPatch, step: int, block: int = 4096) -> None:
    """Windows of so many bytes, read in blocks of so many."""
    for name, size in (("FIRST", step), ("STEP", step), ("MARGIN", step // 4)):
        monkeypatch.setattr(batch_windows, name, size)
    monkeypatch.setattr(remote_file, "_BLOCK", block)


def said(report: Report, root: Path | str) -> dict[str, Any]:
    """All of a report but what only a disk has, as if `root` was the place of the files."""
    found = dataclasses.asdict(report)
    found["findings"] = [dataclasses.asdict(one) for one in report.findings if one.kind not in NEEDS_A_DISK]
    found["start"] = None if report.start is None else {**dataclasses.asdict(report.start), "lock": None}
    del found["seconds"]
    return _placed(found, str(root))


def _placed(value: Any, root: str) -> Any:
    if isinstance(value, dict):
        return {name: _placed(one, root) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_placed(one, root) for one in value]
    return value.replace(root, "ROOT") if isinstance(value, str) else value


@pytest.mark.parametrize("step", [None, 600])
@every_case
def test_a_rebuild_from_elsewhere_is_the_same(
    name: str, step: int | None, tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    if step:
        narrow(monkeypatch, step)
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    url = f"{memory.upload(directory.parent)}/{directory.name}"
    here = rebuild(directory, tmp_path / "here", **options(case))
    there = rebuild(url, tmp_path / "there", **options(case))
    assert index_files(tmp_path / "there") == index_files(tmp_path / "here")
    assert there.path == url
    assert (there.findings, there.batches, there.entries) == (here.findings, here.batches, here.entries)


@pytest.mark.parametrize("there", [False, True])
@every_case
def test_a_rebuild_to_elsewhere_is_the_same(name: str, there: bool, tmp_path: Path, memory: Ways) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    source = f"{memory.upload(directory.parent)}/{directory.name}" if there else directory
    here, out = rebuild(directory, tmp_path / "here", **options(case)), "memory://results/one"
    made = rebuild(source, out, **options(case))
    found = memory.files(out)
    listed = {one["name"]: one["size"] for one in json.loads(found.pop("mqindex.json"))["files"]}
    assert found == index_files(tmp_path / "here")
    assert listed == {name: len(data) for name, data in found.items()}
    assert sorted(made.out_files) == sorted(f"{out}/{name}" for name in found)
    assert (made.findings, made.batches, made.entries, made.files) == (
        here.findings, here.batches, here.entries, here.files,
    )  # fmt: skip


@pytest.fixture
def both(tmp_path: Path, memory: Ways) -> tuple[Path, str]:
    """A log dir here, and a copy elsewhere."""
    log_dir = filled_log_dir(tmp_path / "log-dir")
    return log_dir, memory.upload(log_dir)


def below(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_log_dir_is_rebuilt_elsewhere(both: tuple[Path, str], memory: Ways, tmp_path: Path) -> None:
    here = rebuild(both[0], tmp_path / "here", **HOW)
    for n, source in enumerate(both):
        out = f"memory://results/{n}"
        made = rebuild(source, out, **HOW)
        found = memory.files(out)
        del found["mqindex.json"]
        assert found == below(tmp_path / "here")
        assert len(made.out_files) == len(here.out_files)
        assert said_of_rebuild(made, source) == said_of_rebuild(here, both[0])


def test_nothing_of_an_object_store_is_overwritten(both: tuple[Path, str], memory: Ways) -> None:
    log_dir, url = both
    before = memory.files(url)
    for out in (url, f"{url}/topic-0", f"{url}/topic-0/new"):
        with pytest.raises(ValueError, match="expected a place of its own"):
            rebuild(url, out, **HOW)
    for source, out in ((log_dir, url), (log_dir, f"{url}/topic-0")):
        with pytest.raises(OutputExistsError, match="the output exists and is not empty"):
            rebuild(source, out, **HOW)
    with pytest.raises(OutputExistsError, match=r"^nothing is overwritten in an object store: .*choose another prefix"):
        rebuild(log_dir, "memory://results/one", overwrite=True, **HOW)
    assert memory.files(url) == before
    assert not memory.files("memory://results")


@pytest.mark.parametrize("part", [".timeindex.", ".txnindex.", "one/topic-0/", "owner", "mqindex.json"])
def test_a_rebuild_that_fails_leaves_nothing(both: tuple[Path, str], memory: Ways, part: str) -> None:
    memory.forbidden = part
    with pytest.raises(PermissionError):
        rebuild(both[0], "memory://results/one", **HOW)
    memory.forbidden = ""
    assert not [name for name in memory.files("memory://results/one") if not name.startswith("_mqindex-")]
    rebuild(both[0], "memory://results/two", **HOW)


def test_what_a_killed_run_left_goes_and_nothing_else(
    both: tuple[Path, str], memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = both[1]

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(elsewhere, "_put_list", killed)
        patched.setattr(elsewhere, "_take_back", lambda *_: False)
        for out in ("memory://results/one", "memory://results/two"):
            with pytest.raises(KeyboardInterrupt):
                rebuild(url, out, **HOW)
    memory.put("memory://results/two/topic-0/notes", b"mine")
    with pytest.raises(FileStateError, match="another run may be writing there"):
        rebuild(url, "memory://results/one", **HOW)
    monkeypatch.setattr(elsewhere, "_QUIET", -1)
    rebuild(url, "memory://results/one", **HOW)
    found = memory.files("memory://results/one")
    rebuild(url, "memory://results/three", **HOW)
    assert found == memory.files("memory://results/three")
    with pytest.raises(OutputExistsError, match="the output exists and is not empty"):
        rebuild(url, "memory://results/two", **HOW)
    assert memory.files("memory://results/two")["topic-0/notes"] == b"mine"


@pytest.mark.parametrize("home", ["", "/topic-0"])
def test_a_result_that_is_not_finished_is_refused(both: tuple[Path, str], memory: Ways, home: str) -> None:
    out = "memory://results/one"
    rebuild(f"{both[1]}{home}", out, **HOW)
    partition = f"{out}{'/topic-0' if not home else ''}"
    assert len(list_segments(place_of(partition)).orphans) == 9
    memory.put(f"{partition}/{27:020d}.index", b"another")
    with pytest.raises(FileStateError, match=r"not as its rebuild left it.*\.index: expected .*, got 7 bytes"):
        verify(partition, **HOW)
    memory.store.delete("results/one/mqindex.json")
    memory.put(f"{out}/_mqindex-0123456789ab/owner", b"")
    with pytest.raises(FileStateError, match=r"its run has not finished: memory://results/one: expected mqindex\.json"):
        verify(partition, **HOW)


@pytest.mark.parametrize("deep", [False, True])
@every_case
def test_a_partition_elsewhere_is_verified_as_one_here(
    name: str, deep: bool, tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 600)
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    url = memory.upload(directory.parent)
    for given in (options(case), {"engine": ONE}):
        here = verify(directory, deep=deep, **given)
        there = verify(f"{url}/{directory.name}", deep=deep, **given)
        assert said(there, url) == said(here, directory.parent)
        assert there.start is not None
        assert there.start.lock == "elsewhere"
        assert [one.kind for one in there.findings].count("files-elsewhere") == 1


@pytest.mark.parametrize(("damage", "check_crc"), one_of(2, DAMAGE, [True, False]))
def test_damage_elsewhere_is_that_of_one_here(
    damage: str, check_crc: bool, tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 300, 4096)
    log_dir = filled_log_dir(tmp_path / "log-dir")
    DAMAGE[damage](log_dir)
    for directory in log_dir.rglob("*"):
        if directory.is_dir():  # an empty one is nothing elsewhere
            (directory / "notes").touch()
    url = memory.upload(log_dir)
    here, there = (verify(one, check_crc=check_crc, **HOW) for one in (log_dir, url))
    assert said(there, url) == said(here, log_dir)
    made = rebuild(log_dir, tmp_path / "here", check_crc=check_crc, **HOW)
    again = rebuild(url, tmp_path / "there", check_crc=check_crc, **HOW)
    assert said_of_rebuild(again, url) == said_of_rebuild(made, log_dir)
    assert index_files(tmp_path / "there" / "topic-0") == index_files(tmp_path / "here" / "topic-0")


def written_now(directory: Path) -> Path:
    """Where a time index is empty, the time of the file's last change counts: of a copy elsewhere that is now."""
    for path in directory.iterdir():
        path.touch()
    return directory


def answers(log: PartitionLog) -> dict[str, Any]:
    """What one partition says, by itself and by its segments."""
    offsets = range(log.log_start_offset, log.log_end_offset + 1, max(1, log.log_end_offset // 40))
    times = sorted({ms for segment in log.segments for ms in segment.batches()["max_timestamp"].tolist()})[::7]
    reads = [
        log.read(offset, max_bytes=3000, isolation_level=level)["offset"].tolist()
        for offset in offsets
        for level in ("read_uncommitted", "read_committed")
    ]
    return {
        "ends": (log.log_start_offset, log.log_end_offset, log.last_stable_offset),
        "reads": reads,
        "times": [log.offset_for_timestamp(ms) for ms in (-1, -2, -3, *times)],
        "many": [column.tolist() for column in log.offsets_for_timestamps([*times, -1, -3])],
        "positions": [log.translate_offset(offset) and log.translate_offset(offset)[1:] for offset in offsets],
        "aborted": log.collect_aborted_transactions(log.log_start_offset, log.log_end_offset),
        "segments": [of_segment(segment) for segment in log.segments],
    }


def of_segment(segment: LogSegment) -> dict[str, Any]:
    values = [value for columns in segment.records(columns=["value"]) for value in columns["value"].to_pylist()]
    return {
        "values": values,
        "positions": segment.batches()["position"].tolist(),
        "next": segment.next_offset,
        "damage": segment.damage,
        "indexes": [None if one is None else len(one) for one in (segment.offset_index, segment.time_index)],
    }


@every_case
def test_a_partition_log_elsewhere_answers_as_one_here(
    name: str, tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 600)
    directory = written_now(PartitionCase(name).closed(tmp_path))
    url = f"{memory.upload(directory.parent)}/{directory.name}"
    with PartitionLog.open(directory) as here, PartitionLog.open(url) as there:
        assert answers(there) == answers(here)


def test_a_segment_that_is_replaced_while_it_is_read_is_an_error(
    tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 4096)
    writer = PartitionWriter(tmp_path / "topic-0", 0)
    for _ in range(20):
        writer.append([KafkaRecord(b"v" * 1000)])
    writer.close()
    url = memory.upload(tmp_path)
    log = f"{url}/topic-0/{0:020d}.log"
    with LogSegment.open(log) as segment:
        parts = segment._batch_arrays()
        next(parts)
        memory.put(log, bytes(segment.size))
        with pytest.raises(FileStateError):
            list(parts)
        assert segment.is_deleted


def test_a_log_of_which_not_all_comes_is_no_damaged_one(
    tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result without the indexes of that segment was published, and a finding called its log damaged."""
    url, read = memory.upload(filled_log_dir(tmp_path / "log-dir")), MemoryStorage.read

    def short(self: MemoryStorage, path: str, *rest: Any) -> memoryview | None:
        data = read(self, path, *rest)
        return data[:-1] if data and path.endswith(".log") else data

    monkeypatch.setattr(MemoryStorage, "read", short)
    with pytest.raises(FileStateError, match="a range came back with another length"):
        rebuild(f"{url}/topic-0", "memory://results/one", **HOW)
    with pytest.raises(FileStateError, match="a range came back with another length"):
        verify(f"{url}/topic-0", **HOW)
    assert not memory.files("memory://results/one")


def test_only_what_is_needed_is_read_and_damage_reads_the_log_once_more(
    tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 8192)
    writer = PartitionWriter(tmp_path / "topic-0", 0)
    for _ in range(200):
        writer.append([KafkaRecord(b"v" * 1000)])
    writer.close()
    url, log = memory.upload(tmp_path), f"topic-0/{0:020d}.log"
    size = (tmp_path / log).stat().st_size
    with LogSegment.open(f"{url}/{log}") as segment:
        assert segment.read(150, max_bytes=1)["offset"].tolist() == [150]
        assert read_of(memory) < size // 4
        memory.ranges.clear()
        segment.recover()
        assert size <= read_of(memory) < size * 1.2
    for at, data in ((8, b"\x00\x02\xff\xff"), (50_000, b"\xff"), (size // 2, bytes(3000))):
        content = bytearray((tmp_path / log).read_bytes())
        content[at : at + len(data)] = data
        memory.put(f"{url}/{log}", bytes(content))
        memory.ranges.clear()
        with LogSegment.open(f"{url}/{log}") as segment:
            assert len(segment.batches()["position"]) < 200
        assert read_of(memory) <= 2.2 * size


def read_of(memory: Ways) -> int:
    return sum(stop - start for path, start, stop in memory.ranges if path.endswith(".log"))


def test_a_server_that_does_not_answer_is_no_missing_file(tmp_path: Path, memory: Ways) -> None:
    """Without its snapshot a partition would get another `.txnindex`."""
    log_dir = filled_log_dir(tmp_path / "log-dir")
    (log_dir / "topic-0" / f"{10:020d}.log").unlink()
    snapshot(log_dir / "topic-0" / f"{27:020d}.snapshot", (5, 20))
    (log_dir / "log-start-offset-checkpoint").write_text("0\n0\n")
    url = memory.upload(log_dir)
    for part in (".snapshot", "log-start-offset-checkpoint", f"{27:020d}.index"):
        memory.forbidden = part
        for call in (lambda: verify(url, engine=ONE), lambda: rebuild(url, tmp_path / "out", engine=ONE)):
            with pytest.raises(PermissionError, match=part):
                call()
    assert not (tmp_path / "out").exists()


def test_what_is_elsewhere_is_not_written(tmp_path: Path, memory: Ways) -> None:
    url = memory.upload(filled_log_dir(tmp_path / "log-dir"))
    for kind in (OffsetIndex, TimeIndex, TransactionIndex):
        with pytest.raises(ReadOnlyFileError, match="only files of this machine"):
            kind.open(f"{url}/topic-0/{10:020d}.{kind.kind}", writable=True)
    for call in (repair, partial(repair, dry_run=True), partial(undo_repair, backup="backup")):
        with pytest.raises(ReadOnlyFileError, match=f"^only files of this machine are written.*{url}; copy it"):
            call(url)


def said_of_rebuild(report: Any, root: Path | str) -> Any:
    return _placed([dataclasses.asdict(one) for one in report.findings], str(root))
