"""What a broker's next start would make of a Kafka log dir: whether it comes up, what it cuts and deletes."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.kafka import repair, verify
from mqindex.report import Start
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase
from tests.support.kafka_log_dir import META, ONE, closed_log_dir, look, names, unclean
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, batch, crc32c
from tests.support.locks import held


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return closed_log_dir(tmp_path / "logs")


def test_a_log_dir_that_was_closed_starts_as_it_is(log_dir: Path) -> None:
    report, start = look(log_dir)
    assert report.findings == []
    assert start == Start(True, lock="absent")


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_brokers_start_on_what_brokers_left(name: str, tmp_path: Path) -> None:
    _, start = look(PartitionCase(name).closed(tmp_path))
    assert start.starts
    assert (start.deletes, start.cuts, start.recovers) == ((), (), 0)


# ---- what is in the way


def test_a_repair_is_not_done_while_something_is_in_the_way_of_a_start(log_dir: Path) -> None:
    (log_dir / "meta.properties").write_text("version=7\n")
    os.truncate(log_dir / "topic-0" / "00000000000000000010.timeindex", 0)
    kinds = [finding.kind for finding in look(log_dir)[0].findings if finding.severity == "error"]
    assert [one.kind for one in repair(log_dir, dry_run=True, engine=ONE).findings] == kinds
    report = repair(log_dir, engine=ONE)
    assert (report.ok, report.files) == (False, 1)
    assert [one.kind for one in report.findings if one.severity == "error"] == ["meta-properties"]
    assert [finding.kind for finding in look(log_dir)[0].findings] == ["meta-properties"]


@pytest.mark.parametrize("name", ["notes.log", ".index", "x.timeindex", "copy.snapshot", "a.cleaned", "b.swap"])
def test_a_file_with_a_segments_ending_and_no_offset_stops_it(name: str, log_dir: Path) -> None:
    (log_dir / "topic-0" / name).touch()
    _, start = look(log_dir)
    assert (start.starts, names(tuple(each.path for each in start.obstacles))) == (False, [name])


def test_other_files_stop_none(log_dir: Path) -> None:
    (log_dir / "topic-0" / "notes.txt").touch()
    (log_dir / "README").touch()
    assert look(log_dir)[1].starts


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: -1\ntopic_id: eBhZQWkgQB6Yh7vKbPQ1Sg",
        b"version: 0\n",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: eBhZQWkgQB6Yh7vKbPQ/Sg",
        b"version: 0\vtopic_id: eBhZQWkgQB6Yh7vKbPQ1Sg",
        b"versi\xefn: 0\ntopic_id: eBhZQWkgQB6Yh7vKbPQ1Sg",
        b"x",
    ],
)
def test_a_partitions_metadata_that_no_broker_reads_stops_it(content: bytes, log_dir: Path) -> None:
    (log_dir / "topic-0" / "partition.metadata").write_bytes(content)
    report, start = look(log_dir)
    assert [(each.brokers, Path(each.path).name) for each in start.obstacles] == [("from 2.8 on", "partition.metadata")]
    assert [finding.kind for finding in report.findings] == ["partition-metadata"]


@pytest.mark.parametrize(
    "content", ["version: 1\ntopic_id: eBhZQWkgQB6Yh7vKbPQ1Sg", "version: 0\r\ntopic_id: eBhZQWkgQB6Yh7vKbPQ1Sg==\n"]
)
def test_a_partitions_metadata_of_a_later_broker_is_read(content: str, log_dir: Path) -> None:
    """4.1 takes any version from 0 on, so that a downgrade is possible."""
    (log_dir / "topic-0" / "partition.metadata").write_bytes(content.encode())
    assert look(log_dir)[0].findings == []


def test_a_partition_with_another_topic_id_is_told(log_dir: Path) -> None:
    """A broker does not serve it: it takes it for one of a topic that was deleted."""
    for number in (1, 2):
        shutil.copytree(log_dir / "topic-0", log_dir / f"topic-{number}")
    shutil.copytree(log_dir / "topic-0", log_dir / "other-0")
    stray = shutil.copytree(log_dir / "topic-0", log_dir / f"topic-3.{32 * '0'}-stray")
    for home in (log_dir / "other-0", stray):
        (home / "partition.metadata").write_text(META.replace("eBh", "eBi"))
    assert look(log_dir)[0].findings == []
    other = log_dir / "topic-1" / "partition.metadata"
    other.write_text(META.replace("eBh", "eBi"))
    (finding,) = look(log_dir)[0].findings
    assert (finding.severity, finding.kind, finding.path) == ("warning", "topic-id", str(other))
    assert (finding.expected, finding.got) == (
        "eBhZQWkgQB6Yh7vKbPQ1Sg, as 2 other partitions of topic", "eBiZQWkgQB6Yh7vKbPQ1Sg",
    )  # fmt: skip


def test_epochs_that_no_broker_reads_stop_it(log_dir: Path) -> None:
    (log_dir / "topic-0" / "leader-epoch-checkpoint").write_text("0\n5\n")
    report, start = look(log_dir)
    assert names(tuple(each.path for each in start.obstacles)) == ["leader-epoch-checkpoint"]
    assert [finding.kind for finding in report.findings] == ["leader-epoch-checkpoint"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("topic-0/leader-epoch-checkpoint", "leader-epoch-checkpoint"),
        ("topic-0/partition.metadata", "partition-metadata"),
        ("meta.properties", "meta-properties"),
        ("cleaner-offset-checkpoint", "offset-checkpoint"),
    ],
)
def test_what_is_no_file_in_a_small_files_place_stops_it(
    name: str, kind: str, make: Callable[[Path], None], log_dir: Path
) -> None:
    """The whole check ended there, with "Is a directory"."""
    (log_dir / name).unlink(missing_ok=True)
    make(log_dir / name)
    report, start = look(log_dir)
    assert start.starts is False
    assert str(log_dir / name) in [each.path for each in start.obstacles]
    (found,) = [each for each in report.findings if each.kind == kind]
    assert (found.severity, found.got) == ("error", "a directory" if make is os.mkdir else "a special file")


@pytest.mark.parametrize(
    ("name", "severity", "meant"),
    [
        ("30.log", "error", f"{30:020d}.log"),
        (f"{30:021d}.log", "error", f"{30:020d}.log"),
        ("+30.copy.log", "error", f"{30:020d}.log"),
        ("-5.log", "error", f"-{5:020d}.log"),
        (f"{2**63 - 1:020d}.log", "error", f"{2**63 - 1:020d}.log"),
        ("10.log", "warning", f"{10:020d}.log"),
        (f"{10:020d}.copy.log", "warning", f"{10:020d}.log"),
        ("10.timeindex", "warning", f"{10:020d}.timeindex"),
        ("13.snapshot", "warning", f"{13:020d}.snapshot"),
    ],
)
def test_an_offset_that_is_not_20_digits_is_told(name: str, severity: str, meant: str, log_dir: Path) -> None:
    """A broker starts, takes it for a segment's, and makes that of 20 digits; it was passed over without a word."""
    path = log_dir / "topic-0" / name
    shutil.copy(log_dir / "topic-0" / f"{10:020d}.log", path)
    report, start = look(log_dir)
    assert start.starts
    assert [(one.severity, one.kind, one.path, one.expected) for one in report.findings] == [
        (severity, "segment-name", str(path), meant)
    ]
    assert repair(log_dir, engine=ONE).ok is (severity != "error")
    assert path.exists()


