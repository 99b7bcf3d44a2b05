"""The commands on Kafka's files: golden partitions with the broker's own answers, damage, what is refused."""

from __future__ import annotations

import csv
import fcntl
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqindex.wording.text import iso
from tests.cli.conftest import Shell, process
from tests.support.consumed import consumed
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_damage import DAMAGE, filled_log_dir
from tests.support.kafka_damage import INTERVAL as FILLED
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

TXN = PartitionCase("410-txn")
MONO = PartitionCase("410-plain-mono")
INTERVAL = ["--index-interval-bytes", str(MONO.truth["config"]["index.interval.bytes"])]


@pytest.fixture
def txn(tmp_path: Path) -> Path:
    return TXN.closed(tmp_path)


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    """Three segments of increasing times; their files as old as today, which was so when the truth was told."""
    directory = MONO.closed(tmp_path)
    for log in directory.glob("*.log"):
        os.utime(log)
    return directory


def file_of(directory: Path, said: dict[str, Any], extension: str) -> Path:
    return directory / f"{said['base']:020d}.{extension}"


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


# ---- info, and how a path is known


@pytest.mark.parametrize("records", [0, 1, 40])
@pytest.mark.parametrize("preallocated", [0, 100_000])
def test_info_of_a_segment_that_is_being_written_tells_the_greatest_time(
    records: int, preallocated: int, shell: Shell, tmp_path: Path
) -> None:
    writer = PartitionWriter(tmp_path / "t-0", index_interval=200)
    for number in range(records):
        writer.append([KafkaRecord(b"value" * 5, timestamp=FIRST_TIME + number)])
    writer.preallocate(12_000)
    if preallocated:
        os.truncate(writer.path(), preallocated)
    os.utime(writer.path(), (5, 5))
    (info,) = shell("info", writer.path(), "--json").json
    assert info["largest_timestamp"] == (FIRST_TIME + records - 1 if records else 5000)


def test_info_of_a_segment_tells_its_log_and_its_indexes(shell: Shell, txn: Path) -> None:
    for said in TXN.truth["segments"]:
        done = shell("info", file_of(txn, said, "log"), "--json")
        (info,) = done.json
        assert (done.status, info["schema"], info["kind"]) == (0, "mqindex.info/1", "segment")
        assert (info["base_offset"], info["next_offset"]) == (said["base"], said["nextOffset"])
        assert info["largest_timestamp"] == said["largestTimestampFromIndex"]
        assert info["index"]["entries"] == len(said["offsetIndex"])
        assert info["timeindex"]["entries"] == len(said["timeIndex"])
        assert info["txnindex"]["entries"] == len(said["txnIndex"])


@pytest.mark.parametrize(
    ("extension", "kind", "truth"),
    [
        ("index", "offset-index", "offsetIndex"),
        ("timeindex", "time-index", "timeIndex"),
        ("txnindex", "transaction-index", "txnIndex"),
    ],
)
def test_info_of_an_index(shell: Shell, txn: Path, extension: str, kind: str, truth: str) -> None:
    said = TXN.truth["segments"][1]
    path = file_of(txn, said, extension)
    (info,) = shell("info", path, "--json").json
    assert (info["kind"], info["base_offset"], info["entries"]) == (kind, said["base"], len(said[truth]))
    assert info["size"] == path.stat().st_size
    if truth == "timeIndex":
        assert [info["last_timestamp"], info["last_offset"]] == said[truth][-1]
        assert iso(info["last_timestamp"]) in shell("info", path).out


def test_zeros_behind_the_entries_are_told_apart(shell: Shell, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "live-0", index_interval=0)
    for _ in range(3):
        writer.append([KafkaRecord()])
    writer.close()
    writer.preallocate()
    assert f"2, then {1_310_720 - 2} places of zeros" in shell("info", writer.path("index")).out
    assert len(shell("dump", writer.path("index"), "--json").json) == 2


