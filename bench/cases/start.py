"""What a first use costs: import, help, one look-up in a file that is not in the page cache."""

from bench.case import Case, Contender
from bench.contenders.keys import KEY_WIDTH, TOPIC
from bench.numbers import Goal
from bench.workshop import Workshop


def arguments(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    with open(shop.wanted, "rb") as file:
        key = f"{TOPIC}#{file.read(KEY_WIDTH).decode()}"
    return {
        "index": shop.index,
        "small": shop.empty_index,
        "key": key,
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        **scale.repeat(11, 2),
    }


CASE = Case(
    name="start",
    title="First use",
    contenders=(Contender("mqindex", "start.run", arguments),),
    goals=(
        Goal("import mqindex", "mqindex/import", None, "below", "ms", 40),
        Goal("mqindex --help, whole process", "mqindex/help", None, "below", "ms", 150),
        Goal("open and one look-up, cold default file", "mqindex/cold", None, "below", "ms", 10),
        Goal(
            "import, open and one look-up in a new process (NumPy loads here)",
            "mqindex/first_use",
            None,
            "below",
            "ms",
            100,
            60,
        ),
    ),
    answer={"cold_hits": [9671888]},
    estimate=(6, 1),
    forks=1,
)
