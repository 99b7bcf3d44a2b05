"""What only a terminal sees, what a pipe must not see, and that nothing is ever cut."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from mqindex.rocketmq import CommitLog, NewMessage
from tests.cli.conftest import COMMAND, Shell, Store, process
from tests.support.golden_kafka import PartitionCase


def on_a_terminal(*arguments: str | os.PathLike[str], columns: int = 80, both: bool = False) -> tuple[int, str, str]:
    """(exit code, stdout, what the terminal showed); stderr is the terminal, with `both` stdout too."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    running = subprocess.Popen(
        [*COMMAND, *map(os.fspath, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs if both else subprocess.PIPE,
        stderr=theirs,
        env={**inherited, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 1 << 16)
        except OSError:  # Linux: the other side is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    out, _ = running.communicate()
    return running.returncode, (out or b"").decode(), shown.decode()


def plain(shown: str) -> str:
    """Without the terminal's control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["verify", "rebuild", "repair"])
def test_long_work_shows_a_bar_for_each_stage(basic: Store, tmp_path: Path, command: str) -> None:
    out = ["--out", tmp_path / "out"] if command == "rebuild" else []
    status, printed, shown = on_a_terminal(command, basic.root, *out)
    assert status == 0
    assert re.search(r"(read|check) the log.*100%", plain(shown))
    assert "\x1b[?25h" in shown, "the cursor is shown again"
    assert "\x1b" not in printed
    assert "%" not in printed


def test_segments_of_kafka_have_a_bar_too(tmp_path: Path) -> None:
    partition = PartitionCase("410-plain-mono").closed(tmp_path)
    status, printed, shown = on_a_terminal("rebuild", partition, "--out", tmp_path / "out")
    assert status == 0
    assert re.search(r"recover the segments.*100%", plain(shown))
    assert "%" not in printed


@pytest.mark.parametrize("command", ["verify", "rebuild"])
def test_a_pipe_sees_no_bar(basic: Store, tmp_path: Path, command: str) -> None:
    out = ["--out", tmp_path / "out"] if command == "rebuild" else []
    done = process(command, basic.root, *out)
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout + done.stderr
    assert b"%" not in done.stderr


def test_a_wrong_topic_gets_a_hint_on_a_terminal(basic: Store) -> None:
    status, printed, shown = on_a_terminal("query", basic.root, "--topic", "Else", "some key")
    assert (status, printed) == (1, "")
    assert "Else" in shown
    topic = min(path.name for path in (basic.root / "consumequeue").iterdir())
    assert f"the store has queues of {topic}" in plain(shown)
    status, printed, shown = on_a_terminal("query", basic.root, "--topic", topic, "no such key")
    assert "check both" in plain(shown)


def test_an_offset_that_is_nowhere_gets_a_hint(tmp_path: Path) -> None:
    partition = PartitionCase("410-plain-mono").closed(tmp_path)
    status, printed, shown = on_a_terminal("query", partition, "--offset", "99999999")
    assert (status, printed) == (1, "")
    assert f"nothing is found there; `mqindex info {partition}` says" in plain(shown).replace("\n", " ")


@pytest.fixture
def deep_path(basic: Store) -> Path:
    """The store, below a directory of a long name."""
    long = basic.root.parent / ("a-rather-long-name-" * 10)
    long.mkdir()
    return basic.root.rename(long / "store")


def test_a_pipe_cuts_and_folds_nothing(shell: Shell, deep_path: Path) -> None:
    done = shell("info", deep_path, "--all")
    for file in sorted((deep_path / "commitlog").iterdir()):
        assert any(line.endswith(str(file)) for line in done.lines)
    (deep_path / "index" / sorted(os.listdir(deep_path / "index"))[1]).unlink()
    findings = shell("verify", deep_path).lines
    assert findings[0].startswith(f"{deep_path}: not clean")
    assert any(line.startswith("error: missing-entries. ") for line in findings)
    assert "…" not in "".join(findings)


def test_a_narrow_terminal_folds_and_cuts_nothing(deep_path: Path) -> None:
    status, _, shown = on_a_terminal("info", deep_path, "--all", columns=60, both=True)
    assert status == 0
    assert "…" not in shown
    squeezed = re.sub(r"\s", "", plain(shown))
    for file in (deep_path / "commitlog").iterdir():
        assert file.name in squeezed


@pytest.mark.parametrize("columns", [40, 80])
def test_findings_fit_a_narrow_terminal(basic: Store, columns: int) -> None:
    """A table of six columns at 40 was a column of letters."""
    basic.index_files[1].unlink()
    status, _, shown = on_a_terminal("verify", basic.root, columns=columns, both=True)
    lines = plain(shown).splitlines()
    assert status == 1
    long = [line for line in lines if len(line) > columns and str(basic.root) not in line]
    assert long == []
    assert "error: missing-entries." in " ".join(lines)
    assert "would a broker start" in " ".join(lines)


def test_binary_output_is_not_thrown_at_a_terminal(basic: Store) -> None:
    pytest.importorskip("pyarrow")
    status, _, shown = on_a_terminal("dump", basic.index_files[0], "--format", "arrow", both=True)
    assert status == 2
    assert "send stdout to a file or a pipe" in plain(shown)


def test_colour_only_where_somebody_looks(basic: Store) -> None:
    basic.index_files[1].unlink()
    assert "\x1b[1;31m" in on_a_terminal("verify", basic.root, both=True)[2]
    assert b"\x1b" not in process("verify", basic.root).stdout


@pytest.mark.parametrize("form", ["csv", "table", "json"])
def test_a_record_does_not_steer_the_terminal(tmp_path: Path, form: str) -> None:
    """`--format csv` wrote its control codes there as they are; in a pipe it still does: no value is changed."""
    with CommitLog.open(tmp_path / "commitlog", mapped_file_size=4096, writable=True) as log:
        log.append_message(NewMessage("T", b"x", keys="a\x1b[2Jb"), queue_offset=0)
    arguments = ["dump", tmp_path / "commitlog", "--format", form]
    status, _, shown = on_a_terminal(*arguments, both=True)
    assert (status, "[2Jb" in shown, "\x1b[2J" in shown) == (0, True, False)
    assert (b"a\x1b[2Jb" in process(*arguments).stdout) == (form == "csv")
