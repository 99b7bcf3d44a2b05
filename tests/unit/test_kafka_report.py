"""A health report of partitions that are many, hostile, empty, refused, or half there."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mqindex import kafka
from mqindex.errors import BadMagicError
from mqindex.kafka.checks import segment_count
from mqindex.kafka.health.partition_health import Totals
from mqindex.kafka.log.codecs import CODECS
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, batch


def some(count: int, first: int = 0) -> list[KafkaRecord]:
    return [KafkaRecord(b"value" * 20, b"k", FIRST_TIME + first + at) for at in range(count)]


def write(directory: Path, batches: int = 2, *, codec: str = "none") -> Path:
    writer = PartitionWriter(directory)
    for number in range(batches):
        writer.append(some(3, 10 * number), codec=codec)
    writer.close()
    return directory


def test_the_largest_partitions_come_one_by_one_and_the_others_as_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("mqindex.kafka.report"), "DETAILED", 3)
    monkeypatch.setattr(segment_count, "DETAILED", 3)
    for number in range(5):
        write(tmp_path / f"t-{number}", number + 1)
    health = kafka.report(tmp_path)
    assert [one.name.text for one in health.partitions] == ["t-4", "t-3", "t-2"]
    assert health.totals.partitions == 5 and health.totals.batches == 15 and health.totals.records == 45
    assert (health.others.partitions, health.others.batches, health.others.records) == (2, 3, 9)
    assert health.codecs[0].batches == 15
    assert [str(share) for share in health.read.sampled if share.part == "details"] == ["details: 3 of 5 partitions"]


def test_names_are_hostile_text_and_come_as_they_are(tmp_path: Path) -> None:
    name = "<script>alert(1)<&\u202e-0"
    write(tmp_path / name)
    health = kafka.report(tmp_path)
    assert health.partitions[0].name.text == name
    assert json.loads(json.dumps(health.to_dict()))["partitions"][0]["name"] == {"text": name, "length": len(name)}


def test_an_empty_log_dir_and_an_empty_partition_are_reported(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    health = kafka.report(tmp_path)
    assert (health.kind, health.totals, health.partitions, health.codecs) == ("log dir", Totals(), (), ())
    PartitionWriter(tmp_path / "empty-0").close()
    (partition,) = kafka.report(tmp_path).partitions
    assert partition.totals == Totals(1, 1) and partition.next_offset is None
    assert (partition.stretches, partition.batch_bytes.counts, partition.time_entries_per_mib) == ((), (), None)


def test_what_is_no_log_dir_is_refused_as_by_verify(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(BadMagicError, match="neither a partition nor a log dir"):
        kafka.report(tmp_path)


def test_a_log_that_cannot_be_read_is_counted_as_unread(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append(some(2))
    writer.append_bytes(batch(some(1), 2**40), 3, FIRST_TIME)
    writer.close()
    (partition,) = kafka.report(tmp_path / "t-0").partitions
    assert (partition.totals.unread, partition.totals.batches, partition.transactions.whole) == (1, 0, False)
    (segment,) = partition.segments
    assert segment.refusal is not None and segment.time_index.state == "unknown"
    assert partition.errors


def test_a_torn_log_is_counted_up_to_its_last_good_batch(tmp_path: Path) -> None:
    log = next(write(tmp_path / "t-0", 3).glob("*.log"))
    log.write_bytes(log.read_bytes()[:-5])
    (partition,) = kafka.report(tmp_path / "t-0").partitions
    (segment,) = partition.segments
    assert (segment.batches, segment.records, partition.next_offset) == (2, 6, 6)
    assert segment.cut > 0 and segment.bytes == log.stat().st_size


def test_a_lost_time_index_is_told_and_retention_goes_by_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t-0")
    (good,) = kafka.report(path).partitions[0].segments
    assert (good.time_index.state, good.retention_timestamp) == ("good", FIRST_TIME + 12)
    next(path.glob("*.timeindex")).unlink()
    (partition,) = kafka.report(path).partitions
    (lost,) = partition.segments
    assert (partition.time_indexes_lost, lost.time_index.state, lost.time_index.bytes) == (1, "missing", None)
    assert lost.retention_timestamp == lost.modified != good.retention_timestamp


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("deep", [False, True])
def test_ratios_are_of_records_as_they_came_out(codec: str, deep: bool, tmp_path: Path) -> None:
    health = kafka.report(write(tmp_path / "t-0", codec=codec), deep=deep)
    (share,) = health.codecs
    plain = sum(len(batch(some(3, first), at)) - 61 for at, first in ((0, 0), (3, 10)))
    stored = share.bytes - 2 * 61
    assert share.codec == codec and 1 <= share.sampled <= 2
    assert share.ratio == pytest.approx(plain / stored, rel=0.05)


def test_without_the_codecs_a_ratio_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t-0", codec="zstd")
    monkeypatch.setitem(sys.modules, "cramjam", None)
    health = kafka.report(path)
    assert [(one.codec, one.batches, one.ratio, one.sampled) for one in health.codecs] == [("zstd", 2, None, 0)]
    assert str(health.read.sampled[1]) == "compression ratios: 0 of 2 compressed batches"


def test_times_that_go_back_from_one_segment_to_the_next_are_disorder(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    for first in (5000, 9000):
        writer.append(some(1, first))
    writer.roll()
    writer.append(some(1, 2000))
    writer.close()
    (partition,) = kafka.report(tmp_path / "t-0").partitions
    assert (partition.furthest_back, partition.late_batches) == (7000, 0)


def test_a_partition_of_many_segments_has_few_stretches(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    stamps = [at * 1000 + (700 if at % 3 else -5_000 * (at > 9)) for at in range(260)]
    for number, stamp in enumerate(stamps):
        if number:
            writer.roll()
        writer.append(some(1, stamp))
    writer.close()
    (partition,) = kafka.report(tmp_path / "t-0").partitions
    assert 100 <= len(partition.stretches) <= 200
    assert (partition.stretches[0].offset, partition.stretches[-1].last_offset) == (0, 259)
    for one in partition.stretches:
        own = [FIRST_TIME + stamp for stamp in stamps[one.offset : one.last_offset + 1]]
        assert (one.min_timestamp, one.max_timestamp, one.records) == (min(own), max(own), len(own))
    assert partition.furthest_back == max(max(stamps[: at + 1]) - stamp for at, stamp in enumerate(stamps))
    assert (partition.totals.segments, len(partition.segments), partition.segments[-1].base_offset) == (260, 200, 259)


def test_time_may_go_back_over_several_segments(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    for number, stamp in enumerate([9000, 5000, 1000]):
        if number:
            writer.roll()
        writer.append(some(1, stamp))
    writer.close()
    assert kafka.report(tmp_path / "t-0").partitions[0].furthest_back == 8000


def test_checkpoints_of_the_log_dir_tell_what_was_flushed_and_replicated(tmp_path: Path) -> None:
    write(tmp_path / "t-0")
    for name, offset in (("log-start-offset", 2), ("recovery-point-offset", 4), ("replication-offset", 5)):
        (tmp_path / f"{name}-checkpoint").write_text(f"0\n1\nt 0 {offset}\n")
    for path in (tmp_path, tmp_path / "t-0"):
        (partition,) = kafka.report(path).partitions
        assert (partition.log_start_offset, partition.recovery_point, partition.high_watermark) == (2, 4, 5)
    (tmp_path / "replication-offset-checkpoint").write_bytes(b"\xff")
    assert kafka.report(tmp_path).partitions[0].high_watermark is None


def test_a_small_sample_is_given_to_a_few_segments() -> None:
    from mqindex.kafka.directories.survey import Partition, Survey
    from mqindex.kafka.log.segment_files import SegmentFiles
    from mqindex.kafka.options import partition_options

    files = tuple(SegmentFiles(at, f"{at:020d}.log") for at in range(1000))
    partition = Partition("t-0", "t-0", partition_options(), files, (1 << 20,) * 1000, (), {}, 0, None)
    found = Survey("t-0", "", True, partition_options(), (partition,), ())
    (plan,) = segment_count.plan_counting(found, deep=False)
    given = [one.sample for one in plan if one.sample]
    assert 3 <= len(given) <= 20 and sum(given) <= (1000 << 20) // 4096 + (1 << 17) + (1 << 16)
    assert all(one.stretch == (1000 << 20) // 200 + 1 for one in plan)
