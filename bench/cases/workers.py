"""Two workers against one, on a log that becomes at least eight index files."""

from collections.abc import Callable

from bench.case import Arguments, Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = 8
SLOTS, ENTRIES = 250_000, 1_000_000


def arguments(workers: int, gib: int = GIB) -> Arguments:
    def of(shop: Workshop) -> dict[str, object]:
        scale = shop.scale
        return {
            "store": shop.store(gib),
            "slots": scale.count(SLOTS),
            "entries": scale.count(ENTRIES),
            "workers": workers,
            **scale.repeat(2, 1),
            "warm": shop.warm_mib(2000 * gib // GIB),
        }

    return of


def log_files(gib: int) -> Callable[[Workshop], list[str]]:
    return lambda shop: shop.log_files(gib)


CASE = Case(
    name="workers",
    title="Two workers against one, 8 GiB of log",
    contenders=(
        Contender("one", "commit_log.rebuild", arguments(1), warm=2000),
        Contender("two", "commit_log.rebuild", arguments(2), warm=2000),
    ),
    goals=(
        Goal(
            "rebuild with two workers against one, 8 GiB, fsync included",  # of two workers it overlaps the reading
            "two/with_fsync",
            "one/with_fsync",
            "faster",
            "s",
            1.9,
            1.97,
            whole=True,
        ),
    ),
    answer={"messages": 3552, "files": "15:8c0d80ee"},
    estimate=(7, 20),
    forks=5,  # the first of them may meet memory that the host must provide
    files=log_files(GIB),
)
