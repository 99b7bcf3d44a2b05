"""`mqindex sql`: questions in SQL of the files of both brokers."""

from __future__ import annotations

import base64
import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka, rocketmq
from mqindex.cli.arrow_rows import arrow_rows, engine_errors
from mqindex.cli.trouble import Trouble
from mqindex.errors import TruncatedFileError
from tests.cli.conftest import Shell, Store, process
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zone maps of tests are not the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_messages_of_a_store(shell: Shell, lost: Store) -> None:
    query = "SELECT topic, count(*) AS messages, max(store_timestamp) AS newest FROM store GROUP BY topic"
    done = shell("sql", query, f"store={lost.root}")
    assert (done.status, done.err) == (0, "")
    assert [line.split() for line in done.lines] == [
        ["topic", "messages", "newest"], ["LostTopic", "610", "2023-03-30T10:01:09.252Z"]
    ]  # fmt: skip
    (row,) = shell("sql", query, f"store={lost.root}", "--json").json
    assert row == {"schema": "mqindex.sql/1", "topic": "LostTopic", "messages": 610, "newest": 1680170469252}


def test_tables_of_several_paths(shell: Shell, lost: Store, tmp_path: Path) -> None:
    partition = PartitionCase("410-txn").closed(tmp_path / "p")
    query = "SELECT (SELECT count(*) FROM s.units) AS units, (SELECT count(*) FROM p) AS records"
    (row,) = shell("sql", query, f"s={lost.root}", f"p={partition}", "--json").json
    with rocketmq.MessageStore.open(lost.root) as store:
        units = sum(len(store.consume_queue(*name).units()) for name in store.queues)  # type: ignore[union-attr]
    assert (row["units"], row["records"]) == (units, sum(map(len, kafka.scan(partition, cache=False))))


def test_a_file_of_the_answer(shell: Shell, lost: Store, tmp_path: Path) -> None:
    out = tmp_path / "o.csv"
    done = shell("sql", "SELECT phy_offset FROM s ORDER BY 1 DESC LIMIT 2", f"s={lost.root}", "--out", out)
    assert done.status == 0 and len(out.read_text().split()) == 3
    refused = shell("sql", "SELECT 1", f"s={lost.root}", "--out", lost.root / "index" / "x.csv")
    assert refused.status == 2 and "expected a place outside" in refused.err


def test_no_row_is_exit_code_1(shell: Shell, lost: Store) -> None:
    assert shell("sql", "SELECT * FROM s WHERE topic = 'none'", f"s={lost.root}").status == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["SELEC 1"], "Parser Error: syntax error"),
        (["SELECT * FROM nosuch"], "Table with name nosuch does not exist"),
        ([""], "expected a statement with rows"),
        (["SELECT DATE '200000-01-01'"], "expected CAST"),
        (["SELECT 1", "store"], "expected NAME=PATH"),
        (["SELECT 1", "a-b=x"], "expected NAME=PATH"),
        (["SELECT 1", "s=/no/such/path"], "no such file or directory: /no/such/path"),
    ],
)
def test_what_is_wrong_is_one_sentence(shell: Shell, arguments: list[str], words: str) -> None:
    done = shell("sql", *arguments)
    assert (done.status, done.out) == (2, "") and words in done.err
    assert "Traceback" not in done.err and done.err.count("\n") <= 1


def test_columns_of_one_name_have_numbers(shell: Shell) -> None:
    assert shell("sql", "SELECT 1 AS a, 2 AS a", "--format", "csv").out == "a,a_1\n1,2\n"


def test_times_of_any_year_and_numbers_that_json_has_not(shell: Shell) -> None:
    (row,) = shell("sql", "SELECT TIMESTAMP '290000-01-01' AS t, 'nan'::DOUBLE AS n", "--json").json
    assert row["t"] > 9_000_000_000_000_000 and row["n"] == "nan"


