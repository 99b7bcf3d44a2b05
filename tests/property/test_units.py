"""The units that the kernel makes of any messages are the twin's, and the entries beside them do not change."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex._native.log_extract import Extractor, QueueTable
from mqindex.rocketmq.log.log_entries import RUN_ENTRY, UNIT
from tests.reference.commit_log import NotAFrame, Record, decode, encode
from tests.reference.dispatch import Rules, Unit, units

numbers = st.sampled_from([b"0", b"1", b"2", b"7", b"+3", b"-1", b"", b"x", b"9" * 19, b"9" * 18])
few_numbers = st.lists(numbers, min_size=1, max_size=3).map(b",".join)
names = st.lists(st.sampled_from([b"%LMQ%a", b"b", b"", b"%LMQ%\xff"]), min_size=1, max_size=3).map(b",".join)
levels = st.sampled_from([b"1", b"2", b"3", b"4", b"0", b"-1"]) | numbers
delays = st.sampled_from([[], [1000], [1000, 5000, 2**62]])
system = st.sampled_from([b"%RETRY%g", b"%RETRY", b"rmq_sys_x", b"rmq_sys_wheel_timer", b"rmq_sys_wheel_timer2"])
topics = st.sampled_from([b"SCHEDULE_TOPIC_XXXX", b"SCHEDULE_TOPIC_XXXY", b"T", b"\xff"]) | system


@st.composite
def blocks(draw: st.DrawFn) -> bytes:
    """Properties that dispatch looks at, each there or not, in any order, now and then twice."""
    found = []
    for name, values in (
        (b"TAGS", st.sampled_from([b"a", b"pay-success", b"\xe6\xb6\x88", b"\xff"])),
        (b"DELAY", levels),
        (b"INNER_MULTI_DISPATCH", names),
        (b"INNER_MULTI_QUEUE_OFFSET", few_numbers),
        (b"KEYS", st.just(b"k")),
    ):
        found += [name + b"\x01" + value for value in draw(st.lists(values, max_size=2))]
    return b"\x02".join(draw(st.permutations(found)))


@st.composite
def records(draw: st.DrawFn) -> Record:
    return Record(
        phy_offset=0,
        size=0,
        queue_id=draw(st.sampled_from([0, 1, -1, 2**31 - 1])),
        queue_offset=draw(st.sampled_from([0, 5, -1, 2**63 - 1])),
        sys_flag=draw(st.sampled_from([0, 0, 0, 4, 8, 12])),
        store_timestamp=draw(st.sampled_from([0, 1700000000000, 2**63 - 1])),
        topic=draw(topics),
        properties=draw(blocks()),
    )


@settings(max_examples=300)
@given(
    st.lists(records(), min_size=1, max_size=8),
    st.builds(Rules, delays, st.booleans(), st.booleans(), st.integers(0, 7)),
)
def test_units_are_the_twins(messages: list[Record], rules: Rules) -> None:
    data = b""
    for message in messages:
        data += encode(Record(**{**vars(message), "phy_offset": len(data)}))
    table = QueueTable(
        rules.delay_levels, multi_dispatch=rules.multi_dispatch, lmq=rules.lmq, system_topics=rules.system_topics
    )
    extractor = Extractor(data, 0, 0, len(data), queues=table)
    entries, found = b"", []
    for chunk in extractor:
        entries += bytes(chunk)
        found += np.frombuffer(extractor.units, UNIT).copy().tolist()
    plain = b"".join(bytes(chunk) for chunk in Extractor(data, 0, 0, len(data)))

    queues = table.names()
    assert [
        Unit(*queues[queue], queue_offset, phy_offset, size, code, timestamp)
        for phy_offset, queue_offset, code, timestamp, size, queue in found
    ] == [unit for record in taken(data) for unit in units(record, rules)]
    assert entries == plain and len(entries) % RUN_ENTRY.itemsize == 0


def taken(data: bytes) -> list[Record]:
    """The records before the first that no broker takes."""
    found: list[Record] = []
    at = 0
    while at < len(data):
        try:
            found.append(decode(data, at, 0))
        except NotAFrame:
            break
        at += found[-1].size
    return found


def test_many_queues_keep_their_numbers() -> None:
    data, expected = b"", []
    for i in range(5000):
        expected.append((f"topic-{i % 701}", i % 13))
        topic, queue_id = expected[-1]
        data += encode(Record(phy_offset=len(data), size=0, topic=topic.encode(), queue_id=queue_id))
    table = QueueTable([])
    extractor = Extractor(data, 0, 0, len(data), queues=table)
    numbers = [int(n) for _ in extractor for n in np.frombuffer(extractor.units, UNIT)["queue"]]
    assert [table.names()[number] for number in numbers[:50]] == expected[:50]
    assert len(table) == len(set(expected)) == len(set(table.names()))
    names = table.names()
    assert [names[number] for number in numbers] == expected
