"""One line of `mqindex doctor`, and how what goes wrong while looking becomes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

__all__ = ["Line", "State", "lines_of"]

State = Literal["works", "limited", "absent"]  # absent: an extra that was not installed, and nobody has to


class Line(NamedTuple):
    """What was looked at, what was found, and for what does not work: what that means and what to do."""

    state: State
    about: str
    found: str
    advice: str = ""


def lines_of(about: str, look: Callable[[], Iterable[Line]]) -> Iterator[Line]:
    """The lines of one look; whatever fails in it is a line too, because a doctor has to go on."""
    try:
        yield from look()
    except Exception as error:  # a broken installation fails in its own ways
        found = f"{type(error).__name__}: {error}".partition("\n")[0]
        yield Line("limited", about, found, "this could not be looked at")
