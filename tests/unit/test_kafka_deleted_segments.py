"""Segments that a broker deletes while they are read: everybody goes on at the log's new start, and says so."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.cli.kafka import facts as facts_module
from mqindex.cli.kafka.facts import kafka_facts
from mqindex.cli.kafka.kinds import LOG_DIR, PARTITION
from mqindex.engines import LocalEngine
from mqindex.kafka import PartitionLog, rebuild, repair, verify
from mqindex.kafka.directories.survey import partitions_at
from mqindex.kafka.kinds import PartitionDirectory
from mqindex.kafka.log import log_segment as log_segment_module
from mqindex.kafka.log.segment_files import SegmentFiles
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

Delete = Callable[[Path], Any]
DELETIONS: dict[str, Delete] = {
    "deleted": lambda path: path.unlink(),
    "renamed": lambda path: path.rename(f"{path}.deleted"),
}
every_way = pytest.mark.parametrize("how", list(DELETIONS))


class Expiring(LocalEngine):
    """Something happens once, when a stage is done."""

    def __init__(self, stage: str, happen: Callable[[], None]) -> None:
        super().__init__(1)
        self._stage, self._happen = stage, happen

    def map(self, stage: Any, items: Any, *, name: str, **more: Any) -> Any:
        done = super().map(stage, items, name=name, **more)
        if name == self._stage:
            self._happen()
        return done


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Four segments of three batches; a transaction in each is aborted."""
    writer = PartitionWriter(tmp_path / "logs" / "topic-0", 10, index_interval=60)
    for segment in range(4):
        if segment:
            writer.roll()
        for _ in range(2):
            writer.append([KafkaRecord(timestamp=FIRST_TIME + writer.next_offset)], producer_id=1, transactional=True)
        writer.marker(1, timestamp=FIRST_TIME + writer.next_offset)
    writer.close()
    (writer.directory.parent / "meta.properties").touch()
    return writer.directory


def expire(partition: Path, how: str, segments: int = 2) -> None:
    for log in sorted(partition.glob("*.log"))[:segments]:
        for path in [log, *sorted(partition.glob(f"{log.stem}.*index"))]:
            DELETIONS[how](path)


@every_way
def test_verify_goes_on_at_the_new_start(how: str, partition: Path) -> None:
    report = verify(
        partition, engine=Expiring("look at the files", lambda: expire(partition, how)), index_interval_bytes=60
    )
    assert report.ok
    (finding,) = report.findings
    assert (finding.severity, finding.kind, finding.path) == ("info", "segments-gone", str(partition))
    assert finding.expected == "2 segments, from offset 10 on"
    assert str(finding.hint).endswith("the log begins at 16")
    assert report.batches == 6


@every_way
def test_a_rebuild_goes_on_at_the_new_start(how: str, partition: Path, tmp_path: Path) -> None:
    engine = Expiring("look at the files", lambda: expire(partition, how))
    report = rebuild(partition, tmp_path / "out", engine=engine, index_interval_bytes=60)
    assert report.ok
    assert [finding.kind for finding in report.findings] == ["segments-gone"]
    kept = {path.name: path.read_bytes() for path in partition.glob("*index")}
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == kept


def test_a_repair_passes_over_what_is_gone(partition: Path) -> None:
    (partition / f"{19:020d}.index").unlink()
    report = repair(
        partition, engine=Expiring("look at the files", lambda: expire(partition, "deleted")), index_interval_bytes=60
    )
    assert report.ok
    assert report.actions == [f"write {19:020d}.index"]


def test_a_topic_that_is_deleted_meanwhile_is_told(partition: Path) -> None:
    other = partition.rename(partition.parent / "other-0")
    PartitionWriter(partition).close()
    engine = Expiring("look at the files", lambda: expire(other, "deleted", 4))
    report = verify(partition.parent, engine=engine)
    assert report.ok
    (finding,) = [one for one in report.findings if one.kind == "segments-gone"]
    assert (finding.path, str(finding.hint).endswith("nothing is left")) == (str(other), True)


