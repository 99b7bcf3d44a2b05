"""A child process that says what it has acknowledged, until it is killed.

ROUNDS is about how many kills there are at any time; of a whole store a fourth as many.
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

from tests.support.nightly import NIGHTLY

__all__ = ["ROUNDS", "killed"]

ROUNDS = 5000 if NIGHTLY else 30


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
