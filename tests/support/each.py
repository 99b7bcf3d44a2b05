"""A rule that holds for many names: one test, which says of each name that breaks it how it does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["for_each"]


def for_each(items: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a function that checks one item. An item that is a tuple is its arguments."""
    every = list(items)

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        several = len(inspect.signature(check).parameters) > 1

        def test() -> None:
            assert every, "there is nothing that it is checked for"
            broken = []
            for item in every:
                try:
                    check(*(item if several else (item,)))
                except AssertionError as error:
                    name = item[0] if several else item
                    broken.append(f"{name}: {error}")
            assert not broken, "\n".join(broken)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate
