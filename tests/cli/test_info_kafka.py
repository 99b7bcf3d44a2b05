"""The first screen of `mqindex info` of a partition and of a log dir, and what of it programs get."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.kafka import PartitionLog
from mqindex.kafka.partition import open_transactions
from mqindex.wording.text import iso
from tests.cli.conftest import Shell
from tests.cli.test_terminal import on_a_terminal, plain
from tests.hostile.test_expiry import before_open, how_often
from tests.support.elsewhere import Ways, memory
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, snapshot

__all__ = ["memory"]  # a fixture

MONO = PartitionCase("410-plain-mono")


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    return MONO.closed(tmp_path / "logs")


def write(directory: Path, times: list[int]) -> None:
    writer = PartitionWriter(directory)
    for time in times:
        writer.append([KafkaRecord(b"value", b"key", time)])
    writer.close()


def test_a_good_partition_on_one_screen(shell: Shell, mono: Path) -> None:
    done = shell("info", mono)
    assert (done.status, done.err) == (0, "")
    assert len(done.lines) < 20
    said, size = MONO.truth["segments"], sum(path.stat().st_size for path in mono.glob("*.log"))
    for line in (
        "index      100.0 %", "timeindex  100.0 %",
        f"offsets  0 to {said[-1]['nextOffset']}",
    ):  # fmt: skip
        assert f"  {line}" in done.lines
    assert f"  log      {size} bytes" in done.out and f"in {len(said)} segments\n" in done.out
    assert done.lines[-2:] == [
        f"`mqindex info {mono} --all` lists segments and partitions",
        f"`mqindex verify {mono}` says what is wrong: only headers and ends were read here",
    ]
    assert f"\n{said[1]['base']:>11}  " in shell("info", mono, "--all").out


def test_lost_time_indexes_are_a_gap_in_the_bar(shell: Shell, mono: Path) -> None:
    second = sorted(mono.glob("*.timeindex"))[1]
    second.unlink()
    (info,) = shell("info", mono, "--json").json
    gone = second.with_suffix(".log").stat().st_size
    assert list(info)[-1] == "glance"
    assert info["glance"]["unindexed"] == {"index": 0, "timeindex": gone}
    status, _, shown = on_a_terminal("info", mono, columns=100, both=True)
    bars = [line.split()[:2] for line in plain(shown).splitlines() if "█" in line]
    assert (status, [name for name, _ in bars]) == (0, ["index", "timeindex"])
    assert "░" not in bars[0][1]
    assert bars[1][1].startswith("█") and bars[1][1].endswith("█") and "░░" in bars[1][1]


@pytest.mark.parametrize(
    ("times", "growth"),
    [
        ([FIRST_TIME, FIRST_TIME + 172_800_000], "a day"),
        ([FIRST_TIME, FIRST_TIME + 74_000], None),
        ([-1, -1], None),
        ([FIRST_TIME, 2**62], None),
        ([FIRST_TIME], None),
        ([], None),
    ],
)
def test_growth_is_told_where_times_tell_it(shell: Shell, tmp_path: Path, times: list[int], growth: str | None) -> None:
    write(tmp_path / "t-0", times)
    done = shell("info", tmp_path / "t-0")
    assert (done.status, done.err) == (0, "")
    if growth is None:
        assert "  growth   too short to tell: it needs two records a day apart" in done.out
        assert shell("info", tmp_path / "t-0", "--json").json[0]["glance"]["rates"] is None
    else:
        rates = shell("info", tmp_path / "t-0", "--json").json[0]["glance"]["rates"]
        size = next((tmp_path / "t-0").glob("*.log")).stat().st_size
        assert (rates["bytes_a_day"], rates["records_a_day"]) == (round(size / 2), 1)
        assert " a day, 1 record a day\n" in done.out


def test_the_time_that_retention_goes_by_is_shown(shell: Shell, tmp_path: Path) -> None:
    write(tmp_path / "t-0", [FIRST_TIME, FIRST_TIME + 2, FIRST_TIME + 1])
    moment = iso(FIRST_TIME + 2)
    assert f"  expiry   retention goes by {moment} for the oldest segment\n" in shell("info", tmp_path / "t-0").out
    (segment,) = (tmp_path / "t-0").glob("*.log")
    assert f"  retention goes by  {moment}\n" in shell("info", segment).out
    assert shell("info", segment, "--json").json[0]["largest_timestamp"] == FIRST_TIME + 2


def test_a_log_dir_on_one_screen(shell: Shell, mono: Path) -> None:
    home = mono.parent
    for number in range(8):
        write(home / f"small-{number}", [FIRST_TIME] * (number + 1))
    shutil.copytree(mono, home / "lost-3")
    for path in (home / "lost-3").glob("*.timeindex"):
        path.unlink()
    (home / ".lock").touch()
    (info,) = shell("info", home, "--json").json
    size = sum(path.stat().st_size for path in mono.glob("*.log"))
    assert info["glance"]["unindexed"] == {"index": 0, "timeindex": size}
    done = shell("info", home)
    assert (done.status, done.err) == (0, "")
    assert "in 14 segments of 10 partitions of 3 topics\n" in done.out
    largest = done.out[done.out.index("largest") :].splitlines()[:5]
    assert [line.split()[-4 if "KiB" in line else -3].rstrip(":") for line in largest[2:]] == [
        "small-7", "small-6", "small-5",
    ]  # fmt: skip
    assert sum(line.startswith("small") for line in shell("info", home, "--all").lines) == 8


def test_info_says_nothing_of_right_or_wrong(shell: Shell, mono: Path) -> None:
    """It said "nothing wrong is seen" of a log in which `verify` finds an error, and less of what it did see."""
    (mono.parent / "store").mkdir()
    (mono.parent / "plain-mono-00").mkdir()
    second, third = sorted(mono.glob("*.log"))[1:3]
    damaged = bytearray(second.read_bytes())
    damaged[100] ^= 1
    second.write_bytes(damaged)
    assert shell("verify", mono).status == 1
    third.with_suffix(".index").unlink()
    for place in (mono, mono.parent):
        said = shell("info", place).out
        assert not any(word in said for word in ("wrong is seen", "missing", "no broker starts", "verdict"))
        assert said.splitlines()[-1].startswith(f"`mqindex verify {place}` says what is wrong")
    (info,) = shell("info", mono.parent, "--json").json
    assert (info["strays"], info["duplicates"]) == (["store"], [["plain-mono-00", "plain-mono-0"]])
    assert "skipped names   store\n" in shell("info", mono.parent, "--all").out


def begin(writer: PartitionWriter, producer: int) -> int:
    return writer.append([KafkaRecord()], producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)


def test_open_transactions_and_the_last_stable_offset_are_said(shell: Shell, tmp_path: Path) -> None:
    """Of those behind the newest snapshot nothing was said, and no producer was named."""
    home = tmp_path / "t-0"
    writer = PartitionWriter(home)
    firsts = [begin(writer, producer) for producer in (7, 8, 9)]
    writer.roll()
    snapshot(home / f"{3:020d}.snapshot", *zip((7, 8, 9), firsts, strict=True))
    writer.marker(7)
    writer.marker(8, abort=False)
    begin(writer, 6)
    writer.close()
    said = "2 transactions: consumers of committed records stop before offset 2\n"
    assert f"  open  {said}" in shell("info", home).out
    assert "producer 9 from offset 2, producer 6 from offset 5\n" in shell("info", home).out
    (info,) = shell("info", home, "--json").json
    assert info["glance"]["transactions"] == {
        "open": 2, "as_of_offset": None, "last_stable_offset": 2,
        "producers": [{"producer_id": 9, "first_offset": 2}, {"producer_id": 6, "first_offset": 5}],
    }  # fmt: skip
    with PartitionLog.open(home) as log:
        assert log.last_stable_offset == 2


def test_what_no_snapshot_says_is_in_the_log(shell: Shell, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord()])
    begin(writer, 7)
    assert (
        "  open  1 transaction: consumers of committed records stop before offset 1\n"
        in shell("info", writer.directory).out
    )
    writer.marker(7)
    (info,) = shell("info", writer.directory, "--json").json
    assert info["glance"]["transactions"] == {
        "open": 0, "as_of_offset": None, "last_stable_offset": 3, "producers": [],
    }  # fmt: skip


def test_of_a_log_that_is_long_the_snapshots_word_is_said(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_transactions, "_MOST", 100)
    home = tmp_path / "t-0"
    write(home, [FIRST_TIME, FIRST_TIME + 1])
    assert shell("info", home, "--json").json[0]["glance"]["transactions"] is None
    snapshot(home / f"{2:020d}.snapshot", (7, 1), (8, 0))
    said = "2 transactions as of offset 2: consumers of committed records stop before offset 0\n"
    assert f"  open  {said}" in shell("info", home).out


def test_elsewhere_no_log_is_fetched_for_it(shell: Shell, memory: Ways, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    begin(writer, 7)
    for _ in range(300):
        writer.append([KafkaRecord(bytes(8192))])
    begin(writer, 8)
    writer.close()
    roots = tmp_path, memory.upload(tmp_path)
    facts = [shell("info", f"{root}/t-0", "--json").json[0]["glance"]["transactions"] for root in roots]
    assert facts[0]["open"] == 2 and facts[1] is None  # there are 2.4 MB behind what is known
    assert sum(stop - start for path, start, stop in memory.ranges if path.endswith(".log")) < 1 << 20
    snapshot(writer.directory / f"{301:020d}.snapshot", (7, 0))
    roots = tmp_path, memory.upload(tmp_path)
    facts = [shell("info", f"{root}/t-0", "--json").json[0]["glance"]["transactions"] for root in roots]
    assert facts[0] == facts[1] and facts[1]["open"] == 2


def test_a_log_dir_says_in_which_partitions_transactions_are_open(shell: Shell, tmp_path: Path) -> None:
    for number, opened in enumerate([(), ((7, 1),), ((7, 0), (8, 1))]):
        write(tmp_path / f"t-{number}", [FIRST_TIME, FIRST_TIME + 1])
        snapshot(tmp_path / f"t-{number}" / f"{2:020d}.snapshot", *opened)
    said = "3 transactions in 2 partitions, as of their newest snapshots: t-2 from offset 0, t-1 from offset 1\n"
    (tmp_path / ".lock").touch()
    assert f"  open            {said}" in shell("info", tmp_path).out
    rows = shell("info", tmp_path, "--json").json[0]["partitions"]
    assert [row["open_transactions"] for row in rows] == [None, 1, 2]


def test_deleted_segments_are_said_to_be_deleted(shell: Shell, tmp_path: Path) -> None:
    home = tmp_path / "t-0"
    writer = PartitionWriter(home)
    writer.append([KafkaRecord()] * 3)
    writer.roll()
    writer.append([KafkaRecord()])
    writer.close()
    assert shell("info", home, "--json").json[0]["glance"]["deleted"] is None
    for path in home.glob(f"{0:020d}.*"):
        path.rename(f"{path}.deleted")
    log = home / f"{0:020d}.log.deleted"
    done = shell("info", home)
    assert f"  deleted  {log.stat().st_size} bytes in 1 segment, from offset 0 on: the broker removes them" in done.out
    assert shell("info", home, "--json").json[0]["glance"]["deleted"]["segments"] == 1
    done = shell("info", log)
    assert done.status == 0 and "  state              deleted: its broker removes it soon" in done.out
    assert "  index      " not in done.out and "not there" not in done.out.partition("txnindex")[0]
    assert len(shell("dump", log, "--records", "--format", "json").json) == 3


def test_an_empty_log_dir_has_a_screen_too(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    done = shell("info", tmp_path)
    assert (done.status, done.err) == (0, "")
    assert "0 bytes in 0 segments of 0 partitions of 0 topics" in done.out


def test_a_partition_without_records_has_no_offsets(shell: Shell, tmp_path: Path) -> None:
    """`None to None` was printed, and of an empty log as many offsets as it may begin at."""
    writer = PartitionWriter(tmp_path / "t-0", 7)
    assert "  offsets  none; the next is 7\n" in shell("info", writer.directory).out
    for path in writer.directory.iterdir():
        path.unlink()
    (writer.directory / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert "  offsets  none: there is no log; is its volume mounted? A broker" in shell("info", writer.directory).out


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("delete", "being deleted"),
        ("future", "to take the place of the one in another log dir"),
        ("stray", "stray: the cluster does not know it here"),
    ],
)
def test_a_partition_that_is_not_in_use_is_listed_with_its_state(
    state: str, words: str, shell: Shell, tmp_path: Path
) -> None:
    home = tmp_path / f"t-0.{32 * '0'}-{state}"
    write(home, [FIRST_TIME])
    (tmp_path / ".lock").touch()
    size = next(home.glob("*.log")).stat().st_size
    assert f"  t-0 ({words}): {size} bytes" in shell("info", tmp_path).out
    assert f"  state  {words}\n" in shell("info", home).out


def test_a_partition_that_is_made_anew_while_it_is_read(shell: Shell, mono: Path, tmp_path: Path) -> None:
    """An empty directory in its place was "not enough values to unpack (expected 1, got 0)"."""

    def made_anew() -> None:
        mono.rename(tmp_path / "elsewhere")
        mono.mkdir()

    said = set()
    for number in range(1, how_often(mono, lambda path: shell("info", path)) + 1):
        with before_open(number, mono, made_anew):
            done = shell("info", mono)
        said.add(done.status)
        assert done.status == 0 or str(mono) in done.err, f"made anew at open {number}: {done.err}"
        mono.rmdir()
        (tmp_path / "elsewhere").rename(mono)
    assert 0 in said


def test_a_partition_with_strange_files_only_is_what_it_is_in_its_log_dir(shell: Shell, tmp_path: Path) -> None:
    partition = tmp_path / "logs" / "orders-0"
    partition.mkdir(parents=True)
    (partition / "notes.txt").write_text("mine")
    done = shell("info", partition)
    assert (
        done.err == f"mqindex: {partition} is named as a Kafka partition and has no segment; is its volume mounted?\n"
    )
    (partition.parent / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    done = shell("info", partition)
    assert (done.status, "none: there is no log; is its volume mounted?" in done.out) == (0, True)
    (partition / "30.log").write_text("")
    of_both = [
        {one["kind"] for one in shell("verify", path, "--json").json[0]["findings"]}
        for path in (partition, partition.parent)
    ]
    assert "segment-name" in of_both[0] & of_both[1]
