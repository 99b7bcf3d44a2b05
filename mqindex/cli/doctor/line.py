"""One line of `mqindex doctor`, and how an error in a check becomes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

State = Literal["works", "limited", "absent"]  # absent: an optional extra that is not installed


class Line(NamedTuple):
    """What was checked, what was found, and, if it does not work, the consequence and what to do."""

    state: State
    about: str
    found: str
    advice: str = ""


def lines_of(about: str, look: Callable[[], Iterable[Line]]) -> Iterator[Line]:
    """The lines of one check; a failure in it is a line too, so that the other checks still run."""
    try:
        yield from look()
    except Exception as error:  # a broken installation fails in its own ways
        found = f"{type(error).__name__}: {error}".partition("\n")[0]
        yield Line("limited", about, found, "this could not be checked")
