"""Keys looked up in optimized index files on an S3 server: cold, and again where this machine keeps their pages."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

KEYS = 1000
AGAIN = 1_000_000


def arguments(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "root": shop.optimized_few,
        "hit": shop.wanted,
        "keys": shop.keys,
        "count": scale.count(KEYS),
        "again": scale.count(AGAIN),
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(3, 1),
    }


CASE = Case(
    name="places_lookup",
    title="Keys looked up in optimized index files on an S3 server",
    contenders=(Contender("mqindex", "places_lookup.run", arguments, needs=("obstore",), warm=1000),),
    goals=(
        Goal(
            "part of 20 index files that 1000 cold keys fetch",
            "mqindex/fetched",
            None,
            "below",
            "%",
            5,
            2,
        ),
        Goal("rounds of requests for them", "mqindex/rounds", None, "below", "rounds", 3, 3),
        Goal(
            "10⁶ keys again, their pages kept, against a local file",
            "mqindex/again",
            "mqindex/local",
            "slower",
            "ns",
            1.25,
            1.05,
        ),
    ),
    answer={"cold": 9671888, "again": 148702000},
    estimate=(20, 280),  # of which most is making the files and bringing them to the server
    forks=1,
)