@pytest.mark.parametrize("target", ["nowhere", "leader-epoch-checkpoint"], ids=["nowhere", "itself"])
def test_a_checkpoint_that_leads_nowhere_stops_it(target: str, log_dir: Path) -> None:
    """A broker that starts makes no file where a link is, and then finds none."""
    path = log_dir / "topic-0" / "leader-epoch-checkpoint"
    path.unlink()
    path.symlink_to(target)
    report, start = look(log_dir)
    assert [each.path for each in start.obstacles] == [str(path)]
    assert [(one.kind, one.got) for one in report.findings] == [(path.name, "a link that leads nowhere")]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
@pytest.mark.parametrize(
    ("number", "ending", "starts"),
    [
        (10, "txnindex", False),
        (16, "txnindex", False),
        (10, "index", True),
        (16, "index", False),
        (16, "timeindex", False),
    ],
)
def test_an_index_that_is_no_file_is_one_finding_and_goes_to_the_backup(
    make: Callable[[Path], None], number: int, ending: str, starts: bool, log_dir: Path
) -> None:
    """A `.txnindex` was passed over. A broker opens each of these, of the others at first only the newest."""
    path = log_dir / "topic-0" / f"{number:020d}.{ending}"
    path.unlink(missing_ok=True)
    make(path)
    report, start = look(log_dir)
    assert ([each.path for each in start.obstacles], start.recovers) == ([] if starts else [str(path)], 0)
    assert [(one.severity, one.kind, one.path) for one in report.findings] == [("error", "index-not-a-file", str(path))]
    assert repair(log_dir, engine=ONE).ok
    assert path.is_file() is (ending != "txnindex")
    assert look(log_dir)[0].findings == []


