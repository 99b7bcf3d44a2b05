"""A rebuild on a Spark cluster of two workers from an HDFS to it, against the same workers on files that all see."""

from bench.case import Case, Contender
from bench.cases import places
from bench.numbers import Goal

GIB = 2

CASE = Case(
    name="places_hdfs",
    title="Rebuild of the index of 2 GiB of log on a Spark of two workers, from an HDFS to it",
    contenders=(
        Contender("mqindex", "places.hdfs", places.arguments(GIB), needs=("pyspark", "hdfs_native"), warm=2500),
    ),
    goals=(
        Goal(
            "rebuild on Spark from HDFS to HDFS, 2 GiB, against a shared path",
            "mqindex/remote",
            "mqindex/local",
            "slower",
            "s",
            1.8,
            1.3,
            allowance=(1.0, 0.0),
            whole=True,
        ),
    ),
    answer={"messages": 888},
    estimate=(60, 90),
    forks=1,
    files=lambda shop: shop.log_files(GIB),
)
