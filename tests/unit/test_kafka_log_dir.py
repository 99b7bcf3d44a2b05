"""What the files and directories of a Kafka log dir itself make of a broker's start: names, properties, checkpoints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.files.lock import Holder
from mqindex.kafka import PartitionLog, rebuild, repair, verify
from mqindex.kafka import report as kafka_report
from mqindex.kafka.checks.start.start_check import StartFiles, look_at_duplicates
from mqindex.kafka.directories.log_dir import duplicate_directories, list_partitions
from tests.support.kafka_log_dir import META, ONE, PROPERTIES, closed_log_dir, look, names, unclean


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return closed_log_dir(tmp_path / "logs")


# ---- its directories


@pytest.mark.parametrize(
    "name", ["lost+found", "data", "topic", "topic-x", "-1", "topic-", "mqindex-backup-20240101T000000Z"]
)
def test_a_directory_that_is_no_partition_stops_every_broker(name: str, log_dir: Path) -> None:
    (log_dir / name).mkdir()
    report, start = look(log_dir)
    assert not start.starts
    assert [(each.path, each.brokers) for each in start.obstacles] == [(str(log_dir / name), "every")]
    assert [finding.kind for finding in report.findings] == ["stray-directory"]


@pytest.mark.parametrize("state", ["", f".{32 * '1'}-future"])
def test_two_directories_of_one_partition_stop_every_broker(state: str, log_dir: Path) -> None:
    """As a broker leaves them that failed while it exchanged the two, or one that was copied by hand."""
    first = shutil.copytree(log_dir / "topic-0", log_dir / f"topic-3{state}")
    second = shutil.copytree(log_dir / "topic-0", log_dir / f"topic-03{state.replace('1', '2')}")
    report, start = look(log_dir)
    (finding,) = [one for one in report.findings if one.severity == "error"]
    assert (finding.kind, [finding.path]) == ("duplicate-directory", [each.path for each in start.obstacles])
    assert all(path.name in str(finding) for path in (first, second))
    assert start.starts is False


def test_one_that_is_to_replace_a_partition_beside_it_ends_every_broker_in_the_rename(log_dir: Path) -> None:
    """2.8.2 to 4.4.0: "FileSystemException: topic-0.11...-future -> topic-0: Directory not empty"."""
    future = shutil.copytree(log_dir / "topic-0", log_dir / f"topic-0.{32 * '1'}-future")
    report, start = look(log_dir)
    assert (start.starts, [each.path for each in start.obstacles]) == (False, [str(future)])
    assert [(one.kind, one.path) for one in report.findings if one.severity == "error"] == [
        ("duplicate-directory", str(future))
    ]


def test_a_partition_is_in_one_log_dir_of_a_broker_or_is_moved_to_a_second(log_dir: Path, tmp_path: Path) -> None:
    """Two that are in use: "Duplicate log directories for topic-0 are found in both" (2.8.2 to 4.4.0)."""
    other = tmp_path / "other"
    (other / "topic-0").mkdir(parents=True)
    (other / f"topic-1.{32 * '1'}-future").mkdir()
    (log_dir / "topic-1").mkdir()
    there = [*list_partitions(other), *list_partitions(log_dir)]
    assert duplicate_directories(there) == [(str(log_dir / "topic-0"), str(other / "topic-0"))]
    found = StartFiles(Holder("free"))
    look_at_duplicates(there, found)
    assert [each.reason for each in found.obstacles] == [
        f"a second directory of a partition, beside {other / 'topic-0'}"
    ]


def test_a_partition_has_any_that_are_no_more_its_own(log_dir: Path) -> None:
    for digit, state in (("2", "stray"), ("3", "stray"), ("4", "delete"), ("5", "delete")):
        (log_dir / f"topic-0.{32 * digit}-{state}").mkdir()
    assert look(log_dir)[1].starts


def test_directories_that_brokers_know_stop_none(log_dir: Path) -> None:
    (log_dir / "remote-log-index-cache").mkdir()
    (log_dir / "topic-1").mkdir()
    gone = log_dir / "topic-2.0123456789abcdef0123456789abcdef-delete"
    gone.mkdir()
    _, start = look(log_dir)
    assert (start.starts, start.deletes) == (True, (str(gone),))


def _stray_name(home: Path) -> Path:
    (home / "abc.index").touch()
    return home / "abc.index"


def _epochs(home: Path) -> Path:
    (home / "leader-epoch-checkpoint").write_text("x\n")
    return home / "leader-epoch-checkpoint"


def _directory(name: str, *lost: str) -> Callable[[Path], Path]:
    def change(home: Path) -> Path:
        log = min(home.glob("*.log"))
        for ending in lost:
            log.with_suffix(f".{ending}").unlink()
        path = log.with_suffix(f".{name}")
        path.unlink(missing_ok=True)
        path.mkdir()
        return path

    return change


def _deleted(log_dir: Path) -> Path:
    return shutil.copytree(log_dir / "topic-0", log_dir / "topic-2.0123456789abcdef0123456789abcdef-delete")


@pytest.mark.parametrize("change", [_stray_name, _epochs, _directory("txnindex"), _directory("timeindex", "index")])
def test_a_broker_loads_a_partition_that_is_being_deleted_first(change: Callable[[Path], Path], log_dir: Path) -> None:
    """Each of these stopped a real 4.1.0, and verify said clean."""
    path = change(_deleted(log_dir))
    report, start = look(log_dir)
    assert (start.starts, [each.path for each in start.obstacles]) == (False, [str(path)])
    (finding,) = [one for one in report.findings if one.severity == "error"]
    assert (finding.kind, finding.path) == ("deleted-not-loaded", str(path))


@pytest.mark.parametrize("change", [_directory("timeindex"), _directory("index")])
def test_an_index_that_is_not_opened_stops_no_broker(change: Callable[[Path], Path], log_dir: Path) -> None:
    """A broker opens it with the first look-up, and makes none of a partition that is being deleted longer."""
    change(_deleted(log_dir))
    report, start = look(log_dir)
    assert (report.ok, start.starts) == (True, True)


@pytest.mark.parametrize(("version", "starts"), [("3.5.2", False), ("3.6.0", False), ("3.6.1", True), (None, True)])
def test_what_a_newer_broker_put_aside_stops_one_before_3_6_1(version: str | None, starts: bool, log_dir: Path) -> None:
    """3.5.2: "Found directory ..., which is not in the form of topic-partition"; so does 3.6.0, and 3.6.1 loads it."""
    put_aside = log_dir / f"topic-0.{32 * 'a'}-stray"
    put_aside.mkdir()
    report = verify(log_dir, kafka_version=version, engine=ONE)
    assert report.start is not None
    assert report.start.starts is starts
    found = [(one.kind, one.path) for one in report.findings]
    assert found == ([] if starts else [("stray-directory", str(put_aside))])


@pytest.mark.parametrize("state", ["stray", "delete"])
def test_what_a_broker_put_aside_it_opened_and_did_not_close(state: str, log_dir: Path) -> None:
    """4.1.0 loads a stray partition at each start, and its newest indexes stay as long as those of an open segment."""
    aside = shutil.copytree(log_dir / "topic-0", log_dir / f"topic-2.{32 * 'a'}-{state}")
    for ending, size in (("index", 80), ("timeindex", 120)):
        os.truncate(aside / f"{16:020d}.{ending}", size)
    for path in (log_dir, aside):
        report = verify(path, engine=ONE)
        assert [one for one in report.findings if one.severity != "info"] == []
        assert report.start is not None
        assert (report.start.starts, report.start.recovers) == (True, 0)
        assert report.start.deletes == ((str(aside),) if state == "delete" else ())
    os.truncate(log_dir / "topic-0" / f"{16:020d}.index", 80)
    assert [one.kind for one in look(log_dir)[0].findings if one.severity == "error"] == ["offset-index-unwritten"]


# ---- meta.properties


@pytest.mark.parametrize(
    "content",
    [
        "version=7\n",
        "version=1\ncluster.id=a\n",
        "version=1\nnode.id=1\n",
        "version=1\ncluster.id=a\nnode.id=one\n",
        "broker.id=x\n",
        "broker.id=99999999999\n",
        PROPERTIES.replace("zFDW", "zFD%"),
        PROPERTIES.replace("zFDW", "zFD"),
        PROPERTIES.replace("zFDWe4lDHgAC9Rh7SXNPqA", "AAAAAAAAAAAAAAAAAAAAAQ"),  # reserved
        PROPERTIES.replace("node.id=1\n", "node.id=1\v"),
        PROPERTIES.replace("cluster.id=abc\n", "cluster.id=abc\\\n"),  # continued by the next line
        PROPERTIES.replace("cluster.id=abc", "cluster.id=\\u12"),
    ],
)
def test_properties_that_no_broker_reads_stop_it(content: str, log_dir: Path) -> None:
    (log_dir / "meta.properties").write_text(content)
    report, start = look(log_dir)
    assert names(tuple(each.path for each in start.obstacles)) == ["meta.properties"]
    assert [finding.kind for finding in report.findings] == ["meta-properties"]


@pytest.mark.parametrize(
    "content",
    [
        "broker.id=3\nversion=0\ncluster.id=x\n",
        "broker.id=3\ncluster.id=x\n",
        "version : 1\ncluster.id x\nnode.id = 4\n",
        "version=1\rcluster.id=a\x85b\r\nnode.id=\\\n\t4",
        "ver\\u0073ion=1\ncluster.id=a\nnode.id=4\ndirectory.id=zFDWe4lDHgAC9Rh7SXNPqA==\n",
    ],
)
def test_properties_of_older_brokers_are_read(content: str, log_dir: Path) -> None:
    (log_dir / "meta.properties").write_bytes(content.encode("latin-1"))
    assert look(log_dir)[1].starts


RAFT = ["bootstrap.checkpoint", "__cluster_metadata-0"]


@pytest.mark.parametrize(
    ("version", "made", "starts", "severities"),
    [
        (None, [], None, ["warning"]),  # the broker may have ZooKeeper
        ("3.9.1", [], None, ["warning"]),
        ("3.6.2", RAFT[:1], False, ["error"]),
        ("4.1.0", [], False, ["error"]),
        ("2.2.2", [], True, []),
    ],
)
@pytest.mark.parametrize(
    ("content", "lacking"),
    [
        ("", "no cluster.id"),
        ("version=0\nbroker.id=1\n", "no cluster.id"),
        ("version=0\ncluster.id=a\n", "no broker.id"),
        ("node.id=1\ncluster.id=a\n", "no broker.id"),  # the line with the version was lost
    ],
)
def test_incomplete_properties_stop_a_broker_without_zookeeper(
    content: str, lacking: str, version: str | None, made: list[str], starts: bool | None, severities: list[str],
    log_dir: Path,
) -> None:  # fmt: skip
    """3.6.2, 3.9.1 and 4.1.0 with KRaft stop at each of these, 2.8.2 with ZooKeeper starts.

    Of these files it was said that no broker starts.
    """
    (log_dir / "meta.properties").write_text(content)
    for name in made:
        (log_dir / name).touch()
    report = verify(log_dir, kafka_version=version, engine=ONE)
    found = [(one.kind, one.severity, one.got) for one in report.findings if one.path.endswith("meta.properties")]
    assert found == [("meta-properties-incomplete", severity, lacking) for severity in severities]
    assert report.start is not None
    assert report.start.starts is starts


@pytest.mark.parametrize(
    ("version", "made", "starts"),
    [
        (None, [], None),  # the broker may have ZooKeeper
        ("3.9.1", [], None),
        ("3.9.1", RAFT[:1], False),
        (None, RAFT[:1], False),
        (None, RAFT[1:], False),
        ("4.0.0", [], False),
        ("2.2.2", [], True),
    ],
)
def test_a_log_dir_without_properties_stops_a_broker_without_zookeeper(
    version: str | None, made: list[str], starts: bool | None, log_dir: Path
) -> None:
    """Whatever its other log dirs have."""
    (log_dir / "meta.properties").unlink()
    for name in made:
        (log_dir / name).mkdir() if name.startswith("__") else (log_dir / name).touch()
    report = verify(log_dir, kafka_version=version, engine=ONE)
    (finding,) = [one for one in report.findings if one.path == str(log_dir / "meta.properties")]
    assert (finding.kind, finding.severity) == ("meta-properties-missing", "warning" if starts else "error")
    assert report.start is not None
    assert report.start.starts is starts
    assert names(tuple(each.path for each in report.start.obstacles)) == ([] if starts else ["meta.properties"])


def test_a_copy_of_partitions_may_be_without_properties(log_dir: Path) -> None:
    """No broker has started on it, or there were checkpoints; on one partition it has no say."""
    for name in ("meta.properties", "recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        (log_dir / name).unlink()
    report, start = look(log_dir)
    assert [(one.severity, one.kind) for one in report.findings] == [("info", "meta-properties-missing")]
    assert "copy of partitions" in str(report.findings[0].hint)
    assert start.starts
    assert look(log_dir / "topic-0")[0].findings == []


# ---- its checkpoints


CHECKPOINTS = ["recovery-point", "log-start", "replication", "cleaner"]


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("content", [b"what\n", b"0\n2\ntopic 0 0\n", b"0\n1\ntopic\n", b"7\n", b"0\n\xff\n"])
def test_a_checkpoint_that_no_broker_reads_stops_it(name: str, content: bytes, log_dir: Path) -> None:
    """It puts the log dir offline, and stops where it has no other."""
    path = log_dir / f"{name}-offset-checkpoint"
    path.write_bytes(content)
    report, start = look(log_dir)
    (finding,) = report.findings
    assert (finding.severity, finding.kind, finding.path) == ("error", "offset-checkpoint", str(path))
    assert "puts the log dir offline, and stops if it has no other; delete the file" in str(finding.hint)
    assert start.starts is False
    assert [(each.path, each.brokers) for each in start.obstacles] == [(str(path), "from 1.0 on")]
    path.write_bytes(b"")
    assert look(log_dir)[1].starts


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_number_that_is_none_in_a_checkpoints_entry_stops_older_brokers_only(name: str, log_dir: Path) -> None:
    """From 3.1 on nothing catches Java's exception but who reads the recovery points and log starts."""
    (log_dir / f"{name}-offset-checkpoint").write_text("0\n1\ntopic 0 x\n")
    report, start = look(log_dir)
    (finding,) = report.findings
    assert (finding.severity, finding.kind, finding.field) == ("error", "offset-checkpoint", "number in an entry")
    assert "an older one puts the log dir offline" in str(finding.hint)
    assert start.starts
    old = verify(log_dir, kafka_version="3.0.2", engine=ONE).start
    assert old is not None
    assert (old.starts, [each.brokers for each in old.obstacles]) == (False, ["from 1.0 on, before 3.1"])


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b"0\n1\ntopic 0 14\n", True),
        (b"0\r\n1\r\ntopic\t+0  14 \v\r\n", True),
        (b"0\v1\ntopic 0 14\n", False),
        (b"0\n1\n topic 0 14\n", False),
        (b"0\n1\ntopic 0 1_4\n", False),
        (b"0\n1\ntopic\xc2\xa00 14\n", False),
        (b"0\n1\ntopic 99999999999 14\n", False),
        (b"0\n1\ntopic 0 99999999999999999999\n", False),
        (b"0 \n1\ntopic 0 14\n", False),
    ],
)
def test_a_checkpoint_is_read_as_java_reads_it(content: bytes, read: bool, log_dir: Path) -> None:
    (log_dir / "recovery-point-offset-checkpoint").write_bytes(content)
    assert [one.kind for one in look(log_dir)[0].findings] == ([] if read else ["offset-checkpoint"])


