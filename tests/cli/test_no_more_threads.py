"""Where no more threads can be started (ulimit -u, a container's limit) a command does without, or says so."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from mqindex.cli.trouble import guarded
from tests.cli.conftest import Shell, Store


def refused(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("command", ["verify", "repair", "rebuild --out out", "optimize --out out"])
def test_what_is_printed_is_the_same(
    basic: Store,
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    terminal: bool,
) -> None:
    """It was told as a bug."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(threading.Thread, "start", refused)
    if terminal:
        monkeypatch.setattr(type(sys.stderr), "isatty", lambda stream: True, raising=False)
        monkeypatch.setenv("FORCE_COLOR", "1")  # for Rich it is a terminal
    basic.index_files[1].unlink() if command == "repair" else None
    done = shell(*command.split(), basic.root, "--workers", "3")
    assert "thread" not in done.err
    assert done.status == 0
    assert shell("verify", basic.root).status == 0


def test_what_needs_a_thread_is_one_clear_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> int:
        threading.Thread(target=print).start()
        return 0

    with pytest.MonkeyPatch.context() as full:
        full.setattr(threading.Thread, "start", refused)
        assert guarded(command) == 2
    limits = "expected a higher limit, of this user (ulimit -u) or of the container"
    assert capsys.readouterr().err == f"mqindex: no more threads can be started: {limits}\n"
