"""The column function on Spark against an identity UDF on the same column: what is left is the look-up."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

KEYS = 10_000_000


def arguments(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "keys": shop.sample("column", scale.count(KEYS)),
        "index": shop.index,
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(3, 2),
    }


CASE = Case(
    name="spark_column",
    title="select_phy_offset as a Spark column function",
    contenders=(Contender("spark", "spark_jobs.column", arguments, needs=("pyspark", "pyarrow"), warm=4000),),
    goals=(
        Goal(
            "Spark column function, 10 M keys, against an identity Arrow UDF",
            "spark/select",
            "spark/identity",
            "slower",
            "s",
            1.15,
            1.05,
            whole=True,
        ),
        Goal("the column alone, no UDF", "spark/floor", None, "shown", "s", whole=True),
    ),
    answer={"hits": 5000, "sum": 29375857792},
    estimate=(30, 30),
    forks=2,
    files=lambda shop: [shop.index],
)