@pytest.mark.parametrize("name", [f"topic-0.{32 * 'a'}-future", f"topic-0.{32 * 'a'}-stray", "topic-00"])
def test_a_directory_of_another_name_has_its_partitions_checkpoints(name: str, log_dir: Path) -> None:
    """A broker looks a topic and a number up, not a directory's name."""
    unclean(log_dir)
    moved = (log_dir / "topic-0").rename(log_dir / name)
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 12\n")
    for path in (log_dir, moved):
        assert look(path)[1].recovers == 2
        with PartitionLog.open(moved) as log:
            assert log.log_start_offset == 12
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 20\n")
    report, start = look(log_dir)
    assert names(start.deletes) == [f"{base:020d}.log" for base in (10, 13, 16)]
    assert [finding.kind for finding in report.findings] == ["log-start-beyond-end"]
    (partition,) = kafka_report(log_dir, engine=ONE).partitions
    assert (partition.log_start_offset, partition.recovery_point) == (20, 14)


def test_the_metadata_log_is_recovered_at_every_start(log_dir: Path) -> None:
    """From its first segment on: KRaft has neither the sign of a clean stop for it nor a recovery point."""
    metadata = shutil.copytree(log_dir / "topic-0", log_dir / "__cluster_metadata-0")
    report, start = look(log_dir)
    assert (report.findings, start.starts, start.recovers, start.cuts) == ([], True, 0, ())
    torn = metadata / f"{13:020d}.log"
    content = bytearray(torn.read_bytes())
    content[64] ^= 1
    torn.write_bytes(content)
    for path in (log_dir, metadata, torn):
        report = verify(path, engine=ONE)
        (finding,) = [one for one in report.findings if one.kind == "log-bad-crc"]
        assert "The next start of a broker cuts the log here" in str(finding.hint), path
        if report.start is not None:
            assert (names(report.start.cuts), names(report.start.deletes)) == ([torn.name], [f"{16:020d}.log"])


