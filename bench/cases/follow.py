"""How long after its append a message is found in the index of a follower, a process of its own."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

MESSAGES = 1_000_000
PER_SECOND = 100_000


def mqindex(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "messages": scale.count(MESSAGES),
        "per_second": PER_SECOND,
        "file_size": scale.log_file_size,
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        "rounds": 1,
    }


CASE = Case(
    name="follow",
    title="100 000 messages of 1 KiB a second, followed by another process",
    contenders=(Contender("mqindex", "dispatch.follow", mqindex, warm=1500),),
    goals=(
        Goal("follow: from append to found, median", "mqindex/delay", None, "below", "ms", 2, 1),
        Goal("follow: from append to found, 99 of 100 within", "mqindex/delay_99", None, "below", "ms", 15, 5),
        Goal("follow: from append to found, the slowest", "mqindex/delay_most", None, "below", "ms", 60, 20),
    ),
    answer={"messages": 500, "entries": 1000, "units": 500},
    estimate=(4, 12),
)
