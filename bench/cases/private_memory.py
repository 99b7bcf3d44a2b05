"""How much memory of its own a rebuild has at most, beyond the page cache: it must not grow with the log."""

from bench.case import Arguments, Case, Contender
from bench.cases import workers
from bench.numbers import Goal
from bench.workshop import Workshop

SMALL, LARGE = 1, 16


def arguments(gib: int) -> Arguments:
    def of(shop: Workshop) -> dict[str, object]:
        scale = shop.scale
        geometry = {"slots": scale.hash_slot_num, "entries": scale.index_num}
        return {**workers.arguments(2, gib)(shop), **geometry, "rounds": 1, "warmup": 0, "least": 0, "warm": 0}

    return of


CASE = Case(
    name="private_memory",
    title="Private memory of a rebuild, two workers",
    contenders=(
        Contender("small", "commit_log.rebuild", arguments(SMALL), facts="small_"),
        Contender("large", "commit_log.rebuild", arguments(LARGE), facts="large_"),
    ),
    goals=(
        Goal("private memory of a rebuild, 1 GiB of log", "small/private", None, "below", "MiB", 256, 64),
        Goal("private memory of a rebuild, 16 GiB of log", "large/private", None, "below", "MiB", 256, 64),
        Goal("growth from 1 GiB to 16 GiB", "large/private", "small/private", "slower", "MiB"),
    ),
    answer={"small_messages": 444, "small_files": "1:2e34335d", "large_messages": 7104, "large_files": "2:b1544ac6"},
    estimate=(1, 20),
    forks=1,
    files=workers.log_files(LARGE),
    watch=True,
)