def test_info_of_a_partition_lists_its_segments(shell: Shell, mono: Path) -> None:
    missing, *_ = sorted(mono.glob("*.timeindex"))
    missing.unlink()
    (mono / "notes.txt").write_text("not Kafka's")
    (info,) = shell("info", mono, "--json").json
    assert (info["kind"], info["topic"], info["partition"]) == ("partition", "plain-mono", 0)
    assert (info["log_start_offset"], info["next_offset"]) == (0, MONO.truth["segments"][-1]["nextOffset"])
    assert [(one["base_offset"], one["index"]) for one in info["segments"]] == [
        (said["base"], len(said["offsetIndex"])) for said in MONO.truth["segments"]
    ]
    assert info["segments"][0]["timeindex"] is None
    assert info["strays"] == ["notes.txt"]
    assert "missing" in shell("info", mono, "--all").out


def test_info_has_the_log_start_of_the_checkpoint(shell: Shell, mono: Path) -> None:
    """Records before it were deleted, though their segment is still there."""
    (mono.parent / "log-start-offset-checkpoint").write_text("0\n1\nplain-mono 0 5\n")
    (info,) = shell("info", mono, "--json").json
    assert (info["log_start_offset"], info["start_before_segments"]) == (5, None)
    assert f"offsets  5 to {info['next_offset']}" in shell("info", mono).out


@pytest.mark.filterwarnings("default:.*looks for times in tiered storage first")
def test_a_log_that_begins_before_its_segments_is_told(shell: Shell, mono: Path) -> None:
    """Tiered storage has the others: a time was answered with the first record that is here, and nothing was said."""
    first, second = sorted(mono.glob("*.log"))[:2]
    for path in mono.glob(f"{first.stem}.*"):
        path.unlink()
    base = int(second.stem)
    (mono.parent / "log-start-offset-checkpoint").write_text("0\n1\nplain-mono 0 0\n")
    words = f"offsets 0 to {base - 1} are in tiered storage, which is not read, or were deleted"
    (info,) = shell("info", mono, "--json").json
    assert (info["log_start_offset"], info["start_before_segments"]) == (base, 0)
    assert words in shell("info", mono).out
    by_time = shell("query", mono, "--timestamp", "0")
    assert by_time.status == 0 and words in by_time.err and "looks for times in tiered storage first" in by_time.err
    below = shell("query", mono, "--offset", "0", "--offset", str(base))
    assert (below.status, below.err.count(words)) == (0, 1)
    assert shell("query", mono, "--offset", str(base)).err == ""
    ends = shell("query", mono, "--timestamp=-2", "--timestamp=-4", "--json").json
    assert [row["found_offset"] for row in ends] == [0, base]
    (mono.parent / "log-start-offset-checkpoint").write_text("0\n0\n")  # deleted, and not tiered
    assert shell("query", mono, "--timestamp", "0").err == ""


def test_info_of_a_log_dir_lists_its_partitions(shell: Shell, mono: Path) -> None:
    log_dir = mono.parent
    shutil.copytree(mono, log_dir / "other-topic-12")
    (info,) = shell("info", log_dir, "--json").json
    assert (info["kind"], info["lock"], info["clean_shutdown"]) == ("log-dir", "absent", False)
    assert [(one["topic"], one["partition"], one["segments"]) for one in info["partitions"]] == [
        ("other-topic", 12, 3),
        ("plain-mono", 0, 3),
    ]
    (log_dir / ".kafka_cleanshutdown").touch()
    assert "clean_shutdown  yes" in shell("info", log_dir).out


def test_an_index_that_leads_astray_hides_no_other_fact(shell: Shell, mono: Path) -> None:
    last = MONO.truth["segments"][-1]
    file_of(mono, last, "index").write_bytes(b"\x7f" * 80)
    for path in (mono, file_of(mono, last, "log")):
        done = shell("info", path, "--json")
        assert (done.status, done.json[0]["next_offset"]) == (2, None)
        assert done.json[0]["size"] > 0
        assert "an entry leads outside the log" in done.err


