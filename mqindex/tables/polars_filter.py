"""A polars expression as a tree, from the parts that it shows and from how it is written.

Source: polars 2.1.0: `meta.pop` gives the inputs, the last one first, and text the function between them.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import polars as pl

from mqindex._native.numbers import milliseconds
from mqindex.tables.bounds import UNKNOWN, Call, Field, Literal, Node, call, together

_OPERATORS: Final = {
    "&": "and", "|": "or", "==": "equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip


def tree_of(expression: Any) -> Node:
    """The tree of an expression, as far as it is understood."""
    try:
        return _node(expression)
    except Exception:  # how an expression is written is no promise: what is not understood, is not known
        return UNKNOWN


def _node(expression: Any) -> Node:
    if expression.meta.is_literal():
        return _literal(expression)
    if expression.meta.is_column():
        return Field(expression.meta.output_name())
    inputs = expression.meta.pop()[::-1]
    text, parts = str(expression), [str(one) for one in inputs]
    if len(inputs) == 2:
        left, right = parts
        for operator, function in _OPERATORS.items():
            if text == f"[({left}) {operator} ({right})]":
                return call(function, (_node(inputs[0]), _node(inputs[1])))
        if text == f"{left}.is_in([{right}])":
            return Call("is_in", (_node(inputs[0]), _values(inputs[1])))
    if len(inputs) == 3 and text == f"{parts[0]}.is_between([{parts[1]}, {parts[2]}])":
        return Call("is_between", tuple(_node(one) for one in inputs))
    return UNKNOWN


def _literal(expression: Any) -> Node:
    values = pl.select(expression).to_series()
    return _value(values[0]) if len(values) == 1 else UNKNOWN


def _values(expression: Any) -> Node:
    """A literal that is a list, or a series of values."""
    values = pl.select(expression).to_series()
    return together(map(_value, (values.explode() if values.dtype == pl.List else values).to_list()))


def _value(value: Any) -> Node:
    if isinstance(value, dt.datetime):
        return UNKNOWN if value.tzinfo is None else Literal(milliseconds("a time", value))
    return Literal(value) if value is None or isinstance(value, bool | int | str | bytes) else UNKNOWN
