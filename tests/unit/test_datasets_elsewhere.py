"""Tables of places elsewhere are those of the same files here."""

from __future__ import annotations

from pathlib import Path

import pytest

import mqindex
from tests.support.elsewhere import Ways, memory
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase

__all__ = ["memory"]  # a fixture

pytest.importorskip("duckdb")
pc = pytest.importorskip("pyarrow.compute")

ELSEWHERE = ("modified", "path", "topic", "partition", "record_topic", "record_partition")  # are others there


def test_a_stores_and_a_partitions_tables(memory: Ways, tmp_path: Path) -> None:
    slots, entries = case("basic-493").geometry  # which is not looked for in files elsewhere
    given = {"index_entries": {"hash_slot_num": slots, "index_num": entries}}
    for here in (case("basic-493").unpack(tmp_path), PartitionCase("410-txn").closed(tmp_path)):
        there = memory.upload(here)
        assert mqindex.tables(there) == mqindex.tables(here)
        for table in mqindex.tables(there):
            pair = [mqindex.dataset(path, table, **given.get(table, {})) for path in (here, there)]
            names = [name for name in pair[0].schema.names if name not in ELSEWHERE]
            for wanted in (None, pc.field(names[0]) > 3):
                one, other = (each.to_table(columns=names, filter=wanted) for each in pair)
                assert one.equals(other), table


def test_sql_over_a_url(memory: Ways, tmp_path: Path) -> None:
    store = case("basic-493").unpack(tmp_path)
    query = "SELECT (SELECT count(*) FROM s), (SELECT count(*) FROM s.units)"
    assert mqindex.sql(query, s=memory.upload(store)).fetchall() == mqindex.sql(query, s=store).fetchall()
