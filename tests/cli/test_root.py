"""The root command: its start, its help, and what it says when something of it is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from mqindex import __version__
from mqindex.cli.group import COMMANDS, root
from tests.cli.conftest import Shell

HEAVY = {
    "numpy",
    "rich",
    "pyarrow",
    "pyspark",
    "pandas",
    "mqindex._native",
    "mqindex.rocketmq",
    "mqindex.cli.commands.verify",
}


def test_help_names_every_command_and_the_exit_codes(shell: Shell) -> None:
    done = shell("--help")
    assert (done.status, done.err) == (0, "")
    for name in COMMANDS:
        assert f"\n  {name} " in done.out
    assert "0 yes, clean or done; 1 no, or findings; 2 trouble" in " ".join(done.out.split())


def test_help_imports_nothing_heavy() -> None:
    program = "import sys, mqindex.cli; assert mqindex.cli.main(['--help']) == 0; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stderr.split()) & HEAVY == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_line_of_help_and_an_example(shell: Shell, name: str) -> None:
    done = shell(name, "--help")
    assert (done.status, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert f"Usage: mqindex {name} " in text
    assert f"Example: mqindex {name} " in text
    assert COMMANDS[name].endswith(".")
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.short_help == COMMANDS[name]
    assert command.help and command.help.split("\n\n")[0].endswith(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_says_what_it_is_for(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []
    assert "--json" in {flag for option in options for flag in option.opts}


STORE_FLAGS = {"--commitlog", "--hash-slot-num", "--index-num", "--broker-version", "--broker-conf"}
KAFKA_FLAGS = {"--kafka-version", "--index-interval-bytes", "--max-index-size"}
ENGINE_FLAGS = {"--engine", "--workers", "--master"}


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("info", STORE_FLAGS | KAFKA_FLAGS | {"--kind"}),
        (
            "query",
            STORE_FLAGS
            | KAFKA_FLAGS
            | {"--topic", "--begin", "--end", "--max-num", "--offset", "--timestamp", "--kind"},
        ),
        ("verify", STORE_FLAGS | KAFKA_FLAGS | ENGINE_FLAGS | {"--deep", "--kind"}),
        ("repair", STORE_FLAGS | KAFKA_FLAGS | ENGINE_FLAGS | {"--deep", "--dry-run", "--parts", "--kind"}),
        ("rebuild", STORE_FLAGS | KAFKA_FLAGS | ENGINE_FLAGS | {"--out", "--force", "--parts", "--kind"}),
        ("dump", STORE_FLAGS | KAFKA_FLAGS | {"--format", "--records", "--kind"}),
        ("hash", {"--topic", "--hash-slot-num"}),
    ],
)
def test_each_command_has_its_options(name: str, flags: set[str]) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert flags <= {flag for option in command.params for flag in option.opts}


def test_version(shell: Shell) -> None:
    assert shell("--version").out == f"mqindex {__version__}\n"


def test_alone_it_greets_with_the_three_commands_one_needs(shell: Shell) -> None:
    done = shell()
    assert (done.status, done.err) == (0, "")
    assert [line.split()[1] for line in done.lines if line.startswith("  mqindex ")] == ["sample", "verify", "repair"]
    assert "mqindex --help" in done.out
    assert max(map(len, done.lines)) <= 120


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verity"], ["verity"]),
        (["verify"], ["PATH", "mqindex verify --help"]),
        (["verify", "--frobnicate", "x"], ["--frobnicate", "mqindex verify --help"]),
        (["dump", "x", "--format", "xml"], ["xml", "table"]),
        (["query", ".", "k", "--kind", "store"], ["--topic"]),
        (["query", ".", "--topic", "T", "--kind", "store"], ["KEY"]),
        (["query", ".", "k", "--kind", "partition"], ["--offset", "--timestamp"]),
        (["query", "x", "k", "--topic", "T", "--begin", "yesterday"], ["yesterday", "ms since the epoch"]),
        (["hash", "k", "--hash-slot-num", "0"], ["--hash-slot-num"]),
        (["verify", ".", "--master", "local[2]"], ["--master", "--engine spark"]),
        (["verify", ".", "-v"], ["--verbose", "--engine spark"]),
        (["verify", ".", "--engine", "spark", "--master", "local[2]", "--workers", "2"], ["--workers", "--master"]),
    ],
)
def test_a_wrong_command_line_is_one_sentence(shell: Shell, arguments: list[str], words: list[str]) -> None:
    done = shell(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("mqindex: ")
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_a_missing_package_is_named_with_the_line_that_installs_it(missing: str, tmp_path: object) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; import mqindex.cli; "
        f"sys.exit(mqindex.cli.main(['info', {str(tmp_path)!r}, '--kind', 'store']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mqindex: the command line needs click and rich: pip install 'mqindex[cli]'\n"


@pytest.mark.parametrize("name", ["20231114221320000", "00000000000000000000.timeindex", "thing"])
@pytest.mark.parametrize("command", ["info", "verify", "dump"])
def test_a_fifo_is_told_and_not_waited_for(shell: Shell, tmp_path: Path, command: str, name: str) -> None:
    os.mkfifo(tmp_path / name)
    done = shell(command, tmp_path / name)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"mqindex: {tmp_path / name} is neither a file nor a directory\n"


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("3", "3")])
def test_no_threads_are_started_for_linear_algebra_unless_asked(given: str | None, expected: str) -> None:
    code = "import os; from mqindex.cli import main; main(); import numpy; print(os.environ['OPENBLAS_NUM_THREADS'])"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if given is not None:
        environment["OPENBLAS_NUM_THREADS"] = given
    command = [sys.executable, "-c", code, "hash", "k"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split()[-1] == expected, done.stderr


def test_a_command_that_ends_searches_nothing_for_garbage() -> None:
    code = "import gc; from mqindex.cli import main; main(); print(len(gc.get_objects()) < 100 < gc.get_freeze_count())"
    done = subprocess.run([sys.executable, "-c", code, "hash", "k"], capture_output=True, text=True, check=False)
    assert done.stdout.split()[-1] == "True", done.stderr
