"""Both indexes of one segment made anew, against the broker's own recovery, which checks every CRC."""

import os

from bench import kafka_files
from bench.case import Arguments, Case, Contender
from bench.memory import warm_command
from bench.numbers import Goal
from bench.workshop import Workshop

WARM = 200


def java(shop: Workshop) -> dict[str, object]:
    warm = " ".join(warm_command(shop.warm_mib(WARM))) if shop.scale.timed else ""
    return {"log": log(shop), **shop.scale.repeat(5, 2), "warm": warm}


def rebuild(*, check_crc: bool) -> Arguments:
    def of(shop: Workshop) -> dict[str, object]:
        partition = kafka_files.large_segment(shop)
        repeated = shop.scale.repeat(5, 2)
        return {
            "partition": partition, "workers": 1, "check_crc": check_crc, **repeated, "warm": shop.warm_mib(WARM),
        }  # fmt: skip

    return of


def recover(*, check_crc: bool) -> Arguments:
    return lambda shop: {"log": log(shop), "check_crc": check_crc, **shop.scale.repeat(5, 2)}


def log(shop: Workshop) -> str:
    return os.path.join(kafka_files.large_segment(shop), f"{kafka_files.NAME}.log")


def goal(work: str, ours: str, must: float | None = None, aim: float | None = None) -> Goal:
    return Goal(work, ours, "java/recover", "faster", "GB/s", must, aim)


CASE = Case(
    name="kafka_rebuild",
    title="Both indexes of a Kafka segment of 1 GiB, 16 records of 1 KiB a batch, one worker",
    contenders=(
        Contender("java", "kafka:recover", java, warm=2500),
        Contender("mqindex", "kafka_log.rebuild", rebuild(check_crc=True), warm=500),
        Contender("headers", "kafka_log.rebuild", rebuild(check_crc=False), warm=500),
        Contender("memory", "kafka_log.recover", recover(check_crc=True), warm=500),
        Contender("memory_headers", "kafka_log.recover", recover(check_crc=False), warm=500),
    ),
    goals=(
        goal("rebuild of a Kafka segment, CRC checked, against LogSegment.recover", "mqindex/rebuild", 2, 2.5),
        goal("the same, headers only (recover checks the CRC)", "headers/rebuild", 6, 10),
        goal("recover of the segment, CRC checked, nothing written", "memory/recover"),
        goal("the same, headers only", "memory_headers/recover"),
        Goal("fsync of the rebuilt indexes, apart", "mqindex/fsync", None, "shown", "ms", whole=True),
    ),
    answer={"files": "2:eb4f8862"},
    estimate=(12, 40),
    files=lambda shop: [log(shop)],
)
