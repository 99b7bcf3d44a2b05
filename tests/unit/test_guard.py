"""Mapped files that another process cuts: zeros and a mark instead of SIGBUS; a foreign SIGBUS kills as ever.

What may end a process runs in one of its own.
"""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from mqindex._native.log_extract import Extractor
from mqindex.errors import TruncatedFileError, was_cut
from mqindex.files.reading.mapped_file import MappedFile
from tests.support.log_writer import LogMessage, frame

ONE = frame(LogMessage(keys="k"), 0)
SIZE = 40 * mmap.PAGESIZE
BEHIND = SIZE - 100
START = f"""
import faulthandler, mmap, os, signal, sys, threading
from mqindex.errors import TruncatedFileError, was_cut
from mqindex.files.reading.mapped_file import MappedFile

def cut(path):  # by another process
    os.waitpid(os.spawnlp(os.P_NOWAIT, "truncate", "truncate", "-s", "10", path), 0)

def fault(mapped):
    try:
        return mapped.map[{BEHIND} : {BEHIND + 4}]
    except TruncatedFileError as error:
        print("refused", error.expected, error.got)

path = sys.argv[1]
"""
FOREIGN = f"""
with open(sys.argv[2], "r+b") as file:
    other = mmap.mmap(file.fileno(), 0)
cut(sys.argv[2])
other[{BEHIND}]
"""


def run(tmp_path: Path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    for name in ("ours", "other"):
        (tmp_path / name).write_bytes(b"x" * SIZE)
    return subprocess.run(
        [sys.executable, *options, "-c", START + program, str(tmp_path / "ours"), str(tmp_path / "other")],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":handle_sigbus=0"},
    )  # fmt: skip


