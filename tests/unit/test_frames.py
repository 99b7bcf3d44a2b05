"""The kernels of the commit log: what a frame is, where one is found, which entries it gives."""

from __future__ import annotations

import ipaddress
import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mqindex._native.commit_log import Scanner, find_frame, frame_dtype, last_record, scan_at
from mqindex._native.log_columns import ColumnScanner, columns_at, texts_among
from mqindex._native.log_extract import Extractor, QueueTable
from mqindex.rocketmq.log.log_entries import UNIT
from tests.reference.commit_log import MESSAGE_V1, decode, index_strings
from tests.reference.java import key_hash
from tests.support.log_writer import FIRST_TIME, LogMessage, frame, frame_size

START = 1 << 40
RUN_ENTRY = np.dtype([("key_hash", "=i4"), ("phy_offset", "=i8"), ("store_timestamp", "=i8")])
BLANK = 0xCBD43194
Entries = list[tuple[int, int, int]]


def log_of(*messages: LogMessage, start: int = START) -> bytes:
    data = bytearray()
    for message in messages:
        data += frame(message, start + len(data))
    return bytes(data)


def blank(size: int) -> bytes:
    return struct.pack(">iI", size, BLANK).ljust(size, b"\0")


def extract(data: bytes, at: int = 0, stop: int | None = None, **options: Any) -> tuple[Entries, Extractor]:
    """The entries from position `at` on."""
    walk = Extractor(data, START, START + at, START + (len(data) if stop is None else stop), **options)
    return [tuple(entry) for chunk in walk for entry in np.frombuffer(chunk, RUN_ENTRY).tolist()], walk


def scan(data: bytes, **options: Any) -> tuple[Any, Scanner]:
    walk = Scanner(data, START, START, START + len(data), **options)
    frames = list(walk)
    return np.concatenate(frames) if frames else np.empty(0, frame_dtype()), walk


def entries_of(data: bytes, *, tags: bool = False) -> Entries:
    """What the twin says of the records in `data`."""
    found: Entries = []
    at = 0
    while at < len(data):
        record = decode(data, at, START)
        for text in index_strings(record, tags=tags) or []:
            found.append((key_hash(text), record.phy_offset, record.store_timestamp))
        at += record.size
    return found


def fault_of(data: bytes, **options: Any) -> tuple[int, str, str | None, str, str]:
    """The fault that both walks report at once; its place relative to the data."""
    walks = extract(data, **options)[1], scan(data, **options)[1]
    assert walks[0].fault == walks[1].fault and walks[0].end == walks[1].end
    fault = walks[0].fault
    assert fault is not None and fault[0] == walks[0].end
    return (fault[0] - START, *fault[1:])


KEYED = LogMessage(keys="a b", uniq_key="u", tags="t")


# ---- entries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tags", [False, True])
@pytest.mark.parametrize(
    "message",
    [
        KEYED,
        LogMessage(),
        LogMessage(keys=" a  b "),
        LogMessage(keys=" "),
        LogMessage(keys="a\tb c"),
        LogMessage(keys="a a", uniq_key="a"),
        LogMessage(tags="only || tags"),
        LogMessage(keys="a", uniq_key="u", sys_flag=0xC),
        LogMessage(keys="a", sys_flag=0x4),
        LogMessage(keys="a", sys_flag=0x8),
        LogMessage(topic="", keys="a"),
        LogMessage(topic="消息", keys="订单-42 😀 été"),
        LogMessage(topic="T" * 200, keys="long", version=2),
        LogMessage(keys="six", born_host=("2001:db8::1", 1), store_timestamp=5),
        LogMessage(keys="six", store_host=("2001:db8::1", 1)),
        LogMessage(keys="six", born_host=("::1", 1), store_host=("2001:db8::1", 1)),
        LogMessage(properties=b"KEYS\x01first\x02KEYS\x01second\x02"),
        LogMessage(properties=b"KEYS\x01kept\x02KEYS\x01\x02UNIQ_KEY\x01"),
        LogMessage(properties=b"KEYS\x01a\x01b c\x02"),
        LogMessage(properties=b"\x02\x02KEYS\x01a\x02\x02"),
        LogMessage(properties=b"\x01KEYS\x02KEYSX\x01no\x02XKEYS\x01no\x02KEYS"),
        LogMessage(properties=b"KEYS"),
        LogMessage(properties=b"UNIQ_KEY\x01u\x02TAGS\x01t\x02KEYS\x01k"),
        LogMessage(properties=b"KEYS\x01" + b" ".join(b"k%d" % i for i in range(900))),
        LogMessage(properties=b"X\x01" + b"y" * 300 + b"\x02KEYS\x01" + b"z" * 300),
        LogMessage(properties=b"KEYS\x01\xc3\x28 \xe2\x82 \xf0\x9f\x98 \xff\xfe\x02UNIQ_KEY\x01\xed\xa0\x80"),
    ],
)
def test_entries_of_one_message(message: LogMessage, tags: bool) -> None:
    data = log_of(message)
    entries, walk = extract(data, tags=tags)
    assert entries == entries_of(data, tags=tags)
    assert (walk.messages, walk.entries, walk.end, walk.fault) == (1, len(entries), START + len(data), None)
    assert walk.last_message == START and walk.last_entry == (START if entries else -1)
    assert scan(data)[0]["entry_count"].tolist() == [len(entries_of(data))]


