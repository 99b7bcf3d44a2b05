"""Bulk put of as many keys as fill a file of the default geometry, hashing included."""

from bench.case import Case, Contender
from bench.memory import warm_command
from bench.numbers import Goal
from bench.workshop import Workshop


def arguments(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "keys": shop.keys,
        "count": shop.key_count,
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
    }


def java(shop: Workshop) -> dict[str, object]:
    warm = " ".join(warm_command(shop.warm_mib(1500))) if shop.scale.timed else ""
    # In a warm-up round two million keys at most are put: enough for the compiler.
    return {**arguments(shop), **shop.scale.repeat(2, 1), "warm": warm, "touched": True}


def mqindex(shop: Workshop) -> dict[str, object]:
    return {
        **arguments(shop),
        **shop.scale.repeat(3, 1),
        "warm": shop.warm_mib(1500),
    }


CASE = Case(
    name="put_keys",
    title="20 M Arrow keys into a fresh index file",
    contenders=(
        Contender("java", "rocketmq:put", java, warm=2500),
        Contender("mqindex", "index_file.put", mqindex, warm=2500),
    ),
    goals=(
        Goal("put_keys, 20 M keys, hashing included", "mqindex/put", "java/put", "faster", "ns", 13, 16),
        Goal(
            "the same against Java with the file's pages touched before",
            "mqindex/put",
            "java/put_touched",
            "faster",
            "ns",
        ),
    ),
    answer={"files": "1:5e9dd647"},
    estimate=(10, 37),
)
