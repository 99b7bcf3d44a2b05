"""What differs between large files, in a few lines: pytest shows each byte in CI, and nothing else is left of a log."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from operator import eq

__all__ = ["difference"]

_LARGE = 4096  # bytes; what is smaller pytest shows better
_SHOWN = 16  # bytes from the first one that differs
_LISTED = 20


def difference(left: object, right: object) -> list[str] | None:
    """Lines for pytest's hook, where both sides are bytes, or bytes by name, and there are many of them."""
    one, other = _files(left), _files(right)
    if one is None or other is None or sum(map(len, [*one.values(), *other.values()])) < _LARGE:
        return None
    names = [name for name in dict.fromkeys([*one, *other]) if one.get(name) != other.get(name)]
    if not names:
        return None
    lines = [f"{len(names)} of {len(one.keys() | other.keys())} differ", *(_line(name, one, other) for name in names)]
    return lines if len(lines) <= _LISTED else [*lines[:_LISTED], "..."]


def _files(value: object) -> Mapping[object, bytes] | None:
    if isinstance(value, bytes):
        return {"bytes": value}
    if isinstance(value, dict) and all(isinstance(data, bytes) for data in value.values()):
        return value
    return None


def _line(name: object, one: Mapping[object, bytes], other: Mapping[object, bytes]) -> str:
    if name not in one or name not in other:
        return f"{name}: only on the {'left' if name in one else 'right'}, {len({**one, **other}[name])} bytes"
    left, right = one[name], other[name]
    at = sum(1 for _ in takewhile(bool, map(eq, left, right)))
    return (
        f"{name}: {len(left)} and {len(right)} bytes, from byte {at} on "
        f"{left[at : at + _SHOWN].hex() or 'nothing'} and {right[at : at + _SHOWN].hex() or 'nothing'}"
    )
