"""A whole rebuild of the index, against the broker's decode + buildIndex and against a restart of its store."""

from bench.case import Case, Contender
from bench.cases import extract
from bench.memory import warm_command
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = extract.GIB


def build(shop: Workshop) -> dict[str, object]:
    warm = " ".join(warm_command(shop.warm_mib(1500))) if shop.scale.timed else ""
    return {**extract.java(shop), **shop.scale.repeat(2, 1), "warm": warm}


def restart(shop: Workshop) -> dict[str, object]:
    return {**extract.java(shop), "messages": shop.messages(GIB)}


def mqindex(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    return {
        "store": shop.store(GIB),
        "slots": scale.hash_slot_num,
        "entries": scale.index_num,
        "workers": 1,
        **scale.repeat(3, 1),
        "warm": shop.warm_mib(1500),
    }


CASE = Case(
    name="rebuild",
    title="Whole rebuild of the index of 4 GiB of log, one worker",
    contenders=(
        Contender("build", "rocketmq:build", build, warm=2500),
        Contender("restart", "rocketmq:restart", restart, warm=4000),
        Contender("mqindex", "commit_log.rebuild", mqindex, warm=500),
    ),
    goals=(
        Goal("rebuild, against decode + buildIndex", "mqindex/rebuild", "build/build", "faster", "M/s", 6.3, 8),
        Goal("rebuild, against a real store's restart", "mqindex/rebuild", "restart/restart", "faster", "M/s", 10, 13),
        Goal("fsync of the rebuilt files, apart", "mqindex/fsync", None, "shown", "s", whole=True),
        Goal(
            "rebuild with its fsync, against decode + buildIndex without any",
            "mqindex/with_fsync",
            "build/build",
            "faster",
            "M/s",
        ),
    ),
    answer={"messages": 1776, "files": "1:415acddd"},
    estimate=(10, 32),
    forks=5,  # the first of them may meet memory that the host must provide
    files=lambda shop: shop.log_files(GIB),
)