@pytest.mark.filterwarnings("default")
def test_a_time_beyond_what_duckdb_has_is_null(shell: Shell, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    for time in (FIRST_TIME, FIRST_TIME * 1_000_000, -(2**62), FIRST_TIME + 1):
        writer.append([KafkaRecord(b"v", b"k", time)])
    named = f"t={tmp_path / 't-0'}"
    done = shell("sql", 'SELECT timestamp, "offset" FROM t', named, "--json")
    times = [FIRST_TIME, None, None, FIRST_TIME + 1]
    assert [row["timestamp"] for row in done.json] == times and [row["offset"] for row in done.json] == [0, 1, 2, 3]
    assert "timestamp: a time beyond the years that DuckDB has" in done.err and done.status == 0
    (row,) = shell("sql", "SELECT count(*) n, count(timestamp) known FROM t", named, "--json").json
    assert (row["n"], row["known"]) == (4, 2)
    done = shell("messages", tmp_path / "t-0", "--where", "value = 'v'", "--columns", "timestamp", "--format", "csv")
    assert done.out.split("\n") == ["timestamp", str(FIRST_TIME), "", "", str(FIRST_TIME + 1), ""]
    for query, count in (("> '2100-01-01'", 1), ("< '1900-01-01'", 1), ("> '2020-01-01'", 3)):
        (row,) = shell("sql", f"SELECT count(*) n FROM t WHERE timestamp {query}", named, "--json").json
        assert row["n"] == count, query


@pytest.mark.parametrize("missing", ["duckdb", "pyarrow"])
def test_what_is_not_installed_is_named_with_the_extra(
    missing: str, shell: Shell, lost: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for arguments, who in (
        (["sql", "SELECT 1 FROM s", f"s={lost.root}"], "`mqindex sql`"),
        (["messages", lost.root, "--where", "true"], "--where"),
    ):
        done = shell(*arguments)
        assert (done.status, done.out) == (2, "")
        assert done.err == f"mqindex: {who} needs duckdb and pyarrow: pip install 'mqindex[sql]'\n"


VALUES = """SELECT * FROM (VALUES (NULL, NULL), ('', []), ('NULL', ['']), ('a,b', [NULL]), (chr(0), ['a', 'b']),
    ('""', ['a,b']), ('"', ['"a","b"'])) t(text, list), (VALUES (NULL), (''::BLOB), ('/w=='::BLOB), ('\\xff'::BLOB),
    ('\\x5Cxff'::BLOB), (encode('é')), ('\\xff\\xfe'::BLOB)) b(body)"""


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_different_values_are_different_to_who_reads_them(encoding: str, tmp_path: Path) -> None:
    import duckdb

    expected = duckdb.sql(VALUES).fetchall()
    made = {}
    for form in ("csv", "ndjson"):
        done = process("sql", VALUES, "--format", form, env={**os.environ, "PYTHONIOENCODING": encoding})
        assert (done.returncode, done.stderr) == (0, b"")
        made[form] = tmp_path / f"rows.{form}"
        made[form].write_bytes(done.stdout)
    rows = duckdb.sql(f"FROM read_csv('{made['csv']}', all_varchar=true, allow_quoted_nulls=false)").fetchall()
    assert len(set(rows)) == len(rows) == len(expected)
    assert [row[0] for row in rows] == [row[0] for row in expected]
    with made["csv"].open(newline="", encoding="utf-8") as file:
        texts = {tuple(row) for row in csv.reader(file)}
    assert texts == {tuple("" if cell is None else cell for cell in row) for row in rows} | {
        ("text", "list", "body", "body_base64")
    }
    objects = [json.loads(line) for line in made["ndjson"].read_bytes().splitlines()]
    assert [(row["text"], row["list"]) for row in objects] == [(text, some) for text, some, _ in expected]
    bodies = [base64.b64decode(row["body_base64"]) if "body_base64" in row else row["body"] for row in objects]
    assert [body.encode() if isinstance(body, str) else body for body in bodies] == [body for *_, body in expected]


def test_a_name_that_is_taken_is_refused(shell: Shell) -> None:
    for query, form, words in (
        ("SELECT 'a'::BLOB AS body, 'x' AS body_base64", "csv", "body_base64 has the bytes of body"),
        ("SELECT 'x' AS body_base64, 'a'::BLOB AS body", "ndjson", "body_base64 has the bytes of body"),
        ("SELECT {'a': '\\xff'::BLOB, 'a_base64': 'x'} AS s", "ndjson", "a_base64 has the bytes of a"),
        ("SELECT 1 AS schema", "ndjson", "schema is the name of the format"),
    ):
        done = shell("sql", query, "--format", form)
        assert (done.status, done.out) == (2, "") and words in done.err, done.err
    done = shell("sql", "SELECT 'a' AS body, NULL AS body_base64", "--json")
    assert done.json == [{"schema": "mqindex.sql/1", "body": "a", "body_base64": None}]


def test_an_error_while_rows_are_read_is_that_errors_sentence(
    shell: Shell, lost: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **options: Any) -> Any:
        raise TruncatedFileError("the file shrank", path="/x", expected="6 bytes", got=5)

    monkeypatch.setattr("mqindex.rocketmq.scanning.matches.scan_parts", fails)
    done = shell("sql", "SELECT body FROM s", f"s={lost.root}")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert done.err.endswith("the file shrank: /x: expected 6 bytes, got 5\n")


def test_an_error_after_the_first_rows_is_its_sentence_too() -> None:
    """It was a traceback, in one line."""
    import duckdb

    schema, rows = pa.schema([("n", pa.int64())]), pa.record_batch({"n": range(100_000)})

    def batches() -> Iterator[Any]:
        for _ in range(60):
            yield rows
        raise TruncatedFileError("the log was cut", path="/x", expected=6, got=5)

    found: list[int] = []
    with duckdb.connect() as database, pytest.raises(Trouble) as raised, engine_errors("asked"):
        rows_of_table = database.from_arrow(pa.RecordBatchReader.from_batches(schema, batches()))
        found.extend(map(len, arrow_rows(rows_of_table)))
    assert sum(found) > 0 and str(raised.value) == "asked: the log was cut: /x: expected 6, got 5"


ASKED = "SELECT count(*) FROM range(100000000000) t(x) WHERE sqrt(x) < 0"
INTERRUPTED = f"""
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
from mqindex.cli import main
sys.argv[1:] = ["sql", {ASKED!r}]
sys.exit(main())
"""


def test_an_interrupt_ends_a_query_that_duckdb_is_busy_with() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        -signal.SIGINT, b"", b"mqindex: interrupted; nothing was changed\n",
    )  # fmt: skip
