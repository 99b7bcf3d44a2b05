"""Clean-ups that no signal interrupts: what is left half removed stays where a broker, or its user, finds it."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
_PATIENCE = 5.0  # s: a clean-up that takes longer, as on a disk that does not answer, is interrupted as ever


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Handlers of Python, which raise exceptions, run after the block for the signals that come in it.

    Such handlers run in the main thread only: in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual: dict[int, Any] = {number: call for number in _SIGNALS if callable(call := signal.getsignal(number))}
    began, over = time.monotonic(), False
    waiting: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if over or time.monotonic() - began > _PATIENCE:  # an interrupt may have kept this handler in its place
            usual[number](number, frame)
        else:
            waiting.append(number)

    try:
        for number in usual:
            signal.signal(number, wait)
        yield
    finally:
        over = True
        for number, handler in usual.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(waiting):
            signal.raise_signal(number)
