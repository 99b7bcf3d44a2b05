"""Times of a command line: each form that people write, and one now for the whole command."""

from __future__ import annotations

import time
from typing import Any, Final

import click


def milliseconds(text: str, *, now: int | None = None) -> int:
    """Milliseconds since the epoch of a text, as `time_of_text`; `now` None: one instant for the whole command."""
    from mqindex.columns.time_text import time_of_text  # most commands are given none

    return time_of_text(text, now=_now() if now is None else now)


def _now() -> int:
    """The same instant for all times of one command."""
    context = click.get_current_context(silent=True)
    if context is None:
        return time.time_ns() // 1_000_000
    moment: int = context.meta.setdefault(__name__, time.time_ns() // 1_000_000)
    return moment


class _Time(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A time as `milliseconds` takes it."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return milliseconds(value) if isinstance(value, str) else int(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


TIME: Final = _Time()
