"""What a rebuild from an S3 server to it asks of the server, and the memory of its tasks."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = 1


def arguments(shop: Workshop) -> dict[str, object]:
    """Of a contender: the store, and the geometry of its index."""
    return {"store": shop.store(GIB), "slots": shop.scale.hash_slot_num, "entries": shop.scale.index_num}


CASE = Case(
    name="places_counted",
    title="Requests, bytes and memory of a rebuild of the index of 1 GiB of log, from an S3 server to it",
    contenders=(
        Contender("counted", "places.counted", arguments, needs=("obstore",)),
        Contender("task", "places.task", arguments, needs=("obstore",)),
    ),
    goals=(
        Goal("requests for a rebuild of 1 GiB, all of them", "counted/requests", None, "below", "reads", 160, 140),
        Goal("bytes read for each of the log", "counted/log_read", None, "below", "reads", 1.05, 1.01),
        Goal("private memory of tasks of 64 MiB, one worker", "task/private", None, "below", "MiB", 160, 100),
    ),
    answer={"messages": 444},
    estimate=(10, 30),
    forks=1,
    files=lambda shop: shop.log_files(GIB),
    watch=True,
)