def test_unique_key_comes_first_then_keys_in_order_then_the_tag() -> None:
    entries, _ = extract(log_of(KEYED), tags=True)
    assert [entry[0] for entry in entries] == [key_hash(f"TopicTest#{key}") for key in ("u", "a", "b", "T#t")]
    assert {entry[1:] for entry in entries} == {(START, FIRST_TIME)}


def test_properties_split_at_every_length_of_a_value() -> None:
    """Separators and spaces at every place of the 64-byte blocks that the parser looks at."""
    for length in range(1, 200):
        pad = b"X\x01" + b"x" * length + b"\x02"
        data = log_of(LogMessage(properties=pad + b"KEYS\x01a " + b"k" * length + b" z\x02TAGS\x01t"))
        assert extract(data, tags=True)[0] == entries_of(data, tags=True), length


def test_units_of_thousands_of_queues_in_one_message() -> None:
    names, numbers = b",".join([b"q"] * 8000), b",".join([b"7"] * 8000)
    message = LogMessage(properties=b"INNER_MULTI_DISPATCH\x01" + names + b"\x02INNER_MULTI_QUEUE_OFFSET\x01" + numbers)
    data, table = log_of(*[message] * 72), QueueTable([])
    walk = Extractor(data, START, START, START + len(data), queues=table)
    units = np.concatenate([np.frombuffer(walk.units, UNIT).copy() for _ in walk])
    assert np.array_equal(units["phy_offset"], np.repeat(START + np.arange(72) * frame_size(message), 8001))
    assert units["queue_offset"][1:8001].tolist() == [7] * 8000 and len(table) == 2


def test_queue_offsets_that_no_broker_reads_give_no_unit() -> None:
    numbers = b"9223372036854775807,9223372036854775808,-9223372036854775808,99999999999999999999999,,1x"
    names = b",".join([b"q"] * (numbers.count(b",") + 1))
    message = LogMessage(properties=b"INNER_MULTI_DISPATCH\x01" + names + b"\x02INNER_MULTI_QUEUE_OFFSET\x01" + numbers)
    data = log_of(message)
    walk = Extractor(data, START, START, START + len(data), queues=QueueTable([]))
    units = np.concatenate([np.frombuffer(walk.units, UNIT).copy() for _ in walk])
    assert units["queue_offset"].tolist() == [message.queue_offset, 2**63 - 1, -(2**63)]


def test_names_of_no_queue_give_no_unit_but_the_messages_own() -> None:
    message = LogMessage(properties=b"INNER_MULTI_DISPATCH\x01,,\x02INNER_MULTI_QUEUE_OFFSET\x01,")
    data, table = log_of(message), QueueTable([])
    walk = Extractor(data, START, START, START + len(data), queues=table)
    assert [len(np.frombuffer(walk.units, UNIT)) for _ in walk] == [1] and len(table) == 1


