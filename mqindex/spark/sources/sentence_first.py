"""Errors of a source, as a user of Spark gets them: the sentence before the traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mqindex.errors import MQIndexError

_EXPECTED = (MQIndexError, ImportError, OSError, TypeError, ValueError)


@contextmanager
def sentence_first() -> Iterator[None]:
    """Raise an error so that what Python prints of it begins with its type and sentence.

    Spark's error holds all that Python prints of ours, and there the sentence is the last line, behind the traceback. A
    cause is printed before, and one that was never raised has no traceback: so the error says itself as its cause.

    >>> import traceback
    >>> try:
    ...     with sentence_first():
    ...         raise ValueError("keys: expected text, got 5")
    ... except ValueError:
    ...     print(traceback.format_exc().splitlines()[0])
    ValueError: keys: expected text, got 5
    """
    try:
        yield
    except _EXPECTED as error:
        met: Any = error
        if isinstance(met, _SaidFirst):
            raise
        try:
            made = _said_first(error)
        except Exception:  # of a storage's library: it is not made of what it says it is made of
            raise error from None
        raise made.with_traceback(error.__traceback__) from None


class _SaidFirst:
    """Of an error that says itself as its cause, also where PySpark removes causes, when it shortens a traceback."""

    said: BaseException

    @property
    def __cause__(self) -> BaseException:
        return self.said

    @__cause__.setter
    def __cause__(self, cause: Any) -> None:
        pass


def _said_first(error: Exception) -> Any:
    """An error of a type below the same one, with the same attributes."""
    old = type(error)
    kind = type(old.__name__, (_SaidFirst, old), {"__module__": old.__module__, "__qualname__": old.__qualname__})
    said, made = _again(error, old), _again(error, kind)
    made.said = said
    return made


def _again(error: Exception, kind: type[Exception]) -> Any:
    """As a copy is made, but of another type."""
    parts: Any = error.__reduce__()
    make, given = (kind if parts[0] is type(error) else parts[0]), parts[1]
    return make(*(kind if one is type(error) else one for one in given))
