"""What a filter says of single columns: between which values, or among which, each row's value is that passes it.

A filter is a tree of `Field`, `Literal` and `Call`, which `arrow_filter` and `polars_filter` read from an engine's own
form. Bounds are hints: they hold for every row that passes, and may hold for others. What is not understood bounds
nothing, and whoever reads by them applies the whole filter afterwards.

>>> longer, among = Call("greater", (Field("size"), Literal(5))), Call("is_in", (Field("queue_id"), Literal((1, 3))))
>>> bounds_of(Call("and", (longer, among)))
{'size': Interval(least=5, most=None, among=None), 'queue_id': Interval(least=1, most=3, among=frozenset({1, 3}))}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias


class Field(NamedTuple):
    """A column."""

    name: str


class Literal(NamedTuple):
    """A constant: int (times in ms since the epoch, rounded down), str, bytes, bool, None, or a tuple of these."""

    value: Any


class Call(NamedTuple):
    """A function of the values of its arguments."""

    function: str
    arguments: tuple[Node, ...]


Node: TypeAlias = "Field | Literal | Call"

UNKNOWN: Final = Call("unknown", ())
"""What was not understood: it may be any function of any column."""


def call(function: str, arguments: Iterable[Node]) -> Node:
    """A call; of several `or`, or `and`, that are in one another, one: engines write thousands of them so.

    >>> call("or", (call("or", (Field("a"), Field("b"))), Field("c")))
    Call(function='or', arguments=(Field(name='a'), Field(name='b'), Field(name='c')))
    """
    found: list[Node] = []
    for argument in arguments:
        joined = isinstance(argument, Call) and argument.function == function and function in ("and", "or")
        found.extend(argument.arguments if joined and isinstance(argument, Call) else (argument,))
    return Call(function, tuple(found))


def together(values: Iterable[Node]) -> Node:
    """One literal of several; `UNKNOWN` with anything else among them."""
    nodes = list(values)
    found = tuple(one.value for one in nodes if isinstance(one, Literal))
    return Literal(found) if len(found) == len(nodes) else UNKNOWN


class Interval(NamedTuple):
    """The values that a column may have: both ends are among them, None is no end; `among`: no others than these."""

    least: Any = None
    most: Any = None
    among: frozenset[Any] | None = None

    def allows(self, value: Any) -> bool:
        """Whether a row with this value may pass."""
        try:
            above = self.least is None or self.least <= value
            below = self.most is None or value <= self.most
        except TypeError:  # an engine compares what Python does not
            return True
        return above and below and (self.among is None or value in self.among)


Bounds: TypeAlias = "Mapping[str, Interval]"
"""By column; one that is not among them may have any value."""

ANY: Final = Interval()
_MIRRORED: Final = {
    "equal": "equal", "less": "greater", "less_equal": "greater_equal", "greater": "less",
    "greater_equal": "less_equal",
}  # fmt: skip


def hints_of(tree: Node) -> Bounds | None:
    """What holds for each row that passes the filter `tree`; None: no row passes. Nothing where values do not compare.

    >>> hints_of(Call("and", (Call("less", (Field("a"), Literal("x"))), Call("less", (Field("a"), Literal(1))))))
    {}
    """
    try:
        return bounds_of(tree)
    except (TypeError, RecursionError):
        return {}


def bounds_of(tree: Node) -> Bounds | None:
    """The same; `TypeError` where values do not compare."""
    if isinstance(tree, Literal):
        return {} if tree.value else None
    if isinstance(tree, Field):
        return {}
    function, arguments = tree
    if function in _MIRRORED and len(arguments) == 2:
        return _compared(function, *arguments)
    try:
        bound = _CALLS[function]
    except KeyError:
        return {}
    return bound(*arguments)


def fields_of(tree: Node) -> set[str] | None:
    """The columns that a filter, or a column that is computed, reads; None: it may read any."""
    if isinstance(tree, Call):
        if tree.function == UNKNOWN.function:
            return None
        try:
            below = [fields_of(argument) for argument in tree.arguments]
        except RecursionError:
            return None
        return None if None in below else set().union(*(fields for fields in below if fields))
    return {tree.name} if isinstance(tree, Field) else set()


def _compared(function: str, left: Node, right: Node) -> Bounds | None:
    if isinstance(left, Literal):
        return _compared(_MIRRORED[function], right, left) if isinstance(right, Field) else {}
    if not isinstance(left, Field) or not isinstance(right, Literal):
        return {}
    value = right.value
    if value is None:
        return None
    if function == "equal":
        return _among(left, Literal((value,)))
    return {left.name: Interval(least=value) if function.startswith("greater") else Interval(most=value)}


def _among(field: Node, values: Node) -> Bounds | None:
    if not isinstance(field, Field) or not isinstance(values, Literal) or None in values.value:
        return {}
    among = frozenset(values.value)
    return {field.name: Interval(min(among), max(among), among)} if among else None


def _between(field: Node, least: Node, most: Node) -> Bounds | None:
    return _both(_compared("greater_equal", field, least), _compared("less_equal", field, most))


def _both(one: Bounds | None, other: Bounds | None) -> Bounds | None:
    if one is None or other is None:
        return None
    met = {name: _met(one.get(name, ANY), other.get(name, ANY)) for name in [*one, *(set(other) - set(one))]}
    return None if None in met.values() else {name: bound for name, bound in met.items() if bound is not None}


def _met(one: Interval, other: Interval) -> Interval | None:
    """The values that both allow; None: there are none."""
    least = _of_both(max, one.least, other.least)
    most = _of_both(min, one.most, other.most)
    among = one.among if other.among is None else other.among
    if among is not None:
        among = frozenset(value for value in among if one.allows(value) and other.allows(value))
        return Interval(min(among), max(among), among) if among else None
    return None if least is not None and most is not None and least > most else Interval(least, most)


def _of_both(choose: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else choose(one, other)


def _either(one: Bounds | None, other: Bounds | None) -> Bounds | None:
    if one is None or other is None:
        return other if one is None else one
    return {name: _joined(bound, other[name]) for name, bound in one.items() if name in other}


def _joined(one: Interval, other: Interval) -> Interval:
    """The values that one of the two allows."""
    least = None if one.least is None or other.least is None else min(one.least, other.least)
    most = None if one.most is None or other.most is None else max(one.most, other.most)
    return Interval(least, most, None if one.among is None or other.among is None else one.among | other.among)


def _and(*arguments: Node) -> Bounds | None:
    met: Bounds | None = {}
    for argument in arguments:
        met = _both(met, bounds_of(argument))
    return met


def _or(*arguments: Node) -> Bounds | None:
    joined: Bounds | None = None
    for argument in arguments:
        joined = _either(joined, bounds_of(argument))
    return joined


def _if_else(condition: Node, then: Node, otherwise: Node) -> Bounds | None:
    return _or(then, otherwise)


_CALLS: Final[dict[str, Callable[..., Bounds | None]]] = {
    "and": _and,
    "or": _or,
    "if_else": _if_else,
    "is_in": _among,
    "is_between": _between,
}