def test_frames_at_places_are_checked_as_they_are_asked_for() -> None:
    data = bytearray(log_of(KEYED, KEYED))
    data[frame_size(KEYED) + 88] ^= 1  # in the second one's body
    places = [START, START + frame_size(KEYED)]
    assert scan_at(data, START, places)[1].tolist() == [True, True]
    assert scan_at(data, START, places, check_crc=True)[1].tolist() == [True, False]


@pytest.mark.parametrize("count", [24, 35, 48])  # in one step; at a cursor's end, or before it, there is no more room
def test_message_of_thousands_of_keys(count: int) -> None:
    keys = b"KEYS\x01" + b" ".join([b"k"] * 16_000)
    message = LogMessage(properties=keys, body=b"")
    entries, walk = extract(log_of(*[message] * count))
    of_one = entries_of(log_of(message))
    assert entries[:16_000] == of_one and walk.entries == 16_000 * count
    assert [entry[1] for entry in entries[::16_000]] == [START + at * frame_size(message) for at in range(count)]
    assert {entry[0] for entry in entries} == {of_one[0][0]}


# ---- windows of several cursors -------------------------------------------------------------------------------------


def many(count: int, body: int) -> list[LogMessage]:
    return [
        LogMessage(f"Topic{number % 3}", keys=f"k{number}", uniq_key=f"U{number:020d}", body=bytes(body + number % 97))
        for number in range(count)
    ]


@pytest.mark.parametrize(("count", "body"), [(3000, 10), (2000, 4000), (130, 70_000)])
def test_several_windows_give_the_entries_of_one(count: int, body: int) -> None:
    data = log_of(*many(count, body))
    entries, walk = extract(data)
    assert entries == entries_of(data)
    assert walk.fault is None and walk.end == START + len(data)


def test_message_longer_than_several_windows() -> None:
    data = log_of(*many(20, 100), LogMessage(keys="big", body=bytes(3 << 20)), *many(700, 400))
    assert extract(data)[0] == entries_of(data)


def imitation(message: LogMessage, at: int, copies: int) -> LogMessage:
    """A message at position `at` whose body is perfect frames, each of which names the place where it stands."""
    inside = at + frame(replace(message, body=b"\0MARK\0"), 0).index(b"\0MARK\0")
    body = b""
    for number in range(copies):
        body += frame(LogMessage(keys=f"fake{number}"), START + inside + len(body))
    return replace(message, body=body)


def test_body_that_imitates_frames_gives_no_entries() -> None:
    data = log_of(*many(10, 100))
    for number in range(12):
        data += frame(imitation(LogMessage(keys=f"outer{number}"), len(data), 2500), START + len(data))
    entries, walk = extract(data)
    assert entries == entries_of(data) and len(entries) == 32
    assert walk.messages == 22


@pytest.mark.parametrize("spoilt", range(0, 1500, 371))
def test_fault_in_any_window_ends_the_walk_there(spoilt: int) -> None:
    messages = many(1500, 600)
    data = bytearray(log_of(*messages))
    at = sum(map(frame_size, messages[:spoilt]))
    data[at + 4] ^= 1
    entries, walk = extract(bytes(data))
    assert entries == entries_of(bytes(data[:at]))
    assert (walk.messages, walk.end) == (spoilt, START + at)
    assert walk.fault is not None and walk.fault[1] == "bad-magic"


def test_stop_takes_the_frames_that_begin_before_it() -> None:
    messages = many(50, 100)
    data = log_of(*messages)
    cuts = np.cumsum([frame_size(message) for message in messages]).tolist()
    for stop in (0, 1, cuts[0], cuts[0] + 1, cuts[30] - 1, cuts[30]):
        count = sum(at < stop for at in [0, *cuts[:-1]])
        walk = extract(data, stop=stop)[1]
        assert (walk.messages, walk.end) == (count, START + ([0, *cuts][count]))


# ---- faults ---------------------------------------------------------------------------------------------------------


def spoil(place: int, code: str, value: int, message: LogMessage = KEYED) -> bytes:
    """A good frame, then one with another value at `place`, then a good one."""
    good = log_of(LogMessage(keys="before"))
    bad = bytearray(frame(message, START + len(good)))
    struct.pack_into(f">{code}", bad, place, value)
    rest = frame(LogMessage(), START + len(good) + len(bad))
    return good + bytes(bad) + rest


