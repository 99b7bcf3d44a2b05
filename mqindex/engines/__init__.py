"""Engines: how a stage, a plain function of one picklable value, is mapped over a list.

An engine knows nothing of brokers or files. `LocalEngine` runs a stage in threads (the kernels release the GIL);
`mqindex.spark.SparkEngine` runs it in Spark tasks.
"""

from __future__ import annotations

from mqindex.engines.engine import Engine, LocalEngine, OnProgress, Progress

__all__ = ["Engine", "LocalEngine", "OnProgress", "Progress"]
