"""The counts of a health report are those of the broker's own answers, and its findings are those of `verify`."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import CommitLog, StoreHealth, key_hash, report, tag_hash, verify
from tests.golden.test_consume_queue import tags_code
from tests.support.golden import STORE_CASES, StoreCase, case
from tests.support.tree import identities, index_paths

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)


def units_of(truth: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    """(topic, queue_id, phy_offset, size) of every unit that the broker has."""
    return [
        (queue["topic"], queue["queueId"], *unit[:2]) for queue in truth["consumeQueues"] for unit in queue["units"]
    ]


@each_store
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_findings_are_those_of_verify(name: str, deep: bool, golden_store: GoldenStore) -> None:
    _, root = golden_store(name)
    before = identities(root)
    health, told = report(root, deep=deep), verify(root, deep=deep)
    assert {**health.verify.to_dict(), "seconds": 0} == {**told.to_dict(), "seconds": 0}
    assert (health.ok, health.read.deep, health.read.bytes) == (told.ok, deep, told.bytes)
    assert identities(root) == before


@each_store
def test_messages_and_bytes_of_topics_and_queues(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    topics = topics_of(report(root))
    units = units_of(chosen.truth)
    messages, sizes = Counter(one[0] for one in units), Counter[str]()
    for topic, _, _, size in units:
        sizes[topic] += size
    assert {one.name.text: (one.messages, one.bytes) for one in topics.topics} == {
        topic: (messages[topic], sizes[topic]) for topic in messages
    }
    assert (topics.messages, topics.bytes, topics.more) == (messages.total(), sizes.total(), 0)
    queues = Counter((topic, queue_id) for topic, queue_id, _, _ in units)
    assert {(one.name.text, each.queue_id): each.messages for one in topics.topics for each in one.queues} == queues
    for one in topics.topics:
        most = max(count for (topic, _), count in queues.items() if topic == one.name.text)
        assert one.skew == pytest.approx(most * one.queue_count / one.messages)


@each_store
def test_sizes_and_times_of_topics(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    topics = topics_of(report(root))
    stored = {message["phyOffset"]: message["storeTimestamp"] for message in chosen.truth["messages"]}
    units = units_of(chosen.truth)
    for one in topics.topics:
        of_topic = [unit for unit in units if unit[0] == one.name.text]
        wanted = Counter(1 << unit[3].bit_length() - 1 for unit in of_topic)
        assert {low: n for low, n in zip(one.sizes.bounds, one.sizes.counts, strict=True) if n} == wanted
        assert (one.times.start, one.times.width) == (topics.times.start, topics.times.width)
        counts, sizes = Counter[int](), Counter[int]()
        for unit in of_topic:
            number = (stored[unit[2]] - one.times.start) // one.times.width
            counts[number] += 1
            sizes[number] += unit[3]
        assert list(one.times.counts) == [counts[number] for number in range(len(one.times.counts))]
        assert list(one.times.bytes) == [sizes[number] for number in range(len(one.times.bytes))]
    assert len(topics.times.counts) <= 60
    assert sum(topics.times.counts) == len(units)


@each_store
def test_tags_of_topics(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    topics = topics_of(report(root))
    codes: dict[str, Counter[int]] = {}
    for queue in chosen.truth["consumeQueues"]:
        codes.setdefault(queue["topic"], Counter()).update(map(tags_code, queue["units"]))
    for one in topics.topics:
        if one.kind == "delayed":  # the codes are times
            assert one.tags == ()
            continue
        wanted = Counter({code: n for code, n in codes[one.name.text].items() if -(2**31) <= code < 2**31})
        assert one.untagged == wanted.pop(0, 0)
        assert [each.messages for each in one.tags] == [count for _, count in wanted.most_common(10)]
        assert all(each.messages == wanted[each.hash] for each in one.tags)
        assert all(each.tag is not None and tag_hash(each.tag.text) == each.hash for each in one.tags)


@each_store
def test_keys_of_messages(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    index = report(root, show_keys=True).index
    assert index is not None
    keys: Counter[int] = Counter()
    per_message: Counter[int] = Counter()
    for message in chosen.truth["messages"]:
        found = keys_of(message, tags=chosen.truth["tagsIndexed"])
        keys.update(found)
        per_message[min(len(found), 16)] += 1
    shown = zip(index.keys_per_message.bounds, index.keys_per_message.counts, strict=True)
    assert {number: count for number, count in shown if count} == per_message
    assert index.log_entries == keys.total()
    assert index.mean_keys == pytest.approx(keys.total() / len(chosen.truth["messages"]))
    assert index.sampled.whole
    assert keys[index.frequent[0].key_hash] == max(keys.values())
    for one in index.frequent:  # what a file of the log has once is left out there
        assert keys[one.key_hash] - len(os.listdir(root / "commitlog")) <= one.entries <= keys[one.key_hash]
        assert one.topic is not None
        assert one.key is not None
        tag = "T#" * (one.property == "TAGS")
        assert key_hash(f"{one.topic.text}#{tag}{one.key.text}") == one.key_hash


def keys_of(message: dict[str, Any], *, tags: bool) -> list[int]:
    """The hashes of what a broker indexes of a message."""
    if message["sysFlag"] & 0xC == 0xC:
        return []
    keys = [message["uniqKey"], *(message["keys"] or "").split(" ")]
    if tags and (message["properties"] or {}).get("TAGS"):
        keys.append(f"T#{message['properties']['TAGS']}")
    return [key_hash(f"{message['topic']}#{key}") for key in keys if key]


@each_store
def test_shapes_of_index_files(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    index = report(root, show_keys=True).index
    assert index is not None
    slots, _ = chosen.geometry
    said = {one["name"]: one for one in chosen.truth["indexFiles"]}
    for one in index.files:
        data = (root / "index" / one.name).read_bytes()
        heads = [int.from_bytes(data[40 + 4 * slot : 44 + 4 * slot], "big") for slot in range(slots)]
        chains = [chain(data, slots, head) for head in heads]
        assert one.entries == max(said[one.name]["indexCount"], 1) - 1 == sum(map(len, chains))
        assert one.slots_used == sum(one.heat) == sum(map(bool, heads))
        counts = Counter(min(len(each), 16) for each in chains)
        assert one.chains.counts == tuple(counts[length] for length in range(17))
        assert one.longest == max(map(len, chains))
        assert sum(one.chains_expected) == pytest.approx(slots)
        if one.entries:
            reads = sum(1 + len(each) for each in chains for _ in each) / one.entries
            assert one.cold_reads == pytest.approx(reads)
            others = sum(hash_ != each[0] for each in chains for hash_ in each)
            assert one.other_keys == pytest.approx(others / one.slots_used)


def chain(data: bytes, slots: int, number: int) -> list[int]:
    """The key hashes of a chain, newest first."""
    found = []
    while number:
        at = 40 + 4 * slots + 20 * number
        found.append(int.from_bytes(data[at : at + 4], "big"))
        number = int.from_bytes(data[at + 16 : at + 20], "big")
    return found


@each_store
def test_coverage_of_a_whole_store(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    coverage = report(root).coverage
    assert coverage is not None
    stored = [message["storeTimestamp"] for message in chosen.truth["messages"]]
    assert (coverage.begin, coverage.end) == (chosen.truth["minPhyOffset"], chosen.truth["maxPhyOffset"])
    assert (coverage.messages, coverage.oldest, coverage.newest) == (len(stored), stored[0], max(stored))
    assert sum(one.messages for one in coverage.files) == len(stored)
    with CommitLog.open(root / "commitlog") as log:
        assert [(one.begin, one.size) for one in coverage.files] == [(one.start, one.size) for one in log.files][
            : len(coverage.files)
        ]
    assert [one.name for one in coverage.index_files] == [path.name for path in index_paths(root)]
    assert coverage.missing_entries == sum(gap.entries for gap in coverage.gaps)
    assert coverage.missing_entries == 0
    assert coverage.queues is not None
    assert sum(one.units for one in coverage.queues) == len(units_of(chosen.truth))
    assert (coverage.missing_units, coverage.damaged) == (0, ())


def test_hole_of_the_index_is_where_its_file_was(golden_store: GoldenStore) -> None:
    chosen, root = golden_store("medium-493")
    path = index_paths(root)[1]
    gone = next(one for one in chosen.truth["indexFiles"] if one["name"] == path.name)
    path.unlink()
    coverage = report(root).coverage
    assert coverage is not None
    (gap,) = coverage.gaps
    assert gap.entries == coverage.missing_entries == gone["indexCount"] - 1
    assert gap.begin <= gone["beginPhyOffset"]
    assert gone["endPhyOffset"] <= gap.end


def test_hole_of_a_queue_is_where_its_messages_are(golden_store: GoldenStore) -> None:
    chosen, root = golden_store("basic-493")
    path = root / "consumequeue" / "AaTopic" / "0" / f"{0:020d}"
    path.write_bytes(bytes(path.stat().st_size))
    coverage = report(root).coverage
    assert coverage is not None and coverage.queues is not None
    units = [unit for unit in units_of(chosen.truth) if unit[:2] == ("AaTopic", 0)]
    assert coverage.missing_units == len(units)
    assert min(one.first for one in coverage.queues if one.first is not None) == units[0][2]


def test_everything_is_json(golden_store: GoldenStore) -> None:
    for name in ("killed-lost-493", "crc-v2-lmq-550"):
        health = report(case(name).unpack(golden_store(name)[1].parent / "again"))
        said = json.loads(json.dumps(health.to_dict()))
        assert said["topics"]["messages"] == topics_of(health).messages
        assert said["coverage"]["missing_entries"] == (health.coverage.missing_entries if health.coverage else None)
        assert said["ok"] is health.ok


def topics_of(health: StoreHealth) -> Any:
    assert health.topics is not None
    assert health.topics.sampled.whole
    return health.topics
