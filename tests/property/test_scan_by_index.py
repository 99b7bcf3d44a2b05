"""A scan by keys asks the index for files of the log that a deep verify has found wholly in it; no answer changes."""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex import rocketmq
from mqindex.engines import LocalEngine
from mqindex.rocketmq.scanning import indexed_keys
from mqindex.rocketmq.scanning.scan import Scan
from mqindex.zones.cache import FileIdentity, ZoneCache, identity_of
from mqindex.zones.index_cover import IndexCover, keep_cover, known_cover
from tests.support.golden import STORE_CASES, case
from tests.support.growing_store import OPTIONS, GrowingStore
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.lost_files import Lost, below
from tests.support.nightly import NIGHTLY
from tests.support.small_zones import small_zones

__all__ = ["small_zones"]  # a fixture
pytestmark = pytest.mark.usefixtures("small_zones")

QUESTIONS = 64 if NIGHTLY else 8
NAMES = ["phy_offset", "topic", "uniq_key", "keys", "tags", "body"]


class Asked:
    """A store, all of its messages, and questions for some of them by key."""

    def __init__(self, store: Path, rng: random.Random) -> None:
        self.store, self._rng = store, rng
        self.rows = list(self._scanned(cache=False)[0])

    def question(self) -> dict[str, Any]:
        """A topic and keys, and now and then more; some are of other topics, of TAGS, of no message, or no text."""
        some = self._rng.choices(self.rows, k=self._rng.randint(1, 3))
        keys = [self._rng.choice(self._keys_of(row)) for row in some]
        topics = {row["topic"] for row in some}
        asked: dict[str, Any] = {"topic": sorted(topics), "keys": keys}
        if self._rng.random() < 0.3:
            asked["start_offset"], asked["end_offset"] = sorted(self._rng.choices(self.places(), k=2))
        if self._rng.random() < 0.2:
            asked["tags"] = some[0]["tags"] or "none"
        return asked

    def _keys_of(self, row: dict[str, Any]) -> list[str]:
        found = [*(row["keys"] or "").split(), row["uniq_key"] or "", f"T#{row['tags']}", "?", "\ud800"]
        return [one for one in found if one]

    def places(self) -> list[int]:
        return [row["phy_offset"] for row in self.rows]

    def answer(self, cache: Any, asked: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
        """The messages, and the bytes that were read of the log."""
        return self._scanned(cache=cache, **asked)

    def _scanned(self, **asked: Any) -> tuple[list[dict[str, Any]], int]:
        with rocketmq.scan(self.store, columns=NAMES, **asked) as found:
            rows = [row for batch in found for row in rows_of(batch)]
            return rows, found.bytes_read


def rows_of(batch: Any) -> list[dict[str, Any]]:
    columns = {name: batch[name] for name in NAMES}
    lists = {name: one.tolist() if hasattr(one, "tolist") else one.to_pylist() for name, one in columns.items()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def verified(store: Path, cache: Path, **given: Any) -> None:
    rocketmq.verify(store, deep=True, cache=cache, engine=LocalEngine(2), **given)


def built_into(store: Path, scratch: Path) -> None:
    """Index and queues of a store's log, in place of those that it has."""
    for part in ("index", "consumequeue"):
        shutil.rmtree(store / part, ignore_errors=True)
    rocketmq.rebuild(store, scratch / "built", engine=LocalEngine(1), cache=False, **OPTIONS)
    for part in (scratch / "built").iterdir():
        part.rename(store / part.name)
    (scratch / "built").rmdir()


def covers(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.index"))


@pytest.mark.parametrize("name", STORE_CASES)
def test_the_answer_is_that_of_the_log(name: str, tmp_path: Path, rng: random.Random) -> None:
    store, cache = case(name).unpack(tmp_path), tmp_path / "zones"
    asked, by_log, by_index = Asked(store, rng), 0, 0
    verified(store, cache)
    assert 2 * len(covers(cache)) == len(below(cache)) > 0  # each file with messages has a zone map too
    for _ in range(QUESTIONS):
        question = asked.question()
        expected, whole = asked.answer(False, question)
        found, read = asked.answer(cache, question)
        assert found == expected, question
        if not any(key.startswith("T#") or key == "\ud800" for key in question["keys"]):
            by_log, by_index = by_log + whole, by_index + read
    assert not by_log or by_index < by_log / 4  # it is asked


@pytest.mark.filterwarnings("ignore:zone map not used")
@pytest.mark.parametrize("name", STORE_CASES)
def test_whatever_is_lost_of_index_and_cache(name: str, tmp_path: Path, rng: random.Random) -> None:
    store, cache = case(name).unpack(tmp_path), tmp_path / "zones"
    asked = Asked(store, rng)
    verified(store, cache)
    for state in Lost(rng, cache, index=[store / "index"]).combinations():
        for question in [asked.question() for _ in range(2)]:
            assert asked.answer(cache, question)[0] == asked.answer(False, question)[0], (state, question)


def test_what_comes_later_is_found(tmp_path: Path, rng: random.Random) -> None:
    """Messages that were rolled back, which no broker indexes, among them."""
    store, cache = GrowingStore(tmp_path / "store"), tmp_path / "zones"
    for _ in range(4):
        store.write(60)
        built_into(store.root, tmp_path)
        verified(store.root, cache, **OPTIONS)
        store.write(rng.randint(0, 20))
        asked = Asked(store.root, rng)
        for number in (*rng.choices(range(store.number), k=8), 5, store.number - 1):
            question = {"topic": ["Topic0", "Topic1"], "keys": [f"k{number}", f"k{number % 7}"]}
            assert asked.answer(cache, question)[0] == asked.answer(False, question)[0] != []
    assert len(covers(cache)) > 4


def test_an_index_that_lacks_entries_is_not_asked(tmp_path: Path) -> None:
    store, cache = case("exactfit-493").unpack(tmp_path), tmp_path / "zones"
    files = sorted((store / "index").iterdir())
    assert len(files) > 2
    os.unlink(files[1])
    verified(store, cache)
    assert 0 < len(covers(cache)) < len(below(cache)) / 2


@pytest.mark.parametrize("asked", [{"topic": [], "keys": "k"}, {"topic": "T", "keys": []}, {"topic": [], "keys": []}])
def test_of_no_topic_or_no_key_there_is_no_message(asked: dict[str, Any], tmp_path: Path) -> None:
    store, cache = case("rolls-493").unpack(tmp_path), tmp_path / "zones"
    verified(store, cache)
    with rocketmq.scan(store, cache=cache, columns=["phy_offset"], **asked) as found:
        assert sum(map(len, found)) == 0


def test_only_a_deep_verify_knows(tmp_path: Path) -> None:
    store, cache = case("rolls-493").unpack(tmp_path), tmp_path / "zones"
    rocketmq.verify(store, cache=cache, engine=LocalEngine(1))
    assert below(cache)
    assert covers(cache) == []


def test_a_place_without_a_frame_is_read_with_the_log(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that a disk has changed, of which no time tells."""
    store, cache = case("rolls-493").unpack(tmp_path), tmp_path / "zones"
    asked = Asked(store, rng)
    verified(store, cache)
    row = next(row for row in asked.rows if row["keys"])
    question = {"topic": row["topic"], "keys": row["keys"].split()[0]}
    log, at = sorted((store / "commitlog").iterdir())[0], row["phy_offset"]
    before = {path: identity_of(path) for path in map(str, (log, *(store / "index").iterdir()))}
    with log.open("r+b") as file:
        file.seek(at + 4)
        file.write(bytes(4))
    monkeypatch.setattr(indexed_keys, "identity_of", before.__getitem__)
    assert asked.answer(cache, question)[0] == asked.answer(False, question)[0]


def test_the_first_of_many_matches_come_before_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that all messages have leads to as many as a log holds; places without a frame are among them later."""
    monkeypatch.setattr(sys.modules[Scan.__module__], "_AT_ONCE", 4)
    store, cache = tmp_path / "store", tmp_path / "zones"
    writer = LogWriter(store / "commitlog", mapped_file_size=16384)
    places = writer.write(*(LogMessage("T", keys="same", body=bytes([n])) for n in range(50)))
    built_into(store, tmp_path)
    verified(store, cache, **OPTIONS)
    (log,) = map(str, (store / "commitlog").iterdir())
    before, question = identity_of(log), {"topic": "T", "keys": "same", "columns": ["phy_offset"]}
    with rocketmq.scan(store, cache=cache, **question) as found:
        first = next(found)["phy_offset"].tolist()
        assert first == places[: len(first)]
        assert len(first) < 50
        assert found.bytes_read == places[len(first)]
        assert [*first, *(at for batch in found for at in batch["phy_offset"].tolist())] == places
    writer.overwrite(places[30] + 4, bytes(4))
    monkeypatch.setattr(indexed_keys, "identity_of", lambda path: before if path == log else identity_of(path))
    with rocketmq.scan(store, cache=cache, **question) as found:
        assert [at for batch in found for at in batch["phy_offset"].tolist()] == places[:30]


def test_what_is_written_into_the_same_version_is_found(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapped file that a broker fills may keep its times for a while."""
    store, cache = GrowingStore(tmp_path / "store"), tmp_path / "zones"
    store.write(3)
    built_into(store.root, tmp_path)
    verified(store.root, cache, **OPTIONS)
    (log,) = map(str, (store.root / "commitlog").iterdir())
    before = identity_of(log)
    store.write(2)
    monkeypatch.setattr(indexed_keys, "identity_of", lambda path: before if path == log else identity_of(path))
    asked = Asked(store.root, rng)
    for number in range(5):
        question = {"topic": ["Topic0", "Topic1"], "keys": [f"k{number}"]}
        assert asked.answer(cache, question)[0] == asked.answer(False, question)[0]
    assert asked.answer(cache, {"topic": ["Topic0", "Topic1"], "keys": ["k3"]})[0]


def test_a_log_that_was_written_anew_is_read(tmp_path: Path, rng: random.Random) -> None:
    store, cache = case("rolls-493").unpack(tmp_path), tmp_path / "zones"
    asked = Asked(store, rng)
    verified(store, cache)
    row = next(row for row in asked.rows if row["keys"])
    key = row["keys"].split()[0]
    (log,) = (store / "commitlog").iterdir()
    with log.open("r+b") as file:
        data = file.read()
        file.seek(data.index(key.encode(), row["phy_offset"]))
        file.write(key[::-1].upper().encode())
    question = {"topic": row["topic"], "keys": key[::-1].upper()}
    assert asked.answer(cache, question)[0] == asked.answer(False, question)[0] != []


def test_any_byte_of_a_cover_counts(tmp_path: Path) -> None:
    cache, log = ZoneCache(str(tmp_path / "zones")), FileIdentity(b"n" * 32, b"v" * 32)
    index = frozenset({FileIdentity(b"i" * 32, b"w" * 32), FileIdentity(b"j" * 32, b"x" * 32)})
    cover = IndexCover(log, 1000, (5, 20), index, np.array([7, 2**40]))
    keep_cover(cache, cover)
    found = known_cover(cache, log)
    assert found is not None
    assert (found[:4], found.others.tolist()) == (cover[:4], [7, 2**40])
    assert known_cover(cache, log._replace(version=b"u" * 32)) is None
    assert known_cover(cache, log._replace(name=b"m" * 32)) is None
    (path,) = covers(tmp_path / "zones")
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.warns(
            UserWarning, match=f"^zone map not used, its .*: {path}; .* a deep verify writes the map anew"
        ):
            assert known_cover(cache, log) is None
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.warns(UserWarning, match="^zone map not used, its file "):
            assert known_cover(cache, log) is None
