"""A deep verification of a whole store, against the broker's decoding of its log with checksums alone."""

from bench.case import Case, Contender
from bench.cases import extract
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = extract.GIB


def java(shop: Workshop) -> dict[str, object]:
    return {**extract.java(shop), "crc": "true"}


def mqindex(shop: Workshop, workers: int = 1) -> dict[str, object]:
    scale = shop.scale
    return {
        "store": shop.whole_store(GIB),
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        "workers": workers,
        **scale.repeat(3, 1),
    }


def two_workers(shop: Workshop) -> dict[str, object]:
    return mqindex(shop, 2)


CASE = Case(
    name="verify",
    title="verify --deep of a store with 4 GiB of log, one worker and two",
    contenders=(
        Contender("java", "rocketmq:decode", java, warm=2500),
        Contender("mqindex", "message_store.verify", mqindex, warm=500),
        Contender("two", "message_store.verify", two_workers, warm=500),
    ),
    goals=(
        Goal(
            "verify --deep of log, queues and index, two workers, against decode + CRC of the log in one thread",
            "two/verify",
            "java/decode",
            "faster",
            "M/s",
            2.7,
            4,
        ),
        # Frames and checksums alone are two thirds of what one worker does.
        Goal("verify --deep: the same, one worker", "mqindex/verify", "java/decode", "faster", "M/s", 1.4, 1.6),
    ),
    answer={"messages": 1776},
    estimate=(9, 32),
    forks=5,  # the first of them may meet memory that the host must provide
    files=lambda shop: shop.log_files(GIB),
)
