"""Whole numbers that callers give, one at a time, and between which limits they must be; and sequences of names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mqindex._native.numbers import int64, whole_number

INT_MAX: Final = 2**31 - 1
"""The largest int of a broker, which is written in Java."""


def whole_number_from(least: int, name: str, value: Any) -> int:
    """A whole number of any type from `least` to `INT_MAX`; `TypeError` or `ValueError`, naming the argument: else.

    >>> whole_number_from(1, "index_num", 0)
    Traceback (most recent call last):
    ValueError: index_num: expected a whole number from 1 to 2147483647, got 0
    """
    try:
        number = whole_number(name, value)
    except TypeError:
        raise TypeError(no_whole_number(least, name, value)) from None
    if not least <= number <= INT_MAX:
        raise ValueError(no_whole_number(least, name, value))
    return number


def no_whole_number(least: int, name: str, value: Any) -> str:
    """The sentence about a value that is none of these numbers."""
    return f"{name}: expected a whole number from {least} to {INT_MAX}, got {value!r:.60}"


def whole_count(name: str, value: Any) -> int:
    """A whole number of 64 bits that is not negative, as the calls of a single key take it.

    >>> whole_count("max_num", -1)
    Traceback (most recent call last):
    ValueError: max_num: expected 0 or more, got -1
    """
    number = int64(name, whole_number(name, value))
    if number < 0:
        raise ValueError(f"{name}: expected 0 or more, got {number}")
    return number


def several(name: str, given: Any, expected: str) -> list[Any]:
    """What a caller gives several of, as a list; `TypeError`, naming the argument: one str, or nothing to go through.

    >>> several("parts", 5, "a sequence of names")
    Traceback (most recent call last):
    TypeError: parts: expected a sequence of names, got 5
    """
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: expected {expected}, got one {type(given).__name__}, {given!r:.80}")
    if not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
        raise TypeError(f"{name}: expected {expected}, got {given!r:.80}")
    return list(given)


def several_names(name: str, given: Any) -> list[str]:
    """The same where each must be a str."""
    names = several(name, given, "a sequence of names")
    for one in names:
        if not isinstance(one, str):
            raise TypeError(f"{name}: expected a sequence of names, got {one!r:.80} among them")
    return names
