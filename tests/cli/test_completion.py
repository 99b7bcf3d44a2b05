"""Completion: what is answered at the cursor, and the line in the shell's start file."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest

from mqindex.cli.completion import MARK, SHELLS
from mqindex.cli.group import COMMANDS, root
from tests.cli.conftest import Shell, process

FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/completions/mqindex.fish"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ["ZDOTDIR", "XDG_CONFIG_HOME", "SHELL"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def answers(*words: str) -> list[str]:
    asked = {"_MQINDEX_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = process(env={**os.environ, **asked})
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["mqindex", "re"], {f"plain,{name}" for name in COMMANDS if name.startswith("re")}),
        (["mqindex", "verify", "st"], {"file,st"}),
        (["mqindex", "rebuild", "store", "--out", "a"], {"dir,a"}),
        (["mqindex", "verify", "store", "--commitlog", "c"], {"dir,c"}),
        (["mqindex", "verify", "store", "--broker-conf", "c"], {"file,c"}),
        (["mqindex", "rebuild", "store", "--engine", "s"], {"plain,spark"}),
        (["mqindex", "rebuild", "store", "--ou"], {"plain,--out"}),
        (["mqindex", "hash", "k"], set()),
    ],
)
def test_answers_at_the_cursor(words: list[str], expected: set[str]) -> None:
    assert set(answers(*words)) == expected


def test_every_path_of_every_command_is_completed() -> None:
    for name in COMMANDS:
        command = root.get_command(click.Context(root), name)
        assert command is not None
        for param in command.params:
            word = (param.metavar or "").strip("[.]").partition(".")[0]
            if word in {"PATH", "STORE", "DIR", "FILE", "BACKUP", "INDEX"}:
                items = param.shell_complete(click.Context(command), "x")
                assert [item.type for item in items] in (["file"], ["dir"]), f"{name} {param.name}"


@pytest.mark.parametrize("name", SHELLS)
def test_the_line_is_added_once_and_the_rest_stays(shell: Shell, home: Path, name: str) -> None:
    path = home / FILES[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"alias a=b\n\xff no newline")
    path.chmod(0o640)
    done = shell("--install-completion", name)
    assert (done.status, done.err) == (0, "")
    line = f"{SHELLS[name]} {MARK}"
    assert str(path) in done.out
    assert line in done.lines[0]
    assert path.read_bytes() == b"alias a=b\n\xff no newline\n" + line.encode() + b"\n"
    assert path.stat().st_mode & 0o777 == 0o640
    before = path.stat()
    assert "nothing was written" in shell("--install-completion", name).out
    assert path.stat() == before
    assert os.listdir(path.parent).count(path.name) == len([x for x in os.listdir(path.parent) if path.name in x]) == 1


def test_a_file_that_is_not_there_is_made_for_the_shell_in_use(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert shell("--install-completion").status == 0
    assert (home / FILES["fish"]).read_text() == f"{SHELLS['fish']} {MARK}\n"


def test_an_old_line_is_replaced_and_a_link_stays_one(shell: Shell, home: Path) -> None:
    (home / "dotfiles").mkdir()
    kept = home / "dotfiles" / "bashrc"
    kept.write_text(f"one\nold line {MARK}\ntwo\n")
    (home / ".bashrc").symlink_to(kept)
    assert shell("--install-completion", "bash").status == 0
    assert (home / ".bashrc").is_symlink()
    assert kept.read_text() == f"one\ntwo\n{SHELLS['bash']} {MARK}\n"


@pytest.mark.parametrize("name", ["tcsh", ""])
def test_a_shell_that_is_not_known_is_named(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("SHELL", f"/bin/{name}" if name else "")
    done = shell("--install-completion")
    assert (done.status, done.out) == (2, "")
    assert "expected bash, zsh or fish" in done.err
    assert os.listdir(home) == []


def test_a_start_file_that_is_no_file_is_one_sentence(shell: Shell, home: Path) -> None:
    (home / ".bashrc").mkdir()
    done = shell("--install-completion", "bash")
    assert (done.status, done.out) == (2, "")
    assert done.err == f"mqindex: {home / '.bashrc'}: Is a directory\n"


@pytest.mark.parametrize("words", [{}, {"COMP_WORDS": "mqindex re", "COMP_CWORD": "one"}])
def test_who_asks_without_a_cursor_is_told_what_is_missing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: dict[str, str]
) -> None:
    for name, value in {"_MQINDEX_COMPLETE": "bash_complete", **words}.items():
        monkeypatch.setenv(name, value)
    done = shell()
    assert (done.status, done.out) == (2, "")
    assert (
        done.err
        == "mqindex: _MQINDEX_COMPLETE is for a shell's completion: expected COMP_WORDS and COMP_CWORD with it\n"
    )


def test_a_device_is_no_start_file(shell: Shell, home: Path) -> None:
    """As root, a file took the place of /dev/null, to which ~/.bashrc was a link; and nobody writes to the FIFO."""
    os.mkfifo(home / "fifo")
    os.mkdir(home / "devices")
    made = home / "devices" / "zero"
    try:
        os.mknod(made, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        made = home / "fifo"
    for target in (made, home / "fifo"):
        (home / ".bashrc").symlink_to(target)
        done = shell("--install-completion", "bash")
        assert (done.status, done.err) == (2, f"mqindex: {target}: not a regular file\n")
        assert not target.is_file()
        (home / ".bashrc").unlink()


@pytest.mark.parametrize("name", SHELLS)
def test_the_shell_itself_takes_the_line_and_completes(shell: Shell, home: Path, name: str) -> None:
    old = ["bash", "-c", "((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404))"]  # macOS has 3.2
    if shutil.which(name) is None or (name == "bash" and subprocess.run(old, check=False).returncode == 0):
        pytest.skip(f"no {name} that click completes in")
    shell("--install-completion", name)
    programs = {
        "bash": "source ~/.bashrc; COMP_WORDS=(mqindex reb) COMP_CWORD=1; _mqindex_completion mqindex; echo $COMPREPLY",
        "zsh": "source ~/.zshrc; print ${_comps[mqindex]}",
        "fish": 'complete -C "mqindex reb"',
    }
    command = home / "mqindex"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mqindex "$@"\n')
    command.chmod(0o755)
    path = f"{home}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [name, "-c", programs[name]], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split()[:1] == ["_mqindex_completion" if name == "zsh" else "rebuild"], done.stderr
    assert done.stderr == ""
