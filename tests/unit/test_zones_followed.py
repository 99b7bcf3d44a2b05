"""`follow` extends the zone maps of a log as it grows; what a scan answers with them is what it answers without."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqindex import rocketmq
from mqindex.engines import LocalEngine
from mqindex.rocketmq.dispatch import followed_zones, reput
from mqindex.rocketmq.dispatch.follow import FollowReport, follow
from mqindex.zones.cache import identity_of
from tests.support.golden import case
from tests.support.growing_store import OPTIONS, GrowingStore, Turns
from tests.support.log_writer import FIRST_TIME, LogMessage
from tests.unit.test_zones_of_passes import OTHERS, WHOLE, kept, of_scan

TURNS = 200


def followed(store: Path, tmp_path: Path, cache: Path | bool, *, out: str = "out", **options: Any) -> FollowReport:
    return follow(store, tmp_path / out, stop=Turns(TURNS), cache=cache, engine=LocalEngine(1), **options)


def asked(store: Path, cache: Path | bool, **bounds: Any) -> list[int]:
    with rocketmq.scan(store, columns=["phy_offset"], cache=cache, **bounds) as found:
        return [at for batch in found for at in batch["phy_offset"].tolist()]


def require_answers(store: Path, followed: Path, seed: int) -> None:
    """Some periods and topics give the same with the maps and without any; the scans add nothing to the cache."""
    draw, cache = random.Random(seed), followed.with_name("copy")
    if followed.is_dir():
        shutil.copytree(followed, cache, dirs_exist_ok=True)
    with rocketmq.scan(store, columns=["store_timestamp", "topic"], cache=False) as found:
        rows = [
            row for batch in found for row in zip(batch["store_timestamp"], batch["topic"].to_pylist(), strict=True)
        ]
    for _ in range(8):
        (begin, topic), (end, _) = draw.choice(rows), draw.choice(rows)
        for bounds in ({"begin": begin, "end": end}, {"begin": end}, {"end": begin, "topic": topic}, {"topic": topic}):
            assert asked(store, cache, **bounds) == asked(store, False, **bounds), bounds


def writer_of(root: Path) -> GrowingStore:
    """A store whose messages all have a unit."""
    store = GrowingStore(root)
    message = store.message

    def with_unit() -> LogMessage:
        while (made := message()).sys_flag:
            pass
        return made

    store.message = with_unit  # type: ignore[method-assign]
    return store


@pytest.mark.parametrize("name", sorted(WHOLE | OTHERS))
def test_the_maps_are_those_of_a_scan(name: str, tmp_path: Path) -> None:
    store = case(name).unpack(tmp_path)
    followed(store, tmp_path, tmp_path / "followed")
    require_answers(store, tmp_path / "followed", 1)
    followed(store, tmp_path, tmp_path / "untouched", out="again")
    found, expected = kept(tmp_path / "untouched"), of_scan(store, tmp_path / "scanned")
    assert found == expected != {}


@pytest.mark.parametrize("seed", range(4))
def test_they_grow_from_run_to_run(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_zones, "_MANY", 1 + 3 * seed)
    store, draw = writer_of(tmp_path / "store"), random.Random(seed)
    for _ in range(6):
        store.write(draw.randrange(5, 12))
        followed(store.root, tmp_path, tmp_path / "followed", **OPTIONS)
        require_answers(store.root, tmp_path / "followed", seed)
    log = store.root / "commitlog"
    logs = {identity_of(str(path)).name.hex() for path in log.iterdir()}
    assert kept(tmp_path / "followed").keys() == logs and len(logs) > 2
    assert of_scan(store.root, tmp_path / "followed") == of_scan(store.root, tmp_path / "scanned")


def test_a_run_that_continues_reads_no_log_again(tmp_path: Path) -> None:
    store = writer_of(tmp_path / "store")
    for _ in range(3):
        store.write(2)
        followed(store.root, tmp_path, tmp_path / "cache", **OPTIONS)
    with rocketmq.scan(store.root, end=FIRST_TIME - 1, columns=["phy_offset"], cache=tmp_path / "cache") as found:
        assert not list(found) and found.bytes_read == 0


def test_messages_without_a_unit_are_in_the_maps_too(tmp_path: Path) -> None:
    store, cache = GrowingStore(tmp_path / "store"), tmp_path / "cache"
    for _ in range(6):
        store.write(5)
        followed(store.root, tmp_path, cache, **OPTIONS)
        require_answers(store.root, cache, 3)
    logs = {identity_of(str(path)).name.hex() for path in (store.root / "commitlog").iterdir()}
    assert kept(cache).keys() == logs and len(logs) > 1
    shutil.copytree(cache, tmp_path / "followed")
    assert of_scan(store.root, tmp_path / "followed") == of_scan(store.root, tmp_path / "scanned")
    followed(store.root, tmp_path, tmp_path / "new", out="again", **OPTIONS)
    with rocketmq.scan(store.root, end=FIRST_TIME - 1, columns=["phy_offset"], cache=tmp_path / "new") as some:
        assert not list(some) and some.bytes_read == 0


def test_a_full_file_whose_last_message_has_no_unit_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its map was kept before that message came, and fitted the file no more."""
    monkeypatch.setattr(followed_zones, "_KEPT_EVERY", 0.0)
    for name in ("_FIRST_REPORT", "_REPORT_EVERY"):
        monkeypatch.setattr(reput, name, 0.0)
    store, cache = GrowingStore(tmp_path / "store"), tmp_path / "cache"
    store.write(3)
    log, turns = store.root / "commitlog", Turns(TURNS)

    def go_on(now: object) -> None:
        if len(os.listdir(log)) == 1 and kept(cache):
            store.number = 3  # prepared: it has no unit
            store.writer.write(replace(store.message(), body=bytes(1000)))
            store.writer.write(replace(store.message(), body=bytes(1000)))

    follow(store.root, tmp_path / "out", stop=turns, cache=cache, engine=LocalEngine(1), progress=go_on, **OPTIONS)
    assert len(os.listdir(log)) == 2
    with rocketmq.scan(store.root, end=FIRST_TIME - 1, columns=["phy_offset"], cache=cache) as some:
        assert not list(some) and some.bytes_read == 0


