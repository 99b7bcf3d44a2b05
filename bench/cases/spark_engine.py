"""The same rebuild on Spark and on threads, two cores each."""

from bench.case import Case, Contender
from bench.cases import workers
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = 16


def spark(shop: Workshop) -> dict[str, object]:
    local = workers.arguments(2, GIB)(shop)
    del local["workers"]
    return {**local, "small": shop.store(1)}


CASE = Case(
    name="spark_engine",
    title="SparkEngine on local[2] against LocalEngine(workers=2), 16 GiB of log",
    contenders=(
        Contender("local", "commit_log.rebuild", workers.arguments(2, GIB), warm=3000),
        Contender("spark", "spark_jobs.rebuild", spark, needs=("pyspark", "pyarrow"), warm=3000),
    ),
    goals=(
        Goal(
            "rebuild on Spark local[2] against two threads, 16 GiB",
            "spark/rebuild",
            "local/rebuild",
            "slower",
            "s",
            1.3,
            1.1,
            allowance=(2.0, 1.5),
            whole=True,
        ),
    ),
    answer={"messages": 7104, "files": "29:cbbc76fb"},
    estimate=(20, 35),
    forks=2,
    files=workers.log_files(GIB),
)
