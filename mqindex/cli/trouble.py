"""All errors end here: one clear sentence on stderr, exit code 2, never a traceback.

A command that a signal interrupts cleans up first, and then ends by the same signal, so that a shell's loop ends too.
Where that takes long, another signal ends it at once.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import click

from mqindex.errors import MQIndexError, reason
from mqindex.files.few_threads import no_thread
from mqindex.wording.text import printable

TROUBLE = 2


class Trouble(Exception):
    """An error with the sentence that the command prints."""


def say(sentence: str) -> None:
    """One line on stderr. A closed stderr changes nothing."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(f"mqindex: {printable(sentence)}", file=sys.stderr, flush=True)


def guarded(command: Callable[[], int]) -> int:
    """The exit code of `command`, whatever happens in it; -N where it was interrupted by signal N."""
    _received[:] = []
    true_from_here(_UNCHANGED)
    try:
        with _signals_interrupt(), _lost_ones_again(), _warnings_in_one_line():
            _require_output()
            _require_memory()
            _accept_any_text()
            status = command()
            sys.stdout.flush()
            return -_signal() if _received else status
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _drop_output()
        return -signal.SIGPIPE
    except click.ClickException as error:
        say(_usage_sentence(error))
    except (KeyboardInterrupt, click.Abort):
        return _interrupted()
    except (Trouble, MQIndexError) as error:
        say(str(error))
    except ImportError as error:
        say(_import_sentence(error))
    except MemoryError:
        say(f"out of memory: {_MORE_MEMORY}; {_true_now()}")
    except OSError as error:
        say(_system_sentence(error))
        _drop_output_if_full()
    except ValueError as error:
        say(str(error) or "a wrong argument")
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # of a class that was just being made, as Python 3.11 does
            return _interrupted()
        say(str(no_thread()) if "can't start new thread" in str(error) else _bug_sentence(error))
    return TROUBLE


def true_from_here(fact: str | Callable[[], str]) -> None:
    """What a command that is interrupted, gets no memory or cannot print tells from now on.

    At its start: nothing was changed. Each that writes says so before and after the call that does.
    """
    _fact[:] = [fact]


_UNCHANGED = "nothing was changed"
_fact: list[str | Callable[[], str]] = [_UNCHANGED]


def _true_now() -> str:
    (fact,) = _fact
    return fact if isinstance(fact, str) else fact()


def _interrupted() -> int:
    say(f"interrupted; {_true_now()}")
    return -_signal()


def _require_output() -> None:
    # `>&-`: Python has no stream then, and the first file that is opened would take its place.
    if sys.stdout is None:
        raise Trouble("standard output is closed: expected a place for the results; >/dev/null drops them")


_LEAST = 256 << 20  # bytes


def _require_memory() -> None:
    # `ulimit -v`: where NumPy gets no memory while it is loaded, its OpenBLAS ends the process, with the exit code 1.
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST:
        raise Trouble(f"memory is limited to {limit >> 10} KiB (ulimit -v): expected {_LEAST >> 10} KiB or more")


_OUTPUT = "standard output"


class _Output(io.FileIO):
    """Standard output, whose errors name it: a full disk may also be that of another file."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = _OUTPUT
            raise


def _accept_any_text() -> None:
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper):
        return
    if isinstance(getattr(out.buffer, "raw", out.buffer), io.FileIO) and not out.isatty():
        named: Any = _Output(out.fileno(), "w", closefd=False)
        if not out.write_through:  # else unbuffered, by PYTHONUNBUFFERED
            named = io.BufferedWriter(named)
        out = sys.stdout = io.TextIOWrapper(named, out.encoding, write_through=out.write_through)
    out.reconfigure(errors="backslashreplace")  # a path or a key that the locale cannot write is escaped


def _usage_sentence(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = "mqindex" if context is None else context.command_path
    dashed = isinstance(error, click.NoSuchOption) and path.endswith((" query", " hash"))
    keys = "; before a key that begins with - write --" if dashed else ""
    return f"{error.format_message().rstrip('.')}{keys}; see `{path} --help`"


def _import_sentence(error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name in ("click", "rich"):
        return "the command line needs click and rich: pip install 'mqindex[cli]'"
    return str(error)


def _system_sentence(error: OSError) -> str:
    if error.filename == _OUTPUT:  # what was done is done, and perhaps with a way back that nobody can read there
        fact = _true_now()
        return reason(error) if fact == _UNCHANGED else f"{reason(error)}; {fact}"
    if error.filename is None and isinstance(error, FileNotFoundError) and _is_nowhere():
        return (
            "the current directory was removed: expected one that is there; cd to another one, or give absolute paths"
        )
    advice = _ADVICE.get(error.errno or 0)
    return reason(error) if advice is None else f"{reason(error)}; {advice}"


def _is_nowhere() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


_MORE_MEMORY = "expected more of it, or a higher limit, of this process (ulimit -v) or of the container"
_ADVICE = {
    errno.EFBIG: "expected a higher limit, of this process (ulimit -f) or of the file system",
    errno.ENOMEM: _MORE_MEMORY,
}


def _bug_sentence(error: Exception) -> str:
    import traceback  # only here

    if sys.flags.dev_mode:  # python -X dev -m mqindex ...
        traceback.print_exc()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(frame.filename)}, line {frame.lineno}"
    return f"a bug in mqindex, please report it: {type(error).__name__}: {error} ({where})"


def _drop_output() -> None:
    # What is still buffered cannot be delivered; the interpreter must not try again, and complain, when it exits.
    from mqindex.files import disk  # with a compiled kernel, which no help needs

    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = disk.open_to_write(os.devnull)
        os.dup2(null, sys.stdout.fileno())
        disk.close(null)


def _drop_output_if_full() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a command as Ctrl-C does, so that it removes its scratch; a `nohup` keeps its effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    usual = {number: signal.getsignal(number) for number in numbers}
    caught = [number for number in numbers if usual[number] in (signal.SIG_DFL, signal.default_int_handler)]
    for number in caught:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, usual[number])


@contextlib.contextmanager
def _lost_ones_again() -> Iterator[None]:
    """An interrupt that arrives in a destructor or a callback of the interpreter is lost there: it is sent again."""
    before, alarms = sys.unraisablehook, list[Any]()

    def hook(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        _received.append((_signal(), time.monotonic()))  # known, also if the command ends first
        # By the system's timer: one of Python is a thread, and there may be no more of them.
        alarms.append(signal.signal(signal.SIGALRM, lambda number, frame: interrupt(_signal(), frame)))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
        if alarms:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, alarms[0] or signal.SIG_DFL)


_AGAIN = 0.02  # s: until then the destructor has ended
_PATIENCE = 5.0  # s: who sends a signal again after that will not wait for what does not end
_received: list[tuple[int, float]] = []  # signals, and when


def interrupt(number: int, frame: FrameType | None) -> None:
    """The handler of a signal: KeyboardInterrupt. A signal long after the first one ends the process at once.

    That is no worse than a kill, after which every file is the old or the new one.
    """
    _received.append((number, time.monotonic()))
    if _received[-1][1] - _received[0][1] > _PATIENCE:
        signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(RuntimeError):  # it arrived while something was written there
            say(f"ended at once; {_true_now()}; the next run removes what this one leaves")
        os.kill(os.getpid(), number)
    raise KeyboardInterrupt


def _signal() -> int:
    return _received[0][0] if _received else signal.SIGINT


def end_by(number: int) -> None:
    """End this process by a signal, as without a handler; returns if the signal is blocked."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *place: object) -> None:
        if issubclass(category, UserWarning | RuntimeWarning):
            say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield
