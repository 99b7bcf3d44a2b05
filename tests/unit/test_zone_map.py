"""Zone maps: nothing that can match is ever outside the chosen stretches; a cache file of any content is harmless."""

from __future__ import annotations

import os
import random
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqindex.zones.cache import FileZones, ZoneCache, identity_of
from mqindex.zones.zone_map import NO_TIME, ZONE_BYTES, Entries, ZoneGatherer, ZoneMap, _pairs, least_of

BASE = 7 * ZONE_BYTES


def entries(rows: list[tuple[int, int, int]], at: int) -> Entries:
    """Messages of (size, time, topic), one after the other."""
    sizes, times, topics = (
        np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else ([], [], []))
    )
    stops = at + np.cumsum(sizes)
    starts = stops - sizes
    return Entries(
        starts, stops, np.ones(len(rows), np.int64), least_of(times), times, starts, starts, topics.astype(np.int32)
    )


ROW = st.tuples(
    st.sampled_from([100, 5000, ZONE_BYTES // 3, 2 * ZONE_BYTES]),
    st.one_of(st.integers(-50, 50), st.just(NO_TIME)),
    st.integers(-20, 20),
)


@given(st.lists(ROW, max_size=60), st.integers(0, 60), st.integers(-60, 60), st.integers(-60, 60), st.integers(-20, 20))
def test_what_can_match_is_in_a_stretch(
    rows: list[tuple[int, int, int]], cut: int, begin: int, end: int, topic: int
) -> None:
    first = entries(rows[:cut], BASE)
    at = BASE + sum(size for size, _, _ in rows[:cut])
    gatherer = ZoneGatherer(ZoneMap.empty(BASE), base=BASE)
    gatherer.add(first)
    gatherer = ZoneGatherer(gatherer.map(at), base=BASE)  # it goes on another day
    second = entries(rows[cut:], at)
    gatherer.add(second)
    zones = gatherer.map(at + sum(size for size, _, _ in rows[cut:]))
    assert zones.zones["rows"].sum() == len(rows)
    chosen = zones.in_period(begin, end) & zones.with_topics(np.array([topic], np.int32))
    stretches = zones.stretches(chosen)
    starts = [*first.starts.tolist(), *second.starts.tolist()]
    for (size, time, of), start in zip(rows, starts, strict=True):
        inside = any(low <= start and start + size <= high for low, high in stretches)
        if time != NO_TIME and begin <= time < end and of == topic:
            assert inside
    assert all(low in starts for low, _ in stretches)


def test_a_zone_with_many_topics_can_hold_any() -> None:
    gatherer = ZoneGatherer(ZoneMap.empty(0), base=0)
    gatherer.add(entries([(100, 0, number) for number in range(17)], 0))
    gatherer.add(entries([(ZONE_BYTES, 0, 1)], 1700))
    gatherer.add(entries([(100, 0, 2)], 1700 + ZONE_BYTES))
    zones = gatherer.map(1800 + ZONE_BYTES)
    assert zones.zones["topics"].tolist() == [0, 1]
    assert zones.with_topics(np.array([999], np.int32)).tolist() == [True, False]
    assert zones.with_topics(np.array([2], np.int32)).tolist() == [True, True]


def a_map() -> ZoneMap:
    gatherer = ZoneGatherer(ZoneMap.empty(0), base=0)
    gatherer.add(entries([(ZONE_BYTES, 5, 1), (100, 6, 2)], 0))
    return gatherer.map(ZONE_BYTES + 100)


def test_a_map_is_kept_and_found_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x")
    cache, identity = ZoneCache.of(tmp_path / "cache"), identity_of(str(log))
    assert cache.load(identity, 0) is None
    cache.store(FileZones(identity, 0, a_map(), bytes(32)))
    zones, same, mark = cache.load(identity, 0) or pytest.fail("nothing")
    assert (zones.zones == a_map().zones).all() and same and mark == bytes(32) and zones.end == ZONE_BYTES + 100
    assert zones.topics.tolist() == [1, 2]
    with pytest.warns(UserWarning, match=r"^zone map not used, its zones are not those of a log file: "):
        assert cache.load(identity, 1) is None
    log.write_bytes(b"xy")
    assert (cache.load(identity_of(str(log)), 0) or pytest.fail("nothing"))[1] is False
    assert os.listdir(tmp_path / "cache") == [identity.name.hex()]


@given(st.data())
def test_any_bytes_in_a_cache_are_no_map(tmp_path_factory: Any, data: st.DataObject) -> None:
    directory = tmp_path_factory.mktemp("cache")
    (directory / "log").write_bytes(b"x")
    cache, identity = ZoneCache.of(directory / "cache"), identity_of(str(directory / "log"))
    cache.store(FileZones(identity, 0, a_map(), bytes(32)))
    path = directory / "cache" / identity.name.hex()
    good = path.read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    bad = data.draw(st.sampled_from([good[:at], good + b"x", good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :], b""]))
    path.write_bytes(bad)
    with pytest.warns(UserWarning, match=rf"^zone map not used, its .*: {path}; the log is read instead, the answer"):
        assert cache.load(identity, 0) is None


@pytest.mark.parametrize(
    ("at", "why"),
    [(0, "its file is of another format"), (90, "its file has a wrong length"), (-1, "its file has a wrong checksum")],
)
def test_what_is_wrong_with_a_map_is_said(at: int, why: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x")
    cache, identity = ZoneCache.of(tmp_path / "cache"), identity_of(str(tmp_path / "log"))
    cache.store(FileZones(identity, 0, a_map(), bytes(32)))
    path = tmp_path / "cache" / identity.name.hex()
    bad = bytearray(path.read_bytes())
    bad[at] ^= 1
    if at > 0:  # a wrong length that the checksum is right for
        bad[-4:] = zlib.crc32(bad[:-4]).to_bytes(4, "little")
    path.write_bytes(bad)
    with pytest.warns(UserWarning, match=f"^zone map not used, {why}: "):
        assert cache.load(identity, 0) is None


def test_a_cache_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x")
    cache, identity = ZoneCache.of(tmp_path / "cache"), identity_of(str(tmp_path / "log"))
    cache.store(FileZones(identity, 0, a_map(), bytes(32)))
    os.chmod(tmp_path / "cache" / identity.name.hex(), 0o666)
    with pytest.warns(UserWarning, match=r"^zone map not used, others may write its file \(mode 666\): "):
        assert cache.load(identity, 0) is None


def test_a_file_in_a_cache_that_is_longer_than_any_map_is_not_read(tmp_path: Path) -> None:
    """A GiB of it was, for each log file that a scan came to."""
    (tmp_path / "log").write_bytes(b"x")
    cache, identity = ZoneCache.of(tmp_path / "cache"), identity_of(str(tmp_path / "log"))
    cache.store(FileZones(identity, 0, a_map(), bytes(32)))
    os.truncate(tmp_path / "cache" / identity.name.hex(), 8 << 30)
    tracemalloc.start()
    try:
        with pytest.warns(UserWarning, match=r"^zone map not used, its file is longer than any map: "):
            assert cache.load(identity, 0) is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_cache_that_cannot_be_written_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_bytes(b"")
    cache, identity = ZoneCache.of(tmp_path / "cache"), identity_of(str(tmp_path / "cache"))
    cache.store(FileZones(identity, 0, a_map(), bytes(32)))
    assert cache.load(identity, 0) is None
    ZoneCache.of(False).store(FileZones(identity, 0, a_map(), bytes(32)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    ZoneCache.of(None).store(FileZones(identity, 0, a_map(), bytes(32)))
    assert (tmp_path / "home" / "mqindex" / "zones" / identity.name.hex()).is_file()
    with pytest.raises(TypeError, match="cache: expected a directory, None or False"):
        ZoneCache.of(True)


@pytest.mark.parametrize("topics", [1, 2, 16, 17, 256, 257, 1000])
@pytest.mark.parametrize("spread", [1, 1 << 16], ids=["apart in 16 bits", "equal in 16 bits"])
def test_topics_are_told_apart_as_a_sort_does(topics: int, spread: int, rng: random.Random) -> None:
    """A table of 16 bits has them where they are few and apart."""
    names = [(number * spread) % 2**32 for number in rng.sample(range(2**16), topics)]
    rows = sorted((rng.randrange(40), rng.choice(names)) for _ in range(3000))
    zones, found = _pairs(np.array([zone for zone, _ in rows]), np.array([name for _, name in rows], "<u4").view("<i4"))
    assert list(zip(zones.tolist(), found.tolist(), strict=True)) == sorted(set(rows))
    none = _pairs(np.empty(0, np.int64), np.empty(0, np.int32))
    assert [len(each) for each in none] == [0, 0]
