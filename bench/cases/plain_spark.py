"""What a user would write on Spark without mqindex: a Python loop over the records, rows to Parquet."""

from bench.case import Case, Contender
from bench.cases import spark_engine, workers
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = 2


def plain(shop: Workshop) -> dict[str, object]:
    return {
        "files": shop.log_files(GIB),
        "file_size": shop.scale.log_file_size,
    }


def mqindex(shop: Workshop) -> dict[str, object]:
    return {**spark_engine.spark(shop), "store": shop.store(GIB), "warm": shop.warm_mib(500)}


NEEDS = ("pyspark", "pyarrow")
CASE = Case(
    name="plain_spark",
    title="A plain-Python PySpark job over the same 2 GiB of log",
    contenders=(
        Contender("plain", "spark_jobs.plain", plain, needs=NEEDS, warm=2000),
        Contender("mqindex", "spark_jobs.rebuild", mqindex, needs=NEEDS, warm=2000),
    ),
    goals=(Goal("plain-Python PySpark job, 2 GiB", "mqindex/rebuild", "plain/rebuild", "faster", "M/s"),),
    answer={"messages": 888, "files": "4:4400014c"},
    estimate=(30, 25),
    forks=1,
    files=workers.log_files(GIB),
)
