"""A deep verification of a whole store, against the broker's decoding of its log with checksums alone."""

from bench.case import Case, Contender
from bench.cases import extract
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = extract.GIB


def java(shop: Workshop) -> dict[str, object]:
    return {**extract.java(shop), "crc": "true"}


def mqindex(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "store": shop.whole_store(GIB),
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        "workers": 1,
        **scale.repeat(3, 1),
    }


CASE = Case(
    name="verify",
    title="verify --deep of a store with 4 GiB of log, one worker",
    contenders=(
        Contender("java", "rocketmq:decode", java, warm=2500),
        Contender("mqindex", "message_store.verify", mqindex, warm=500),
    ),
    goals=(
        Goal(
            "verify --deep of log, queues and index, against decode + CRC of the log",
            "mqindex/verify",
            "java/decode",
            "faster",
            "M/s",
            2.7,
            4,
        ),
    ),
    answer={"messages": 1776},
    estimate=(9, 25),
    forks=5,  # the first of them may meet memory that the host must provide
    files=lambda shop: shop.log_files(GIB),
)