def test_a_snapshot_tells_of_producers(shell: Shell, tmp_path: Path) -> None:
    """The state that the broker wrote when transactions were left open."""
    opened = PartitionCase("410-txn-open")
    directory = opened.closed(tmp_path)
    path = sorted(directory.glob("*.snapshot"))[-1]
    (info,) = shell("info", path, "--json").json
    rows = shell("dump", path, "--json").json
    assert (info["kind"], info["offset"], info["producers"]) == ("producer-snapshot", int(path.stem), len(rows))
    assert info["open_transactions"] == sum(row["first_offset"] >= 0 for row in rows) > 0
    fields = opened.truth["batch_fields"]
    batches = [dict(zip(fields, row, strict=True)) for one in opened.truth["segments"] for row in one["batches"]]
    last = {one["producerId"]: one for one in batches if not one["isControl"]}
    for row in rows:
        said = last[row["producer_id"]]
        assert (row["producer_epoch"], row["last_offset"]) == (said["producerEpoch"], said["lastOffset"])
        assert row["last_sequence"] == said["baseSequence"] + said["count"] - 1
    path.write_bytes(path.read_bytes()[:-1])
    assert "the snapshot has another length" in shell("dump", path).err


def test_an_empty_log_dir_is_known_by_its_files(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert shell("info", tmp_path, "--json").json[0]["kind"] == "log-dir"


@pytest.mark.parametrize("name", ["282-magic0", "282-magic1-plain", "410-codecs"])
def test_a_log_is_known_by_its_content_whatever_its_name(shell: Shell, tmp_path: Path, name: str) -> None:
    segment = PartitionCase(name).truth["segments"][-1]
    log = PartitionCase(name).closed(tmp_path) / f"{segment['base']:020d}.log"
    copy = tmp_path / "copy.bin"
    shutil.copy(log, copy)
    (info,) = shell("info", copy, "--json").json
    assert (info["kind"], info["index"]) == ("segment", None)
    assert segment["base"] <= info["base_offset"] <= segment["batches"][0][3], "as much as the first batch tells"
    assert info["next_offset"] == segment["nextOffset"]
    assert shell("dump", copy, "--json").out == shell("dump", log, "--json").out
    last = str(segment["nextOffset"] - 1)
    where = [shell("query", path, "--offset", last, "--json").out for path in (log, copy)]
    assert where[0] == where[1]


def test_an_index_needs_the_name_that_tells_its_offsets(shell: Shell, mono: Path) -> None:
    copy = mono.parent / "copy.index"
    shutil.copy(mono / f"{0:020d}.index", copy)
    done = shell("info", copy, "--kind", "offset-index")
    assert (done.status, done.out) == (2, "")
    assert "the name has no base offset" in done.err


@pytest.mark.parametrize("command", ["info", "verify"])
def test_neither_the_other_broker_s_room_nor_what_a_slip_or_a_writer_needs_is_loaded(mono: Path, command: str) -> None:
    program = f"import sys; from mqindex.cli import main; main([{command!r}, {str(mono)!r}]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "mqindex.kafka" in loaded
    assert loaded & {"mqindex.rocketmq", "difflib", "shutil"} == set()


def test_a_partition_of_more_segments_than_files_open_by_default(tmp_path: Path) -> None:
    """Only the hard limit is one; a shell's soft one is raised."""
    partition, batch = tmp_path / "many-0", "0000001839268c3301000000018bcfe56800000000016b0000000176"
    partition.mkdir()
    for offset in range(100):
        (partition / f"{offset:020d}.log").write_bytes(offset.to_bytes(8, "big") + bytes.fromhex(batch))
    limit = "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (64, r.getrlimit(r.RLIMIT_NOFILE)[1]))"
    program = f"{limit}; import sys; from mqindex.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "query", str(partition), "--offset", "77", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{77:020d}.log" in done.stdout


def test_verify_in_a_pipe_loads_what_it_uses(mono: Path) -> None:
    program = "import sys; from mqindex.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", program, "verify", str(mono)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded & {"rich", "json", "uuid", "tempfile", "mqindex.health", "mqindex.cli.kafka.facts"} <= {"uuid"}
    assert len({name for name in loaded if name.partition(".")[0] == "mqindex"}) <= 143


# ---- dump


@pytest.mark.parametrize(
    ("extension", "truth", "titles"),
    [
        ("index", "offsetIndex", ["number", "offset", "position"]),
        ("timeindex", "timeIndex", ["number", "timestamp", "offset"]),
    ],
)
def test_entries_are_those_of_the_broker(
    shell: Shell, txn: Path, extension: str, truth: str, titles: list[str]
) -> None:
    said = TXN.truth["segments"][0]
    path = file_of(txn, said, extension)
    names, *rows = csv.reader(io.StringIO(shell("dump", path, "--format", "csv").out))
    assert names == titles
    assert [list(map(int, row)) for row in rows] == [[n, *entry] for n, entry in enumerate(said[truth])]
    assert [list(one.values())[1:] for one in shell("dump", path, "--json").json] == [
        list(map(int, row)) for row in rows
    ]
    assert shell("dump", path).lines[0].split() == titles


def test_aborted_transactions_are_those_of_the_broker(shell: Shell, txn: Path) -> None:
    said = TXN.truth["segments"][2]
    rows = shell("dump", file_of(txn, said, "txnindex"), "--json").json
    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    assert [[row[name] for name in names] for row in rows] == said["txnIndex"]


def test_batches_are_those_of_the_broker(shell: Shell, txn: Path) -> None:
    fields = TXN.truth["batch_fields"]
    said = [
        (one["base"], dict(zip(fields, row, strict=True))) for one in TXN.truth["segments"] for row in one["batches"]
    ]
    rows = shell("dump", txn, "--json").json
    assert [(row["segment"], row["position"], row["last_offset"], row["crc"]) for row in rows] == [
        (base, one["position"], one["lastOffset"], one["crc"]) for base, one in said
    ]
    table = shell("dump", file_of(txn, TXN.truth["segments"][0], "log"))
    assert len(table.lines) == 1 + len(TXN.truth["segments"][0]["batches"])
    assert iso(said[0][1]["maxTimestamp"]) in table.lines[1]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    writer = PartitionWriter(tmp_path / "w-0", 5)
    writer.append([KafkaRecord(b"v\xff", b"k", FIRST_TIME, [("h", b"x"), ("n", None)]), KafkaRecord(None, None)])
    writer.close()
    return tmp_path / "w-0"


@pytest.mark.parametrize("form", ["json", "csv", "table"])
def test_records_in_every_format(shell: Shell, written: Path, form: str) -> None:
    done = shell("dump", written, "--records", "--format", form)
    assert (done.status, done.err) == (0, "")
    assert (r"v\xff" if form == "table" else "dv8=") in done.out  # bytes that are no text, and no other text is
    assert '"h"' in done.out.replace('""', '"')
    assert (iso(FIRST_TIME) if form == "table" else str(FIRST_TIME)) in done.out


def test_records_as_arrow(written: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    done = process("dump", written, "--records", "--format", "arrow")
    assert (done.returncode, done.stderr) == (0, b"")
    first, second = pa.ipc.open_stream(done.stdout).read_all().to_pylist()
    assert first["value"] == b"v\xff"
    assert first["headers"] == [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]
    assert (second["key"], second["value"], second["offset"]) == (None, None, 6)


@pytest.mark.parametrize("rows", ["records", "batches"])
def test_what_a_consumer_of_an_isolation_level_gets(shell: Shell, tmp_path: Path, rows: str) -> None:
    """Aborted records and control markers were mixed into the data, and nothing could leave them out."""
    partition = PartitionCase("410-txn-open").closed(tmp_path)
    option = ["--records"] if rows == "records" else []
    name = "offset" if option else "last_offset"
    everything = shell("dump", partition, "--json", *option).json
    assert any(row["is_control" if option else "attributes"] for row in everything)
    for level in ("read_uncommitted", "read_committed"):
        dumped = shell("dump", partition, "--json", *option, "--isolation-level", level).json
        expected = consumed(partition, level)
        assert {row[name] for row in dumped} <= set(expected)
        if option:
            assert [row["offset"] for row in dumped] == expected
            assert not any(row["is_control"] for row in dumped)
        assert 0 < len(dumped) < len(everything)
    log = min(partition.glob("*.log"))
    of_one = shell("dump", log, "--json", *option, "--isolation-level", "read_committed").json
    assert {row[name] for row in of_one} <= set(consumed(partition, "read_committed"))


@pytest.mark.parametrize("option", [[], ["--records"]])
def test_a_log_dir_is_dumped_partition_by_partition(shell: Shell, tmp_path: Path, option: list[str]) -> None:
    directory, expected = tmp_path / "logs", []
    directory.mkdir()
    for name in ("410-codecs", "410-txn"):
        one = PartitionCase(name).closed(tmp_path / name)
        one.rename(directory / one.name)
    for path in sorted(directory.iterdir()):
        topic, _, number = path.name.rpartition("-")
        rows = shell("dump", path, "--json", *option).json
        expected += [{**row, "topic": topic, "partition": int(number)} for row in rows]
    assert shell("dump", directory, "--json", *option).json == expected


@pytest.mark.parametrize("option", [[], ["--records"]])
def test_an_empty_partition_still_has_its_columns(shell: Shell, tmp_path: Path, option: list[str]) -> None:
    PartitionWriter(tmp_path / "e-0").close()
    for form in ("csv", "table"):
        done = shell("dump", tmp_path / "e-0", "--format", form, *option)
        assert (done.status, done.err) == (0, "")
        assert "segment" in done.out
        assert ("value" in done.out) == bool(option)


def test_damage_of_a_log_is_told_and_the_rest_printed(shell: Shell, mono: Path) -> None:
    second = MONO.truth["segments"][1]
    log = file_of(mono, second, "log")
    bad = second["batches"][3]
    with log.open("r+b") as file:
        file.seek(bad[0] + 8)
        file.write(b"\0\0\0\1")
    for option in ([], ["--records"]):
        done = shell("dump", mono, "--json", *option)
        assert done.status == 1
        assert done.err.count("\n") == 1
        assert f"{log} field length at byte {bad[0]}: " in done.err
        assert {row["segment"] for row in done.json if "damage" not in row} == {
            said["base"] for said in MONO.truth["segments"]
        }
    assert len(shell("dump", log, "--json").json) == len(second["batches"])  # one less, and what is said of it


# ---- query


def test_times_are_answered_as_by_the_broker(shell: Shell, mono: Path) -> None:
    asked = MONO.truth["log"]["fetchOffsetByTimestamp"]
    stdin = "\n".join(str(row[0]) for row in asked).encode()
    done = shell("query", mono, "--timestamp", "-", "--json", stdin=stdin)
    assert done.status == 0
    assert [(one["timestamp"], one["found_timestamp"], one["found_offset"]) for one in done.json] == [
        (ms, None if offset is None or offset < 0 else found, None if offset is None or offset < 0 else offset)
        for ms, found, offset in asked
    ]


def test_a_time_is_a_line_for_people(shell: Shell, mono: Path) -> None:
    ms = MONO.truth["segments"][1]["timeIndex"][3][0]
    done = shell("query", mono, "--timestamp", iso(ms), "--timestamp", "9999999999999")
    assert (done.status, done.err) == (0, "")
    assert done.lines[0].split() == ["timestamp", "found_offset", "found_timestamp", "time"]
    (row,) = done.lines[1:]
    assert (row.split()[0], row.split()[-1]) == (str(ms), iso(ms))
    assert shell("query", mono, "--timestamp", "9999999999999").status == 1


def test_offsets_lead_to_their_batches(shell: Shell, mono: Path) -> None:
    for said in MONO.truth["segments"]:
        rows = said["translateOffset"]
        targets = [part for row in rows for part in ("--offset", str(row[0]))]
        done = shell("query", file_of(mono, said, "log"), *targets, "--json")
        assert [(one["position"], one["size"], one["base_offset"]) for one in done.json] == [
            (row[2], row[3], row[1]) if row[1] is not None else (None, None, None) for row in rows
        ]
    last = MONO.truth["segments"][-1]
    done = shell("query", mono, "--offset", str(last["base"]), "--offset", str(last["nextOffset"]), "--json")
    assert [one["segment"] for one in done.json] == [str(file_of(mono, last, "log")), None]


def test_an_index_alone_answers_as_the_broker_s_class(shell: Shell, mono: Path) -> None:
    said = MONO.truth["segments"][1]
    for extension, option, truth in (("index", "--offset", "offsetLookup"), ("timeindex", "--timestamp", "timeLookup")):
        rows = said[truth][:200]
        stdin = "\n".join(str(row[0]) for row in rows).encode()
        done = shell("query", file_of(mono, said, extension), option, "-", "--json", stdin=stdin)
        assert [list(one.values())[1:] for one in done.json] == rows


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected either --offset or --timestamp, got none"),
        (["--offset", "1", "--timestamp", "1"], "expected either --offset or --timestamp, got both"),
        (["--offset", "x"], "--offset: 'x': expected an offset"),
        (["--offset", str(2**63)], "--offset: expected 64 bits, got more"),
        (["--timestamp", "yesterday"], "--timestamp: 'yesterday': expected ms since the epoch"),
        (["--topic", "T", "key"], "--max-num are for RocketMQ"),
        (["--offset", "1", "--begin", "5"], "--max-num are for RocketMQ"),
        (["--offset", "1", "--hash-slot-num", "5"], "--hash-slot-num is an option for RocketMQ"),
        (["--offset", "1", "--broker-conf", "x"], "--broker-conf is an option for RocketMQ"),
    ],
)
def test_a_wrong_question_is_one_sentence(shell: Shell, mono: Path, arguments: list[str], words: str) -> None:
    done = shell("query", mono, *arguments)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("extension", "option", "words"),
    [
        ("index", "--timestamp", "is a Kafka offset index: expected --offset"),
        ("timeindex", "--offset", "is a Kafka time index: expected --timestamp"),
        ("txnindex", "--offset", "is a Kafka transaction index: expected "),
        ("snapshot", "--timestamp", "is a snapshot of Kafka producers: expected "),
    ],
)
def test_an_index_is_asked_for_what_it_holds(shell: Shell, txn: Path, extension: str, option: str, words: str) -> None:
    done = shell("query", file_of(txn, TXN.truth["segments"][1], extension), option, "5")
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("extension", ["index", "timeindex", "txnindex", "snapshot"])
def test_records_are_asked_of_logs_only(shell: Shell, txn: Path, extension: str) -> None:
    done = shell("dump", file_of(txn, TXN.truth["segments"][1], extension), "--records")
    assert (done.status, done.out) == (2, "")
    assert done.err == "mqindex: --records is for segments and partitions: an index holds no record\n"
    done = shell("dump", file_of(txn, TXN.truth["segments"][1], extension), "--isolation-level", "read_committed")
    assert done.err == "mqindex: --isolation-level is for segments and partitions: an index holds no record\n"


