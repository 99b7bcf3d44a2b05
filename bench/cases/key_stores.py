"""What a user would pick instead: LMDB, RocksDB, a DuckDB join, on the same keys."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

KEYS = 2_000_000
LOOK_UPS = 200_000


def arguments(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    count = scale.count(KEYS)
    return {
        "keys": shop.keys,
        "wanted": shop.sample("stored", scale.count(LOOK_UPS), among=count),
        "count": count,
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(2, 0),
    }


OTHERS = {"lmdb": ("LMDB", "lmdb"), "rocksdb": ("RocksDB", "rocksdict"), "duckdb": ("DuckDB", "duckdb")}

CASE = Case(
    name="key_stores",
    title="General stores on the same 2 M keys",
    contenders=(
        Contender("mqindex", "key_stores.mqindex", arguments, warm=1000),
        *(
            Contender(name, f"key_stores.{name}", arguments, needs=(module,), warm=1000)
            for name, (_, module) in OTHERS.items()
        ),
    ),
    goals=tuple(
        Goal(f"{title}: {work} of {size} keys", f"mqindex/{measure}", f"{name}/{measure}", "faster", "ns")
        for name, (title, _) in OTHERS.items()
        for work, measure, size in (("build", "build", "2 M"), ("look-up", "look_up", "200 000"))
    ),
    answer={"found": 100},
    estimate=(6, 50),
    forks=2,
)
