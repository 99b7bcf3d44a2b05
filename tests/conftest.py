"""What every test gets: a random source whose seed a failure shows, and a check that nothing stays open.

Also how tests run in several processes (`pytest -n 4`), and what the summary shows.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests.support.file_difference import difference
from tests.support.golden import StoreCase, case
from tests.support.memory_disk import memory_disk
from tests.support.nightly import NIGHTLY
from tests.support.spark_archive import java_options

SEED_VARIABLE = "MQINDEX_TEST_SEED"
MAPPED_FILE = re.compile(rb"^(?:\S+ +){5}(/.*)$", re.MULTILINE)  # the sixth column of /proc/self/maps
# The last one: the file without bytes behind the mappings of files elsewhere, one in a process.
NO_FILES = ("/dev/pts/", "/dev/null", "/dev/tty", "/dev/ptmx", "/dev/urandom", "/proc/", "/memfd:mqindex")
MARKED_ROOMS = ("spark", "peer")
REAL_STDERR = pytest.StashKey[int]()
LEFT = pytest.StashKey[int]()  # how many tests the nightly run alone has
# What a test records under these names is in the summary.
SHOWN = ("shown with real brokers", "kill -9 at any time", "instructions of the kernels")

# Where a change is judged, a test gets the same random inputs each time: what fails is then the change. The nightly run
# and everyone's own look for inputs that none has seen.
SAME_INPUTS = bool(os.environ.get("CI")) and not NIGHTLY

SLOWER = 10 if "san.so" in os.environ.get("LD_PRELOAD", "") else 1  # how much kernels are under a sanitizer

settings.register_profile(
    "busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=SAME_INPUTS
)


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job; some tests interrupt themselves
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("busy machine")  # no test asserts a time
    gc.set_threshold(50_000)  # objects; the default, 700, is for a process with little memory to spare
    os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())
    os.environ["XDG_CACHE_HOME"] = "none"  # no directory: a test that wants zone maps kept names one
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of hundreds of processes none computes with matrices
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory_disk())  # where the directories of `tmp_path` are made
    config.stash[REAL_STDERR] = os.dup(2)  # Capturing is suspended now; later, descriptor 2 is a file.


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.support.scheduling import FileScheduling

    return FileScheduling(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for room in MARKED_ROOMS:
            if item.nodeid.startswith(f"tests/{room}/"):
                item.add_marker(room)
    if not NIGHTLY:
        left = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        config.stash[LEFT] = len(left)
        config.hook.pytest_deselected(items=left)
    if hasattr(config, "workerinput"):  # one of several processes
        from tests.support.scheduling import priority

        items.sort(key=lambda item: priority(item.nodeid))


def pytest_collection_finish() -> None:
    """Ten thousand tests stay until the end: what collects garbage need not go over them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if hasattr(item.config, "workerinput"):
        from tests.support.scheduling import give_way

        give_way(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if not hasattr(item.config, "workerinput"):
        return (yield)
    from tests.support.scheduling import turn

    with turn(item):
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = session.config.stash.get(LEFT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    if hasattr(node, "workeroutput"):  # none of a process that crashed
        node.config.stash[LEFT] = node.workeroutput["left"]


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    return difference(left, right) if op == "==" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if left := terminalreporter.config.stash.get(LEFT, 0):
        terminalreporter.section("left to the nightly run")
        terminalreporter.line(f"{left} tests, of whose kinds a sample was run; MQINDEX_NIGHTLY=1 runs them too")
    recorded = [pair for report in terminalreporter.getreports("passed") for pair in report.user_properties]
    for title in SHOWN:
        if lines := sorted(str(line) for name, line in recorded if name == title):
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.line(line)


class SeededRandom(random.Random):
    """A random source whose repr, which pytest shows when a test fails, is the seed that repeats it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed_used = seed

    def __repr__(self) -> str:
        return f"<random source; repeat with {SEED_VARIABLE}={self.seed_used}>"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> SeededRandom:
    """A random source; its seed is in the report of a failed test and can be set in the environment."""
    chosen = crc32(request.node.name.encode()) if SAME_INPUTS else random.SystemRandom().getrandbits(32)
    source = SeededRandom(int(os.environ.get(SEED_VARIABLE) or chosen))
    request.node.add_report_section("call", "random", repr(source))
    return source


@pytest.fixture
def golden_store(tmp_path: Path) -> Callable[[str], tuple[StoreCase, Path]]:
    """Unpacks the golden case of a name: (case, root of the store)."""

    def unpack(name: str) -> tuple[StoreCase, Path]:
        chosen = case(name)
        return chosen, chosen.unpack(tmp_path)

    return unpack


@pytest.fixture
def time_bound(request: pytest.FixtureRequest) -> Iterator[Callable[[float], None]]:
    """A call that takes longer than `seconds` ends the run with the stack of every thread: hangs must be seen."""

    def bound(seconds: float) -> None:
        faulthandler.dump_traceback_later(seconds * SLOWER, exit=True, file=request.config.stash[REAL_STDERR])

    yield bound
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def _nothing_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("spark") or request.node.get_closest_marker("leaves_open"):
        yield
        return
    before = open_files()
    yield
    if leaked := open_files() - before:
        gc.collect()  # What only the cycle collector frees is not a leak of the product.
        leaked = open_files() - before
    if leaked:
        pytest.fail(f"left open: {', '.join(sorted(leaked))}")


def open_files() -> Counter[str]:
    """Regular files that this process holds open or mapped (Linux; elsewhere empty), each as often as it does."""
    found: Counter[str] = Counter()
    if not Path("/proc/self/fd").is_dir():
        return found
    for entry in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:  # the descriptor of the listing itself
            continue
        if target.startswith("/") and not target.startswith(NO_FILES):
            found[f"file {target}"] += 1
    return found + _maps.now()


class Maps:
    """The files that this process has mapped. Their names cost milliseconds, so they are read where a place is new."""

    def __init__(self) -> None:
        self._places: list[str] | None = None
        self._found: Counter[str] = Counter()

    def now(self) -> Counter[str]:
        """Each file as often as it is mapped, without code."""
        try:
            places = os.listdir("/proc/self/map_files")
        except OSError:
            places = None
        if places is None or places != self._places:
            self._places = places
            with open("/proc/self/maps", "rb") as maps:
                paths = [path for path in MAPPED_FILE.findall(maps.read()) if not _is_code(path)]
            self._found = Counter(f"map {os.fsdecode(path)}" for path in paths)
        return self._found


_maps = Maps()


@cache
def _is_code(path: bytes) -> bool:
    return b".so" in os.path.basename(path.removesuffix(b" (deleted)")) or path.startswith((b"/usr/", b"/lib"))