# ---- verify, repair, rebuild


def test_a_lost_time_index_is_found_and_brought_back(shell: Shell, mono: Path) -> None:
    """What no broker does."""
    before = contents(mono)
    late = MONO.truth["segments"][-1]["timeIndex"][-1][0]
    right = shell("query", mono, "--timestamp", str(late), "--json").json
    for path in mono.glob("*.timeindex"):
        path.unlink()
    assert shell("query", mono, "--timestamp", str(late)).status == 1, "the broker's answer without it: none"
    found = shell("verify", mono, *INTERVAL)
    assert (found.status, found.err) == (1, "")
    assert any(line.startswith("error: time-index-missing, 3 times. ") for line in found.lines)
    assert f"`mqindex repair {' '.join([str(mono), *INTERVAL])}` would:" in found.lines
    (dry,) = shell("repair", mono, *INTERVAL, "--dry-run", "--json").json
    assert (dry["ok"], len(dry["actions"]), list(mono.glob("*.timeindex"))) == (False, 3, [])
    done = shell("repair", mono, *INTERVAL)
    assert done.status == 0
    assert any(line.startswith(f"repaired {mono}: wrote 3 files, ") for line in done.lines)
    assert shell("query", mono, "--timestamp", str(late), "--json").json == right
    assert shell("verify", mono, *INTERVAL, "--deep").status == 0
    kept = {name: data for name, data in contents(mono).items() if not name.startswith("mqindex-backup-")}
    assert kept == before