@pytest.mark.parametrize("name", [f"{10:020d}.txnindex", f"{13:020d}.snapshot"])
def test_a_link_to_nothing_that_a_broker_passes_over_is_told(name: str, log_dir: Path) -> None:
    (log_dir / "topic-0" / name).symlink_to("nowhere")
    report, start = look(log_dir)
    assert start.starts
    assert [(one.severity, Path(str(one.path)).name, one.got) for one in report.findings] == [
        ("warning", name, "a link that leads nowhere")
    ]


@pytest.mark.parametrize("starts", [False, True])
def test_a_transaction_index_of_another_version_stops_a_broker(starts: bool, log_dir: Path) -> None:
    """But where an earlier entry makes the broker write the file anew."""
    segment = sorted((log_dir / "topic-0").glob("*.log"))[1]
    entry = struct.Struct(">h4q")
    early = entry.pack(0, 7, 1, 2, 3) if starts else b""
    index = segment.with_suffix(".txnindex")
    index.write_bytes(early + entry.pack(0x100, 7, 13, 14, 15))
    report, start = look(log_dir)
    assert names(tuple(each.path for each in start.obstacles)) == ([] if starts else [index.name])
    assert "transaction-index-version" in {finding.kind for finding in report.findings}
    for version in (1, -1):  # 4.4.0: "Unexpected aborted transaction version 1", 4.3.1 looks at one byte of it
        index.write_bytes(early + entry.pack(version, 7, 13, 14, 15))
        for named, taken in (("4.3.1", True), ("4.4.0", starts), (None, starts)):
            start = verify(log_dir, kafka_version=named, engine=ONE).start
            assert start is not None
            assert start.starts is taken
            assert [each.brokers for each in start.obstacles] == (
                [] if taken else ["every" if named else "from 4.4 on"]
            )
    index.write_bytes(entry.pack(0x100, 7, 13, 14, 15))
    segment.with_suffix(".index").unlink()
    assert look(log_dir)[1].starts  # it is recovered, with all its indexes


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")
@pytest.mark.parametrize("name", [".", "topic-0", "*.log", "*.index", "*.timeindex"])
def test_what_the_owner_of_the_log_may_not_write_stops_a_broker(name: str, log_dir: Path) -> None:
    """A repair by root without owners, or a copy: the broker starts, and puts the log dir offline."""
    for path in (log_dir, *log_dir.rglob("*")):
        os.chown(path, 12345, 12345)
    assert look(log_dir)[1].starts
    path = log_dir / name if "*" not in name else sorted((log_dir / "topic-0").glob(name))[0]
    os.chown(path, 0, 0)
    report, start = look(log_dir)
    assert [Path(each.path) for each in start.obstacles] == [path]
    (finding,) = [one for one in report.findings if one.severity == "error"]
    assert (finding.kind, finding.expected) == ("not-writable", "writable for user 12345")
    assert look(log_dir / "topic-0")[1].starts is (name == ".")


# ---- what it would recover, cut and delete


