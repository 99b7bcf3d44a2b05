"""The driver of a rebuild of 100 TB of log, alone: what it holds must be counts, whatever the size."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

FILES, QUEUES = 100_000, 20_000  # of 1 GiB each: 1.6 million splits of 64 MiB, 8,500 index files


def arguments(shop: Workshop) -> dict[str, object]:
    return {"files": shop.scale.count(FILES), "queues": shop.scale.count(QUEUES)}


CASE = Case(
    name="driver",
    title="Driver of a simulated rebuild of 100 TB, index and 20,000 queues",
    contenders=(Contender("driver", "driver.simulated", arguments),),
    goals=(
        Goal("driver of a rebuild of 100 TB, own time", "driver/own", None, "below", "s", 120, 30, whole=True),
        Goal("driver of a rebuild of 100 TB, private memory", "driver/private", None, "below", "MiB", 4096, 1024),
        Goal("the largest task or result of it", "driver/largest", None, "below", "MiB", 95),
        Goal("all tasks and results of it", "driver/crossed", None, "shown", "MiB"),
    ),
    answer={"splits": 800, "messages": 52_428_800, "entries": 85_000_000, "units": 52_428_800},
    estimate=(1, 120),
    forks=1,
    watch=True,
)
