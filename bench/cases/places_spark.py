"""A rebuild on Spark from an S3 server to it, against the same session on files of this machine."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = 1


def arguments(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "store": shop.store(GIB),
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(2, 1),
    }


CASE = Case(
    name="places_spark",
    title="Rebuild of the index of 1 GiB of log on Spark local[2], from an S3 server to it",
    contenders=(Contender("mqindex", "places.spark", arguments, needs=("pyspark", "obstore"), warm=2500),),
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
