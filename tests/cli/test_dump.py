"""`mqindex dump`: every entry, every message, in every format."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqindex.wording.text import iso
from tests.cli.conftest import Shell, Store, process
from tests.reference.index_file import IndexFile as Reference

COLUMNS = ["number", "key_hash", "phy_offset", "time_diff", "time", "prev_index"]


def entries(store: Store, number: int) -> list[tuple[int, ...]]:
    """What the slow twin reads in an index file of a store."""
    slots, capacity = store.case.geometry
    twin = Reference.load(store.index_files[number].read_bytes(), slots, capacity)
    begin = store.case.truth["indexFiles"][number]["beginTimestamp"]
    found = []
    for i in range(1, store.case.truth["indexFiles"][number]["indexCount"]):
        key_hash, phy_offset, diff, prev = twin.entry(i)
        found.append((i, key_hash, phy_offset, diff, begin + 1000 * diff, prev))
    return found


@pytest.mark.parametrize("number", [0, 3])
def test_csv_of_an_index_file(shell: Shell, basic: Store, number: int) -> None:
    done = shell("dump", basic.index_files[number], "--format", "csv")
    assert (done.status, done.err) == (0, "")
    titles, *rows = csv.reader(io.StringIO(done.out))
    assert titles == COLUMNS
    assert [tuple(map(int, row)) for row in rows] == entries(basic, number)


def test_json_of_an_index_file(shell: Shell, basic: Store) -> None:
    done = shell("dump", basic.index_files[0], "--format", "json")
    assert done.lines[0].startswith('{"schema": "mqindex.dump/1", "number": 1, ')
    assert [tuple(one[name] for name in COLUMNS) for one in done.json] == entries(basic, 0)
    assert shell("dump", basic.index_files[0], "--json").out == done.out


def test_table_of_an_index_file(shell: Shell, basic: Store) -> None:
    done = shell("dump", basic.index_files[0])
    assert done.lines[0].split() == COLUMNS
    assert [line.split() for line in done.lines[1:]] == [
        [str(cell) for cell in (*row[:4], iso(row[4]), row[5])] for row in entries(basic, 0)
    ]


def test_an_index_file_without_entries_has_titles_only(shell: Shell, basic: Store) -> None:
    fresh = basic.root / "index" / "20991231235959999"
    fresh.write_bytes(b"\0" * basic.index_files[0].stat().st_size)
    assert shell("dump", fresh, "--format", "csv").out == ",".join(COLUMNS) + "\n"
    assert shell("dump", fresh).lines[0].split() == COLUMNS


def test_arrow_is_an_ipc_stream(basic: Store) -> None:
    pa = pytest.importorskip("pyarrow")
    done = process("dump", basic.index_files[0], "--format", "arrow")
    assert (done.returncode, done.stderr) == (0, b"")
    table = pa.ipc.open_stream(done.stdout).read_all()
    assert table.column_names == COLUMNS
    assert [tuple(row.values()) for row in table.to_pylist()] == entries(basic, 0)


def test_arrow_without_pyarrow_names_what_to_install(
    shell: Shell, basic: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    done = shell("dump", basic.index_files[0], "--format", "arrow")
    assert (done.status, done.out) == (2, "")
    assert done.err == "mqindex: --format arrow needs pyarrow: pip install pyarrow\n"


def test_a_pyarrow_that_cannot_be_loaded_is_not_missing(basic: Store, tmp_path: Path) -> None:
    """With too little memory for its library the advice was to install it, which it was."""
    (tmp_path / "pyarrow.py").write_text("raise ImportError('libarrow.so: failed to map segment from shared object')")
    around = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = process("dump", basic.index_files[0], "--format", "arrow", env=around)
    said = b"mqindex: pyarrow cannot be loaded: libarrow.so: failed to map segment from shared object\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", said)


def test_messages_of_a_commit_log(shell: Shell, basic: Store) -> None:
    done = shell("dump", basic.root / "commitlog", "--json")
    assert (done.status, done.err) == (0, "")
    said = basic.case.truth["messages"]
    assert len(done.json) == len(said)
    for ours, theirs in zip(done.json, said, strict=True):
        assert next(iter(ours)) == "schema"
        assert (ours["topic"], ours["phy_offset"], ours["size"]) == (
            theirs["topic"],
            theirs["phyOffset"],
            theirs["size"],
        )
        assert (ours["queue_id"], ours["queue_offset"]) == (theirs["queueId"], theirs["queueOffset"])
        assert ours["store_timestamp"] == theirs["storeTimestamp"]
        assert (ours["keys"] or "") == (theirs["keys"] or "")
        assert ours["uniq_key"] == theirs["uniqKey"]


def test_messages_of_one_file_of_a_commit_log(shell: Shell, basic: Store) -> None:
    done = shell("dump", basic.log_files[1], "--json")
    said = [one["phyOffset"] for one in basic.case.truth["messages"] if one["phyOffset"] >= 65536]
    assert [one["phy_offset"] for one in done.json] == said


@pytest.mark.parametrize("form", ["table", "csv", "arrow"])
def test_messages_in_the_other_formats(basic: Store, form: str) -> None:
    if form == "arrow":
        pytest.importorskip("pyarrow")
    done = process("dump", basic.root / "commitlog", "--format", form)
    assert (done.returncode, done.stderr) == (0, b"")
    said = basic.case.truth["messages"]
    if form == "arrow":
        pa = pytest.importorskip("pyarrow")
        rows = pa.ipc.open_stream(done.stdout).read_all().to_pylist()
        assert [row["topic"] for row in rows] == [one["topic"] for one in said]
    elif form == "csv":
        read = list(csv.DictReader(io.StringIO(done.stdout.decode())))
        assert [int(row["phy_offset"]) for row in read] == [one["phyOffset"] for one in said]
    else:
        lines = done.stdout.decode().splitlines()
        assert len(lines) == 1 + len(said)
        for line, one in zip(lines[1:], said, strict=True):
            assert str(one["phyOffset"]) in line
            assert one["topic"] in line


@pytest.mark.parametrize("form", ["table", "csv", "json", "arrow"])
def test_a_log_without_messages_still_has_its_columns(basic: Store, form: str) -> None:
    if form == "arrow":
        pytest.importorskip("pyarrow")
    for path in basic.log_files:
        path.write_bytes(b"\0" * 4096)
    done = process("dump", basic.root / "commitlog", "--format", form)
    assert (done.returncode, done.stderr) == (0, b"")
    if form == "arrow":
        pa = pytest.importorskip("pyarrow")
        table = pa.ipc.open_stream(done.stdout).read_all()
        assert (table.num_rows, table.schema.field("phy_offset").type) == (0, pa.int64())
    elif form == "json":
        assert done.stdout == b""
    else:
        assert b"phy_offset" in done.stdout
        assert done.stdout.count(b"\n") == 1


def test_a_dump_is_a_stream(basic: Store) -> None:
    """The first lines come while the rest is still unread: a reader that stops early costs nothing."""
    program = (
        "import sys, mqindex.cli.rocketmq.actions as d; from mqindex.cli import main\n"
        "real = d._messages\n"
        "def two(*arguments):\n"
        "    yield from real(*arguments)\n"
        "    sys.stdout.flush(); sys.stdin.read()\n"
        "    yield from real(*arguments)\n"
        "d._messages = two; sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "dump", basic.root / "commitlog", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        first = running.stdout.readline()
        assert b'"phy_offset": 0,' in first
        assert running.stdin is not None
        running.stdin.close()
        rest = running.stdout.read()
        assert running.wait(60) == 0
    assert rest.count(b"\n") == 2 * len(basic.case.truth["messages"]) - 1


def test_damage_in_the_middle_is_told_and_the_rest_printed(shell: Shell, basic: Store) -> None:
    victim = basic.case.truth["messages"][20]
    with basic.log_files[0].open("r+b") as file:
        file.seek(victim["phyOffset"] + 4)
        file.write(b"\1\2\3\4")
    done = shell("dump", basic.root / "commitlog", "--json")
    assert done.status == 1
    assert str(basic.log_files[0]) in done.err
    assert str(victim["phyOffset"]) in done.err
    *rows, said = done.json
    assert said["damage"] in done.err
    assert [one["phy_offset"] for one in rows] == [
        one["phyOffset"] for one in basic.case.truth["messages"] if one is not victim
    ]


def test_messages_behind_the_end_of_a_log_are_counted(shell: Shell, basic: Store) -> None:
    """A bad length in the last file ended the dump there, with exit code 0 and without a word."""
    newest = [one for one in basic.case.truth["messages"] if one["phyOffset"] >= 65536]
    at = newest[5]["phyOffset"]
    with basic.log_files[-1].open("r+b") as file:
        file.seek(at - 65536)
        file.write(b"\x7f\0\0\1")
    done = shell("dump", basic.root / "commitlog", "--json")
    assert done.status == 1
    assert f"the log ends here, and {len(newest) - 6} complete frames behind its end are not read" in done.err
    assert done.json[-2]["phy_offset"] == newest[4]["phyOffset"]


@pytest.mark.parametrize("length", [0, 1, 39, 40, 43, 1000])
def test_a_truncated_index_file_is_one_clear_error(shell: Shell, basic: Store, length: int) -> None:
    path = basic.index_files[0]
    path.write_bytes(path.read_bytes()[:length])
    done = shell("dump", path)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("mqindex: ")
    assert done.err.count("\n") == 1
    assert str(path) in done.err


def test_a_store_is_told_what_dump_takes(shell: Shell, basic: Store, tmp_path: Path) -> None:
    done = shell("dump", basic.root)
    assert done.status == 2
    assert "expected an index file, or another kind of those that `mqindex dump --help` lists" in done.err


@pytest.mark.parametrize("form", ["table", "csv", "arrow"])
def test_two_formats_at_once_are_refused(shell: Shell, basic: Store, form: str) -> None:
    """`--format` was passed over in silence."""
    done = shell("dump", basic.index_files[0], "--json", "--format", form)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"mqindex: --json and --format {form}: expected one of the two; see `mqindex dump --help`\n"
    assert shell("dump", basic.index_files[0], "--json", "--format", "json").status == 0


def test_an_index_directory(shell: Shell, basic: Store) -> None:
    rows = shell("dump", basic.root / "index", "--json").json
    assert [(row["file"], row["number"], row["key_hash"]) for row in rows] == [
        (path.name, one[0], one[1]) for number, path in enumerate(basic.index_files) for one in entries(basic, number)
    ]


@pytest.mark.parametrize("limit", [0, 1, 7, 10_000])
@pytest.mark.parametrize("form", ["csv", "json", "table", "parquet"])
def test_the_first_rows_only(basic: Store, form: str, limit: int) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    done = process("dump", basic.index_files[0], "--format", form, "--limit", str(limit))
    assert (done.returncode, done.stderr) == (0, b"")
    expected = min(limit, len(entries(basic, 0)))
    if form == "parquet":
        assert pq.read_table(io.BytesIO(done.stdout)).num_rows == expected
    else:
        assert done.stdout.count(b"\n") == expected + (form != "json")
