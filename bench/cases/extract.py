"""Reading a warm commit log for its index entries, against the broker's decoding alone."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = 4


def java(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "log": f"{shop.store(GIB)}/commitlog",
        "file_size": scale.log_file_size,
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(3, 2),
    }


def mqindex(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "files": shop.log_files(GIB),
        "file_size": scale.log_file_size,
        **scale.repeat(5, 2),
    }


CASE = Case(
    name="extract",
    title="4 GiB of warm log, 1 KiB bodies",
    contenders=(
        Contender("java", "rocketmq:decode", java, warm=2500),
        Contender("mqindex", "commit_log.extract", mqindex, warm=500),
    ),
    goals=(
        Goal(
            "extract into memory, 4 GiB, against decode alone",
            "mqindex/extract",
            "java/decode",
            "faster",
            "M/s",
            4.8,
            6,
        ),
    ),
    answer={"messages": 1776, "entries": 3552, "hashes": 4283982712562, "offsets": 3809292672},
    estimate=(9, 12),
    forks=5,  # the first of them may meet memory that the host must provide
    files=lambda shop: shop.log_files(GIB),
)
