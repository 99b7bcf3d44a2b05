"""`rocketmq.scan` gives what a full read gives, filtered: with a good, a bad or no cache, and while the log grows."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqindex import rocketmq
from mqindex.errors import ClosedFileError, MQIndexError
from mqindex.rocketmq.messages.log_columns import COLUMNS
from mqindex.rocketmq.serving.query_message import has_key
from tests.support.golden import case
from tests.support.log_writer import LogMessage, LogWriter

STORES = ("medium-493", "tx-delay-lmq-493", "killed-lost-493", "clock-back-493", "ipv6-batch-ext-493", "crc-v2-lmq-550")


class Golden(NamedTuple):
    path: Path
    messages: list[rocketmq.Message]
    caches: Path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: Any) -> list[Golden]:
    made = []
    for name in STORES:
        path = case(name).unpack(tmp_path_factory.mktemp(name))
        with rocketmq.CommitLog.open(path / "commitlog") as log:
            offsets = [at for batch in log.scan(columns=["phy_offset"]) for at in batch["phy_offset"].tolist()]
            messages = [log.get_message(at) for at in offsets]
        made.append(Golden(path, messages, tmp_path_factory.mktemp("caches")))
    return made


@st.composite
def questions(draw: st.DrawFn, messages: list[rocketmq.Message]) -> dict[str, Any]:
    """Arguments of a scan, most of them taken from messages that there are."""
    some = st.integers(0, len(messages) - 1).map(messages.__getitem__)
    asked: dict[str, Any] = {}
    if draw(st.booleans()):
        topics = st.one_of(some.map(lambda message: message.topic), st.just("no-such-topic"))
        asked["topic"] = draw(st.one_of(topics, st.lists(topics, max_size=3)))
    if draw(st.booleans()):
        asked["queue_id"] = draw(st.one_of(st.integers(-1, 5), st.lists(st.integers(0, 5), max_size=2)))
    for name in ("begin", "end"):
        if draw(st.booleans()):
            asked[name] = draw(some).store_timestamp + draw(st.integers(-2, 2))
    for name in ("start_offset", "end_offset"):
        if draw(st.integers(0, 3)) == 0:
            asked[name] = max(draw(some).phy_offset + draw(st.integers(-1, 1)), 0)
    if draw(st.integers(0, 2)) == 0:
        keys = st.one_of(
            some.map(lambda message: message.uniq_key or "none"),
            some.map(lambda message: (message.keys or "none").split(" ")[-1]),
            some.map(lambda message: f"T#{message.tags}"),
            st.sampled_from(["", " ", "none"]),
        )
        asked["keys"] = draw(st.one_of(keys, st.lists(keys, max_size=40)))
    if draw(st.integers(0, 3)) == 0:
        tags = st.one_of(some.map(lambda message: message.tags or "x"), st.sampled_from(["TagA", "*"]))
        asked["tags"] = " || ".join(draw(st.lists(tags, min_size=1, max_size=3)))
    return asked


def several(given: Any) -> Any:
    return [given] if isinstance(given, (str, int)) else given


def matches(message: rocketmq.Message, asked: dict[str, Any]) -> bool:
    """The same in a few plain lines."""
    keys, tags = asked.get("keys"), asked.get("tags")
    wanted = None if tags in (None, "*") else {tag.strip() for tag in tags.split("||")} - {""}
    return (
        ("topic" not in asked or message.topic in several(asked["topic"]))
        and ("queue_id" not in asked or message.queue_id in several(asked["queue_id"]))
        and ("begin" not in asked or message.store_timestamp >= asked["begin"])
        and ("end" not in asked or message.store_timestamp < asked["end"])
        and ("start_offset" not in asked or message.phy_offset >= asked["start_offset"])
        and ("end_offset" not in asked or message.phy_offset < asked["end_offset"])
        and (keys is None or any(has_key(message, message.topic, key) for key in several(keys)))
        and (wanted is None or message.tags in wanted)
    )


def rows(scan: rocketmq.Scan) -> list[dict[str, Any]]:
    found = []
    for batch in scan:
        columns = {
            name: column.astype(np.int64).tolist() if isinstance(column, np.ndarray) else column.to_pylist()
            for name, column in batch.items()
        }
        found += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return found


def as_row(message: rocketmq.Message, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(message, name) for name in names}


NAMES = st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True)


def spoil(cache: Path, how: str) -> None:
    for path in cache.iterdir() if cache.is_dir() else ():
        data = path.read_bytes()
        if how == "cut":
            path.write_bytes(data[: len(data) // 2])
        elif how == "changed":
            path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:] if len(data) > 100 else b"")
        elif how == "removed":
            path.unlink()


@pytest.mark.filterwarnings("ignore:zone map not used:UserWarning")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_a_scan_gives_what_a_full_read_gives(stores: list[Golden], data: st.DataObject) -> None:
    golden = stores[data.draw(st.integers(0, len(stores) - 1))]
    asked, names = data.draw(questions(golden.messages)), data.draw(NAMES)
    how = data.draw(st.sampled_from(["kept", "cut", "changed", "removed", "none"]))
    spoil(golden.caches, how)
    cache = False if how == "none" else golden.caches
    wanted = [as_row(message, tuple(names)) for message in golden.messages if matches(message, asked)]
    with rocketmq.scan(golden.path, columns=names, cache=cache, **asked) as scan:
        assert rows(scan) == wanted and not scan.damage
    if not asked:
        assert scan.bytes_read == sum(message.size for message in golden.messages)


def a_store(root: Path, count: int, *, size: int = 1000) -> rocketmq.MessageStore:
    config = {"maxHashSlotNum": 100, "maxIndexNum": 400, "mappedFileSizeCommitLog": 4 << 20}
    store = rocketmq.MessageStore.open(root, writable=True, config=config)
    put(store, range(count), size)
    return store


def put(store: rocketmq.MessageStore, numbers: Any, size: int = 1000) -> None:
    store.put_messages(
        {
            "topic": [f"T{number // 2000}" for number in numbers],
            "body": [bytes(size)] * len(numbers),
            "keys": [f"k-{number}" for number in numbers],
            "store_timestamp": [1_700_000_000_000 + 1000 * number for number in numbers],
        }
    )


def times(scan: rocketmq.Scan) -> list[int]:
    return [at for batch in scan for at in batch["store_timestamp"].astype(np.int64).tolist()]


def test_a_period_reads_little_more_than_the_period(tmp_path: Path) -> None:
    a_store(tmp_path / "store", 20_000).close()
    asked: dict[str, Any] = {"begin": 1_700_010_000_000, "end": 1_700_011_000_000, "cache": tmp_path / "cache"}
    first = rocketmq.scan(tmp_path / "store", **asked)
    assert times(first) == list(range(1_700_010_000_000, 1_700_011_000_000, 1000))
    again = rocketmq.scan(tmp_path / "store", **asked)
    assert times(again) == list(range(1_700_010_000_000, 1_700_011_000_000, 1000))
    assert 1000 * 1000 < again.bytes_read < 1000 * 1200 + (1 << 20) < first.bytes_read
    of_topic = rocketmq.scan(tmp_path / "store", topic="T3", cache=tmp_path / "cache", columns=["store_timestamp"])
    assert len(times(of_topic)) == 2000
    assert of_topic.bytes_read < 2000 * 1200 + (1 << 20)


def test_a_log_that_grows_is_read_from_where_it_ended(tmp_path: Path) -> None:
    store, cache = a_store(tmp_path / "store", 1000), tmp_path / "cache"
    period: dict[str, Any] = {"begin": 1_700_000_990_000, "cache": cache}
    assert len(times(rocketmq.scan(tmp_path / "store", **period))) == 10
    put(store, range(1000, 1100))
    scan = rocketmq.scan(tmp_path / "store", **period)
    assert len(times(scan)) == 110 and scan.bytes_read < 600_000
    put(store, range(1100, 20_000))
    assert len(times(rocketmq.scan(tmp_path / "store", **period))) == 19_010
    store.close()
    assert len(times(rocketmq.scan(tmp_path / "store", **period))) == 19_010


def test_a_log_that_was_cut_and_written_anew_is_read_anew(tmp_path: Path) -> None:
    a_store(tmp_path / "store", 1000).close()
    cache = tmp_path / "cache"
    assert len(times(rocketmq.scan(tmp_path / "store", begin=0, cache=cache))) == 1000
    shutil.rmtree(tmp_path / "store" / "commitlog")
    os.unlink(tmp_path / "store" / "checkpoint")
    shutil.rmtree(tmp_path / "store" / "consumequeue")
    shutil.rmtree(tmp_path / "store" / "index")
    store = a_store(tmp_path / "store", 0)
    put(store, range(5000, 6000))
    store.close()
    assert len(times(rocketmq.scan(tmp_path / "store", begin=1_700_005_500_000, cache=cache))) == 500


def spoil_log(root: Path, places: list[int], rng: random.Random) -> None:
    """Bytes that are wrong, zeros, or missing: most of them in the head of a message."""
    files = [file for file in sorted((root / "commitlog").iterdir()) if file.stat().st_size]
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.choice(places) + rng.choice([rng.randrange(100), rng.randrange(4), rng.randrange(2000)])
        log = max((file for file in files if int(file.name) <= at), key=lambda file: int(file.name))
        data, here = bytearray(log.read_bytes()), at - int(log.name)
        if here >= len(data):
            continue
        kind, size = rng.randrange(5), rng.choice([1, 4, 100, 5000])
        if kind <= 2:
            data[here] ^= 1 << rng.randrange(8)
        elif kind == 3:
            data[here : here + size] = bytes(len(data[here : here + size]))
        elif log == files[-1]:
            del data[here:]
        log.write_bytes(data)


@pytest.mark.parametrize("name", STORES)
def test_a_scan_of_a_damaged_log_gives_what_a_full_scan_gives(
    name: str, stores: list[Golden], tmp_path: Path, rng: random.Random
) -> None:
    golden = stores[STORES.index(name)]
    places = [message.phy_offset for message in golden.messages]
    for number in range(8):
        root, cache = tmp_path / str(number), tmp_path / "cache"
        shutil.copytree(golden.path, root)
        spoil_log(root, places, rng)
        with rocketmq.scan(root, cache=False) as full:
            everything = rows(full)
        rocketmq.verify(root, cache=rng.choice([cache, False]))
        for _ in range(12):
            asked = question_at_random(golden.messages, rng)
            with rocketmq.scan(root, cache=cache, **asked) as some:
                assert rows(some) == [row for row in everything if row_matches(row, asked)], asked
            if not {"start_offset", "end_offset"} & asked.keys():
                assert damage_of_log(some) == damage_of_log(full), asked


def damage_of_log(scan: rocketmq.Scan) -> list[str]:
    """Without bodies that do not decompress, which are of messages that match."""
    return [str(one) for one in scan.damage if not isinstance(one, MQIndexError)]


def question_at_random(messages: list[rocketmq.Message], rng: random.Random) -> dict[str, Any]:
    one, other = rng.choice(messages), rng.choice(messages)
    every = {
        "topic": rng.choice([one.topic, [one.topic, other.topic], "none"]),
        "queue_id": one.queue_id,
        "begin": one.store_timestamp + rng.randint(-1, 1),
        "end": other.store_timestamp + rng.randint(-1, 1),
        "start_offset": one.phy_offset,
        "end_offset": other.phy_offset,
        "tags": rng.choice(["TagA", "TagB"]),
    }
    return {name: every[name] for name in rng.sample(list(every), rng.randint(1, 3))}


def row_matches(row: dict[str, Any], asked: dict[str, Any]) -> bool:
    return (
        ("topic" not in asked or row["topic"] in several(asked["topic"]))
        and ("queue_id" not in asked or row["queue_id"] == asked["queue_id"])
        and ("tags" not in asked or row["tags"] == asked["tags"])
        and asked.get("begin", row["store_timestamp"]) <= row["store_timestamp"]
        and row["store_timestamp"] < asked.get("end", row["store_timestamp"] + 1)
        and asked.get("start_offset", 0) <= row["phy_offset"] < asked.get("end_offset", 2**62)
    )


def test_what_is_damaged_is_left_out_and_said_each_time(tmp_path: Path) -> None:
    a_store(tmp_path / "store", 10_000).close()
    first = sorted((tmp_path / "store" / "commitlog").iterdir())[0]
    with open(first, "r+b") as file:
        file.seek(2_000_000)
        file.write(bytes(5000))
    for _ in range(2):
        scan = rocketmq.scan(tmp_path / "store", topic=["T0", "T1"], cache=tmp_path / "cache")
        assert 3990 < len(times(scan)) < 4000
        assert [str(one).split(":")[0] for one in scan.damage] == ["log-bad-size"] * len(scan.damage) != []


def test_one_file_and_a_directory_of_a_log_may_be_scanned(tmp_path: Path) -> None:
    a_store(tmp_path / "store", 10_000).close()
    files = sorted((tmp_path / "store" / "commitlog").iterdir())
    whole = times(rocketmq.scan(tmp_path / "store" / "commitlog", cache=False))
    assert whole == times(rocketmq.scan(tmp_path / "store", cache=False))
    assert [at for file in files for at in times(rocketmq.scan(file, begin=0, cache=False))] == whole


TOPICS = ["", " ", 'a"b', "a'b", "a\nb", "\x1b[31m", "a\x00b", "ü\u202e", "-x", "%s", "'; DROP TABLE s; --", "x" * 127]


def test_a_topic_of_any_characters_is_found(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog")
    writer.write(*(LogMessage(topic) for topic in TOPICS))
    for _ in range(2):
        for topic in TOPICS:
            with rocketmq.scan(tmp_path / "commitlog", topic=topic, cache=tmp_path / "cache") as found:
                assert [row["topic"] for row in rows(found)] == [topic]
    with rocketmq.scan(tmp_path / "commitlog", topic=TOPICS[::-1] * 2, cache=False) as found:
        assert [row["topic"] for row in rows(found)] == TOPICS


def test_an_empty_answer_has_its_columns(tmp_path: Path) -> None:
    a_store(tmp_path / "store", 10).close()
    scan = rocketmq.scan(tmp_path / "store", topic="none", cache=False)
    assert list(scan) == []
    assert list(scan.empty()) == list(scan.columns) and len(scan.empty()) == 0
    scan.close()
    with pytest.raises(ClosedFileError):
        next(scan)


def test_arguments_of_other_kinds_are_refused(tmp_path: Path) -> None:
    a_store(tmp_path / "store", 10).close()
    for wrong, words in (
        ({"columns": ["key"]}, "columns: expected some of topic"),
        ({"topic": 5}, "topic: expected a sequence of names"),
        ({"begin": "now"}, "begin"),
        ({"cache": 5}, "cache: expected a directory"),
        ({"tags": 5}, "tags: expected an expression"),
        ({"tags": ["TagA"]}, "tags: expected an expression like 'TagA .. TagB', got list"),
        ({"queue_id": "0"}, "queue_id"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            rocketmq.scan(tmp_path / "store", **wrong)  # type: ignore[arg-type]


def test_without_a_cache_the_log_is_read_once(stores: list[Golden]) -> None:
    for store in stores:
        size = sum(message.size for message in store.messages)
        topic = store.messages[0].topic
        with rocketmq.scan(store.path, topic=topic, begin=0, columns=["phy_offset"], cache=False) as found:
            assert sum(map(len, found)) == sum(message.topic == topic for message in store.messages)
            assert found.bytes_read == size
