"""Messages and records with their bodies.

All columns of a GiB with bodies of 1 KiB, each batch made an Arrow table and dropped: what a copy costs, and no page
fault for each page of it. The numbers to stay below are half, and a quarter, of what it took on two cores of an AMD
EPYC when each batch was of new pages: 920 ms.

Messages of 1000 keys: one call on a store that is opened for it, against their places from an open index and one call
for these on an open store.
"""

from bench.case import Arguments, Case, Contender
from bench.kafka_files import NAME, large_segment
from bench.numbers import Goal
from bench.workshop import Workshop

GIB = 1
KEYS = 1000


def rocketmq(shop: Workshop) -> dict[str, object]:
    return {"log": f"{shop.store(GIB)}/commitlog", **shop.scale.repeat(5, 1)}


def kafka(shop: Workshop) -> dict[str, object]:
    return {"log": f"{large_segment(shop)}/{NAME}.log", **shop.scale.repeat(5, 1)}


def keys(shop: Workshop) -> dict[str, object]:
    scale = shop.scale
    sizes = {"count": scale.count(KEYS), "slots": scale.hash_slot_num, "entries": scale.index_num}
    return {"store": shop.whole_store(GIB), **sizes, **scale.repeat(20, 3)}


def contender(name: str, runs: str, arguments: Arguments) -> Contender:
    return Contender(name, f"bodies.{runs}", arguments, needs=("pyarrow",), facts=f"{name.partition('_')[0]}: ")


CASE = Case(
    name="bodies",
    title="Messages and records with bodies of 1 KiB, one thread",
    contenders=(
        contender("rocketmq", "rocketmq", rocketmq),
        contender("kafka", "kafka", kafka),
        contender("keys_cold", "keys_cold", keys),
        contender("keys_open", "keys_open", keys),
    ),
    goals=(
        Goal("a GiB of commit log to Arrow", "rocketmq/arrow", None, "below", "ms", 460, 383, whole=True),
        Goal("a GiB of a Kafka segment to Arrow", "kafka/arrow", None, "below", "ms", 230, 184, whole=True),
        Goal(
            "messages of 1000 keys, the store opened for it, against query_offsets and get_many",
            "keys_cold/query",
            "keys_open/query",
            "slower",
            "ms",
            1.5,
            1.1,
            allowance=(0.005, 0.005),
            whole=True,
        ),
    ),
    answer={
        "rocketmq: rows": 444,
        "rocketmq: bytes": 454656,
        "kafka: rows": 512,
        "kafka: bytes": 524288,
        "keys: found": 1,
        "keys: body_bytes": 1024,
    },
    estimate=(10, 25),
    files=lambda shop: [*shop.log_files(GIB), f"{large_segment(shop)}/{NAME}.log"],
)
