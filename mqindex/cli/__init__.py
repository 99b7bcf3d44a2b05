"""The `mqindex` command. One module per subcommand, each of one shape: options, call the library, print.

Results go to stdout, everything else to stderr. Exit codes are those of grep and diff: 0 yes, clean or done;
1 no, or findings; 2 trouble; an interrupted command ends by the signal. Nothing heavy is imported before the command
that needs it runs.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (None: this process's, which an interrupt ends by its signal) and return its exit code."""
    begun = False
    try:  # before any import: Ctrl-C earlier than this gives Python's traceback
        import gc

        _replace_closed_streams()
        if arguments is None:
            # NumPy would start a thread a processor for linear algebra: a sixth of a short command, and never used.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            gc.set_threshold(10_000)  # 700 would search what modules made of themselves a hundred times
            _allow_open_files()
        from mqindex.cli.group import run
        from mqindex.cli.trouble import end_by, guarded

        begun = True
        if arguments is None:
            _die_by_interrupts()
        status = guarded(lambda: run(sys.argv[1:] if arguments is None else list(arguments)))
        if arguments is None:
            gc.freeze()  # Python's end searches everything for garbage, several times
            if status < 0:
                end_by(-status)
        return status if status >= 0 else 128 - status
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("mqindex: the command line needs click and rich: pip install 'mqindex[cli]'", file=sys.stderr)
    except KeyboardInterrupt:  # while modules were still being read, or after the command
        if arguments is None:
            _die_by_interrupts()
        print(f"mqindex: interrupted{'' if begun else '; nothing was changed'}", file=sys.stderr)
        if arguments is None:
            import signal

            signal.raise_signal(signal.SIGINT)
        return 130
    return 2


def _die_by_interrupts() -> None:
    """Let Ctrl-C end the process in silence, as it ends one of C; `guarded` has its own way with it meanwhile.

    Python's end runs after the command: an interrupt there would give its traceback.
    """
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and is not ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _replace_closed_streams() -> None:
    # `2>&-`: Python has no stream then. What is meant for it would be printed on stdout, and the next file that is
    # opened would take its number, and with it what a library or a child writes there.
    if sys.stdin is None:  # nor can this one be read: `-` in place of keys is refused
        sys.stdin = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
        os.set_inheritable(sys.stderr.fileno(), True)


def _nowhere() -> TextIO:
    from mqindex.files import disk  # with a compiled kernel, which no help needs

    return os.fdopen(disk.open_to_write(os.devnull), "w", errors="backslashreplace")


def _allow_open_files() -> None:
    """As many files at a time as this user may open, like Java's and Go's programs: a partition has many segments."""
    import contextlib
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):  # macOS allows less than it reports
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
