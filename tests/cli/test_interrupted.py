"""What an interrupted command says is true: at each moment it knows what it has changed by then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.cli.commands import message
from mqindex.cli.printing import output
from mqindex.cli.trouble import guarded, true_from_here
from mqindex.files import disk
from tests.cli.conftest import Shell, Store

INTERRUPTED = 128 + signal.SIGINT
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def unprinted(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a command that Ctrl-C meets as it prints its result: its pipe may be full. Returns what it said last."""

    def run(*arguments: str | os.PathLike[str]) -> str:
        with monkeypatch.context() as full:
            full.setattr(output, "json_line", interrupt)
            done = shell(*arguments, "--json")
        assert (done.status, done.out) == (INTERRUPTED, "")
        return done.err.splitlines()[-1].removeprefix("mqindex: interrupted; ")

    return run


def interrupt(*arguments: Any) -> Any:
    raise KeyboardInterrupt


def backup_in(store: Path) -> Path:
    return max(store.glob("mqindex-backup-*"))


def test_a_repair_that_was_done_says_so_and_what_undoes_it(lost: Store, unprinted: Callable[..., str]) -> None:
    """It said that nothing was changed, and the line that undoes it was lost."""
    said = unprinted("repair", lost.root)
    backup = backup_in(lost.root)
    assert said == f"all is done; this can be taken back: mqindex repair {lost.root} --undo {backup}"
    assert unprinted("repair", lost.root) == "nothing was changed"
    said = unprinted("repair", lost.root, "--undo", backup)
    assert said.startswith(f"all is done; this can be taken back: mqindex repair {lost.root} --undo ")
    assert not backup.exists()


def test_a_dry_run_changes_nothing(lost: Store, unprinted: Callable[..., str]) -> None:
    assert unprinted("repair", lost.root, "--dry-run") == "nothing was changed"


@pytest.mark.parametrize("command", ["rebuild", "optimize"])
def test_a_result_that_is_there_is_told(
    basic: Store, unprinted: Callable[..., str], tmp_path: Path, command: str
) -> None:
    out = tmp_path / "out"
    assert unprinted(command, basic.root, "--out", out) == f"{out} is complete"
    said = unprinted(command, basic.root, "--out", out, "--force")
    (backup,) = tmp_path.glob("out.backup-*")
    assert said.endswith(f"; what was at {out} is now {backup}")


def test_an_optimized_store_says_what_undoes_it(basic: Store, unprinted: Callable[..., str]) -> None:
    said = unprinted("optimize", basic.root, "--out", basic.root, "--force")
    assert said == f"all is done; this can be taken back: mqindex repair {basic.root} --undo {backup_in(basic.root)}"
    assert unprinted("optimize", basic.root, "--out", basic.root, "--force") == "nothing was changed"


def test_a_page_or_a_body_or_a_sample_that_is_there_is_told(
    basic: Store, shell: Shell, unprinted: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    assert unprinted("report", basic.root, "--out", page) == f"{page} is complete"
    assert unprinted("report", basic.root, "--out", page, "--force") == f"{page} is complete"
    assert unprinted("report", basic.root) == "nothing was changed"
    assert unprinted("sample", tmp_path) == f"{tmp_path / 'store'} and {tmp_path / 'orders-0'} are complete"
    monkeypatch.setattr(message, "say", interrupt)
    done = shell("message", basic.root, "0", "--out", tmp_path / "body")
    assert done.err == f"mqindex: interrupted; {tmp_path / 'body'} is complete\n"


def test_without_memory_it_says_no_less(lost: Store, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files were exchanged, and it said that nothing was changed."""
    sync = disk.sync_directories

    def full(paths: Any) -> None:
        sync(paths)
        if any(path.endswith("index") for path in paths if "backup" not in path):
            raise MemoryError

    monkeypatch.setattr(disk, "sync_directories", full)
    done = shell("repair", lost.root)
    files = "every file is the old or the new one; run it again to finish"
    assert done.status == 2
    assert done.err.startswith("mqindex: out of memory: ")
    assert done.err.endswith(f"; {files}\n")


def test_a_command_begins_with_nothing_changed(capsys: pytest.CaptureFixture[str]) -> None:
    def writes() -> int:
        true_from_here("it is done")
        raise KeyboardInterrupt

    said = []
    for command in (writes, interrupt):
        assert guarded(command) == -signal.SIGINT
        said.append(capsys.readouterr().err)
    assert said == ["mqindex: interrupted; it is done\n", "mqindex: interrupted; nothing was changed\n"]


def test_an_interrupt_after_the_command_does_not_say_that_nothing_was_changed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqindex.cli import trouble

    monkeypatch.setattr(trouble, "_signal", interrupt)  # as a second Ctrl-C is, while the first is told
    monkeypatch.setattr(trouble, "_require_output", interrupt)
    done = shell("doctor")
    assert (done.status, done.err.splitlines()[-1]) == (INTERRUPTED, "mqindex: interrupted")


ENDLESS = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
from mqindex.cli import trouble
from mqindex.engines import LocalEngine
trouble._PATIENCE = 0.5

def stage(item):  # as on a network's disk that does not answer
    os.write(1, b"began\\n")
    threading.Event().wait()

trouble.end_by(-trouble.guarded(lambda: len(LocalEngine(2).map(stage, range(2), name="hangs"))))
"""


def test_a_signal_long_after_the_first_ends_what_does_not_end_by_itself() -> None:
    """Every Ctrl-C was waited with for ever: only SIGKILL ended it."""
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as running:
        assert running.stdout is not None
        try:
            assert [running.stdout.readline(), running.stdout.readline()] == ["began\n"] * 2
            for seconds in (0.1, 0.1, 0.7):
                time.sleep(seconds)
                assert running.poll() is None
                running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=20)[1]
        finally:
            running.kill()
    assert running.returncode == -signal.SIGINT
    assert said == "mqindex: ended at once; nothing was changed; the next run removes what this one leaves\n"


def test_an_interrupt_that_a_destructor_loses_comes_again_without_a_thread(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where no thread could be started the hook failed, and its traceback was shown."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    class Watched:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)
            time.sleep(0)

    def command() -> int:
        watched = Watched()
        del watched
        time.sleep(5)
        return 0

    monkeypatch.setattr(threading.Thread, "start", refused)
    before, began = signal.getsignal(signal.SIGALRM), time.monotonic()
    assert guarded(command) == -signal.SIGTERM
    assert time.monotonic() - began < 4
    assert capfd.readouterr().err == "mqindex: interrupted; nothing was changed\n"
    assert signal.getsignal(signal.SIGALRM) == before


AT_ITS_END = """
import os, signal, sys, threading
threading._register_atexit(lambda: os.kill(os.getpid(), signal.SIGINT))
from mqindex.cli import main
sys.argv[1:] = ["hash", "a"]
sys.exit(main())
"""


@pytest.mark.parametrize("ignored", [False, True])
def test_an_interrupt_while_the_interpreter_ends_ends_it_in_silence(ignored: bool) -> None:
    """The result was printed, and then Python's traceback of an ignored KeyboardInterrupt."""
    call = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"] if ignored else []
    call += [sys.executable, "-c", AT_ITS_END]
    done = subprocess.run(call, capture_output=True, text=True, cwd=REPOSITORY, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0 if ignored else -signal.SIGINT, "")
    assert done.stdout.split() == ["key_hash", "key", "97", "a"]
