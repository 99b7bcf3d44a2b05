"""A report's page against the verification that it accompanies: what the pictures and their numbers cost."""

from bench.case import Case, Contender
from bench.numbers import Goal
from bench.workshop import LOG_GIB, Workshop


def arguments(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "store": shop.whole_store(LOG_GIB),
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(5, 1),
    }


CASE = Case(
    name="report",
    title="report of a store with 16 GiB of log, and verify of it",
    contenders=(Contender("mqindex", "store_report.run", arguments, needs=("jinja2",)),),
    goals=(
        Goal(
            "report of a store with 16 GiB of log, against verify of it",
            "mqindex/report",
            "mqindex/verify",
            "slower",
            "s",
            1.10,
            1.02,
            whole=True,
        ),
    ),
    answer={"verify": ": clean", "report": ": clean", "pictures": 10},
    estimate=(12, 60),
    forks=1,
    files=lambda shop: shop.log_files(LOG_GIB),
)