@pytest.mark.parametrize(
    ("point", "segments"), [("0\n1\ntopic 0 14\n", 2), ("0\n1\ntopic 0 19\n", 1), (None, 3), ("0\n1\ntopic 0 x\n", 3)]
)
def test_an_unclean_stop_is_recovered_from_the_recovery_point(point: str | None, segments: int, log_dir: Path) -> None:
    unclean(log_dir, point)
    report, start = look(log_dir)
    assert (start.starts, start.recovers, start.cuts) == (True, segments, ())
    unread = point is not None and "x" in point
    assert [finding.kind for finding in report.findings] == (["offset-checkpoint"] if unread else [])


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(("size", "starts"), [(36, True), (24, None)])
def test_an_index_with_no_place_for_all_entries_stops_a_recovery(
    size: int, starts: bool | None, indexed: bool, log_dir: Path
) -> None:
    """As after segment.index.bytes was made smaller: 4.1.0 ends with "Attempt to append to a full time index"."""
    settings = {"index_interval_bytes": 0, "max_index_size": size}
    closed = verify(log_dir, engine=ONE, **settings).start
    assert closed is not None
    assert closed.starts, "it recovers nothing"
    last = log_dir / "topic-0" / f"{16:020d}.log"
    if indexed:
        unclean(log_dir, "0\n1\ntopic 0 19\n")
    else:
        last.with_suffix(".index").unlink()
    report = verify(log_dir, engine=ONE, **settings)
    assert report.start is not None
    assert report.start.starts is starts
    stopped = [] if starts else [str(last)]
    assert [one.path for one in report.start.obstacles] == stopped
    full = [one for one in report.findings if one.kind == "log-refused"]
    assert [(one.severity, one.path, one.got) for one in full] == [("warning", path, size) for path in stopped]


def test_a_recovery_cuts_a_torn_log_and_drops_what_follows(log_dir: Path) -> None:
    unclean(log_dir)
    torn = log_dir / "topic-0" / f"{13:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-5])
    _, start = look(log_dir)
    assert names(start.cuts) == [torn.name]
    assert names(start.deletes) == [f"{16:020d}.log"]
    assert start.recovers == 1
    (log_dir / ".kafka_cleanshutdown").touch()
    _, start = look(log_dir)
    assert (start.cuts, start.deletes, start.recovers) == ((), (), 0), "after a clean stop nothing is read"


def test_a_log_that_a_recovery_cuts_below_its_start_is_deleted(log_dir: Path) -> None:
    """As 4.1.0 does it; only the cut and what follows it were told."""
    unclean(log_dir)
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 16\n")
    torn = log_dir / "topic-0" / f"{13:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-5])
    report, start = look(log_dir)
    assert names(start.cuts) == [torn.name]
    assert sorted(names(start.deletes)) == [f"{base:020d}.log" for base in (10, 13, 16)]
    (found,) = (one for one in report.findings if one.kind == "log-start-beyond-end")
    assert (found.expected, found.got) == (15, 16)
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 15\n")
    _, start = look(log_dir)
    assert names(start.deletes) == [f"{16:020d}.log"]


