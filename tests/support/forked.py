"""What a call does in a forked child."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["in_child"]


def in_child(call: Callable[[], Any]) -> Any:
    """What `call` gives in a child, or the exception that it raises there."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: what a child does is the test
        child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            answer = call()
        except BaseException as error:
            answer = error
        try:
            os.write(writing, pickle.dumps(answer))
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(said)