def test_a_cleaned_segment_is_read_again(partition: Path) -> None:
    """The cleaner puts another log, and its indexes, in the place of the old ones."""
    opened = []
    log = min(partition.glob("*.log"))
    first = log_segment_module.LogSegment.recover

    def recover(self: Any, **options: Any) -> Any:
        made = first(self, **options)
        if not opened:
            opened.append(self.path)
            log.rename(f"{log}.deleted")
            writer = PartitionWriter(partition / "cleaned", 10)
            writer.append([KafkaRecord(timestamp=FIRST_TIME)], last_offset=12)
            writer.close()
            for path in (partition / "cleaned").iterdir():
                path.rename(partition / path.name)
            (partition / f"{10:020d}.txnindex").unlink()
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_segment_module.LogSegment, "recover", recover)
        assert verify(partition, engine=LocalEngine(1), index_interval_bytes=60).ok
    assert opened


@every_way
def test_segments_that_the_cleaner_merged_meanwhile_do_not_overlap(how: str, partition: Path, tmp_path: Path) -> None:
    """The first one is the merged one already when it is read, the second is read before it goes."""
    first, second = sorted(partition.glob("*.log"))[:2]
    first.write_bytes(first.read_bytes() + second.read_bytes())
    rebuild(partition, tmp_path / "out", index_interval_bytes=60)
    for path in (tmp_path / "out").glob(f"{first.stem}.*"):
        path.rename(partition / path.name)

    def remove() -> None:
        for path in [second, *partition.glob(f"{second.stem}.*index")]:
            DELETIONS[how](path)

    report = verify(partition, index_interval_bytes=60, engine=LocalEngine(1))
    assert "segment-overlap" in {one.kind for one in report.findings}
    report = verify(partition, engine=Expiring("check the segments", remove), index_interval_bytes=60)
    assert [(one.severity, one.kind) for one in report.findings] == [("info", "segments-gone")]


@every_way
def test_what_is_open_is_read_to_its_end(how: str, partition: Path) -> None:
    with PartitionLog.open(partition) as log:
        wanted = log.read(10)["offset"].tolist(), log.offset_for_timestamp(FIRST_TIME)
        aborted = log.collect_aborted_transactions(10, 30)
    assert len(aborted) == 4
    with PartitionLog.open(partition) as log:
        expire(partition, how, 4)
        assert (log.read(10)["offset"].tolist(), log.offset_for_timestamp(FIRST_TIME)) == wanted
        assert log.collect_aborted_transactions(10, 30) == aborted
        assert log.read(10, isolation_level="read_committed").num_rows == 0
        assert log.offsets_for_timestamps([FIRST_TIME + 20, -3])[1].tolist() == [20, 21]


@every_way
def test_what_goes_before_it_is_opened_is_not_there(how: str, partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    first = log_segment_module.LogSegment.__init__

    def init(self: Any, files: SegmentFiles) -> None:
        if not opened:
            expire(partition, how, 3)
        opened.append(files.log)
        first(self, files)

    monkeypatch.setattr(log_segment_module.LogSegment, "__init__", init)
    with PartitionLog.open(partition) as log:
        assert (log.log_start_offset, log.read(19)["offset"].tolist()) == (19, [19, 20])


@pytest.mark.parametrize("kind", [PARTITION, LOG_DIR])
def test_info_goes_on_at_the_new_start(kind: str, partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    size_of = facts_module.size_of

    def late(path: str) -> int:
        if not looked and path.endswith(".log"):
            looked.append(path)
            expire(partition, "renamed")
        return size_of(path)

    monkeypatch.setattr(facts_module, "size_of", late)
    facts = kafka_facts(kind, str(partition if kind == PARTITION else partition.parent))
    assert looked
    rows = facts["segments"] if kind == PARTITION else facts["partitions"]
    assert (len(rows) if kind == PARTITION else rows[0]["segments"]) == 2


def test_a_file_that_is_missing_for_good_is_an_error(partition: Path) -> None:
    (partition / f"{40:020d}.log").symlink_to(partition / "nowhere")
    with PartitionLog.open(partition) as log:  # no file, for the listing
        assert len(log) == 4
    with pytest.raises(FileNotFoundError):
        PartitionLog.open(partition.parent / "none-0")


def test_a_partition_that_was_deleted_since_it_was_listed(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deleted_since(root: str) -> tuple[PartitionDirectory, ...]:
        found = partitions_at(root)
        shutil.rmtree(partition)
        return found

    monkeypatch.setattr(sys.modules["mqindex.kafka.directories.survey"], "partitions_at", deleted_since)
    report = verify(partition.parent, engine=LocalEngine(1))
    (one,) = [one for one in report.findings if one.kind == "partition-gone"]
    assert (one.severity, one.path, report.segments) == ("info", str(partition), 0)
