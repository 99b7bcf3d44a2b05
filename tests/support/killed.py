"""A child process that says what it has acknowledged, until it is killed.

MQINDEX_CRASH_ROUNDS: about how many kills at any time, a fourth as many of a whole store (30 where it is not set;
nightly has thousands); where it is set, the tests that kill or fail a run at one of its calls try every call.
"""

from __future__ import annotations

import os
import signal
import struct
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["ROUNDS", "killed"]

ROUNDS = int(os.environ.get("MQINDEX_CRASH_ROUNDS") or 30)


def killed(work: Callable[[int], None], word: struct.Struct, *, words: int, seconds: float) -> list[tuple[Any, ...]]:
    """The words that `work` wrote to the file that it is given; it is killed so many seconds after so many of them."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: the child needs none of them
        child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            work(writing)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(7)
    os.close(writing)
    said = b""
    with open(reading, "rb", buffering=0) as pipe:
        while len(said) < words * word.size and (piece := pipe.read(words * word.size - len(said))):
            said += piece
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        said += pipe.read() or b""
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child ended by itself"
    return list(word.iter_unpack(said[: len(said) // word.size * word.size]))