SIZE, BEFORE, REST = frame_size(KEYED), frame_size(LogMessage(keys="before")), frame_size(LogMessage())
BODY, TOPIC = 88, 88 + len(KEYED.body)


@pytest.mark.parametrize(
    ("place", "code", "value", "fault"),
    [
        (4, "i", 7, ("bad-magic", "magic_code", None, "0x00000007")),
        (0, "i", 0, ("bad-size", "total_size", "91 bytes or more", "0")),
        (0, "i", -1, ("bad-size", "total_size", "91 bytes or more", "-1")),
        (0, "i", 90, ("bad-size", "total_size", "91 bytes or more", "90")),
        (0, "i", SIZE + 1, ("bad-size", "total_size", f"{SIZE} bytes", f"{SIZE + 1}")),
        (0, "i", SIZE - 1, ("bad-size", "total_size", f"{SIZE} bytes", f"{SIZE - 1}")),
        (0, "i", 2**31 - 1, ("truncated", "total_size", f"{SIZE + REST} bytes or less", f"{2**31 - 1}")),
        (28, "q", 5, ("foreign", "phy_offset", f"{START + BEFORE}", "5")),
        (84, "i", 2**31 - 1, ("bad-length", "body_len", f"{SIZE - 91} bytes or less", f"{2**31 - 1}")),
        (84, "i", SIZE - 90, ("bad-length", "body_len", f"{SIZE - 91} bytes or less", f"{SIZE - 90}")),
        (84, "i", -1, ("bad-length", "topic_len", None, None)),
        (TOPIC, "b", -1, ("bad-length", "topic_len", "0 bytes or more", "-1")),
        (TOPIC, "b", 127, ("bad-length", "topic_len", f"{SIZE - 91 - len(KEYED.body)} bytes or less", "127")),
        (TOPIC + 10, "h", 32767, ("bad-size", "total_size", None, f"{SIZE}")),
        (TOPIC + 10, "h", -1, ("bad-size", "total_size", None, f"{SIZE}")),
    ],
)
def test_first_bad_field_is_the_fault(
    place: int, code: str, value: int, fault: tuple[str, str, str | None, str | None]
) -> None:
    at, kind, field, expected, got = fault_of(spoil(place, code, value))
    if (place, value) == (84, -1):  # a negative body_len is 0, as in the broker: the body is then read as the topic
        assert kind in {"bad-length", "bad-size"} and at == BEFORE
        return
    assert (at, kind, field) == (BEFORE, *fault[:2])
    assert expected == (fault[2] or expected) and got == fault[3]


def test_every_truncation_is_told() -> None:
    data = log_of(KEYED, KEYED)
    for length in range(SIZE + 1, 2 * SIZE):
        fault = fault_of(data[:length])
        missing = "8 bytes or more" if length - SIZE < 8 else f"{length - SIZE} bytes or less"
        assert fault[:2] == (SIZE, "truncated") and fault[3] == missing


def test_checksum_is_compared_only_where_asked_and_only_of_a_body() -> None:
    data = log_of(replace(KEYED, crc=5), replace(KEYED, body=b"", crc=5))
    assert extract(data)[1].messages == 2
    at, kind, field, expected, got = fault_of(data, check_crc=True)
    assert (at, kind, field, got) == (0, "bad-crc", "body_crc", "0x00000005")
    assert int(expected, 16) == struct.unpack_from(">i", frame(KEYED, 0), 8)[0]
    assert extract(log_of(replace(KEYED, body=b"", crc=5)), check_crc=True)[1].fault is None


def test_negative_lengths_count_as_zero_as_in_the_broker() -> None:
    data = bytearray(log_of(LogMessage(body=b"", properties=b"")))
    struct.pack_into(">i", data, 84, -7)
    struct.pack_into(">h", data, len(data) - 2, -7)
    frames, walk = scan(bytes(data))
    assert walk.fault is None and (frames["body_len"][0], frames["properties_len"][0]) == (0, 0)


