"""Look-ups in full indexes of Kafka, random targets: in bulk, and one call a target from Python."""

from bench import kafka_files
from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop


def arguments(shop: Workshop) -> dict[str, object]:
    made = kafka_files.indexes(shop)
    return {
        "index": made["index"],
        "time_index": made["timeindex"],
        "offsets": made["index_targets"],
        "times": made["timeindex_targets"],
        "base_offset": 0,
        **shop.scale.repeat(5, 3),
    }


def goal(work: str, ours: str, measure: str, must: float, aim: float) -> Goal:
    return Goal(work, f"{ours}/{measure}", f"java/{measure}", "faster", "ns", must, aim)


CASE = Case(
    name="kafka_lookup",
    title="1 M random targets looked up in Kafka's indexes of 10 MiB",
    contenders=(
        Contender("java", "kafka:lookup", arguments, warm=2500),
        Contender("mqindex", "kafka_index.lookup", arguments, warm=500),
        Contender("single", "kafka_index.single_lookup", arguments, warm=500),
    ),
    goals=(
        goal("OffsetIndex.lookup_many, 1 M random offsets", "mqindex", "offset", 13, 18),
        goal("TimeIndex.lookup_many, 1 M random times", "mqindex", "time", 13, 18),
        goal("OffsetIndex.lookup, one call from Python", "single", "offset", 0.8, 1.2),
        goal("TimeIndex.lookup, one call from Python", "single", "time", 0.8, 1.2),
    ),
    answer={
        "offset_keys": 2474918,
        "offset_values": 133156070,
        "time_keys": 850000001065954,
        "time_values": 2245976,
    },
    estimate=(10, 30),
)
