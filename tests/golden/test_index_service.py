"""`IndexService` against every query that a broker recorded, and against its files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import IndexService
from tests.reference.commit_log import index_strings, scan_log
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.index_service import IndexService as TwinService
from tests.reference.rebuild import log_files
from tests.support.golden import KILLED_CASES, STORE_CASES, StoreCase, case
from tests.support.tree import index_bytes, index_paths

pytestmark = pytest.mark.filterwarnings("ignore:begin .* is after end:UserWarning")  # the broker was asked so too

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)


@each_store
@pytest.mark.parametrize("given", [False, True], ids=["geometry inferred", "geometry given"])
def test_queries_are_answered_as_the_broker_did(name: str, given: bool, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    slots, entries = chosen.geometry if given else (None, None)
    with IndexService.open(root / "index", hash_slot_num=slots, index_num=entries) as service:
        check_queries(service, chosen.truth)


@pytest.mark.parametrize("name", KILLED_CASES)
def test_queries_are_answered_after_a_crash_too(name: str, tmp_path: Path) -> None:
    with IndexService.open(case(name).unpack_after(tmp_path) / "index") as service:
        check_queries(service, case(name).truth_after)


@each_store
def test_bulk_queries_are_the_single_ones(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    windows: dict[Any, list[str]] = defaultdict(list)
    for query in chosen.truth["queryOffset"]:
        windows[query["topic"], query["maxNum"], query["begin"], query["end"]].append(query["key"])
    with IndexService.open(root / "index") as service:
        for (topic, most, begin, end), keys in windows.items():
            window = {"max_num": most, "begin": begin, "end": end}
            hits = service.query_offsets(topic, keys, **window)
            single = [service.query_offset(topic, key, **window).phy_offsets.tolist() for key in keys]
            assert hits.to_pylist() == single
            whole = service.query_offsets(None, [f"{topic}#{key}" for key in keys], **window)
            assert whole.to_pylist() == single


@each_store
def test_building_from_the_strings_of_the_log_gives_the_broker_s_files(
    name: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store(name)
    slots, entries = chosen.geometry
    puts = strings_of(root, tags=chosen.truth["tagsIndexed"])
    with IndexService.open(tmp_path / "new", hash_slot_num=slots, index_num=entries, writable=True) as service:
        for first in range(0, len(puts), 1000):
            some = puts[first : first + 1000]
            assert service.build_index(None, *map(list, zip(*some, strict=True))) == len(some)
    names = [path.name for path in (tmp_path / "new").iterdir()]
    assert all(len(name) == 17 and name.isdigit() for name in names)
    assert [(tmp_path / "new" / name).read_bytes() for name in sorted(names)] == index_bytes(root)


@each_store
def test_expired_files_are_those_that_the_broker_would_delete(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    for share in (0.0, 0.4, 0.8, 2.0):
        low = int(chosen.truth["maxPhyOffset"] * share)
        twin = TwinService(*chosen.geometry, [TwinFile.load(data, *chosen.geometry) for data in index_bytes(root)])
        paths = index_paths(root)
        with IndexService.open(root / "index", writable=True) as service:
            deleted = twin.delete_expired(low)
            assert list(map(Path, service.delete_expired_file(low))) == paths[:deleted]
            assert index_paths(root) == paths[deleted:]
            assert len(service.files) == len(twin.files)


def check_queries(service: IndexService, truth: dict[str, Any]) -> None:
    cap = truth["config"]["maxMsgsNumBatch"]
    for query in truth["queryOffset"]:
        most = min(query["maxNum"], cap)
        window = {"max_num": most, "begin": query["begin"], "end": query["end"]}
        answer = service.query_offset(query["topic"], query["key"], **window)
        last = answer.index_last_update_timestamp, answer.index_last_update_phy_offset
        assert (answer.phy_offsets.tolist(), last) == (query["phy"], (query["lastTs"], query["lastPhy"]))
    for asked in truth["selectPhyOffset"]:
        window = {"max_num": asked["maxNum"], "begin": asked["begin"], "end": asked["end"]}
        assert service.files[asked["file"]].select_phy_offset(asked["key"], **window).tolist() == asked["phy"]
    for asked in truth["isTimeMatched"]:
        assert service.files[asked["file"]].is_time_matched(asked["begin"], asked["end"]) == asked["matched"]
    names = ("beginTimestamp", "endTimestamp", "beginPhyOffset", "endPhyOffset", "hashSlotCount", "indexCount")
    for file, said in zip(service.files, truth["indexFiles"], strict=True):
        assert tuple(file.header) == tuple(said[name] for name in names)
        assert file.is_write_full() == said["full"]


def strings_of(root: Path, *, tags: bool) -> list[tuple[str, int, int]]:
    return [
        (string, message.phy_offset, message.store_timestamp)
        for message in scan_log(log_files(root / "commitlog"))[0]
        for string in index_strings(message, tags=tags) or []
    ]
