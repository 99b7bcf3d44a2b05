"""Reading a queue with a tag filter, in the same batches as the broker's `getMessage`.

A broker compares hashes and answers with the places of messages, as slices of its mapped log: it decodes nothing. So
the row with a goal does the same (`exact=False`; queue offset, phy offset, size). Another decodes all columns but
bodies and compares the strings of the tags, which is a consumer's work. The batch is a bulk's. 1024 a call and 32,
which is what consumers ask for over the network, are in the table beside it: there the cost of a call from Python
shows. The last row is a single message, found at random by its place and made an object with all its fields.
"""

from bench.case import Arguments, Case, Contender
from bench.numbers import Goal
from bench.workshop import Workshop

TAGS = "TagA || TagC"
BATCHES = (32768, 1024, 32)
PLACES = ["queue_offset", "phy_offset", "size"]


def java(batch: int) -> Arguments:
    def of(shop: Workshop) -> dict[str, object]:
        scale = shop.scale
        return {
            "log": f"{shop.tagged_store}/commitlog",
            "queues": f"{shop.tagged_store}/consumequeue",
            "file_size": scale.log_file_size,
            "slots": scale.hash_slot_num,
            "entries": scale.index_num,
            "tags": TAGS,
            "batch": batch,
            **scale.repeat(5, 3),
        }

    return of


def mqindex(batch: int, columns: list[str] | None = PLACES) -> Arguments:
    def of(shop: Workshop) -> dict[str, object]:
        asked = {"batch": batch, "columns": columns, "exact": columns is None}
        return {"store": shop.tagged_store, "tags": TAGS, **asked, **shop.scale.repeat(5, 2)}

    return of


def one(shop: Workshop) -> dict[str, object]:
    return {"store": shop.tagged_store, "count": shop.scale.count(200_000), **shop.scale.repeat(5, 1)}


def goal(work: str, ours: str, batch: int, must: float | None = None, aim: float | None = None) -> Goal:
    return Goal(work, f"{ours}/get", f"java_{batch}/get", "faster", "ns", must, aim)


def files(shop: Workshop) -> list[str]:
    return [f"{shop.tagged_store}/commitlog/{0:020d}"]


CASE = Case(
    name="get_message",
    title="A queue read with a tag filter that half of its messages pass",
    contenders=(
        *(Contender(f"java_{batch}", "rocketmq:get", java(batch), warm=2500) for batch in BATCHES),
        *(Contender(f"mqindex_{batch}", "message_store.get_messages", mqindex(batch), warm=500) for batch in BATCHES),
        Contender("decoded", "message_store.get_messages", mqindex(BATCHES[0], None), warm=500),
        Contender("one", "message_store.look_message_by_offset", one, warm=500, facts="one: "),
    ),
    goals=(
        goal("get_messages, 32768 a call, tag filter: places, against getMessage", "mqindex_32768", 32768, 5, 10),
        goal("the same, 1024 a call", "mqindex_1024", 1024, 6, 10),
        goal("the same, 32 a call", "mqindex_32", 32, 0.7, 1.2),
        Goal(
            "get_messages, 32768 a call, every message decoded into columns",
            "decoded/get",
            None,
            "below",
            "ns",
            280,
            150,
        ),
        Goal(
            "look_message_by_offset, one call from Python, its checksum compared",
            "one/look",
            None,
            "below",
            "us",
            3,
            1.5,
        ),
    ),
    answer={"found": 222, "offsets": 59266896, "one: bytes": 102400},
    estimate=(25, 25),
    files=files,
)