@pytest.mark.parametrize("place", [-1, 1])
def test_blank_that_does_not_end_with_the_file_is_a_fault(place: int) -> None:
    data = log_of(KEYED) + blank(100)
    assert extract(data)[1].fault is None
    changed = data + b"\0" if place > 0 else data[:-1]
    assert fault_of(changed)[:4] == (SIZE, "bad-size", "total_size", f"{100 + place} bytes")


@pytest.mark.parametrize("size", [8, 9, 100])
def test_blank_ends_the_file(size: int) -> None:
    data = log_of(KEYED) + blank(size)
    for walk in (extract(data)[1], scan(data)[1]):
        assert (walk.blank, walk.end, walk.fault) == (START + SIZE, START + len(data), None)


def test_zeros_are_no_frame() -> None:
    assert fault_of(log_of(KEYED) + bytes(64))[:3] == (SIZE, "bad-magic", "magic_code")
    assert extract(bytes(64))[1].messages == 0


# ---- find -----------------------------------------------------------------------------------------------------------


def test_find_gives_the_first_frame_of_a_range() -> None:
    messages = many(30, 40)
    data = log_of(*messages) + blank(20)
    starts = [0, *np.cumsum([frame_size(message) for message in messages]).tolist()]
    for start in range(0, len(data), 13):
        for stop in (start, start + 1, start + 200, len(data)):
            expected = next((at for at in starts if start <= at < stop), None)
            assert find_frame(data, START, START + start, START + stop) == (
                -1 if expected is None else START + expected
            )


def test_find_at_every_distance_from_the_ends() -> None:
    for lead in range(70):
        for trail in (0, 1, 7, 8, 40):
            noise = bytes([0xDA, 0xA3, 0xCB, 0xD4])
            front = (noise * 20)[:lead]
            data = front + frame(LogMessage(), START + lead) + (noise * 20)[:trail]
            assert find_frame(data, START, START, START + len(data)) == START + lead


def test_frame_of_another_place_is_not_found() -> None:
    assert find_frame(log_of(KEYED, start=START + 1), START, START, START + SIZE) == -1
    assert find_frame(blank(100) + b"\0", START, START, START + 100) == -1


def test_last_record_walks_by_sizes_to_the_last_head_below_a_place() -> None:
    frames = [len(log_of(KEYED)), len(log_of(LogMessage())), len(log_of(LogMessage(keys="z")))]
    places = [0, frames[0], frames[0] + frames[1], sum(frames)]
    for behind in (b"", bytes(100), b"\0\0\0\x64 no head" * 9, blank(64)[:7]):
        data = log_of(KEYED, LogMessage(), LogMessage(keys="z")) + behind
        for stop in range(len(data) + 1):
            last = max(n for n, place in enumerate(places[:3]) if place < max(stop, 1))
            assert last_record(data, START, START, START + stop) == (START + places[last], START + places[last + 1])
    ended = log_of(KEYED) + blank(64)
    assert last_record(ended, START, START, START + len(ended)) == (START + frames[0], START + len(ended))
    for data in (b"", bytes(7), bytes(100), log_of(KEYED)[:-1], blank(7), struct.pack(">iI", -5, BLANK)):
        assert last_record(data, START, START, START + len(data)) == (START, START)


@pytest.mark.parametrize("kernel", [find_frame, last_record, Extractor, Scanner])
def test_offsets_outside_the_file_are_refused_or_clipped(kernel: Any) -> None:
    data = log_of(KEYED)
    with pytest.raises(ValueError, match="start"):
        kernel(data, START, START - 1, START + 5)
    with pytest.raises(ValueError, match="start"):
        kernel(data, START, START + SIZE + 1, START + SIZE + 5)
    with pytest.raises(ValueError, match="file_start"):
        kernel(data, 2**63 - 5, 2**63 - 5, 2**63 - 1)
    with pytest.raises(ValueError, match="file_start"):
        kernel(data, -1, 0, 1)
    kernel(data, START, START, 2**63 - 1)
    kernel(data, START, START + SIZE, 0)


# ---- decoded frames -------------------------------------------------------------------------------------------------


