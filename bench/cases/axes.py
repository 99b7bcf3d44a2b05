"""Cost along every axis: a store grows in one way, and what it costs may not grow faster than that.

Of each axis three sizes, n, 2 n and 8 n; the rows say how many times as long it takes as at n. Nothing is removed in
between: ext4 makes directories several times as slowly for minutes after many were removed. Beside them how bare calls
of the system grow that make or look at the same files: no rebuild and no verify can grow less.
"""

from bench.case import Arguments, Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

ROCKETMQ = {  # axis: how many at first, how many messages then
    "queues": (2500, 10_000),
    "topics": (1000, 4000),
    "log files": (250, 20_000),
    "index files": (250, 12_500),
    "keys a message": (4, 50_000),
    "tiny messages": (500_000, 500_000),
}
KAFKA = {"partitions": 1250, "segments": 250}
SIZES = {**{axis: size for axis, (size, _) in ROCKETMQ.items()}, **KAFKA}


def rocketmq(axis: str) -> Arguments:
    def of(shop: Workshop) -> dict[str, object]:
        size, messages = (shop.scale.count(full) for full in ROCKETMQ[axis])
        return {"axis": axis, "size": size, "messages": messages, **shop.scale.repeat(3, 1)}

    return of


def kafka(axis: str) -> Arguments:
    def of(shop: Workshop) -> dict[str, object]:
        return {"axis": axis, "size": shop.scale.count(KAFKA[axis]), **shop.scale.repeat(3, 1)}

    return of


WORDS = {
    "verify": "verify --deep",
    "rebuild": "rebuild",
    "info": "mqindex info, a new process",
    "make": "bare calls that make the files of a rebuild",
    "look": "bare calls that map the files of a verify",
}
SECONDS = {("queues", "verify"): 15, ("queues", "rebuild"): 10, ("queues", "info"): 2, ("partitions", "verify"): 5}


def goal(axis: str, work: str, times: str, step: int, most: int | None) -> Goal:
    ours = f"{axis}/{work}_{times}"
    what = f"{WORDS[work]}, {axis}"
    size = SIZES[axis]
    name = f"{what}: {step * size:,} against {size:,}".replace(",", " ")
    return Goal(name, ours, f"{axis}/{work}_once", "slower", "s", most, whole=True)


def whole(axis: str, work: str, must: int) -> Goal:
    name = f"{WORDS[work]}, {axis}: {8 * SIZES[axis]:,}".replace(",", " ")
    return Goal(name, f"{axis}/{work}_eight", None, "below", "s", must, whole=True)


CASE = Case(
    name="axes",
    title="Cost along every axis",
    contenders=(
        *(Contender(axis, "axes.rocketmq_axis", rocketmq(axis), facts=f"{axis}: ") for axis in ROCKETMQ),
        *(Contender(axis, "axes.kafka_axis", kafka(axis), facts=f"{axis}: ") for axis in KAFKA),
    ),
    goals=tuple(
        goal(axis, *row)
        for axis in SIZES
        for row in (
            ("verify", "twice", 2, None),
            ("verify", "eight", 8, 8),
            ("rebuild", "eight", 8, 8),
            ("info", "eight", 8, 8),
            ("make", "eight", 8, None),
            ("look", "eight", 8, None),
        )
    )
    + tuple(whole(*row, must) for row, must in SECONDS.items()),
    answer={
        "queues: eight": [80, 80],
        "index files: eight": [96, 96],
        "keys a message: eight": [225, 225],
        "tiny messages: eight": [4000, 4000],
        "segments: eight": [16, 16],
    },
    estimate=(12, 400),
    forks=1,
    keeps=True,
)
