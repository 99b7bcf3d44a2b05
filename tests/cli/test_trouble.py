"""How a command ends when something goes wrong around it: pipes, full disks, signals, bugs."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mqindex
from mqindex.cli.trouble import guarded
from mqindex.errors import CorruptIndexError, RebuildError
from tests.cli.conftest import COMMAND, Shell, Store, ordinary_user, process

MORE_MEMORY = "expected more of it, or a higher limit, of this process (ulimit -v) or of the container"


def raising(error: BaseException) -> int:
    def command() -> int:
        raise error

    return guarded(command)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (FileNotFoundError(2, "No such file or directory", "a/b"), "a/b: No such file or directory"),
        (PermissionError(13, "Permission denied", "a/b"), "a/b: Permission denied"),
        (OSError(28, "No space left on device", "a/b"), "a/b: No space left on device"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (RebuildError("a worker died", hint="try again"), "a worker died; try again"),
        (
            CorruptIndexError("slot leads outside", path="i\n1", at=44, expected=0, got=9),
            "slot leads outside: i\\n1 at byte 44: expected 0, got 9",
        ),
        (ValueError("parts: expected some of index, got x"), "parts: expected some of index, got x"),
        (
            ImportError("needs pyspark: pip install 'mqindex[spark]'"),
            "needs pyspark: pip install 'mqindex[spark]'",
        ),
        (ImportError("cannot import name 'x'", name="rich"), "cannot import name 'x'"),
        (MemoryError(), f"out of memory: {MORE_MEMORY}; nothing was changed"),
        (OSError(12, "Cannot allocate memory", "a/b"), f"a/b: Cannot allocate memory; {MORE_MEMORY}"),
        (
            OSError(27, "File too large", "a/b"),
            "a/b: File too large; expected a higher limit, of this process (ulimit -f) or of the file system",
        ),
    ],
)
def test_every_error_is_one_sentence(capsys: pytest.CaptureFixture[str], error: BaseException, sentence: str) -> None:
    assert raising(error) == 2
    assert capsys.readouterr() == ("", f"mqindex: {sentence}\n")


def test_an_interrupt_is_told_and_ends_by_its_signal(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(KeyboardInterrupt()) == -signal.SIGINT
    assert capsys.readouterr() == ("", "mqindex: interrupted; nothing was changed\n")


def test_a_mistyped_command_is_told_what_it_may_be(shell: Shell) -> None:
    done = shell("qurey")
    assert (done.status, done.err) == (
        2,
        "mqindex: no such command: qurey; did you mean query?; see `mqindex --help`\n",
    )


def test_a_key_that_looks_like_an_option_is_told_the_way(shell: Shell, basic: Store) -> None:
    assert "write --" in shell("query", basic.root, "--topic", "T", "-1").err
    assert shell("query", basic.root, "--topic", "T", "--", "-1").status == 1


def test_a_bug_is_told_with_its_place_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(KeyError("lost")) == 2
    said = capsys.readouterr().err
    assert said.startswith("mqindex: a bug in mqindex, please report it: KeyError: 'lost' (test_trouble.py, line ")
    assert said.count("\n") == 1


def test_a_closed_pipe_is_quiet(basic: Store) -> None:
    """As in `mqindex dump ... | head -1`."""
    with subprocess.Popen(
        [*COMMAND, "dump", basic.root / "commitlog", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == -signal.SIGPIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("command", [["info"], ["dump", "--format", "csv"]])
def test_output_to_a_full_disk_is_trouble(basic: Store, command: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = process(*command, basic.index_files[0], stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 2
    assert done.stderr == b"mqindex: standard output: No space left on device\n"


def test_a_file_that_may_not_be_read(shell: Shell, public: Store) -> None:
    path = public.index_files[0]
    assert shell("info", path).status == 0
    path.chmod(0)
    with ordinary_user():
        done = shell("info", path)
    assert (done.status, done.err) == (2, f"mqindex: {path}: Permission denied\n")


def test_a_name_that_is_no_text_is_printed_escaped(basic: Store) -> None:
    odd = os.fsencode(basic.root.parent) + b"/\xff\x1b[2J"
    os.rename(basic.root, odd)
    done = subprocess.run([*COMMAND, "info", odd], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\udcff\x1b[2J" in done.stdout


IMPORTING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "mqindex.cli.group":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Slow())
from mqindex.cli import main
sys.exit(main())
"""


