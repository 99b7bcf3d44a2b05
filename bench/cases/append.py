"""Appending 1 KiB messages: in bulk against the broker's `putMessage`, and callers who wait for the disk."""

from bench.case import Case, Contender
from bench.memory import warm_command
from bench.numbers import Goal
from bench.workshop import Workshop

MESSAGES = 1_000_000
SYNCED = 16_000
CALLERS = 8
MANY_CALLERS = 64
BODY = 1024
WARM = 1500


def log(shop: Workshop) -> dict[str, object]:
    return {
        "messages": shop.scale.count(MESSAGES),
        "body": BODY,
        "file_size": max(shop.scale.log_file_size, 1 << 20),
        **shop.scale.repeat(3, 2),
    }


def java(shop: Workshop) -> dict[str, object]:
    warm = " ".join(warm_command(shop.warm_mib(WARM))) if shop.scale.timed else ""
    return {**log(shop), "slots": shop.scale.hash_slot_num, "entries": shop.scale.index_num, "warm": warm}


def mqindex(shop: Workshop) -> dict[str, object]:
    return {**log(shop), "warm": shop.warm_mib(WARM)}


def synced(shop: Workshop) -> dict[str, object]:
    count = max(SYNCED // min(shop.scale.divisor, 100) // MANY_CALLERS, 1) * MANY_CALLERS
    return {**log(shop), "messages": count, "callers": CALLERS, "file_size": 1 << 26}


def synced_many(shop: Workshop) -> dict[str, object]:
    return {**synced(shop), "callers": MANY_CALLERS}


CASE = Case(
    name="append",
    title="Messages of 1 KiB into a new commit log",
    contenders=(
        Contender("java", "rocketmq:append", java, warm=2500),
        Contender("mqindex", "log_writer.append", mqindex, warm=500),
        Contender("each", "log_writer.sync_each", synced, facts="synced_"),
        Contender("callers", "log_writer.append_sync", synced, facts="synced_"),
        Contender("callers_64", "log_writer.append_sync", synced_many, facts="synced_"),
    ),
    goals=(
        Goal(
            "append_messages in bulk, asynchronous flush, against putMessage",
            "mqindex/append",
            "java/append",
            "faster",
            "M/s",
            6,
            10,
        ),
        Goal(
            "append_message, sync flush, 8 callers, against one fdatasync a message",
            "callers/append",
            "each/append",
            "faster",
            "us",
            4.5,
            6,
        ),
        Goal(
            "append_message, sync flush, 64 callers, against one fdatasync a message",
            "callers_64/append",
            "each/append",
            "faster",
            "us",
            12,
            30,
        ),
    ),
    answer={"end": 599000, "synced_bytes": 153344},
    estimate=(15, 45),
)
