"""The rows of a record, and what a reader knows their contenders as."""

from __future__ import annotations

from typing import Any

from bench.cases import CASES
from bench.scale import SCALES

__all__ = ["FRONT", "GROUPS", "Row", "full_name", "group", "largest_scale", "peer", "rows"]

Row = dict[str, Any]

GROUPS = ["RocketMQ", "Kafka", "others", "mqindex itself"]
PEERS = {  # what a contender runs: what it is
    "rocketmq:put": "RocketMQ `putKey`",
    "rocketmq:select": "RocketMQ `selectPhyOffset`",
    "rocketmq:decode": "RocketMQ's decoder",
    "rocketmq:build": "RocketMQ's decoder and `buildIndex`",
    "rocketmq:restart": "RocketMQ's restart",
    "rocketmq:append": "RocketMQ `putMessage`",
    "rocketmq:get": "RocketMQ `getMessage`",
    "kafka:lookup": "Kafka `lookup`",
    "kafka:append": "Kafka `append`, `maybeAppend`",
    "kafka:recover": "Kafka `LogSegment.recover`",
    "kafka:dump": "Kafka `DumpLogSegments`, twice",
    "key_stores.lmdb": "LMDB",
    "key_stores.rocksdb": "RocksDB",
    "key_stores.duckdb": "DuckDB",
    "spark_jobs.plain": "plain PySpark",
    "spark_jobs.column": "an identity UDF",
    "log_writer.sync_each": "`pwrite`, `fdatasync`",
}
FRONT = {  # the rows of README.md, each with as many threads as what it is compared with; also where we are not faster
    ("put_keys", "put_keys, 20 M keys, hashing included"): "Put 20 million keys into an index file",
    ("select_phy_offsets", "select_phy_offsets, 1 M keys, one thread: hit"): "Look up a million keys, one call",
    ("single_calls", "select_phy_offset, one call from Python, hit"): "Look up one key, one call",
    ("key_stores", "LMDB: look-up of 200 000 keys"): "Look up 200 000 of 2 million keys, one call",
    ("rebuild", "rebuild, against decode + buildIndex"): "Rebuild the index of 4 GiB of commit log",
    ("append", "append_messages in bulk, asynchronous flush, against putMessage"): "Append messages in bulk",
    ("kafka_lookup", "OffsetIndex.lookup_many, 1 M random offsets"): "Look up a million offsets in an `.index`",
    ("kafka_lookup", "OffsetIndex.lookup, one call from Python"): "Look up one offset, one call",
    ("kafka_rebuild", "rebuild of a Kafka segment, CRC checked, against LogSegment.recover"): (
        "Rebuild the indexes of a 1 GiB segment"
    ),
    ("spark_engine", "rebuild on Spark local[2] against two threads, 16 GiB"): (
        "Rebuild the index of 16 GiB on Spark `local[2]`, against two threads"
    ),
}


def largest_scale(record: dict[str, Any]) -> str | None:
    """The name of the largest scale that was measured; full, unless only smaller ones were run."""
    return next((name for name in SCALES if record["parts"].get(name)), None)


def rows(record: dict[str, Any], scale: str) -> dict[tuple[str, str], Row]:
    """(case, work) -> what was measured at one scale, in the order of the cases."""
    parts = record["parts"].get(scale, {})
    return {(name, row["work"]): row for name in CASES if name in parts for row in parts[name]["numbers"]}


def full_name(key: tuple[str, str], among: dict[tuple[str, str], Row]) -> str:
    """The work, and where that is "the same, ...": as which row before it."""
    case, work = key
    if not work.startswith("the same"):
        return work
    names = [name for other, name in among if other == case]
    before = [name for name in names[: names.index(work)] if not name.startswith("the same")]
    return f"{before[-1].split(', ')[0]}: {work}"


def peer(case: str, row: Row) -> str:
    """What the row is compared with; "" for nothing, "mqindex" for another run of our own."""
    return PEERS.get(_runs(case, row), "mqindex") if "peer" in row else ""


def group(case: str, row: Row) -> str:
    """The member of `GROUPS` that the row is listed under."""
    broker = {"rocketmq": "RocketMQ", "kafka": "Kafka"}.get(_runs(case, row).partition(":")[0])
    return broker or ("others" if peer(case, row) not in {"", "mqindex"} else "mqindex itself")


def _runs(case: str, row: Row) -> str:
    name = row.get("peer_name", "").partition("/")[0]
    return next((contender.runs for contender in CASES[case].contenders if contender.name == name), "")
