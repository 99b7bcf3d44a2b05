"""One full index file optimized: how long for each key, and how much memory of its own that takes."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop


def arguments(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "index": shop.index,
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        "warm": shop.warm_mib(1500),
        **scale.repeat(3, 1),
    }


CASE = Case(
    name="optimize",
    title="One full index file optimized, its fence and its key filter included",
    contenders=(Contender("mqindex", "optimize_index.run", arguments, warm=1500),),
    goals=(
        Goal("optimize of a full file, a key", "mqindex/optimize", None, "below", "ns", 80, 50),
        Goal("fsync of the optimized file, apart", "mqindex/fsync", None, "shown", "s", whole=True),
        Goal("private memory of an optimize", "mqindex/private", None, "below", "MiB", 256, 64),
    ),
    answer={"files": "3:4615b9e1"},
    estimate=(3, 25),
    forks=3,
    files=lambda shop: [shop.index],
    watch=True,
)
