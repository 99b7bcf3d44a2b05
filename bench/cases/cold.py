"""Keys looked up in index files that are not in the page cache: as brokers write them, and optimised."""

from bench.case import Arguments, Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

KEYS = 10_000
SINGLE = 1000


def arguments(kind: str) -> Arguments:
    def of(shop: Workshop) -> dict[str, object]:
        scale = shop.scale
        return {
            "root": getattr(shop, kind),
            "hit": shop.wanted,
            "miss": shop.missing,
            "count": scale.count(KEYS),
            "single": max(100, scale.count(SINGLE)) if scale.timed else 5,
            "slots": scale.hash_slot_num,
            "entries": scale.index_num,
            **scale.repeat(3, 0),
        }

    return of


def warm(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "files": {"ordinary": shop.index, "optimized": shop.one_optimized},
        "hit": shop.wanted,
        "miss": shop.missing,
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(3, 1),
    }


# In this order: the files are optimized in place, as twice all of them would be 42 GB.
CASE = Case(
    name="cold",
    title="Keys looked up in 50 full index files that are not in the page cache",
    contenders=(
        Contender("ordinary", "cold.run", arguments("cold_files")),
        Contender("optimized", "cold.run", arguments("optimized_files")),
        Contender("warm", "cold.warm", warm),
    ),
    goals=(
        Goal("page reads of a present key, optimized", "optimized/reads_hit", None, "below", "reads", 1.2, 1.05),
        Goal("present key, as the broker wrote the file", "ordinary/reads_hit", None, "shown", "reads"),
        Goal(
            "page reads of an absent key, optimized",
            "optimized/reads_miss",
            None,
            "below",
            "reads",
            0.05,
            0.01,
        ),
        Goal("absent key, as the broker wrote the file", "ordinary/reads_miss", None, "shown", "reads"),
        Goal(
            "10 000 cold keys over 50 files", "optimized/batch", "ordinary/batch", "faster", "ms", 20, 100, whole=True
        ),
        Goal(
            "look-ups in an optimized file in memory, present keys",
            "warm/optimized_hit",
            "warm/ordinary_hit",
            "faster",
            "ns",
            1.6,
            2.2,
        ),
        Goal("the same, absent keys", "warm/optimized_miss", "warm/ordinary_miss", "faster", "ns", 1, 1.5),
    ),
    answer={
        "reads_hit": 17813248,
        "reads_miss": 0,
        "batch": 10000017813248,
        "warm_hit": 2950051000,
        "warm_miss": 0,
    },
    estimate=(4, 120),
    forks=1,
)
