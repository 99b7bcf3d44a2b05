"""`mqindex messages`: what is in a log, for people and for programs, of both brokers."""

from __future__ import annotations

import csv
import gc
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer, active_count
from typing import Any

import numpy as np
import pytest

from mqindex import kafka, rocketmq
from mqindex.cli.arrow_rows import interruptible
from mqindex.cli.printing.formats import FORMATS
from mqindex.columns.columns import Columns
from mqindex.kafka.scanning.segment_reader import SegmentReader
from tests.cli.conftest import COMMAND, Shell, Store, process
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_writer import KafkaRecord, PartitionWriter


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zone maps of tests are not the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def offsets(root: Path, **asked: Any) -> list[int]:
    return [at for batch in rocketmq.scan(root, cache=False, **asked) for at in batch["phy_offset"].tolist()]


def test_messages_of_a_topic_a_time_and_a_key(shell: Shell, lost: Store) -> None:
    everything = offsets(lost.root)
    assert [row["phy_offset"] for row in shell("messages", lost.root, "--json").json] == everything
    begin, end = "2023-03-30T09:43:58.552Z", "2023-03-30T09:44:00Z"
    done = shell("messages", lost.root, "--begin", begin, "--end", end, "--format", "ndjson")
    assert [row["phy_offset"] for row in done.json] == offsets(lost.root, begin=1680169438552, end=1680169440000)
    (row,) = shell("messages", lost.root, "--topic", "LostTopic", "--key", "ORD59361344", "--json").json
    assert row["schema"] == "mqindex.messages/1"
    assert (row["phy_offset"], row["keys"], row["store_timestamp"]) == (666, "ORD59361344", 1680170238552)
    assert row["properties"]["KEYS"] == "ORD59361344" and isinstance(row["body"], str)


def test_keys_of_standard_input(shell: Shell, lost: Store) -> None:
    done = shell(
        "messages", lost.root, "--key", "-", "--columns", "phy_offset,keys", "--format", "csv",
        stdin=b"user-3\nORD59361344\n",
    )  # fmt: skip
    titles, *rows = csv.reader(io.StringIO(done.out))
    assert titles == ["phy_offset", "keys"] and done.status == 0
    assert [int(row[0]) for row in rows] == offsets(lost.root, keys=["user-3", "ORD59361344"])


def test_a_table_for_people(shell: Shell, lost: Store) -> None:
    done = shell("messages", lost.root, "--topic", "LostTopic", "--limit", "3")
    assert done.status == 0 and len(done.lines) == 4
    assert done.lines[0].split()[:4] == ["store_timestamp", "topic", "queue_id", "queue_offset"]
    assert all(line.split()[1] == "LostTopic" for line in done.lines[1:])


def test_records_of_a_partition(shell: Shell, tmp_path: Path) -> None:
    partition = PartitionCase("410-txn-open").closed(tmp_path)
    rows = shell("messages", partition, "--json").json
    expected = [at for batch in kafka.scan(partition, cache=False) for at in batch["offset"].tolist()]
    assert [row["offset"] for row in rows] == expected
    committed = shell("messages", partition, "--json", "--isolation-level", "read_committed", "--offset", "10").json
    assert 0 < len(committed) < len(rows) and not any(row["is_control"] for row in committed)
    assert committed[0]["offset"] >= 10


def test_different_values_are_written_differently(shell: Shell, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord(value) for value in (b"\xff", b"\\xff", b"", None, "é".encode())])
    writer.close()
    rows = shell("messages", tmp_path / "t-0", "--json").json
    assert [(row["value"], row.get("value_base64")) for row in rows] == [
        (None, "/w=="), ("\\xff", None), ("", None), (None, None), ("é", None),
    ]  # fmt: skip
    done = shell("messages", tmp_path / "t-0", "--columns", "value", "--format", "csv")
    assert done.out.split("\n") == ["value,value_base64", ",/w==", "\\xff,", '"",', ",", "é,", ""]


