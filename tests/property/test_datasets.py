"""Whatever an engine asks of a table, the answer is that of the whole table, filtered row by row in Python."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mqindex
from tests.support.golden import STORE_CASES, case
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase
from tests.support.nightly import NIGHTLY
from tests.support.random_filters import Filter, random_filter

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

FILTERS = 64 if NIGHTLY else 8  # of each table

BOUNDED = ("store_timestamp", "timestamp", "topic", "phy_offset", "offset")

Ask = Callable[[Any, Filter, list[str]], Any]


def of_arrow(table: Any, asked: Filter, columns: list[str]) -> Any:
    return table.to_table(columns=columns, filter=asked.arrow)


def of_duckdb(table: Any, asked: Filter, columns: list[str]) -> Any:
    names = ", ".join(f'"{name}"' for name in columns)
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("asked", table)
        return database.execute(f"SELECT {names} FROM asked WHERE {asked.sql('duckdb')}").to_arrow_table()


def of_polars(table: Any, asked: Filter, columns: list[str]) -> Any:
    return table.lazy().filter(asked.polars).select(columns).collect().to_arrow()


def of_polars_dataset(table: Any, asked: Filter, columns: list[str]) -> Any:
    return pl.scan_pyarrow_dataset(table).filter(asked.polars).select(columns).collect().to_arrow()


def of_datafusion(table: Any, asked: Filter, columns: list[str]) -> Any:
    context = pytest.importorskip("datafusion").SessionContext()
    context.register_dataset("asked", table)
    names = ", ".join(f'"{name}"' for name in columns)
    query = context.sql(f"SELECT {names} FROM asked WHERE {asked.sql('datafusion')}")
    try:
        return query.to_arrow_table()
    except Exception as error:
        if "'pyarrow.lib.BooleanScalar' and 'pyarrow" not in str(error):
            raise
        return None  # it cannot join a constant with another filter: no dataset is asked


ENGINES = (of_arrow, of_duckdb, of_polars, of_polars_dataset, of_datafusion)


@pytest.fixture(autouse=True)
def damage_is_told() -> Iterator[None]:
    """Some of the stores are damaged; what a reader leaves out of them is a warning each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.mark.parametrize("name", STORE_CASES)
def test_a_stores_tables(name: str, tmp_path: Path, rng: random.Random) -> None:
    store = case(name).unpack(tmp_path)
    hash_slot_num, index_num = case(name).geometry
    given: dict[str, Any] = {"index_entries": {"hash_slot_num": hash_slot_num, "index_num": index_num}}
    given["messages"] = {"cache": tmp_path / "zones"}
    for table in mqindex.tables(store):
        compare(mqindex.dataset(store, table, **given.get(table, {})), rng)


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_a_partitions_tables(name: str, tmp_path: Path, rng: random.Random) -> None:
    partition = PartitionCase(name).closed(tmp_path)
    for table in mqindex.tables(partition):
        given = {"cache": tmp_path / "zones"} if table == "records" else {}
        compare(mqindex.dataset(partition, table, **given), rng)


def compare(table: Any, source: random.Random, *, whole: Any = None, filters: int = FILTERS, said: object = "") -> None:
    """Ask the engines for the rows of random filters. `whole`: all rows; `said`: what an error is told with."""
    from mqindex.tables.arrow_filter import tree_of
    from mqindex.tables.bounds import hints_of

    rows = (table.to_table() if whole is None else whole).to_pylist()
    for _ in range(filters if rows else 0):
        asked = random_filter(source, of_bounds(table.schema, source), rows)
        columns = source.sample(table.schema.names, source.randint(1, 4))
        passing = [row for row in rows if asked.passes(row)]
        expected = ordered([{name: row[name] for name in columns} for row in passing])
        for engine in ENGINES:
            found = engine(table, asked, columns)
            if found is not None:
                assert ordered(found.to_pylist()) == expected, (engine.__name__, asked.sql("duckdb"), said)
        bounds = hints_of(tree_of(asked.arrow))
        assert all(within(row, bounds) for row in passing), (asked.sql("duckdb"), bounds)


def of_bounds(schema: Any, source: random.Random) -> Any:
    """The columns that a filter has: all, or those of which a reader may prove that nothing matches."""
    found = [schema.field(name) for name in BOUNDED if name in schema.names]
    return pa.schema(found) if found and source.random() < 0.5 else schema


def within(row: dict[str, Any], bounds: Any) -> bool:
    """Whether the bounds of a filter allow a row that passes it."""
    return bounds is not None and all(
        bound.allows(row[name]) for name, bound in bounds.items() if not hasattr(row[name], "timestamp")
    )


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr({name: plain(value) for name, value in row.items()}) for row in rows)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, list):
        return [tuple(one.values()) if isinstance(one, dict) else one for one in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
