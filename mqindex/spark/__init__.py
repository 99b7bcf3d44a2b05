"""mqindex on PySpark 4.0 and newer, classic sessions and Spark Connect: an engine, data sources, column functions.

Nothing here knows a byte layout: files are the business of `mqindex.rocketmq` and `mqindex.kafka`. `rebuild`, `repair`
and `verify` are those of RocketMQ's stores; for Kafka's partitions call `mqindex.kafka.rebuild(...,
engine=SparkEngine(spark))`. Every path must be visible to all workers, and means what the workers see there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqindex.spark.build import build_index, rebuild, repair, verify
    from mqindex.spark.engine import SparkEngine
    from mqindex.spark.functions.kafka import offset_for_timestamp
    from mqindex.spark.functions.partitions import build_partition, select_partition
    from mqindex.spark.functions.rocketmq import hash_slot, key_hash, select_phy_offset
    from mqindex.spark.sources.register import register

_HOME = {
    "SparkEngine": "engine",
    "build_index": "build",
    "build_partition": "functions.partitions",
    "hash_slot": "functions.rocketmq",
    "key_hash": "functions.rocketmq",
    "offset_for_timestamp": "functions.kafka",
    "rebuild": "build",
    "register": "sources.register",
    "repair": "build",
    "select_partition": "functions.partitions",
    "select_phy_offset": "functions.rocketmq",
    "verify": "build",
}

__all__ = [
    "SparkEngine",
    "build_index",
    "build_partition",
    "hash_slot",
    "key_hash",
    "offset_for_timestamp",
    "rebuild",
    "register",
    "repair",
    "select_partition",
    "select_phy_offset",
    "verify",
]


def _require_version() -> None:
    """Older versions lack the calls, and fail with words that say nothing of it."""
    try:
        from pyspark import __version__ as version
    except ImportError:
        return  # whatever needs it says so
    if int(version.partition(".")[0]) < 4:
        raise ImportError(f"mqindex.spark needs PySpark 4.0 or newer, got {version}: pip install 'mqindex[spark]'")


_require_version()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mqindex.spark' has no attribute {name!r}")
    try:
        module = importlib.import_module(f"mqindex.spark.{_HOME[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyarrow", "pyspark", "pandas"):
            raise
        raise ImportError(f"mqindex.spark.{name} needs {error.name}: pip install 'mqindex[spark]'") from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
