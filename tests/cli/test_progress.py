"""Bars and lines of long work: in bytes a second, or the unit of the stage, with the time left."""

from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console
from rich.progress import Progress as RichProgress

from mqindex.cli.printing import progress
from mqindex.engines import Progress
from tests.cli.conftest import Shell, Store
from tests.cli.test_terminal import on_a_terminal, plain


@pytest.mark.parametrize(
    ("count", "unit", "words"),
    [
        (0, "byte", "0 bytes"),
        (999, "byte", "999 bytes"),
        (1023.97, "byte", "1.0 KiB"),
        (1_048_560, "byte", "1.0 MiB"),
        (2_217_500_000, "byte", "2.1 GiB"),
        (5e18, "byte", "4440.9 PiB"),
        (12_345_678, "entry", "12.3 M entries"),
        (1, "file", "1 file"),
        (3, "stretch", "3 stretches"),
    ],
)
def test_amounts(count: float, unit: str, words: str) -> None:
    assert progress.amount(count, unit) == words


@pytest.mark.parametrize(
    ("now", "seconds", "line"),
    [
        (Progress("check", 50, 100, unit="byte"), 5.0, "check: 50 %, 50 bytes of 100 bytes, 10 bytes/s, 0:00:05 left"),
        (Progress("sort", 1, 4), 90.0, "sort: 25 %, 1 task of 4 tasks, 0:04:30 left"),
        (Progress("publish", 0, 1), 61.0, "publish: for 0:01:01"),
    ],
)
def test_a_line_for_a_log_file(now: Progress, seconds: float, line: str) -> None:
    assert progress.progress_line(now, seconds) == line


def test_off_a_terminal_a_stage_says_where_it_is_once_in_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "MINUTE", 0.01)
    said = ""
    with progress.progress_bars() as show:
        show(Progress("plan", 0, 0, "reads 3 GB"))
        show(Progress("check the log", 0, 3_000_000_000, unit="byte"))
        show(Progress("check the log", 1_000_000_000, 3_000_000_000, unit="byte"))
        while "check the log" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
        show(Progress("check the log", 3_000_000_000, 3_000_000_000, unit="byte"))
    assert said.splitlines()[0] == "mqindex: reads 3 GB"
    assert re.search(
        r"mqindex: check the log: 33 %, 953\.7 MiB of 2\.8 GiB, [\d.]+ [GT]iB/s, \d:\d\d:\d\d left\n", said
    )


def test_short_work_says_nothing_off_a_terminal(shell: Shell, basic: Store) -> None:
    assert shell("verify", basic.root).err == ""


@pytest.mark.parametrize("columns", [60, 100])
def test_a_bar_has_its_rate_and_the_time_left_in_one_line(basic: Store, columns: int) -> None:
    status, _, shown = on_a_terminal("verify", basic.root, columns=columns)
    assert status == 0
    lines = [line for line in re.split("[\n\r]", plain(shown)) if "%" in line]
    assert any(line.startswith("check the log ") for line in lines)
    assert re.search(r"100% .*\d:\d\d:\d\d *$", lines[-1]), lines
    assert "\x1b[1A\x1b[2K\x1b[1A" not in shown  # one line is drawn anew, whatever the number of stages
    assert all(len(line.rstrip()) <= columns and "…" not in line for line in lines)


def test_a_finished_stage_keeps_its_time_and_its_rate() -> None:
    now = [0.0]
    bars = RichProgress(*progress.columns(), console=Console(file=io.StringIO(), width=100), get_time=lambda: now[0])
    task = bars.add_task("build", total=80, unit="byte")
    now[0] = 4.0
    bars.update(task, completed=80)
    said = []
    for now[0] in (4.0, 60.0):
        with (console := Console(file=io.StringIO(), width=100)).capture() as captured:
            console.print(bars.get_renderable())
        said.append(captured.get())
    assert said[0] == said[1]
    assert said[0].split()[-4:] == ["100%", "20", "bytes/s", "0:00:04"]