def test_a_segment_without_index_is_recovered_when_it_is_loaded(log_dir: Path) -> None:
    """Before the recovery of an unclean stop, which finds nothing more to cut then, and drops nothing."""
    unclean(log_dir)
    torn = log_dir / "topic-0" / f"{13:020d}.log"
    whole = torn.read_bytes()
    torn.write_bytes(whole[:-5])
    torn.with_suffix(".index").unlink()
    _, start = look(log_dir)
    assert (names(start.cuts), start.deletes, start.recovers) == ([torn.name], (), 2)
    torn.write_bytes(2 * whole[: 2 * len(whole) // 3])  # batches twice: the load fails on them
    report = verify(log_dir, index_interval_bytes=0, engine=ONE)
    assert report.start is not None
    assert (report.start.starts, report.start.cuts, report.start.deletes) == (False, (), ())
    assert names(tuple(each.path for each in report.start.obstacles)) == [torn.name]


@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_whose_transaction_index_begins_elsewhere_is_recovered_when_it_is_loaded(
    clean: bool, log_dir: Path
) -> None:
    if not clean:
        unclean(log_dir, "0\n1\ntopic 0 19\n")
    torn = log_dir / "topic-0" / f"{13:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-5])
    torn.with_suffix(".txnindex").write_bytes(struct.pack(">hqqqq", 0, 7, 10, 12, 13))
    _, start = look(log_dir)
    assert (names(start.cuts), start.deletes, start.recovers) == ([torn.name], (), 1 if clean else 2)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(("offset", "starts"), [(2**31 + 100, True), (3, False)])
def test_offsets_that_are_too_far_from_the_base_split_a_segment(
    offset: int, starts: bool, clean: bool, tmp_path: Path
) -> None:
    """Brokers before 1.1 wrote such. Below the base offset nothing can be split."""
    writer = PartitionWriter(tmp_path / "topic-0", 10, index_interval=0)
    writer.append([KafkaRecord()] * 3)
    writer.append_bytes(batch([KafkaRecord()], offset), 14, FIRST_TIME)
    writer.roll()
    writer.close()
    (tmp_path / (".kafka_cleanshutdown" if clean else ".lock")).touch()
    if clean:
        (writer.directory / f"{10:020d}.index").unlink()
    report, start = look(tmp_path)
    assert (start.starts, start.deletes, start.cuts) == (starts, (), ())
    (one,) = [one for one in report.findings if one.kind == "log-refused"]
    assert ("splits it" in str(one.hint)) == starts


def last_log(log_dir: Path) -> Path:
    return max((log_dir / "topic-0").glob("*.log"))


@pytest.mark.parametrize(
    ("spoil", "kind", "starts"),
    [
        (lambda log: log + bytes(1), "log-tail", True),
        (lambda log: log + bytes(17), "log-tail", True),
        (lambda log: log + bytes(18), "log-bad-length", False),
        (lambda log: log + bytes(4096), "log-bad-length", False),
        (lambda log: log + b"\xff" * 40, "log-bad-length", False),
        (lambda log: log[:-7], "log-tail", True),
        (lambda log: log[:-7] + b"\xff" * 7, "log-bad-crc", True),
        (lambda log: log[:-7] + b"\xff" * 7 + bytes(18), "log-bad-crc", False),
    ],
    ids=["a zero", "17 zeros", "18 zeros", "zeros", "a bad length", "torn", "a checksum", "a checksum, zeros"],
)
def test_nothing_cuts_the_bad_end_of_a_log_after_a_clean_stop(
    spoil: Callable[[bytes], bytes], kind: str, starts: bool, log_dir: Path
) -> None:
    last = last_log(log_dir)
    last.write_bytes(spoil(last.read_bytes()))
    for _ in range(2):
        report, start = look(log_dir)
        found = {one.kind: one for one in report.findings if one.path == str(last)}
        assert found[kind].severity == "error"
        assert "remove .kafka_cleanshutdown" in str(found[kind].hint)
        assert (start.starts, [one.path for one in start.obstacles]) == (starts, [] if starts else [str(last)])
        assert not repair(log_dir, engine=ONE).ok  # the indexes get right, the log stays
    (log_dir / ".kafka_cleanshutdown").unlink()
    report, start = look(log_dir)
    assert (start.starts, names(start.cuts)) == (True, [last.name])


def test_a_bad_length_before_the_last_index_entry_is_not_read_at_the_start(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=0)
    for _ in range(4):
        writer.append([KafkaRecord()])
    writer.close()
    (tmp_path / ".kafka_cleanshutdown").touch()
    log = bytearray(writer.path().read_bytes())
    log[len(log) // 4 + 8] ^= 0x80
    writer.path().write_bytes(log)
    _, start = look(tmp_path)
    assert start.starts  # a broker of 4.1 reads from the last entry on
    writer.path("index").write_bytes(writer.path("index").read_bytes()[:-16])
    _, start = look(tmp_path)
    assert not start.starts


def test_a_lost_index_is_recovered_after_a_clean_stop_too(log_dir: Path) -> None:
    (log_dir / "topic-0" / f"{13:020d}.index").unlink()
    _, start = look(log_dir)
    assert (start.starts, start.recovers) == (True, 1)


@pytest.mark.parametrize(("lost", "anew"), [(("timeindex",), False), (("index", "timeindex"), True)])
def test_a_time_index_is_made_anew_where_the_offset_index_is_lost_too(
    lost: tuple[str, ...], anew: bool, log_dir: Path
) -> None:
    for ending in lost:
        (log_dir / "topic-0" / f"{13:020d}.{ending}").unlink()
    report, start = look(log_dir)
    (found,) = (one for one in report.findings if one.kind == "time-index-missing")
    assert start.recovers == anew
    assert ("make both anew" in str(found.hint)) is anew
    assert ("creates an empty one" in str(found.hint)) is not anew


@pytest.mark.parametrize(("lost", "anew"), [(("txnindex",), False), (("index", "txnindex"), True)])
def test_a_transaction_index_is_made_anew_where_the_offset_index_is_lost_too(
    lost: tuple[str, ...], anew: bool, tmp_path: Path
) -> None:
    writer = PartitionWriter(tmp_path / "topic-0")
    writer.append([KafkaRecord()], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    writer.marker(1)
    writer.close()
    (tmp_path / ".kafka_cleanshutdown").touch()
    for ending in lost:
        writer.path(ending).unlink()
    report, start = look(tmp_path)
    (found,) = (one for one in report.findings if one.kind == "transaction-index-missing")
    assert (found.severity, start.recovers) == ("error", anew)
    assert ("make both anew" in str(found.hint)) is anew
    assert str(found.hint).startswith("consumers") is not anew


def test_a_log_below_its_start_is_deleted(log_dir: Path) -> None:
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 20\n")
    report, start = look(log_dir)
    assert names(start.deletes) == [f"{base:020d}.log" for base in (10, 13, 16)]
    assert [finding.kind for finding in report.findings] == ["log-start-beyond-end"]


def test_a_log_start_that_the_leader_epochs_contradict_is_told(log_dir: Path) -> None:
    """A broker moves both; after a crash the epochs may be those of before."""
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 14\n")
    report, start = look(log_dir)
    (finding,) = report.findings
    assert (finding.severity, finding.kind, finding.got) == ("warning", "log-start-beyond-epoch", 14)
    assert start.starts
    epochs = log_dir / "topic-0" / "leader-epoch-checkpoint"
    epochs.write_text("0\n1\n0 14\n")
    assert look(log_dir)[0].findings == []
    epochs.write_text("0\n1\n0 10\n")
    (log_dir / ".kafka_cleanshutdown").unlink()
    assert look(log_dir)[0].findings == []


@pytest.mark.parametrize("lost", ["removed", "emptied"])
@pytest.mark.parametrize(
    ("cleaned", "severity"),
    [(None, "info"), ("0\n0\n", "warning"), ("0\n1\ntopic 0 1\n", "info"), ("0\n1\ntopic 0 1000000\n", None)],
)
def test_a_segment_that_is_missing_is_a_gap_unless_the_log_is_compacted(
    cleaned: str | None, severity: str | None, lost: str, log_dir: Path
) -> None:
    """A whole segment was lost, and the partition was clean."""
    first, second, third, *_ = sorted((log_dir / "topic-0").glob("*.log"))
    for path in (log_dir / "topic-0").glob(f"{second.stem}.*"):
        path.unlink() if lost == "removed" else path.write_bytes(b"")
    if cleaned is not None:
        (log_dir / "cleaner-offset-checkpoint").write_text(cleaned)
    report, start = look(log_dir)
    assert start.starts
    found = [(each.severity, each.path, each.expected, each.got) for each in report.findings]
    expected = f"the next records at offset {int(second.stem)}"
    assert found == ([] if severity is None else [(severity, str(first), expected, int(third.stem))])


def test_what_is_to_take_a_partition_s_place_may_have_been_compacted_in_the_other_log_dir(log_dir: Path) -> None:
    """It copies what is left there, and the checkpoint of its own log dir knows of no compaction."""
    (log_dir / "cleaner-offset-checkpoint").write_text("0\n0\n")
    for path in (log_dir / "topic-0").glob(f"{13:020d}.*"):
        path.unlink()
    (log_dir / "topic-0").rename(log_dir / f"topic-0.{32 * '1'}-future")
    assert [(one.kind, one.severity) for one in look(log_dir)[0].findings] == [("segment-gap", "info")]


def test_leftovers_and_orphans_are_deleted(log_dir: Path) -> None:
    (log_dir / "topic-0" / f"{1:020d}.log.deleted").touch()
    (log_dir / "topic-0" / f"{2:020d}.index").touch()
    assert names(look(log_dir)[1].deletes) == [f"{1:020d}.log.deleted", f"{2:020d}.index"]


@pytest.mark.parametrize("closed", [True, False])
def test_a_snapshot_above_the_log_s_end_is_deleted(closed: bool, log_dir: Path) -> None:
    """The log's last segment was lost: of its snapshot it was said that the start deletes nothing, and that it does."""
    last = max((log_dir / "topic-0").glob("*.log"))
    told = log_dir / "topic-0" / f"{19:020d}.snapshot"
    told.write_bytes(struct.pack(">hI", 1, crc32c(bytes(4))) + bytes(4))
    if not closed:
        unclean(log_dir, "0\n0\n")
    assert names(look(log_dir)[1].deletes) == []
    last.write_bytes(b"")
    report, start = look(log_dir)
    assert names(start.deletes) == [told.name]
    (lost,) = (one for one in report.findings if one.kind == "log-end")
    assert "restore the segment from another replica" in str(lost.hint)


@pytest.mark.parametrize("spoil", [lambda data: data[:-1], lambda data: b"", lambda data: data[:-1] + b"\1"])
def test_a_snapshot_that_no_broker_reads_is_told(spoil: Callable[[bytes], bytes], log_dir: Path) -> None:
    """A broker takes an older one, and what only this one knew is forgotten."""
    body = struct.pack(">iqhiqiqiq", 1, 5, 0, 0, 12, 0, 0, 0, -1)
    good = struct.pack(">hI", 1, crc32c(body)) + body
    path = log_dir / "topic-0" / f"{13:020d}.snapshot"
    path.write_bytes(good)
    assert look(log_dir)[0].findings == []
    path.write_bytes(spoil(good))
    for report in (look(log_dir)[0], repair(log_dir, engine=ONE)):
        assert [(one.severity, one.kind, one.path) for one in report.findings] == [
            ("warning", "producer-snapshot", str(path))
        ]
    with held(log_dir / ".lock"):  # it may be about to be complete
        assert look(log_dir)[0].findings == []


# ---- who holds it


def test_who_holds_the_lock_is_told(log_dir: Path) -> None:
    (log_dir / ".lock").touch()
    assert look(log_dir)[1].lock == "free"
    with held(log_dir / ".lock") as pid:
        _, start = look(log_dir)
        assert (start.lock, start.lock_pid) == ("held", pid)
        assert start.lock_holder


def test_one_file_has_no_start(log_dir: Path) -> None:
    assert verify(log_dir / "topic-0" / f"{10:020d}.log", engine=ONE).start is None


@pytest.mark.parametrize(("version", "trimmed"), [("4.3.1", True), ("4.4.0", False), (None, False)])
def test_a_metadata_log_that_a_broker_left_is_as_it_leaves_it(
    version: str | None, trimmed: bool, log_dir: Path
) -> None:
    """From 4.4 on its indexes keep the length of open ones; a recovery of it at every start is nothing to tell."""
    writer = PartitionWriter(log_dir / "__cluster_metadata-0", 0)
    writer.append([KafkaRecord(timestamp=FIRST_TIME)])
    writer.close()
    for ending, length in (("index", 10485760), ("timeindex", 10485756)):
        os.truncate(writer.directory / f"{0:020d}.{ending}", length)
    report = verify(log_dir, engine=ONE, **({} if version is None else {"kafka_version": version}))
    assert report.start == Start(True, lock="absent")
    told = [(one.kind, one.severity) for one in report.findings]
    assert told == [("offset-index-unwritten", "info"), ("time-index-unwritten", "info")] * trimmed