def test_nothing_is_imported_before_an_interrupt_is_one_sentence() -> None:
    """Until then it is Python's traceback."""
    begin = "import __future__, os, sys; known = {*sys.modules}"
    script = f"{begin}; from mqindex.cli import main; print({{*sys.modules}} - known)"
    environment = {**os.environ, "PYTHONPATH": str(Path(mqindex.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    few = {"mqindex", "mqindex._room", "mqindex.cli", "types"}
    assert (done.stderr, ast.literal_eval(done.stdout)) == ("", few)


def test_an_interrupt_while_modules_are_read_ends_by_its_signal() -> None:
    """It ended with 130, so that a shell's loop went on."""
    done = subprocess.run([sys.executable, "-c", IMPORTING, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "mqindex: interrupted; nothing was changed\n")


SLOW = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore them (nohup, &)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from mqindex.rocketmq.pipeline.stages import PartFile
real = PartFile.finish
def slow(file, *given):
    built = real(file, *given)
    print("building", flush=True)
    time.sleep(60)
    return built
PartFile.finish = slow
from mqindex.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", ["rebuild", "repair"])
def test_an_interrupted_build_leaves_no_scrap(basic: Store, number: signal.Signals, command: str) -> None:
    out = basic.root.parent / "out"
    basic.index_files[3].unlink()
    before = basic.contents()
    arguments = [command, basic.root, "--workers", "1", *(["--out", out] if command == "rebuild" else [])]
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "building\n"
        time.sleep(0.1)
        running.send_signal(number)
        said = running.stderr.read()
        assert running.wait(60) == -number
    assert "Traceback" not in said
    if command == "rebuild":
        assert said.splitlines()[-1] == "mqindex: interrupted; nothing was changed"
    else:
        assert said == "mqindex: interrupted; every file is the old or the new one; run it again to finish\n"
    assert basic.contents() == before
    assert os.listdir(basic.root.parent) == [basic.root.name]


@pytest.mark.parametrize(
    "command", [["info"], ["dump", "--format", "arrow"], ["query", "--topic", "T", "k"], ["verify"], ["--help"]]
)
def test_a_closed_stdout_is_told(basic: Store, command: list[str]) -> None:
    """`mqindex ... >&-`: it was told as a bug."""
    words = [sys.executable, "-m", "mqindex", *command[:1], str(basic.index_files[0]), *command[1:]]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "mqindex: standard output is closed: expected a place for the results; >/dev/null drops them\n"
    )


@pytest.mark.skipif(sys.platform == "darwin", reason="it limits no address space")
@pytest.mark.parametrize("kib", [80_000, 165_000, 262_143])
def test_too_little_memory_is_no_finding(lost: Store, kib: int) -> None:
    """NumPy's OpenBLAS ended the process with exit code 1 and without a report, which a monitor took for damage."""
    words = [*COMMAND, "verify", str(lost.root)]
    line = f'ulimit -v {kib} && exec "$@"'
    done = subprocess.run(["sh", "-c", line, "sh", *words], capture_output=True, text=True, check=False)
    said = f"mqindex: memory is limited to {kib} KiB (ulimit -v): expected 262144 KiB or more\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_a_closed_stdin_holds_no_keys(basic: Store) -> None:
    """`<&-` counted as an empty list."""
    words = [*COMMAND, "query", str(basic.index_files[0]), "--topic", "T", "-"]
    done = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *words], capture_output=True, text=True, check=False)
    said = "mqindex: standard input is closed: expected keys, one a line; </dev/null has none\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


NO_STDERR = ["sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND]


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("info", []),
        ("verify", []),
        ("verify", ["--json"]),
        ("repair", []),
        ("rebuild", ["--out", "out"]),
        ("optimize", ["--out", "out"]),
        ("report", ["--out", "out.html"]),
        ("query", ["--topic", "T", "nothing"]),
        ("info", ["--wrong"]),
    ],
)
def test_a_closed_stderr_changes_nothing(lost: Store, tmp_path: Path, command: str, flags: list[str]) -> None:
    """`mqindex ... 2>&-` was told as a bug, on stdout."""
    lost.index_files[0].unlink()
    copy = shutil.copytree(lost.root, tmp_path / "copy" / lost.root.name)
    places = {copy: tmp_path / "copy", lost.root: lost.root.parent}
    expected, done = (
        subprocess.run(
            [*words, command, root.name, *flags], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        for words, (root, place) in zip((COMMAND, NO_STDERR), places.items(), strict=True)
    )
    assert (done.returncode, done.stderr) == (expected.returncode, b"")
    assert len(done.stdout.splitlines()) == len(expected.stdout.splitlines())
    assert b"mqindex: " not in done.stdout


def test_follow_runs_with_a_closed_stderr(basic: Store, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*NO_STDERR, "follow", basic.root, "--out", tmp_path / "beside", "--json"], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert '"event": "progress"' in running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        assert '"event": "stopped"' in running.stdout.read()
        assert running.wait(60) == 0


def test_a_closed_stderr_is_no_place_for_a_file_of_the_store(basic: Store) -> None:
    """The first file that was opened took its number, and got what any library writes to it."""
    script = "import os, sys; from mqindex.cli import main; main(['info', sys.argv[1]]); print(os.fstat(2).st_rdev)"
    words = ["sh", "-c", 'exec "$@" 2>&- <&-', "sh", sys.executable, "-c", script, str(basic.root)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == [str(os.stat(os.devnull).st_rdev)]


def test_what_is_missing_is_not_told_on_stdout(tmp_path: Path) -> None:
    """Without click there is no command line that would see to stderr."""
    script = "import sys; sys.modules['click'] = None; from mqindex.cli import main; sys.exit(main(['info']))"
    words = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here; an interrupted print is tested anyway")
def test_what_was_done_is_said_where_the_result_cannot_be_printed(lost: Store, tmp_path: Path) -> None:
    """It was a repair, and neither that it was done nor the line that undoes it was seen anywhere."""
    with open("/dev/full", "wb") as full:
        options: dict[str, Any] = {"stdout": full, "stderr": subprocess.PIPE, "capture_output": False}
        repaired = process("repair", lost.root, **options)
        again = process("repair", lost.root, **options)
        rebuilt = process("rebuild", lost.root, "--out", tmp_path / "out", **options)
        unpacked = process("sample", tmp_path / "sample", **options)
    no_space = "mqindex: standard output: No space left on device"
    (backup,) = lost.root.glob("mqindex-backup-*")
    back = f"; all is done; this can be taken back: mqindex repair {lost.root} --undo {backup}"
    two = f"{tmp_path / 'sample' / 'store'} and {tmp_path / 'sample' / 'orders-0'} are complete"
    done = (repaired, again, rebuilt, unpacked)
    last = [each.stderr.decode().splitlines()[-1] for each in done]
    assert last == [no_space + back, no_space, f"{no_space}; {tmp_path / 'out'} is complete", f"{no_space}; {two}"]
    assert [each.returncode for each in done] == [2, 2, 2, 2]


def test_a_current_directory_that_was_removed_is_named(basic: Store, tmp_path: Path) -> None:
    """It was "No such file or directory", of nothing."""
    said = "mqindex: the current directory was removed: expected one that is there; cd to another one"
    lines: Any = (["verify", "."], ["rebuild", basic.root, "--out", "new"], ["report", basic.root, "--out", "page"])
    for line in (*lines, ["sample", "."], ["message", basic.root, "0", "--out", "body"]):
        gone = tmp_path / "gone"
        gone.mkdir()
        words = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *COMMAND, *map(str, line)]
        done = subprocess.run(words, cwd=gone, env=paths_env(), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.splitlines()[-1].startswith(said)) == (2, "", True), line
    gone.mkdir()
    words = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *COMMAND, "verify", str(basic.root)]
    assert subprocess.run(words, cwd=gone, env=paths_env(), capture_output=True, check=False).returncode == 0


def paths_env() -> dict[str, str]:
    """This process's environment, in which the package is found from any directory."""
    here = str(Path(mqindex.__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))}


def killed_in(inside: str) -> Callable[[], int]:
    """A command that a signal interrupts where the interpreter wraps or drops the exception."""

    def command() -> int:
        class Watched:
            def __set_name__(self, owner: type, name: str) -> None:
                if inside == "class":
                    os.kill(os.getpid(), signal.SIGTERM)

            def __del__(self) -> None:
                if inside == "destructor":
                    os.kill(os.getpid(), signal.SIGTERM)
                    time.sleep(0)

        watched = Watched()
        type("Made", (), {"watched": watched} if inside == "class" else {})
        del watched
        time.sleep(5)
        return 0

    return command


@pytest.mark.parametrize("inside", ["class", "destructor"])
def test_a_signal_is_one_wherever_it_arrives(inside: str, capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    assert guarded(killed_in(inside)) == -signal.SIGTERM
    assert time.monotonic() - began < 4
    assert capfd.readouterr().err == "mqindex: interrupted; nothing was changed\n"
