"""The sources of logs, where a pass has filled the cache: the filters of the tables, as options, give the same rows."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

import mqindex
from mqindex import kafka, rocketmq
from mqindex.spark import SparkEngine
from mqindex.spark.sources import commitlog_ranges, kafka_log
from mqindex.spark.sources.kafka_log import KafkaLogSource
from mqindex.spark.sources.rocketmq_commitlog import CommitLogSource
from mqindex.tables import kafka as records
from mqindex.tables import rocketmq as messages
from mqindex.tables.arrow_filter import tree_of
from mqindex.tables.bounds import hints_of
from tests.property.test_datasets import of_bounds, ordered
from tests.property.test_datasets_zones import PARTITION_PASSES, STORE_PASSES, Lost, below
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase
from tests.support.nightly import NIGHTLY, some
from tests.support.random_filters import random_filter
from tests.support.small_zones import small_zones

__all__ = ["small_zones"]  # a fixture
pytestmark = [
    pytest.mark.usefixtures("small_zones"),
    pytest.mark.filterwarnings("ignore:zone map not used:UserWarning"),  # of those that are damaged here
]

FILTERS = 20 if NIGHTLY else 12  # of each combination
PASSES = ("scan", "verify", "rebuild", "follow", "verify on Spark", "rebuild on Spark")
COLUMNS = {
    "phy_offset": LongType, "store_timestamp": LongType, "topic": StringType, "queue_id": IntegerType,
    "tags": StringType, "keys": StringType, "uniq_key": StringType, "offset": LongType, "timestamp": LongType,
    "partition": IntegerType, "key": BinaryType,
}  # fmt: skip
OPTIONS = {
    "topic": "topic", "queue_id": "queueId", "begin": "startTime", "end": "endTime", "start_offset": "startOffset",
    "end_offset": "endOffset", "keys": "keys", "tags": "tags",
}  # fmt: skip
SAMPLED = {"clock-back-493", "410-backwards"}


def fill(way: str, home: Path, cache: Path, out: Path, spark: Any) -> None:
    stored = (home / "commitlog").is_dir()
    if not way.endswith("Spark"):
        (STORE_PASSES if stored else PARTITION_PASSES)[way](home, cache, out)
        return
    broker: Any = rocketmq if stored else kafka
    if way.startswith("verify"):
        broker.verify(home, deep=True, cache=cache, engine=SparkEngine(spark))
    else:
        broker.rebuild(home, out, cache=cache, engine=SparkEngine(spark))


STORES = some(
    itertools.product(PASSES, ["clock-back-493", "rolls-493", "exactfit-493", "ipv6-batch-ext-493"]),
    lambda way, name: name in SAMPLED,
)
PARTITIONS = some(
    itertools.product([one for one in PASSES if one != "follow"], ["410-backwards", "410-txn", "282-magic1-codecs"]),
    lambda way, name: name in SAMPLED,
)


@pytest.mark.parametrize(("way", "name"), STORES)
def test_a_store(way: str, name: str, tmp_path: Path, rng: random.Random, spark: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(commitlog_ranges, "SPLIT_SIZE", 20_000)
    store, cache = case(name).unpack(tmp_path), tmp_path / "zones"
    whole = mqindex.dataset(store, cache=False).to_table()
    fill(way, store, cache, tmp_path / "out", spark)
    assert below(cache)
    for state in Lost(rng, cache, index=[store / "index"], queue=[store / "consumequeue"]).combinations():
        compare(CommitLogSource, store, cache, whole, rng, state)


@pytest.mark.parametrize(("way", "name"), PARTITIONS)
def test_a_partition(way: str, name: str, tmp_path: Path, rng: random.Random, spark: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(kafka_log, "TASK_BYTES", 20_000)
    partition, cache = PartitionCase(name).closed(tmp_path), tmp_path / "zones"
    whole = mqindex.dataset(partition, cache=False).to_table()
    fill(way, partition, cache, tmp_path / "out", spark)
    assert below(cache)
    lost = Lost(rng, cache, index=[*partition.glob("*.index")], times=[*partition.glob("*.timeindex")])
    for state in lost.combinations():
        compare(KafkaLogSource, partition, cache, whole, rng, state)


def compare(source: Any, path: Path, cache: Path, whole: Any, rng: random.Random, said: object) -> None:
    names = [name for name in COLUMNS if name in whole.schema.names]
    whole = whole.select(names)
    rows = whole.to_pylist()
    for _ in range(FILTERS):
        asked = random_filter(rng, of_bounds(whole.schema, rng), rows)
        options = options_of(asked, names)
        if options is None:
            continue
        found = rows_of(source, {"path": str(path), "cache": str(cache), **options}, names)
        passing = [row for row in rows if asked.passes(row)]
        assert ordered([row for row in found if asked.passes(row)]) == ordered(passing), (options, said)


def options_of(asked: Any, names: list[str]) -> dict[str, str] | None:
    """What a table asks its reader for a filter, as options of a source; None: the filter has no rows."""
    bounds = hints_of(tree_of(asked.arrow))
    if bounds is None:
        return None
    given = (messages if "phy_offset" in names else records)._asked(bounds)
    if any(isinstance(key, bytes) for key in given.get("keys", ())):
        given["keys"] = [key.decode() for key in given["keys"]]
    return {OPTIONS[name]: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}


def rows_of(source: Any, options: dict[str, str], names: list[str]) -> list[dict[str, Any]]:
    schema = StructType()
    for name in names:
        schema.add(name, COLUMNS[name]())
    reader = source(options).reader(schema)
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    for row in rows:
        for name in ("store_timestamp", "timestamp"):
            if name in row:
                ms = row[name]
                row[name] = None if ms == -1 else dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=ms)
    return rows
