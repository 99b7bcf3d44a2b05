"""One attempt: an operation in a process of its own, calls of which fail, and in another one its judge."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import select
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mqindex.errors import MQIndexError
from tests.faults.preload import Counted, faulty

__all__ = ["Failed", "Lost", "Operation", "Told", "Verdict", "attempt", "scraps"]

BOUND = 300.0  # seconds; an attempt takes milliseconds, on a machine that is busy with others some seconds
_SCRAP = re.compile(r"\.mqindex-.*|\..*\.[0-9a-f]{12}|.*\.(new|tmp)|.*\.[0-9a-f]{12}")


class Lost(AssertionError):
    """The judge's word: something that must be there is not, or is wrong."""


@dataclass
class Failed:
    """An error that the operation ended with."""

    text: str
    ours: bool  # of the system or the package, not a traceback of anything else
    named: bool  # tells where
    trace: str

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        path = error.filename if isinstance(error, OSError) else getattr(error, "path", None)
        return cls(
            f"{type(error).__name__}: {error}",
            isinstance(error, (OSError, MQIndexError)),
            path is not None,
            "".join(traceback.format_exception(error)),
        )


@dataclass
class Told:
    """What an operation says of itself: what it acknowledged, and which of its parts failed."""

    acknowledged: list[Any] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)

    @contextlib.contextmanager
    def trying(self) -> Iterator[None]:
        """A part after whose error the operation goes on, as a program would."""
        try:
            yield
        except Exception as error:
            self.failed.append(Failed.of(error))


class Operation(Protocol):
    """What is made to fail. All of it lives in one directory, `place`, that is copied for every attempt."""

    name: str

    def prepare(self, place: Path) -> None:
        """Make what the operation begins with."""

    def begin(self, place: Path) -> None:
        """What cannot be copied and is done anew for every attempt, undisturbed."""

    def run(self, place: Path, told: Told) -> None:
        """Do it; errors may leave it."""

    def judge(self, place: Path, told: Told) -> None:
        """Raise `Lost` unless all is there: at once, or after a second, undisturbed run."""


@dataclass(frozen=True)
class Verdict:
    """How an attempt ended: survived, lost, traceback, hang, scrap or unnamed; `why` where it did not survive."""

    word: str
    counted: Counted
    why: str = ""
    trace: str = ""


def attempt(operation: Operation, template: Path, place: Path, *failing: tuple[int, str]) -> Verdict:
    """Copy the template to `place`, run, judge, remove. `failing`: numbers of calls and how they fail, up to two."""
    shutil.copytree(template, place, symlinks=True)
    try:
        return _attempt(operation, place, failing)
    finally:
        shutil.rmtree(place)


def _attempt(operation: Operation, place: Path, failing: tuple[tuple[int, str], ...]) -> Verdict:
    nothing = Counted((), ())
    answer, ended = _in_a_child(lambda: _operated(operation, place, failing))
    if answer is None:
        return Verdict("hang" if ended == "hang" else "traceback", nothing, f"the operation: {ended}")
    counted, told = answer
    struck = " and ".join(name for name, _ in counted.struck)
    for failed in told.failed:
        if not failed.ours:
            return Verdict("traceback", counted, f"{struck} -> {failed.text}", failed.trace)
    left = scraps(place)
    judged, ended = _in_a_child(lambda: _judged(operation, place, told))
    if judged is None:
        return Verdict("hang" if ended == "hang" else "traceback", counted, f"{struck} -> the second run: {ended}")
    if judged[0]:
        first = "; ".join(failed.text for failed in told.failed) or "no error"
        return Verdict("lost", counted, f"{struck} ({first}) -> {judged[0]}", judged[1])
    if not any(_removing(name, path, left) for name, path in counted.struck):
        if left:
            return Verdict("scrap", counted, f"{struck} -> {left}", str(counted.struck))
        if left := scraps(place):
            return Verdict("scrap", counted, f"{struck} -> after the second run: {left}")
    for failed in told.failed:
        if not failed.named:
            return Verdict("unnamed", counted, f"{struck} -> {failed.text}", failed.trace)
    return Verdict("survived", counted)


def _removing(struck: str, path: str, left: list[str]) -> bool:
    """Whether the call that failed was one of those that remove what is left."""
    return struck in ("unlink", "rmdir") or (struck in ("open", "stat") and any(name in path for name in left))


def scraps(place: Path) -> list[str]:
    """Names below that only something half done has."""
    return sorted({path.name for path in place.rglob("*") if _SCRAP.fullmatch(path.name)})


def _operated(operation: Operation, place: Path, failing: tuple[tuple[int, str], ...]) -> tuple[Counted, Told]:
    told = Told()
    operation.begin(place)
    (at, failure), second = failing[0], failing[1:]
    with faulty(place, at, failure, *second) as fault, told.trying():
        operation.run(place, told)
    return fault.counted, told


def _judged(operation: Operation, place: Path, told: Told) -> tuple[str, str]:
    try:
        operation.judge(place, told)
    except AssertionError as lost:
        return str(lost), traceback.format_exc()
    except Exception as error:
        return f"the second run: {Failed.of(error).text}", traceback.format_exc()
    return "", ""


def _in_a_child(work: Callable[[], Any]) -> tuple[Any, str]:
    """What it returned, or None and how it ended."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: this process has none
        child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = pickle.dumps(work())
            with open(writing, "wb") as pipe:
                pipe.write(said)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    said, deadline = b"", time.monotonic() + BOUND
    with open(reading, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(deadline - time.monotonic(), 0))[0] and (piece := pipe.read(1 << 16)):
            said += piece
    late = time.monotonic() >= deadline
    if late:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if late:
        return None, "hang"
    if os.WIFSIGNALED(status):
        return None, f"died by {signal.Signals(os.WTERMSIG(status)).name}"
    return (pickle.loads(said), "") if said else (None, "said nothing")