def test_a_log_that_is_written_anew_has_no_map_of_before(tmp_path: Path) -> None:
    store = writer_of(tmp_path / "store")
    store.write(5)
    followed(store.root, tmp_path, tmp_path / "cache", **OPTIONS)
    (log,) = (store.root / "commitlog").iterdir()
    log.unlink()
    other = writer_of(store.root)
    other.number = 40
    other.write(6)
    require_answers(store.root, tmp_path / "cache", 5)
    followed(store.root, tmp_path, tmp_path / "cache", out="new", **OPTIONS)
    require_answers(store.root, tmp_path / "cache", 6)


def test_a_damaged_file_has_none(tmp_path: Path) -> None:
    store = case("exactfit-493").unpack(tmp_path)
    log = sorted((store / "commitlog").iterdir())[1]
    with open(log, "r+b") as file:
        file.seek(4)
        file.write(bytes(4))
    followed(store, tmp_path, tmp_path / "followed")
    assert kept(tmp_path / "followed") == of_scan(store, tmp_path / "scanned") != {}


@pytest.mark.parametrize("what", ["unwritable", "hostile", "fails"])
def test_no_cache_is_an_error_of_follow(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, cache = writer_of(tmp_path / "store"), tmp_path / "cache"
    store.write(6)
    if what == "unwritable":
        cache.write_bytes(b"a file")
    elif what == "hostile":
        cache.mkdir()
        for path in (store.root / "commitlog").iterdir():
            (cache / identity_of(str(path)).name.hex()).write_bytes(os.urandom(200))
    else:

        def fail(*arguments: Any) -> None:
            raise OSError("no mark")

        monkeypatch.setattr(followed_zones, "mark_before", fail)
    said = pytest.warns(UserWarning, match="zone map not used") if what == "hostile" else nullcontext()
    with said:
        assert followed(store.root, tmp_path, cache, **OPTIONS).messages == 6
        require_answers(store.root, cache, 7)


def test_a_cache_in_what_is_read_or_written_is_refused(tmp_path: Path) -> None:
    store = writer_of(tmp_path / "store")
    store.write(1)
    for place in (store.root / "commitlog" / "x", store.root, tmp_path / "out" / "index"):
        with pytest.raises(ValueError, match=r"^cache: expected a directory outside of .*, where a broker reads, got"):
            followed(store.root, tmp_path, place)


def test_it_is_kept_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, cache = writer_of(tmp_path / "store"), tmp_path / "cache"
    store.write(4)
    monkeypatch.setattr(followed_zones, "_KEPT_EVERY", 0.0)
    seen = list[int]()
    follow(
        store.root, tmp_path / "out", stop=Turns(TURNS), cache=cache, engine=LocalEngine(1),
        progress=lambda now: seen.append(len(kept(cache))), **OPTIONS,
    )  # fmt: skip
    assert max(seen) == 1
