"""A call for each of many items, in a few threads: for what waits for a disk, or for a network."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

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
        threads = _started(some, min(len(items), most))
        for thread in threads:
            thread.join()
        if not threads:
            some()
    finally:
        left.clear()  # after an interrupt
    if errors:
        raise errors[0]


def _started(run: Callable[[], None], most: int) -> list[threading.Thread]:
    """Threads that run this: fewer where the system allows no more."""
    threads = [threading.Thread(target=run, name=f"mqindex-wait_{n}", daemon=True) for n in range(most)]
    for n, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError:
            return threads[:n]
    return threads
