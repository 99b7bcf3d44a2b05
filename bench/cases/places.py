"""A rebuild from an S3 server to it, against the bare ranged reading of the log."""

from bench.case import Arguments, Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = 4


def arguments(gib: int) -> Arguments:
    """Of a contender: so much log of the store."""

    def given(shop: Workshop) -> dict[str, object]:
        slots, entries = shop.scale.hash_slot_num, shop.scale.index_num
        return {"store": shop.store(gib), "slots": slots, "entries": entries, **shop.scale.repeat(2, 1)}

    return given


CASE = Case(
    name="places",
    title="Rebuild of the index of 4 GiB of log from an S3 server to it, two threads",
    contenders=(Contender("mqindex", "places.rebuild", arguments(GIB), needs=("obstore",), warm=2500),),
    goals=(
        Goal(
            "rebuild from S3 to S3, 4 GiB, against reading the log",
            "mqindex/remote",
            "mqindex/read",
            "slower",
            "s",
            1.5,
            1.15,
            whole=True,
        ),
        # An object has no holes: the server takes each byte of an index file that is nearly empty.
        Goal(
            "the same, against uploading the result",
            "mqindex/remote",
            "mqindex/write",
            "shown",
            "s",
            whole=True,
        ),
    ),
    answer={"messages": 1776},
    estimate=(20, 60),
    forks=2,
    files=lambda shop: shop.log_files(GIB),
)