def test_no_setting_of_topics_is_the_metadata_logs(log_dir: Path, tmp_path: Path) -> None:
    """KRaft's own log has the defaults: with a small segment.index.bytes of a topic the verdict was "not known"."""
    metadata = shutil.copytree(log_dir / "topic-0", log_dir / "__cluster_metadata-0")
    settings = {"index_interval_bytes": 0, "max_index_size": 24}
    for path in (log_dir, metadata, metadata / f"{10:020d}.log"):
        report = verify(path, engine=ONE, **settings)
        assert [one for one in report.findings if str(metadata) in str(one.path)] == []
        assert report.start is None or report.start.starts
    rebuild(metadata, tmp_path / "given", engine=ONE, **settings)
    rebuild(metadata, tmp_path / "default", engine=ONE)
    assert files_of(tmp_path / "given") == files_of(tmp_path / "default")
    wanted = files_of(metadata)
    (metadata / f"{13:020d}.index").unlink()
    assert repair(metadata, engine=ONE, **settings).ok
    assert {name: data for name, data in files_of(metadata).items() if name in wanted} == wanted


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


# ---- logs that are shorter than the checkpoints say


@pytest.mark.parametrize("checkpoint", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"])
@pytest.mark.parametrize("closed", [True, False])
def test_a_partition_without_files_is_lost(checkpoint: str, closed: bool, log_dir: Path) -> None:
    """It was clean, though a checkpoint says that there were records."""
    (log_dir / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (log_dir / checkpoint).write_text("0\n1\ntopic 0 19\n")
    if not closed:
        (log_dir / ".kafka_cleanshutdown").unlink()
    shutil.rmtree(log_dir / "topic-0")
    (log_dir / "topic-0").mkdir()
    report, start = look(log_dir)
    (finding,) = report.findings
    assert (finding.severity, finding.kind, finding.path) == ("error", "log-lost", str(log_dir / "topic-0"))
    assert (finding.field, finding.expected, finding.got) == ("log_end_offset", f"19, by {checkpoint}", "no segment")
    assert "goes on at offset 0: as the leader it gives lost offsets again" in str(finding.hint)
    assert start.starts
    assert verify(log_dir / "topic-0", engine=ONE).findings == [finding]


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("file", [None, f"{42:020d}.index", "partition.metadata"])
def test_a_partition_without_a_segment_begins_again(file: str | None, closed: bool, log_dir: Path) -> None:
    """It was clean: also where records were deleted a broker leaves the segment that it writes into."""
    if not closed:
        (log_dir / ".kafka_cleanshutdown").unlink()
    (log_dir / "topic-1").mkdir()
    if file is not None:
        (log_dir / "topic-1" / file).write_text(META if file == "partition.metadata" else "")
    for start in (0, 19):
        (log_dir / "log-start-offset-checkpoint").write_text(f"0\n1\ntopic 1 {start}\n")
        report, verdict = look(log_dir)
        (finding,) = (one for one in report.findings if one.kind != "orphan-index")
        assert (finding.severity, finding.kind, finding.path) == ("warning", "no-segment", str(log_dir / "topic-1"))
        assert f"makes an empty segment of offset {start}, and goes on there" in str(finding.hint)
        assert (report.ok, verdict.starts, finding.mended_by) == (True, True, None)
        assert finding in verify(log_dir / "topic-1", engine=ONE).findings


def test_a_new_metadata_log_and_what_is_no_partition_in_use_need_no_segment(log_dir: Path) -> None:
    """`kafka-storage.sh format` gives a metadata log a snapshot only."""
    metadata = log_dir / "__cluster_metadata-0"
    metadata.mkdir()
    assert [(one.kind, one.path) for one in look(log_dir)[0].findings] == [("no-segment", str(metadata))]
    (metadata / f"{0:020d}-{0:010d}.checkpoint").touch()
    for state in ("future", "stray", "delete"):
        (log_dir / f"topic-1.{32 * 'a'}-{state}").mkdir()
        assert verify(log_dir / f"topic-1.{32 * 'a'}-{state}", engine=ONE).findings == []
    assert look(log_dir)[0].findings == []


def test_the_last_segments_of_a_closed_log_are_lost(log_dir: Path) -> None:
    for path in (log_dir / "topic-0").glob(f"{16:020d}.*"):
        path.unlink()
    report, _ = look(log_dir)
    assert [(one.kind, one.got) for one in report.findings if one.severity == "error"] == [("log-lost", "16")]
    unclean(log_dir, "0\n1\ntopic 0 19\n")
    assert "log-lost" not in [one.kind for one in look(log_dir)[0].findings]  # a crash may have cut it


def test_a_stray_directory_without_files_has_lost_nothing(log_dir: Path) -> None:
    """Its partition may be in another log dir, which the checkpoints name too."""
    shutil.rmtree(log_dir / "topic-0")
    (log_dir / f"topic-0.{32 * 'a'}-stray").mkdir()
    assert look(log_dir)[0].findings == []
