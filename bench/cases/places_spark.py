"""A rebuild on Spark from an S3 server to it, against the same session on files of this machine."""

from bench.case import Case, Contender
from bench.cases import places
from bench.numbers import Goal

GIB = 1

CASE = Case(
    name="places_spark",
    title="Rebuild of the index of 1 GiB of log on Spark local[2], from an S3 server to it",
    contenders=(Contender("mqindex", "places.spark", places.arguments(GIB), needs=("pyspark", "obstore"), warm=2500),),
    goals=(
        Goal(
            "rebuild on Spark from S3 to S3, 1 GiB, against local files",
            "mqindex/remote",
            "mqindex/local",
            "slower",
            "s",
            1.8,
            1.4,
            allowance=(1.0, 0.0),
            whole=True,
        ),
    ),
    answer={"messages": 444},
    estimate=(40, 30),
    forks=2,
    files=lambda shop: shop.log_files(GIB),
)
