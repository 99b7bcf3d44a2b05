"""Messages of a period and of a topic.

A window of a thousandth of the time that 4 GiB of log have: the first time, with the pass that makes the zone map,
beside a walk over the heads of all messages; later from the map, and how many bytes it reads more than the window has.
In DuckDB, one thread: the window pushed down beside the same over the whole table, and messages counted by topic beside
the walk.
"""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = 4


def log(shop: Workshop) -> dict[str, object]:
    return {"store": shop.store(GIB), **shop.scale.repeat(5, 1)}


def contender(name: str) -> Contender:
    return Contender(name, f"scans.{name}", log, needs=("duckdb", "pyarrow"), facts=f"{name}: ")


CASE = Case(
    name="scans",
    title="Messages of a period and of a topic, one thread",
    contenders=(contender("walk"), contender("first"), contender("later"), contender("sql")),
    goals=(
        Goal(
            "a window of 4 GiB, zone map made, beside a walk over heads",
            "first/scan", "walk/walk", "slower", "ms", 1.5, 1.1, whole=True,
        ),
        Goal("the same window later", "later/scan", "walk/walk", "faster", "ms", 20, 100, whole=True),
        Goal(
            "the window with bodies in DuckDB, beside the whole table",
            "sql/window", "sql/full", "faster", "ms", 50, 100, whole=True,
        ),
        Goal(
            "count by topic in DuckDB, beside a walk over heads",
            "sql/by_topic", "walk/walk", "slower", "ms", 1.2, 1.05, whole=True,
        ),
    ),
    answer={
        "walk: rows": 1776,
        "first: found": 8,
        "later: found": 8,
        "sql: window": "[(8, 8192)]",
        "sql: full": "[(8, 8192)]",
    },
    estimate=(5, 20),
    files=lambda shop: shop.log_files(GIB),
)  # fmt: skip