def test_scan_gives_every_field() -> None:
    message = LogMessage(
        "T1", "k1 k2", "tag", "uniq", b"body!", 1234567890123, 1234567890000, ("10.1.2.3", 99), ("2001:db8::9", 10911),
        7, 8, 9, 0x4, 3, 77,
    )  # fmt: skip
    data = log_of(LogMessage(), message)
    record = decode(data, frame_size(LogMessage()), START)
    row = scan(data)[0][1]
    for name in (
        "phy_offset", "size", "magic", "body_crc", "queue_id", "flag", "queue_offset", "sys_flag", "born_timestamp",
        "store_timestamp", "reconsume_times", "prepared_transaction_offset",
    ):  # fmt: skip
        assert row[name] == getattr(record, name), name
    assert row["stored_phy_offset"] == record.phy_offset and record.magic == MESSAGE_V1
    pieces = {name: data[row[f"{name}_pos"] :][: row[f"{name}_len"]] for name in ("body", "topic", "keys", "tags")}
    assert pieces == {"body": b"body!", "topic": b"T1", "keys": b"k1 k2", "tags": b"tag"}
    assert data[row["uniq_key_pos"] :][: row["uniq_key_len"]] == b"uniq"
    assert data[row["properties_pos"] :][: row["properties_len"]] == record.properties
    assert data[row["born_host_pos"] :][: row["born_host_len"] + 4] == record.born_host
    assert data[row["store_host_pos"] :][: row["store_host_len"] + 4] == record.store_host


def test_absent_strings_have_length_minus_one() -> None:
    row = scan(log_of(LogMessage()))[0][0]
    assert [row[f"{name}_len"] for name in ("keys", "tags", "uniq_key")] == [-1, -1, -1]


def test_scan_comes_in_arrays_of_the_wanted_length() -> None:
    data = log_of(*many(25, 10))
    assert [len(frames) for frames in Scanner(data, START, START, START + len(data), max_frames=10)] == [10, 10, 5]
    with pytest.raises(ValueError, match="max_frames"):
        Scanner(data, START, START, START, max_frames=0)


# ---- columns --------------------------------------------------------------------------------------------------------

NUMBERS = (
    "phy_offset", "size", "body_crc", "queue_id", "flag", "queue_offset", "sys_flag", "born_timestamp",
    "store_timestamp", "reconsume_times", "prepared_transaction_offset",
)  # fmt: skip
TEXTS = ("topic", "body", "properties", "keys", "tags", "uniq_key", "born_host", "store_host", "msg_id")
HOSTS = (("10.0.0.2", 10911), ("10.0.0.2", 10912), ("255.255.255.255", 65535), ("::1", 1), ("fe80::dead:beef", 7))


def various(rng: random.Random, count: int) -> list[LogMessage]:
    """Messages of which hosts repeat, texts are absent, empty, short, or longer than what is copied at once."""

    def text() -> str | None:
        return rng.choice((None, "a", "é" * rng.randrange(1, 9), "k" * rng.choice((15, 16, 17, 63, 64, 65, 300))))

    return [
        LogMessage(
            "T" * rng.choice((1, 9, 127)), text(), text(), text(), rng.randbytes(rng.choice((0, 1, 64, 65, 5000))),
            rng.getrandbits(62), rng.getrandbits(62), rng.choice(HOSTS), HOSTS[rng.random() < 0.1], rng.getrandbits(31),
            rng.getrandbits(62), rng.randrange(2**31), rng.choice((0, 1, 4, 8)), rng.randrange(99), rng.getrandbits(62),
            separator=rng.random() < 0.5, version=rng.choice((1, 2)),
        )
        for _ in range(count)
    ]  # fmt: skip


def values_of(column: Any, *, optional: bool) -> list[Any]:
    """A column of a kernel as Python values."""
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    data, offsets, valid = column
    texts = [data[start:stop].tobytes() for start, stop in pairwise(offsets.tolist())]
    assert (valid is not None) == optional
    return [text if valid is None or valid[row] else None for row, text in enumerate(texts)]