def refusals(done: subprocess.CompletedProcess[str]) -> int:
    assert done.returncode == 0, done.stderr
    return done.stdout.count(f"refused {SIZE} 10\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"x" * SIZE)
    return path


def test_a_cut_file_is_an_error_and_stays_one(tmp_path: Path) -> None:
    program = "mapped = MappedFile.open(path); print(fault(mapped)); cut(path); fault(mapped); fault(mapped)"
    done = run(tmp_path, program)
    assert refusals(done) == 2
    assert done.stdout.startswith("b'xxxx'\n")


@pytest.mark.parametrize("options", [(), ("-X", "faulthandler")])
def test_faulthandler_before_us_changes_nothing(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, "mapped = MappedFile.open(path); cut(path); fault(mapped)", *options)
    assert refusals(done) == 1
    assert done.stderr == ""


def test_faulthandler_after_us_is_passed_at_the_next_mapping(tmp_path: Path) -> None:
    program = "MappedFile.open(path); faulthandler.enable(); mapped = MappedFile.open(path); cut(path); fault(mapped)"
    assert refusals(run(tmp_path, program)) == 1
    off = "MappedFile.open(path); faulthandler.disable(); mapped = MappedFile.open(path); cut(path); fault(mapped)"
    assert refusals(run(tmp_path, off, "-X", "faulthandler")) == 1


@pytest.mark.parametrize("options", [(), ("-X", "faulthandler")])
@pytest.mark.parametrize("enable", ["", "faulthandler.enable(); MappedFile.open(path)"])
@pytest.mark.parametrize(
    "death", [FOREIGN, "os.kill(os.getpid(), signal.SIGBUS)", "signal.raise_signal(signal.SIGBUS)"]
)
def test_a_foreign_bus_error_kills_as_ever(tmp_path: Path, death: str, enable: str, options: tuple[str, ...]) -> None:
    done = run(tmp_path, f"mapped = MappedFile.open(path)\n{enable}\n{death}\nprint('survived')", *options)
    assert done.returncode == -signal.SIGBUS
    assert done.stdout == ""
    assert done.stderr.count("Fatal Python error: Bus error") == (1 if enable or options else 0)


def test_a_handler_of_the_program_gets_what_is_not_ours(tmp_path: Path) -> None:
    program = """
signal.signal(signal.SIGBUS, lambda number, frame: print("handled", number))
mapped = MappedFile.open(path)
os.kill(os.getpid(), signal.SIGBUS)
cut(path)
fault(mapped)
signal.signal(signal.SIGBUS, signal.SIG_IGN)
MappedFile.open(sys.argv[2])
os.kill(os.getpid(), signal.SIGBUS)
"""
    done = run(tmp_path, program)
    assert refusals(done) == 1
    assert done.stdout.startswith(f"handled {signal.SIGBUS:d}\n")


def test_handlers_that_come_back_again_and_again_are_each_known_once(tmp_path: Path) -> None:
    program = """
for _ in range(20):
    signal.signal(signal.SIGBUS, lambda number, frame: print("handled", number))
    mapped = MappedFile.open(path)
    signal.signal(signal.SIGBUS, signal.SIG_IGN)
    MappedFile.open(sys.argv[2])
os.kill(os.getpid(), signal.SIGBUS)
signal.signal(signal.SIGBUS, lambda number, frame: print("handled", number))
MappedFile.open(sys.argv[2])
os.kill(os.getpid(), signal.SIGBUS)
cut(path)
fault(mapped)
"""
    done = run(tmp_path, program)
    assert refusals(done) == 1
    assert done.stdout.count(f"handled {signal.SIGBUS:d}\n") == 1


def test_a_foreign_bus_error_is_no_endless_one_where_a_handler_returns(tmp_path: Path) -> None:
    program = "signal.signal(signal.SIGBUS, lambda *_: None); mapped = MappedFile.open(path)\n" + FOREIGN
    assert run(tmp_path, program).returncode == -signal.SIGBUS


@pytest.mark.skipif(sys.platform != "linux", reason="the layout of a sigaction is that of Linux")
def test_a_handler_that_wants_siginfo_gets_what_is_not_ours(tmp_path: Path) -> None:
    """As a Java machine in the same process has one; here any C function that comes back does."""
    program = """
import ctypes
class Action(ctypes.Structure):
    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ubyte * 128), ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
SA_SIGINFO = 4
theirs = Action(ctypes.cast(libc.abs, ctypes.c_void_p), flags=SA_SIGINFO)
mapped = MappedFile.open(path)
assert libc.sigaction(int(signal.SIGBUS), ctypes.byref(theirs), None) == 0
MappedFile.open(sys.argv[2])
os.kill(os.getpid(), signal.SIGBUS)
cut(path)
fault(mapped)
"""
    assert refusals(run(tmp_path, program)) == 1


def test_more_handlers_than_are_remembered(tmp_path: Path) -> None:
    """The one before the guard is called still, and the guard is in front of it."""
    program = """
import ctypes
libc = ctypes.CDLL(None)
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
for name in "isalnum isalpha iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit".split():
    libc.signal(signal.SIGBUS, ctypes.cast(getattr(libc, name), ctypes.c_void_p))
    mapped = MappedFile.open(path)
os.kill(os.getpid(), signal.SIGBUS)
signal.signal(signal.SIGBUS, lambda number, frame: print("handled", number))
mapped = MappedFile.open(path)
os.kill(os.getpid(), signal.SIGBUS)
cut(path)
fault(mapped)
"""
    done = run(tmp_path, program)
    assert refusals(done) == 1
    assert done.stdout.count(f"handled {signal.SIGBUS:d}\n") == 1


def test_views_keep_no_reference_to_none(tmp_path: Path) -> None:
    """Each took one for good; before Python 3.12 they are counted."""
    (tmp_path / "file").write_bytes(bytes(100))
    with MappedFile.open(tmp_path / "file") as file:
        for exporter in (file.map, memoryview(next(iter(Extractor(ONE, 0, 0, len(ONE))))).obj):
            before = sys.getrefcount(None)
            for _ in range(1000):
                memoryview(exporter).release()
            assert sys.getrefcount(None) - before < 100


def test_a_forked_child_is_guarded_for_itself(tmp_path: Path) -> None:
    program = """
mapped = MappedFile.open(path)
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    assert not mapped.map.cut
    fault(mapped)
else:
    cut(path)
    fault(mapped)
    fault(MappedFile.open(sys.argv[2]))
    sys.stdout.flush()
    os._exit(0)
"""
    assert refusals(run(tmp_path, program)) == 2


def test_forks_beside_threads_that_map_do_not_hang(tmp_path: Path) -> None:
    program = """
stop = threading.Event()
def work():
    while not stop.is_set():
        MappedFile.open(sys.argv[2]).close()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(30):
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
    else:
        MappedFile.open(sys.argv[2]).close()
        os._exit(0)
stop.set()
for thread in threads: thread.join()
mapped = MappedFile.open(path); cut(path); fault(mapped)
"""
    assert refusals(run(tmp_path, program)) == 1


def test_thousands_of_mappings(tmp_path: Path) -> None:
    program = """
many = [MappedFile.open(sys.argv[2]) for _ in range(3000)]
mapped = MappedFile.open(path)
for one in many[::2]: one.close()
many = many[1::2] + [MappedFile.open(path) for _ in range(700)]
cut(path)
fault(mapped)
fault(many[-1])
assert [one.map.cut for one in many].count(True) == 1
"""
    limit = "import resource; most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
    limit += "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)); assert most > 5000\n"
    assert refusals(run(tmp_path, limit + program)) == 2


def test_a_thread_that_reads_zeros_beside_the_one_that_faulted_finds_the_mark(tmp_path: Path) -> None:
    program = f"""
mapped = MappedFile.open(path)
found, begun = [], threading.Barrier(5)
def read():
    begun.wait()
    for _ in range(100_000):
        try:
            found.append(mapped.map[{BEHIND} : {BEHIND + 4}])
        except TruncatedFileError:
            return
threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads: thread.start()
begun.wait()
cut(path)
for thread in threads: thread.join()
assert set(found) <= {{b"xxxx"}}, set(found)
fault(mapped)
"""
    assert refusals(run(tmp_path, program)) == 1


def test_closing_while_a_call_reads_leaves_its_bytes_guarded(path: Path) -> None:
    mapped = MappedFile.open(path)
    reading = memoryview(mapped.map)
    mapped.close()
    os.truncate(path, 10)
    assert bytes(reading[BEHIND:]) == bytes(100)  # guarded still, for here SIGBUS would have ended us
    assert reading.obj.cut


def test_an_address_that_is_used_again_carries_no_mark(path: Path) -> None:
    for _ in range(50):
        mapped = MappedFile.open(path)
        assert not mapped.map.cut
        os.truncate(path, 10)
        with pytest.raises(TruncatedFileError):
            mapped.map[BEHIND:]
        mapped.close()
        path.write_bytes(b"x" * SIZE)


def test_the_end_of_a_with_finds_what_nobody_looked_for(path: Path) -> None:
    with pytest.raises(TruncatedFileError, match="cut while it was read"), MappedFile.open(path) as mapped:
        os.truncate(path, 10)
        np.frombuffer(mapped.map, np.uint8).sum()
    path.write_bytes(b"x" * SIZE)
    with pytest.raises(TruncatedFileError), MappedFile.open(path) as mapped:
        os.truncate(path, SIZE - 10)  # in its last page: zeros without any fault
        np.frombuffer(mapped.map, np.uint8).sum()
    path.write_bytes(b"x" * SIZE)
    with pytest.raises(KeyError), MappedFile.open(path) as mapped:
        os.truncate(path, 10)
        raise KeyError


def test_a_file_cut_and_grown_again_is_said_not_guessed(path: Path) -> None:
    mapped = MappedFile.open(path)
    with pytest.raises(TruncatedFileError, match="cut for a while") as caught:
        os.truncate(path, 10)
        np.frombuffer(mapped.map, np.uint8).sum()
        os.truncate(path, SIZE)
        mapped.check()
    assert (caught.value.expected, caught.value.got) == (None, None)  # it was "expected 163840, got 163840"
    assert was_cut(caught.value)


def test_a_page_that_finds_no_room_is_no_space_left(path: Path) -> None:
    """What a full disk does to a hole in a mapping: the fault, and a file that keeps its length."""
    mapped = MappedFile.open(path, writable=True)
    os.truncate(path, 10)
    mapped_bytes = np.frombuffer(mapped.map, np.uint8)
    mapped_bytes[BEHIND] = 1
    os.truncate(path, SIZE)
    for call in (mapped.check, mapped.flush, lambda: mapped.map[:4]):
        with pytest.raises(OSError, match="No space left on device"):
            call()


def test_threads_that_map_and_unmap_at_once(path: Path) -> None:
    def work() -> None:
        for _ in range(300):
            with MappedFile.open(path) as mapped:
                assert mapped.map[:2] == b"xx"

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
