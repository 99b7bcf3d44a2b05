"""Dispatch of a complete log into consume queues and index, against a restart of the broker's store without both.

The log is read in one thread and put into queues and index in another, as always where much of it waits; the broker
does the two one after the other.
"""

from bench.case import Case, Contender
from bench.cases import rebuild
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = rebuild.GIB


def mqindex(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "store": shop.store(GIB),
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(3, 1),
        "warm": shop.warm_mib(1500),
    }


CASE = Case(
    name="reput",
    title="Dispatch of 4 GiB of log, 1 KiB bodies: read in one thread, put in another",
    contenders=(
        Contender("restart", "rocketmq:restart", rebuild.restart, warm=4000),
        Contender("mqindex", "dispatch.reput", mqindex, warm=500),
    ),
    goals=(
        Goal(
            "reput into queues and index, against a real store's restart",
            "mqindex/reput",
            "restart/restart",
            "faster",
            "M/s",
            9,
            12,
        ),
    ),
    answer={"messages": 1776, "units": 1776, "files": "1:415acddd"},
    estimate=(7, 20),
    forks=5,  # the first of them may meet memory that the host must provide
    files=lambda shop: shop.log_files(GIB),
)