def expected_columns(data: bytes) -> dict[str, list[Any]]:
    """What the twin says of every record."""
    records, at = [], 0
    while at < len(data):
        records.append(decode(data, at, START))
        at += records[-1].size
    columns = {name: [getattr(record, name) for record in records] for name in NUMBERS}
    columns |= {name: [getattr(record, name) for record in records] for name in ("topic", "body", "properties")}
    for name in ("keys", "tags", "uniq_key"):
        found = [record.property_map.get(name.upper()) for record in records]
        columns[name] = [None if text is None else text.encode() for text in found]
    for name in ("born_host", "store_host"):
        columns[name] = [host_text(getattr(record, name)) for record in records]
    columns["msg_id"] = [record.offset_id.encode() for record in records]
    return columns


def host_text(stored: bytes) -> bytes:
    address, port = ipaddress.ip_address(stored[:-4]), int.from_bytes(stored[-4:], "big")
    if address.version == 4:
        return f"{address}:{port}".encode()
    groups = (f"{int.from_bytes(stored[at : at + 2], 'big'):x}" for at in range(0, 16, 2))
    return f"[{':'.join(groups)}]:{port}".encode()


def compare_columns(got: dict[str, Any], expected: dict[str, list[Any]], rows: slice = slice(None)) -> None:
    for name, column in got.items():
        optional = name in ("keys", "tags", "uniq_key")
        values = values_of(column, optional=optional)
        assert values == [value or (None if optional else value) for value in expected[name][rows]], name


@pytest.mark.parametrize("count", [1, 255, 256, 257, 1000])
def test_columns_are_what_every_frame_says(rng: random.Random, count: int) -> None:
    data = log_of(*various(rng, count))
    expected = expected_columns(data)
    names = (*TEXTS, *NUMBERS)
    walk = ColumnScanner(data, START, START, START + len(data), names, max_bytes=2**63 - 1)
    ((columns, rows),) = list(walk)
    assert rows == count and tuple(columns) == names and walk.end == START + len(data)
    compare_columns(columns, expected)
    order = rng.sample(range(count), count)
    columns, rows = columns_at(data, START, *(np.array(expected[n])[order] for n in ("phy_offset", "size")), names)
    assert rows == count
    compare_columns(columns, {name: [expected[name][row] for row in order] for name in names})


def test_batches_of_columns_have_so_many_rows_and_bytes(rng: random.Random) -> None:
    data = log_of(*various(rng, 700))
    sizes = expected_columns(data)["size"]
    walk = ColumnScanner(data, START, START, START + len(data), ("size",), max_frames=300, max_bytes=2**63 - 1)
    assert [rows for _, rows in walk] == [300, 300, 100] and walk.end == START + len(data)
    walk = ColumnScanner(data, START, START, START + len(data), ("size", "body"), max_bytes=10_000)
    seen: list[int] = []
    for columns, rows in walk:
        part = values_of(columns["size"], optional=False)
        assert len(part) == rows >= 1 and sum(part[:-1]) < 10_000
        assert sum(part) >= 10_000 or len(seen) + rows == len(sizes)
        seen += part
    assert seen == sizes
    with pytest.raises(ValueError, match="max_bytes"):
        ColumnScanner(data, START, START, START + len(data), ("size",), max_bytes=0)


def test_columns_end_before_a_frame_that_is_not_the_expected_one(rng: random.Random) -> None:
    data = bytearray(log_of(*various(rng, 600)))
    expected = expected_columns(bytes(data))
    places, sizes = np.array(expected["phy_offset"]), np.array(expected["size"], np.int32)
    names = ("topic", "phy_offset")
    wrong = sizes.copy()
    wrong[[300, 400]] += 1
    assert columns_at(data, START, places, wrong, names)[1] == 300
    for outside in (START - 1, START + len(data), START + len(data) - 1, 0, 2**62):
        assert columns_at(data, START, np.array([places[0], outside]), sizes[:2], names)[1] == 1
    data[places[20] - START + 4] ^= 1
    assert columns_at(data, START, places, sizes, names)[1] == 20
    walk = ColumnScanner(data, START, START, START + len(data), names, max_bytes=2**63 - 1)
    ((columns, rows),) = list(walk)
    assert rows == 20 and walk.fault is not None and walk.fault[:2] == (places[20], "bad-magic")
    compare_columns(columns, expected, slice(20))
    with pytest.raises(ValueError, match="one length"):
        columns_at(data, START, places, sizes[1:], names)
    assert columns_at(b"", 0, [], [], names)[1] == 0


