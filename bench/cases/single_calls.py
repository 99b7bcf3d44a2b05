"""One call at a time, from a Python loop, against one call at a time in Java."""

from bench.case import Case, Contender
from bench.cases import put_keys, select_phy_offsets
from bench.numbers import Goal
from bench.workshop import Workshop

PUTS = 2_000_000


def java_put(shop: Workshop) -> dict[str, object]:
    return {**put_keys.java(shop), "count": shop.scale.count(PUTS), "touched": False}


def put(shop: Workshop) -> dict[str, object]:
    return {**put_keys.mqindex(shop), "count": shop.scale.count(PUTS), "warm": shop.warm_mib(600)}


CASE = Case(
    name="single_calls",
    title="One call a key",
    contenders=(
        Contender("java_put", "rocketmq:put", java_put, warm=2500),
        Contender("mqindex_put", "index_file.single_put", put, warm=1000),
        Contender("java_select", "rocketmq:select", select_phy_offsets.arguments, warm=2500),
        Contender("mqindex_select", "index_file.single_select", select_phy_offsets.arguments, warm=1000),
    ),
    goals=(
        Goal("put_key, one call from Python", "mqindex_put/put", "java_put/put", "faster", "ns", 1.15, 1.3),
        Goal(
            "put_key of a writer, one call from Python",
            "mqindex_put/put_by_writer",
            "java_put/put",
            "faster",
            "ns",
            3,
            5,
        ),
        Goal(
            "put_key with the string made by Python first",
            "mqindex_put/put_concatenated",
            "java_put/put",
            "faster",
            "ns",
        ),
        Goal(
            "select_phy_offset, one call from Python, hit",
            "mqindex_select/hit",
            "java_select/hit",
            "faster",
            "ns",
            1.1,
            1.5,
        ),
        Goal(
            "select_phy_offset, one call from Python, miss",
            "mqindex_select/miss",
            "java_select/miss",
            "faster",
            "ns",
            1.1,
            1.5,
        ),
    ),
    answer={"files": "1:2c623901", "hit_hits": 500, "hit_checksum": 735869623296, "miss_hits": 0, "miss_checksum": 0},
    estimate=(24, 25),
    files=lambda shop: [shop.index],
)
