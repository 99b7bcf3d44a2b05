"""The segments of a partition rebuilt on Spark and on threads, two cores each.

With the waiting for the disk: two tasks that wait at the same time have more seconds of fsync together than the wall.
"""

from bench import kafka_files
from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop


def local(shop: Workshop) -> dict[str, object]:
    return {**common(shop), "workers": 2}


def spark(shop: Workshop) -> dict[str, object]:
    return {**common(shop), "small": kafka_files.large_segment(shop)}


def common(shop: Workshop) -> dict[str, object]:
    repeated = shop.scale.repeat(2, 1)
    return {"partition": kafka_files.segments(shop), "check_crc": True, **repeated, "warm": shop.warm_mib(500)}


CASE = Case(
    name="kafka_spark",
    title="SparkEngine on local[2] against LocalEngine(workers=2), 1000 Kafka segments of 8 MiB",
    contenders=(
        Contender("local", "kafka_log.rebuild", local, warm=1000),
        Contender("spark", "kafka_log.spark_rebuild", spark, needs=("pyspark", "pyarrow"), warm=3000),
    ),
    goals=(
        Goal(
            "rebuild of 1000 Kafka segments on Spark local[2] against two threads, fsync in both",
            "spark/with_fsync",
            "local/with_fsync",
            "slower",
            "s",
            1.4,
            1.1,
            allowance=(1.0, 1.0),
            whole=True,
        ),
    ),
    answer={"files": "8:a9d5deca"},
    estimate=(20, 60),
    forks=2,
    files=lambda shop: kafka_files.log_files(kafka_files.segments(shop)),
)