def test_an_intact_partition_is_clean(shell: Shell, mono: Path) -> None:
    done = shell("verify", mono, *INTERVAL)
    assert (done.status, done.err) == (0, "")
    assert ": clean" in done.lines[0] and "6 index files" in done.out
    assert "3 segments" in done.out
    (report,) = shell("verify", mono, *INTERVAL, "--json").json
    assert (report["schema"], report["ok"], report["segments"]) == ("mqindex.verify/1", True, 3)


def test_rebuild_gives_the_broker_s_files(shell: Shell, mono: Path, tmp_path: Path) -> None:
    before = contents(mono)
    done = shell("rebuild", mono, "--out", tmp_path / "out", *INTERVAL)
    assert done.status == 0
    assert any(line.startswith(f"rebuilt {tmp_path / 'out'}: 6 files, ") for line in done.lines)
    wanted = {name: content for name, content in before.items() if name.endswith("index")}
    assert contents(tmp_path / "out") == wanted
    assert contents(mono) == before


def test_a_log_dir_is_rebuilt_partition_by_partition(shell: Shell, mono: Path, tmp_path: Path) -> None:
    shutil.copytree(mono, mono.parent / "copy-1")
    assert shell("rebuild", mono.parent, "--out", tmp_path / "out", *INTERVAL).status == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["copy-1", "plain-mono-0"]
    assert shell("verify", mono.parent, *INTERVAL).status == 0
    refused = shell("rebuild", mono.parent, "--out", tmp_path / "out")
    assert (refused.status, "--force" in refused.err) == (2, True)


