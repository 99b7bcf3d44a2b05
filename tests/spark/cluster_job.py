"""A rebuild on a cluster in which a worker process dies and another task straggles: `cluster_job.py MASTER STORE OUT`.

Both faults strike first attempts only, after their work was done, so that what they wrote lies about.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

from mqindex.rocketmq import rebuild
from mqindex.spark import SparkEngine, build_index, register

STRAGGLE_SECONDS = 600.0  # longer than anything else here takes on a busy machine


class FaultyEngine(SparkEngine):
    """Kills the process of one extract task, and lets one build task hang; each fault leaves its mark."""

    marks: Path

    def map(self, stage: Callable[[Any], Any], items: Sequence[Any], *, name: str, **more: Any) -> list[Any]:
        marks = str(self.marks)

        def faulty(item: Any) -> Any:
            result = stage(item)
            context = TaskContext.get()
            first = context.attemptNumber() == 0 and context.partitionId() == 0
            with open(os.path.join(marks, f"{name}-{context.partitionId()}-{context.attemptNumber()}"), "w"):
                pass
            if first and name == "read the log":
                os._exit(137)
            if first and name == "build the index":
                time.sleep(STRAGGLE_SECONDS)
            return result

        return super().map(faulty, items, name=name, **more)


def main(master: str, store: str, out: str, marks: str) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "600m")
        .config("spark.executor.extraJavaOptions", os.environ["SPARK_SUBMIT_OPTS"])
        .config("spark.speculation", "true")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.multiplier", "1.3")
        .getOrCreate()
    )
    register(spark)
    engine = FaultyEngine(spark)
    engine.marks = Path(marks)
    started = time.monotonic()
    report = rebuild(store, f"{out}/rebuilt", split_size=16384, engine=engine)
    seconds = time.monotonic() - started
    messages = spark.read.format("rocketmq_commitlog").load(store)
    entries = messages.where("uniq_key IS NOT NULL").selectExpr(
        "topic", "uniq_key key", "phy_offset", "store_timestamp"
    )
    built = build_index(entries.repartition(4), f"{out}/built", hash_slot_num=100, index_num=400)
    print("files", report.files, "entries", built.entries, "waited", seconds > STRAGGLE_SECONDS)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
