"""The kernels and the twin see the same in any log: made of messages, spoilt, cut, or of no sense at all."""

from __future__ import annotations

import random
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqindex._native.commit_log import Scanner, find_frame, scan_at
from mqindex._native.crc import crc32
from mqindex._native.log_extract import Extractor
from mqindex.rocketmq import CommitLog
from tests.reference.commit_log import NotAFrame, Record, decode, encode, index_strings, messages_behind, scan_log
from tests.reference.java import decode_utf8, key_hash

RUN_ENTRY = np.dtype([("key_hash", "=i4"), ("phy_offset", "=i8"), ("store_timestamp", "=i8")])
MAGICS = (-626843481, -626843477)
patient = settings(suppress_health_check=[HealthCheck.data_too_large])

texts = st.text(max_size=20).map(lambda text: text.encode(errors="surrogatepass")) | st.binary(max_size=40)
keys = st.lists(st.sampled_from([b"a", b"", b"order-1", b"\xe6\xb6\x88", b"\xff", b"k" * 70]), max_size=6).map(
    b" ".join
)
items = st.tuples(st.sampled_from([b"KEYS", b"TAGS", b"UNIQ_KEY", b"KEY", b"", b"WAIT", b"DELAY"]), keys | texts)
blocks = st.lists(items, max_size=5).map(lambda pairs: b"\x02".join(b"\x01".join(pair) for pair in pairs)) | texts
seeds = st.integers(0, 2**32 - 1)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any record that has a valid form. What no rule looks at comes from one seed."""
    rng = random.Random(draw(seeds))
    magic = draw(st.sampled_from(MAGICS))
    sys_flag = draw(st.sampled_from([0, 1, 4, 8, 12, 0x10, 0x20, 0x30, -1, rng.getrandbits(31)]))
    body = rng.randbytes(draw(st.integers(0, 40)))
    return Record(
        phy_offset=0,
        size=0,
        magic=magic,
        body_crc=zlib.crc32(body) & 0x7FFFFFFF,
        queue_id=rng.getrandbits(32) - 2**31,
        flag=rng.getrandbits(32) - 2**31,
        queue_offset=rng.getrandbits(64) - 2**63,
        sys_flag=sys_flag,
        born_timestamp=rng.getrandbits(64) - 2**63,
        born_host=rng.randbytes(20 if sys_flag & 0x10 else 8),
        store_timestamp=rng.getrandbits(64) - 2**63,
        store_host=rng.randbytes(20 if sys_flag & 0x20 else 8),
        reconsume_times=rng.getrandbits(32) - 2**31,
        prepared_transaction_offset=rng.getrandbits(64) - 2**63,
        body=body,
        topic=draw(st.just(b"SCHEDULE_TOPIC_XXXX") | texts)[: 127 if magic == MAGICS[0] else 300],
        properties=draw(blocks),
    )


def placed(record: Record, phy_offset: int) -> bytes:
    return encode(Record(**{**vars(record), "phy_offset": phy_offset}))


@st.composite
def logs(draw: st.DrawFn) -> tuple[int, bytes]:
    """One file: records, then maybe a blank, maybe zeros; maybe spoilt or cut."""
    start = draw(st.sampled_from([0, 1 << 30, 1 << 50]))
    data = bytearray()
    for record in draw(st.lists(records(), max_size=8)):
        data += placed(record, start + len(data))
    ending = draw(st.integers(0, 20))
    if draw(st.booleans()):
        data += (8 + ending).to_bytes(4, "big") + b"\xcb\xd4\x31\x94"
    data += bytes(ending)
    for place, value in draw(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=2)):
        if place < len(data):
            data[place] = value
    return start, bytes(data[: draw(st.just(len(data)) | st.integers(0, len(data)))])


def walked(data: bytes, start: int, at: int, stop: int, check_crc: bool) -> tuple[list[Record], int, bool, int]:
    """The twin's walk: records, where it ended, whether on a fault, the place of the blank."""
    found: list[Record] = []
    while at < min(stop, len(data)):
        try:
            record = decode(data, at, start, check_crc=check_crc)
        except NotAFrame:
            return found, at, True, -1
        if record.blank:
            return found, len(data), False, start + at
        found.append(record)
        at += record.size
    return found, at, False, -1