def test_a_held_log_dir_is_read_but_not_repaired(shell: Shell, mono: Path) -> None:
    program = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.lockf(f,fcntl.LOCK_EX,1,0); print(flush=True); input()"
    lock = mono.parent / ".lock"
    (mono / f"{0:020d}.timeindex").unlink()
    broker = subprocess.Popen(
        [sys.executable, "-c", program, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        assert shell("info", mono, "--json").json[0]["lock"] == "held"
        assert shell("verify", mono).status == 1
        done = shell("repair", mono)
        broker.communicate("\n")
    assert (done.status, done.out) == (2, "")
    assert str(lock) in done.err
    with lock.open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)


@pytest.mark.parametrize("extension", ["log", "index", "timeindex", "txnindex"])
def test_one_file_of_a_partition_is_verified(shell: Shell, txn: Path, extension: str) -> None:
    interval = ["--index-interval-bytes", str(TXN.truth["config"]["index.interval.bytes"])]
    path = file_of(txn, TXN.truth["segments"][1], extension)
    done = shell("verify", path, *interval, "--deep")
    assert (done.status, done.err) == (0, "")
    assert ": clean" in done.lines[0] and "3 index files, " in done.out
    assert "1 segment, 66 batches" in done.out
    path.write_bytes(path.read_bytes()[:-1])
    done = shell("verify", path, *interval)
    assert done.status == 1
    assert done.lines[next(i for i, line in enumerate(done.lines) if line.startswith("error")) + 1].startswith(
        f"  {path.name}"
    )
    if extension != "log":
        assert f"`mqindex repair {' '.join([str(txn), *interval])}` would:" in done.lines
        assert f"  write {path.name} anew" in done.lines
    (report,) = shell("verify", path, "--json").json
    assert (report["schema"], report["ok"], report["path"]) == ("mqindex.verify/1", False, str(path))
    for other in TXN.truth["segments"][::2]:
        assert shell("verify", file_of(txn, other, extension), *interval).status == 0


def test_an_index_without_a_log_and_a_log_without_its_name_are_verified_by_themselves(
    shell: Shell, mono: Path, tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    index, copy = place / f"{0:020d}.index", place / "copy.bin"
    shutil.copy(mono / index.name, index)
    done = shell("verify", index)
    assert (done.status, done.err) == (0, "")
    assert "info: log-missing. " in done.out
    assert ": clean" in done.lines[0] and "1 index file, " in done.out
    shutil.copy(mono / f"{0:020d}.log", copy)
    done = shell("verify", copy, "--deep")
    assert (done.status, "info: indexes-unknown. " in done.out) == (0, True)


@pytest.mark.parametrize("command", ["repair", "rebuild"])
@pytest.mark.parametrize("extension", ["log", "index", "timeindex"])
def test_a_file_of_a_partition_is_told_what_was_expected(
    shell: Shell, mono: Path, tmp_path: Path, command: str, extension: str
) -> None:
    out = ["--out", tmp_path / "out"] if command == "rebuild" else []
    done = shell(command, mono / f"{0:020d}.{extension}", *out)
    assert (done.status, done.out) == (2, "")
    assert f"did you mean {mono}?" in done.err


def test_options_of_the_other_broker_are_refused(shell: Shell, mono: Path, tmp_path: Path) -> None:
    for command in (["rebuild", "--out", tmp_path / "out"], ["repair"]):
        done = shell(*command, mono, "--parts", "index")
        assert (done.status, "--parts is for RocketMQ" in done.err) == (2, True)
    done = shell("verify", mono, "--commitlog", "x")
    assert "--commitlog is an option for RocketMQ" in done.err


def test_the_kafka_version_is_checked(shell: Shell, mono: Path) -> None:
    done = shell("verify", mono, "--kafka-version", "newest")
    assert (done.status, done.out) == (2, "")
    assert "kafka_version: expected numbers and dots" in done.err


@pytest.mark.parametrize("content", [b"", b"\0" * 7, b"\xff" * 100, b"text, and nothing else, for quite a while"])
def test_garbage_ends_in_an_answer_or_one_sentence(shell: Shell, tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "garbage-0"
    place.mkdir()
    for extension in ("log", "index", "timeindex", "txnindex", "snapshot"):
        (place / f"{9:020d}.{extension}").write_bytes(content)
    paths = [place, *sorted(place.iterdir())]
    for path in paths:
        for command in (["info"], ["dump"], ["dump", "--records"], ["verify"], ["query", "--offset", "9"]):
            done = shell(command[0], path, *command[1:])
            assert done.status in (0, 1, 2)
            assert "a bug in mqindex" not in done.err, (command, path, done.err)
    assert sorted(place.iterdir()) == paths[1:], "nothing was created"


@pytest.mark.parametrize("sentinel", ["-1", "-2", "-3", "-5"])
def test_the_ends_of_a_partition_are_not_asked_of_a_segment(sentinel: str, shell: Shell, mono: Path) -> None:
    log = min(mono.glob("*.log"))
    done = shell("query", log, "--timestamp", sentinel)
    assert done.status == 2
    assert f"--timestamp {sentinel} asks for an end of a partition" in done.err
    assert str(mono) in done.err
    assert shell("query", log, "--timestamp", "-6").status == 0, "a time before 1970"


def test_good_batches_of_a_damaged_log_are_given_up_only_by_a_switch(shell: Shell, tmp_path: Path) -> None:
    log_dir = filled_log_dir(tmp_path)
    DAMAGE["log zero newest"](log_dir)
    index = log_dir / "topic-0" / f"{44:020d}.index"
    words = ["repair", str(log_dir), "--index-interval-bytes", str(FILLED)]
    assert "nothing to do" in shell(*words).out
    told = shell(*words, "--cut-damaged", "--dry-run")
    assert (told.status, index.exists()) == (1, True)
    assert "with all good batches behind: 4 (7 records)" in " ".join(told.out.split())
    assert (shell(*words, "--cut-damaged").status, index.exists()) == (1, False)