def test_few_long_bodies_do_not_ask_for_room_for_many() -> None:
    """Of 65536 rows of 4 MiB no machine has the memory; there are two."""
    data = log_of(LogMessage(body=b"x" * (4 << 20)), LogMessage(body=b"y" * (4 << 20)))
    walk = ColumnScanner(data, START, START, START + len(data), ("body", "keys"), max_bytes=2**63 - 1)
    ((columns, rows),) = list(walk)
    assert rows == 2
    compare_columns(columns, expected_columns(data))


def test_texts_among_those_wanted() -> None:
    data = np.frombuffer(b"abcabab", np.uint8)
    offsets = np.array([0, 2, 3, 3, 5, 7], np.int64)
    assert texts_among(data, offsets, (b"ab", b"c")).tolist() == [True, True, False, True, True]
    assert texts_among(data, offsets, (b"",)).tolist() == [False, False, True, False, False]
    assert texts_among(data, offsets, ()).tolist() == [False] * 5
    outside = np.array([0, 8, 2, -1, 2**62, 3], np.int64)
    assert texts_among(data, outside, (b"", b"ab")).tolist() == [False] * 5
    with pytest.raises(ValueError, match="offsets"):
        texts_among(data, offsets[:0], (b"",))


# ---- ownership ------------------------------------------------------------------------------------------------------


def test_buffer_is_free_once_the_walk_has_ended() -> None:
    data = bytearray(log_of(*many(10, 10)))
    walks: list[Iterator[Any]] = [
        Extractor(data, START, START, START + len(data)),
        Scanner(data, START, START, START + len(data)),
        ColumnScanner(data, START, START, START + len(data), ("body",), max_bytes=1),
    ]
    with pytest.raises(BufferError):
        data.append(0)
    for walk in walks:
        list(walk)
    data.append(0)


def test_chunks_outlive_the_walk() -> None:
    data = log_of(KEYED)
    chunk = next(Extractor(data, START, START, START + len(data)))
    assert [tuple(entry) for entry in np.frombuffer(chunk, RUN_ENTRY).tolist()] == entries_of(data)


@pytest.mark.parametrize("queues", [False, True])
def test_memory_of_a_walk_is_used_again(queues: bool) -> None:
    """Of each 32 MiB that a dispatch read, the system fetched and zeroed two anew."""
    data, other = log_of(*many(50, 3)), log_of(KEYED)
    table = QueueTable([]) if queues else None
    first = Extractor(data, START, START, START + len(data), queues=table)
    seen = [np.frombuffer(chunk, RUN_ENTRY) for chunk in first]
    place = seen[0].ctypes.data
    second = Extractor(other, START, START, START + len(other), queues=table, reuse=first)
    (chunk,) = [np.frombuffer(chunk, RUN_ENTRY) for chunk in second]
    assert chunk.ctypes.data == place
    assert [tuple(entry) for entry in chunk.tolist()] == entries_of(other)
    assert (first.end, bytes(first.units)) == (START + len(data), b"")
    with pytest.raises(RuntimeError, match="one thread"):
        next(first)
    third = Extractor(data, START, START, START + len(data), queues=QueueTable([]), reuse=second)  # now with units
    assert sum(len(chunk) for chunk in third) == sum(map(len, seen)) * RUN_ENTRY.itemsize


def test_memory_of_a_walk_that_has_not_ended_is_used_again() -> None:
    data = bytearray(log_of(*many(10, 10)))
    walk = Extractor(data, START, START, START + len(data))
    again = Extractor(data, START, START, START + len(data), reuse=walk)
    with pytest.raises(BufferError):
        data.append(0)
    assert b"".join(map(bytes, again)) == b"".join(map(bytes, Extractor(bytes(data), START, START, START + len(data))))
    data.append(0)
    with pytest.raises(RuntimeError, match="one thread"):
        next(walk)


def test_walk_that_has_ended_stays_ended() -> None:
    data = log_of(KEYED)
    for walk in (Extractor(data, START, START, START + SIZE), Scanner(data, START, START, START + SIZE)):
        assert len(list(walk)) == 1
        assert list(walk) == []
        assert walk.end == START + SIZE
