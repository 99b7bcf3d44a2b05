"""Filling Kafka's indexes, into pages that were written before, as those of a broker that goes on."""

from bench import kafka_files
from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop


def arguments(shop: Workshop) -> dict[str, object]:
    return {**kafka_files.columns(shop), "size": kafka_files.max_index_size(shop), **shop.scale.repeat(5, 3)}


CASE = Case(
    name="kafka_append",
    title="Kafka's indexes of 10 MiB filled",
    contenders=(
        Contender("java", "kafka:append", arguments, warm=2500),
        Contender("mqindex", "kafka_index.append", arguments, warm=500),
    ),
    goals=(
        Goal("OffsetIndex.append_many", "mqindex/offset", "java/offset", "faster", "ns", 12, 18),
        Goal("TimeIndex.append_many", "mqindex/time", "java/time", "faster", "ns", 12, 18),
    ),
    answer={"files": "2:d1d768de"},
    estimate=(8, 12),
)
