"""Both indexes of a segment held against its log: whole processes, as an operator starts them."""

import os

from bench import kafka_files
from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop


def java(shop: Workshop) -> dict[str, object]:
    return {"segment": os.path.join(kafka_files.indexed_partition(shop), kafka_files.NAME), **shop.scale.repeat(5, 1)}


def mqindex(shop: Workshop) -> dict[str, object]:
    return {"partition": kafka_files.indexed_partition(shop), **shop.scale.repeat(5, 1)}


CASE = Case(
    name="kafka_verify",
    title="Both indexes of a Kafka segment of 1 GiB against its log, whole processes",
    contenders=(
        Contender("java", "kafka:dump", java, warm=2500),
        Contender("mqindex", "kafka_log.verify", mqindex, warm=1000),
    ),
    goals=(
        Goal(
            "mqindex verify of a Kafka segment, against the dump tool's two runs",
            "mqindex/both",
            "java/both",
            "faster",
            "s",
            5.5,
            8,
            whole=True,
        ),
    ),
    answer={"findings": 0},
    estimate=(12, 15),
    files=lambda shop: kafka_files.log_files(kafka_files.indexed_partition(shop)),
)
