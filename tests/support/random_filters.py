"""Random filters of a table, each in the words of pyarrow, polars, DuckDB and DataFusion, and as plain Python."""

from __future__ import annotations

import datetime as dt
import operator
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
pl = pytest.importorskip("polars")

__all__ = ["Filter", "comparable", "random_filter"]

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_UNIX = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Filter(NamedTuple):
    """One filter. `passes`: None where SQL says NULL. `sql`: of the dialect "duckdb" or "datafusion"."""

    arrow: Any
    polars: Any
    sql: Callable[[str], str]
    passes: Callable[[dict[str, Any]], bool | None]


def comparable(schema: Any) -> list[str]:
    """The columns whose values every engine compares."""
    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_binary, pa.types.is_timestamp)
    return [field.name for field in schema if any(is_one(field.type) for is_one in kinds)]


def random_filter(source: random.Random, schema: Any, rows: list[dict[str, Any]], depth: int = 2) -> Filter:
    """A filter with values of the rows, and values near them."""
    if depth and source.random() < 0.6:
        one, other = (random_filter(source, schema, rows, depth - 1) for _ in range(2))
        return _and(one, other) if source.random() < 0.6 else _or(one, other)
    if source.random() < 0.1:
        return _is_null(source, schema)
    name = source.choice(comparable(schema))
    values = [row[name] for row in source.choices(rows, k=4) if row[name] is not None]
    values = values or [_some(schema.field(name).type)]
    if source.random() < 0.35:
        return _is_in(schema, name, values)
    compared = _compared(source, schema, name, _near(source, values[0]))
    return _not(compared) if source.random() < 0.15 else compared


def _compared(source: random.Random, schema: Any, name: str, value: Any) -> Filter:
    word = source.choice(list(_COMPARED))
    compare, kind = _COMPARED[word], schema.field(name).type
    return Filter(
        compare(pc.field(name), pa.scalar(value, kind)),
        compare(pl.col(name), pl.lit(value)),
        lambda dialect: f'"{name}" {word} {_written(value, dialect)}',
        lambda row: None if row[name] is None else compare(row[name], value),
    )


def _is_in(schema: Any, name: str, values: list[Any]) -> Filter:
    return Filter(
        pc.field(name).isin(pa.array(values, schema.field(name).type)),
        pl.col(name).is_in(values),
        lambda dialect: f'"{name}" IN ({", ".join(_written(value, dialect) for value in values)})',
        lambda row: None if row[name] is None else row[name] in values,
    )


def _is_null(source: random.Random, schema: Any) -> Filter:
    name = source.choice(comparable(schema))
    return Filter(
        pc.field(name).is_null(),
        pl.col(name).is_null(),
        lambda dialect: f'"{name}" IS NULL',
        lambda row: row[name] is None,
    )


def _not(one: Filter) -> Filter:
    def passes(row: dict[str, Any]) -> bool | None:
        said = one.passes(row)
        return None if said is None else not said

    return Filter(~one.arrow, ~one.polars, lambda dialect: f"NOT ({one.sql(dialect)})", passes)


def _and(one: Filter, other: Filter) -> Filter:
    def passes(row: dict[str, Any]) -> bool | None:
        said = {one.passes(row), other.passes(row)}
        return False if False in said else None if None in said else True

    sql = _joined("AND", one, other)
    return Filter(one.arrow & other.arrow, one.polars & other.polars, sql, passes)


def _or(one: Filter, other: Filter) -> Filter:
    def passes(row: dict[str, Any]) -> bool | None:
        said = {one.passes(row), other.passes(row)}
        return True if True in said else None if None in said else False

    return Filter(one.arrow | other.arrow, one.polars | other.polars, _joined("OR", one, other), passes)


def _joined(word: str, one: Filter, other: Filter) -> Callable[[str], str]:
    return lambda dialect: f"({one.sql(dialect)}) {word} ({other.sql(dialect)})"


def _some(kind: Any) -> Any:
    if pa.types.is_timestamp(kind):
        return _UNIX + dt.timedelta(days=19_000)
    return 7 if pa.types.is_integer(kind) else "seven" if pa.types.is_string(kind) else b"seven"


def _near(source: random.Random, value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value + dt.timedelta(milliseconds=source.choice((-1000, -1, 0, 0, 1, 1000)))
    if isinstance(value, int):
        return value + source.choice((0, 0, 1, -1)) if 0 < value < 2**31 - 2 else value
    return value


def _written(value: Any, dialect: str) -> str:
    if isinstance(value, dt.datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S.") + f"{value.microsecond // 1000:03d}"
        if dialect == "duckdb":
            return f"TIMESTAMPTZ '{text}+00'"
        return f"arrow_cast('{text}', 'Timestamp(Millisecond, Some(\"UTC\"))')"
    if isinstance(value, bytes):
        if dialect == "duckdb":
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        return f"X'{value.hex()}'"
    doubled = str(value).replace("'", "''")
    return f"'{doubled}'" if isinstance(value, str) else str(value)