def test_a_file_appears_when_it_is_complete(shell: Shell, lost: Store, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "found.parquet"
    done = shell("messages", lost.root, "--topic", "LostTopic", "--out", out)
    assert (done.status, done.out, done.err) == (0, "", f"mqindex: wrote 610 rows to {out}\n")
    table = pq.read_table(out)
    assert table["phy_offset"].to_pylist() == offsets(lost.root, topic="LostTopic")
    assert str(table.schema.field("store_timestamp").type) == "timestamp[ms, tz=UTC]"
    again = shell("messages", lost.root, "--out", out)
    assert again.status == 2 and "the output exists" in again.err and "--force" in again.err
    for wrong in ("found.txt", "found"):
        refused = shell("messages", lost.root, "--out", tmp_path / wrong)
        assert refused.status == 2 and "expected a name that ends in .csv" in refused.err
    inside = shell("messages", lost.root, "--out", lost.root / "commitlog" / "x.csv")
    assert inside.status == 2 and "expected a place outside" in inside.err
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_an_answer_without_rows_is_a_file_that_says_so(shell: Shell, lost: Store, tmp_path: Path) -> None:
    """It was said to be written, and the next command met it."""
    out = tmp_path / "none.csv"
    done = shell("messages", lost.root, "--begin", "2030-01-01", "--columns", "keys", "--out", out)
    assert (done.status, done.err.splitlines()[0]) == (1, f"mqindex: wrote 0 rows to {out}")
    assert out.read_text() == "keys\n"


def test_nothing_is_left_of_a_file_that_was_not_completed(shell: Shell, lost: Store, tmp_path: Path) -> None:
    done = shell("messages", lost.root, "--where", "no_such_column = 1", "--out", tmp_path / "out.csv")
    assert done.status == 2 and 'Referenced column "no_such_column" not found' in done.err
    assert "Traceback" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == []


def test_an_expression_of_sql(shell: Shell, lost: Store) -> None:
    pytest.importorskip("duckdb")
    where = "topic = 'LostTopic' and queue_id = 1 and properties['KEYS'] like 'ORD%'"
    rows = shell("messages", lost.root, "--where", where, "--columns", "queue_id,keys,phy_offset", "--json").json
    assert rows and {row["queue_id"] for row in rows} == {1}
    assert all(list(row)[1:] == ["queue_id", "keys", "phy_offset"] and row["keys"].startswith("ORD") for row in rows)
    assert [row["phy_offset"] for row in rows[:2]] == [
        row["phy_offset"] for row in shell("messages", lost.root, "--where", where, "--limit", "2", "--json").json
    ]


@pytest.mark.parametrize("form", ["table", "csv", "ndjson"])
def test_nothing_found_is_said(shell: Shell, lost: Store, form: str) -> None:
    done = shell("messages", lost.root, "--topic", "LostTopik", "--format", form)
    assert done.status == 1 and len(done.lines) == (0 if form == "ndjson" else 1)
    assert done.err == f"mqindex: {lost.root}: no such message; the store has no queue of this topic; " + (
        "did you mean LostTopic?\n"
    )


def test_words_for_wrong_arguments(shell: Shell, lost: Store, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, words in (
        ([lost.root, "--partition", "a-0"], "--partition and --isolation-level are for Kafka"),
        ([lost.root, "--columns", "key"], "columns: expected some of topic"),
        ([lost.root, "--json", "--format", "csv"], "expected one of the two"),
        ([tmp_path / "empty"], "is its volume mounted?"),
        ([tmp_path / "none"], "no such file or directory"),
        ([lost.root, "--begin", "yesterday"], "'yesterday'"),
    ):
        done = shell("messages", *arguments)
        assert (done.status, done.out) == (2, "") and words in done.err, done.err


def test_a_reader_that_goes_away_ends_it(lost: Store) -> None:
    command = subprocess.Popen(
        [*COMMAND, "messages", str(lost.root), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert command.stdout is not None and command.stderr is not None
    command.stdout.read(10)
    command.stdout.close()
    assert command.stderr.read() == b""
    command.stderr.close()
    assert command.wait() in (0, -signal.SIGPIPE)


@pytest.mark.parametrize("broker", [rocketmq, kafka])
@pytest.mark.parametrize("command", ["messages", "where", "sql"])
@pytest.mark.filterwarnings("default")
def test_what_a_broker_deletes_meanwhile_is_said(
    broker: Any, command: str, shell: Shell, lost: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages were missing from the answer without a word."""
    path = lost.root if broker is rocketmq else PartitionCase("410-backwards").closed(tmp_path)
    expired, *_, newest = sorted(path.rglob("commitlog/*" if broker is rocketmq else "*.log"))
    opened = broker.scan

    def scan(path: Any, **given: Any) -> Any:
        found = opened(path, **given)
        if given.get("columns") is not None or command != "sql":
            expired.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(broker, "scan", scan)
    at = "phy_offset" if broker is rocketmq else '"offset"'
    done = {
        "messages": lambda: shell("messages", path, "--columns", at.strip('"'), "--json"),
        "where": lambda: shell("messages", path, "--where", f"{at} >= 0", "--json"),
        "sql": lambda: shell("sql", f"SELECT {at} FROM m", f"m={path}", "--json"),
    }[command]()
    assert int(newest.stem) <= done.json[-1][at.strip('"')] and int(expired.stem) == 0
    said = "mqindex: warning" if command == "sql" else "mqindex"
    assert (done.status, done.err) == (0, f"{said}: {expired} was deleted by a broker before it was read\n")


def test_a_dump_says_what_a_broker_deletes_meanwhile(
    shell: Shell, lost: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = min((lost.root / "commitlog").iterdir())
    opened = rocketmq.CommitLog.open

    def open_log(*arguments: Any, **given: Any) -> Any:
        log = opened(*arguments, **given)
        expired.unlink(missing_ok=True)
        return log

    monkeypatch.setattr(rocketmq.CommitLog, "open", open_log)
    done = shell("dump", lost.root / "commitlog", "--format", "csv")
    assert (done.status, done.err) == (1, f"mqindex: {expired} was deleted by a broker before it was read\n")


@pytest.mark.parametrize("command", [("messages",), ("dump", "--records"), ("dump",)])
def test_what_an_index_lacks_of_aborted_transactions_is_said(
    command: tuple[str, ...], shell: Shell, tmp_path: Path
) -> None:
    partition = PartitionCase("410-txn").closed(tmp_path)
    asked = (command[0], partition, *command[1:], "--isolation-level", "read_committed", "--format", "csv")
    assert (shell(*asked).status, shell(*asked).err) == (0, "")
    index = min(partition.glob("*.txnindex"))
    index.unlink()
    done = shell(*asked)
    assert done.status == 1 and f"lacks aborted transactions, and their records are among the answer: {index}" in (
        done.err
    )


def test_arrow_on_standard_output(lost: Store) -> None:
    pa = pytest.importorskip("pyarrow")
    done = process("messages", lost.root, "--topic", "LostTopic", "--format", "arrow")
    assert (done.returncode, done.stderr) == (0, b"")
    assert pa.ipc.open_stream(done.stdout).read_all()["phy_offset"].to_pylist() == offsets(lost.root, topic="LostTopic")


def test_a_cache_is_not_among_a_brokers_files(shell: Shell, lost: Store) -> None:
    before = lost.contents
    for place in (lost.root / "commitlog", lost.root / "index"):
        done = shell("messages", lost.root, "--topic", "LostTopic", "--cache", place)
        assert done.status == 2 and "expected a place outside" in done.err
    assert lost.contents == before


def test_verify_and_rebuild_leave_zone_maps(shell: Shell, lost: Store, tmp_path: Path) -> None:
    shell("messages", lost.root, "--end", "2001-01-01", "--cache", tmp_path / "scanned")
    names = sorted(os.listdir(tmp_path / "scanned"))
    shell("verify", lost.root)
    shell("rebuild", lost.root, "--out", tmp_path / "out", "--cache", tmp_path / "rebuilt")
    for place in (tmp_path / "cache" / "mqindex" / "zones", tmp_path / "rebuilt"):
        assert sorted(os.listdir(place)) == names
    done = shell("verify", lost.root, "--cache", lost.root / "index")
    assert done.status == 2 and "expected a place outside" in done.err


def test_of_kafka_the_zone_maps_come_with_the_records(shell: Shell, tmp_path: Path) -> None:
    partition = PartitionCase("410-txn").closed(tmp_path)
    shell("messages", partition, "--end", "2001-01-01", "--cache", tmp_path / "scanned")
    names = sorted(os.listdir(tmp_path / "scanned"))
    shell("rebuild", partition, "--out", tmp_path / "plain")
    assert not (tmp_path / "cache").exists()
    shell("verify", partition, "--deep")
    shell("rebuild", partition, "--out", tmp_path / "out", "--cache", tmp_path / "rebuilt")
    for place in (tmp_path / "cache" / "mqindex" / "zones", tmp_path / "rebuilt"):
        assert sorted(os.listdir(place)) == names != []
    done = shell("verify", partition, "--cache", tmp_path / "other")
    assert done.status == 2 and "expected --deep" in done.err


BUSY = """list_sum(list_transform(range(1000),
    lambda x: list_sum(list_transform(range(100000), lambda y: sqrt(x + y + phy_offset))))) < 0"""
INTERRUPTED = f"""
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
from mqindex.cli import main
sys.argv[1:] = ["messages", sys.argv[1], "--where", {BUSY!r}]
sys.exit(main())
"""


def test_an_interrupt_ends_a_filter_that_duckdb_is_busy_with(lost: Store) -> None:
    pytest.importorskip("duckdb")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(lost.root)], capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"mqindex: interrupted; nothing was changed\n")


def test_no_thread_of_a_filter_is_left(shell: Shell, lost: Store) -> None:
    pytest.importorskip("duckdb")
    before = active_count()
    for more in (["--limit", "1"], [], ["--columns", "none"], ["--where", "no such column"]):
        shell("messages", lost.root, "--where", "queue_id >= 0", "--json", *more)
        assert active_count() == before


@pytest.mark.parametrize("error", [BrokenPipeError, KeyboardInterrupt])
def test_what_ends_while_duckdb_reads_on_waits_for_it(
    error: type[BaseException], shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scan was closed in the middle of a batch: exit code 2, "generator already executing"."""
    pytest.importorskip("duckdb")
    writer, before, reading = PartitionWriter(tmp_path / "logs" / "t-0"), active_count(), Event()
    for _ in range(100):
        writer.append([KafkaRecord(bytes(100_000))])
    writer.close()
    picked = SegmentReader._picked

    def slowly(*arguments: Any) -> Iterator[Columns]:
        reading.set()
        time.sleep(0.02)
        yield from picked(*arguments)

    def ended(batches: Iterator[Any], command: str) -> None:
        next(batches), next(batches)
        reading.clear()
        reading.wait(1)
        raise error

    monkeypatch.setattr(SegmentReader, "_picked", slowly)
    monkeypatch.setitem(FORMATS, "csv", ended)
    done = shell("messages", tmp_path / "logs", "--where", "true", "--format", "csv")
    assert done.status in (128 + signal.SIGPIPE, 128 + signal.SIGINT), done.err
    assert "generator" not in done.err and active_count() == before


def test_an_interrupt_that_comes_before_duckdb_begins_is_not_lost() -> None:
    """DuckDB forgets it when a query begins, which was then waited for to its end."""
    pytest.importorskip("duckdb")
    stopped = Event()

    def batches() -> Iterator[Any]:
        time.sleep(0.3)
        stopped.clear()
        assert stopped.wait(20)
        yield

    Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(interruptible(batches(), stopped.set))
    assert time.monotonic() - begun < 10


def test_a_topic_without_a_name_is_not_every_topic(shell: Shell, tmp_path: Path) -> None:
    partition = PartitionCase("410-txn").closed(tmp_path)
    for more in ([], ["--decode"]):
        done = shell("messages", partition, "--topic", "", *more)
        assert (done.status, done.out) == (2, ""), done.err


def test_a_period_that_ends_before_it_begins_is_said(shell: Shell, lost: Store) -> None:
    done = shell("messages", lost.root, "--begin", "2024-01-01", "--end", "2023-01-01")
    assert done.status == 1 and "--begin is after --end" in done.err


def test_a_parquet_file_that_was_not_completed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer that was dropped ended the file, which then read as if it had all rows."""
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "half.parquet"

    def batches() -> Iterator[Columns]:
        for number in range(2):
            yield Columns({"n": np.arange(10) + number})
        raise KeyboardInterrupt

    with open(path, "w") as file, pytest.raises(KeyboardInterrupt):
        monkeypatch.setattr(sys, "stdout", file)
        FORMATS["parquet"](batches(), "messages")
    gc.collect()
    with pytest.raises(Exception, match=r"[Pp]arquet"):
        pq.read_table(path)
