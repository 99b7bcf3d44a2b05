"""Threads, which the system may refuse; and a call for each of many items in a few: for what waits for a disk."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from mqindex.errors import MQIndexError

Item = TypeVar("Item")
Result = TypeVar("Result")


def of_each(call: Callable[[Item], Result], items: Sequence[Item], most: int) -> list[Result]:
    """The results of the calls, in the order of the items; as `for_each` otherwise."""
    results: dict[int, Result] = {}

    def keep(number: int) -> None:
        results[number] = call(items[number])

    for_each(keep, range(len(items)), most)
    return [results[number] for number in range(len(items))]


def for_each(call: Callable[[Item], None], items: Sequence[Item], most: int) -> None:
    """In `most` threads at most, fewer where the system allows no more, else in the caller's; raises the first error.

    After an error or an interrupt no other item is begun.
    """
    left, errors = deque(items), list[BaseException]()

    def some() -> None:
        while left:
            try:
                item = left.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                call(item)
            except BaseException as error:
                errors.append(error)
                left.clear()

    try:
        threads = list[threading.Thread]()
        while len(threads) < min(len(items), most) and (thread := started(some, f"wait_{len(threads)}")):
            threads.append(thread)
        for thread in threads:
            thread.join()
        if not threads:
            some()
    finally:
        left.clear()  # after an interrupt
    if errors:
        raise errors[0]


def started(run: Callable[[], object], name: str) -> threading.Thread | None:
    """A daemon thread that runs this; None: the system allows no more."""
    thread = threading.Thread(target=run, name=f"mqindex-{name}", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


def start(run: Callable[[], object], name: str) -> threading.Thread:
    """The same for what cannot do without: `no_thread` where the system allows no more."""
    thread = started(run, name)
    if thread is None:
        raise no_thread()
    return thread


def no_thread() -> MQIndexError:
    """That the system allows no more threads."""
    limits = "a higher limit, of this user (ulimit -u) or of the container"
    return MQIndexError("no more threads can be started", expected=limits)
