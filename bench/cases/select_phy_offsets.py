"""Bulk look-up of random keys in a full file: keys that it holds, and keys that it does not.

The broker's class is asked in one thread, and so is ours for the first rows. A call of ours makes a thread for each
processor that it may use, from 131,072 keys on.
"""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop


def arguments(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "index": shop.index,
        "hit": shop.wanted,
        "miss": shop.missing,
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(3, 2),
    }


ONE = "select_phy_offsets, 1 M keys, one thread"
ALL = "select_phy_offsets, 1 M keys, a thread for each processor"

CASE = Case(
    name="select_phy_offsets",
    title="1 M random keys looked up in a full index file",
    contenders=(
        Contender("java", "rocketmq:select", arguments, warm=2500),
        Contender("mqindex", "index_file.select", arguments, warm=500),
    ),
    goals=(
        Goal(f"{ONE}: hit", "mqindex/hit_one", "java/hit", "faster", "ns", 12.5, 16),
        Goal(f"{ONE}: miss", "mqindex/miss_one", "java/miss", "faster", "ns", 13, 16),
        Goal(f"{ALL}: hit", "mqindex/hit", "java/hit", "faster", "ns", 12.5, 16),
        Goal(f"{ALL}: miss", "mqindex/miss", "java/miss", "faster", "ns", 13, 16),
    ),
    answer={"hit_hits": 500, "hit_checksum": 735869623296, "miss_hits": 0, "miss_checksum": 0},
    estimate=(20, 14),
    files=lambda shop: [shop.index],
)