@patient
@given(logs(), st.booleans(), st.booleans(), st.data())
def test_extract_and_scan_see_what_the_twin_sees(
    log: tuple[int, bytes], tags: bool, check_crc: bool, data: st.DataObject
) -> None:
    start, content = log
    stop = data.draw(st.just(len(content)) | st.integers(0, len(content)), "stop")
    expected, end, faulty, blank = walked(content, start, 0, stop, check_crc)
    extractor = Extractor(content, start, start, start + stop, tags=tags, check_crc=check_crc)
    entries = [tuple(entry) for chunk in extractor for entry in np.frombuffer(chunk, RUN_ENTRY).tolist()]
    scanner = Scanner(content, start, start, start + stop, check_crc=check_crc, max_frames=3)
    frames = [row for batch in scanner for row in batch]

    strings = [(record, index_strings(record, tags=tags) or []) for record in expected]
    assert entries == [
        (key_hash(text), record.phy_offset, record.store_timestamp) for record, texts in strings for text in texts
    ]
    for walk in (extractor, scanner):
        assert (walk.end, walk.fault is not None, walk.blank) == (start + end, faulty, blank)
    assert extractor.fault == scanner.fault
    assert extractor.messages == len(expected) and extractor.entries == len(entries)
    assert extractor.last_message == (expected[-1].phy_offset if expected else -1)
    assert extractor.last_entry == max([record.phy_offset for record, texts in strings if texts], default=-1)
    assert [same_fields(row, record, content) for row, record in zip(frames, expected, strict=True)] == [True] * len(
        expected
    )


def same_fields(row: Any, record: Record, content: bytes) -> bool:
    numbers = ("phy_offset", "size", "magic", "body_crc", "queue_id", "flag", "queue_offset", "sys_flag")
    times = ("born_timestamp", "store_timestamp", "reconsume_times", "prepared_transaction_offset")
    properties = record.property_map
    return (
        all(int(row[name]) == getattr(record, name) for name in numbers + times)
        and all(piece(row, name, content) == getattr(record, name) for name in ("body", "topic", "properties"))
        and all(text(row, column, content) == properties.get(column.upper()) for column in ("keys", "tags", "uniq_key"))
    )


def piece(row: Any, name: str, content: bytes) -> bytes:
    return content[row[f"{name}_pos"] : row[f"{name}_pos"] + row[f"{name}_len"]]


def text(row: Any, name: str, content: bytes) -> str | None:
    return None if row[f"{name}_len"] < 0 else decode_utf8(piece(row, name, content))


@patient
@given(logs(), st.data())
def test_find_gives_the_first_place_where_the_twin_decodes(log: tuple[int, bytes], data: st.DataObject) -> None:
    start, content = log
    at = data.draw(st.integers(0, len(content)), "at")
    stop = data.draw(st.integers(0, len(content)), "stop")
    found = find_frame(content, start, start + at, start + stop)
    expected = next((place for place in range(at, min(stop, len(content) - 7)) if decodes(content, place, start)), -1)
    assert found == (-1 if expected < 0 else start + expected)


@patient
@given(logs(), st.lists(st.integers(-2, 500), max_size=40), st.booleans())
def test_scan_at_gives_what_a_scan_gives_there(log: tuple[int, bytes], places: list[int], check_crc: bool) -> None:
    start, content = log
    frames, valid = scan_at(content, start, [start + place for place in places], check_crc=check_crc)
    for place, frame, fine in zip(places, frames, valid, strict=True):
        inside = 0 <= place <= len(content)
        at = start + place
        rows = next(Scanner(content, start, at, at + 1, check_crc=check_crc), None) if inside else None
        assert fine == (rows is not None)
        assert frame.tobytes() == (rows[0].tobytes() if rows is not None else bytes(frame.nbytes))


def decodes(content: bytes, place: int, start: int) -> bool:
    try:
        decode(content, place, start)
    except NotAFrame:
        return False
    return True


@patient
@given(st.lists(logs().map(lambda log: log[1]), min_size=1, max_size=3), st.booleans())
def test_scan_of_a_whole_log_gives_the_twins_messages(contents: list[bytes], check_crc: bool) -> None:
    """Every file is made for offset 0 of its own, so that all but the first hold foreign frames, too."""
    files, start = [], 0
    for content in contents:
        if content:
            files.append((start, content))
            start += len(content)
    with TemporaryDirectory() as directory:
        for at, content in files:
            (Path(directory) / f"{at:020d}").write_bytes(content)
        expected, damage, end = scan_log(files)
        with CommitLog.open(directory) as log:
            found = [int(at) for batch in log.scan(columns=["phy_offset"]) for at in batch["phy_offset"]]
            assert found == [record.phy_offset for record in expected]
            behind = [end for at, data in files if at <= end < at + len(data) and messages_behind(data, at, end)]
            assert [stretch.at for stretch in log.damage] == [stretch.start for stretch in damage] + behind
            assert not expected or log.max_phy_offset == end


@patient
@given(st.binary(max_size=600), st.binary(max_size=600))
def test_crc32_is_zlibs(front: bytes, back: bytes) -> None:
    assert crc32(back, crc32(front)) == zlib.crc32(front + back)
