"""Stores elsewhere are read as those here: each answer is the same, but for the URL in place of the path."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex import rocketmq
from mqindex.errors import BadMagicError, FileStateError, FormatError, ReadOnlyFileError
from mqindex.files.places import remote_file
from mqindex.report import Report
from mqindex.rocketmq import (
    BatchConsumeQueue,
    Checkpoint,
    CommitLog,
    ConsumeQueue,
    ConsumeQueueExt,
    ConsumeQueueTable,
    MessageStore,
    optimize,
    repair,
)
from mqindex.rocketmq.log import frame_windows
from mqindex.rocketmq.queue import queue_files
from tests.support.elsewhere import WAYS, Ways, memory
from tests.support.golden import KILLED_CASES, STORE_CASES, StoreCase
from tests.support.nightly import some
from tests.support.tree import contents

__all__ = ["memory"]  # a fixture

Pair = tuple[Path, str]
GoldenStore = Callable[[str], tuple[StoreCase, Path]]
Answers = dict[str, Any]
FIRST = 1604123001645  # ms


SIZES = ["whole", "tiny"]  # windows as they are, or as small as pages


def narrow(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if size == "tiny":
        monkeypatch.setattr(remote_file, "_BLOCK", 4096)
        monkeypatch.setattr(remote_file.RemoteFile, "step", 4096)
        monkeypatch.setattr(frame_windows, "_FIRST", 4096)
        monkeypatch.setattr(frame_windows, "MARGIN", 64)
        monkeypatch.setattr(queue_files, "_NEAR", 3)


@pytest.fixture(params=SIZES)
def windows(request: pytest.FixtureRequest, memory: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(request.param, monkeypatch)


def uploaded(root: Path) -> Pair:
    """A store here without its empty directories, which no object store has, and its copy elsewhere."""
    for directory, _, _ in os.walk(root, topdown=False):
        with suppress(OSError):
            Path(directory).rmdir()
    return root, WAYS.upload(root)


# Every store through tiny windows; one of them as they are, which the nightly run asks of every store.
READ = some(itertools.product(STORE_CASES, SIZES), lambda name, size: size == "tiny" or name == "basic-493")


@pytest.fixture(params=[pytest.param(one.values, id="-".join(one.values), marks=one.marks) for one in READ])
def golden(
    request: pytest.FixtureRequest, memory: Ways, monkeypatch: pytest.MonkeyPatch, golden_store: GoldenStore
) -> tuple[StoreCase, Pair]:
    name, size = request.param
    narrow(size, monkeypatch)
    chosen, root = golden_store(name)
    return chosen, uploaded(root)


def plain(value: Any) -> Any:
    """Columns as lists, whatever batches they came in."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if hasattr(value, "offsets") else value


def joined(batches: Iterator[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for batch in batches:
        for name, column in batch.items():
            found.setdefault(name, []).extend(plain(column))
    return found


def same(here: object, there: object, pair: Pair) -> None:
    root, url = pair
    assert repr(there).replace(url, str(root)) == repr(here)


def log_answers(root: str | Path) -> Answers:
    with CommitLog.open(f"{root}/commitlog") as log:
        messages = joined(log.scan(columns=["phy_offset", "size", "topic", "keys", "body", "properties"]))
        begin, end = log.min_phy_offset, log.max_phy_offset
        some = messages["phy_offset"][:: max(len(messages["phy_offset"]) // 7, 1)]
        return {
            "messages": messages,
            "from within": joined(log.scan((begin + end) // 2, end - 1, columns=["phy_offset"])),
            "bodies": joined(log.scan(columns=["phy_offset"], check_crc=True)),
            "extent": (begin, end, log.damage, log.files, log.skipped),
            "some": [log.get_message(at) for at in some],
        }


def test_commit_log(golden: tuple[StoreCase, Pair]) -> None:
    pair = golden[1]
    same(log_answers(pair[0]), log_answers(pair[1]), pair)


def queue_answers(queue: ConsumeQueue, log: CommitLog) -> Answers:
    times = [FIRST, *(int(log.get_message(at).store_timestamp) for at in queue.units()["phy_offset"][:3].tolist())]
    return {
        "units": joined(iter([queue.units(), queue.units(1, 3)])),
        "selected": queue.select(["TagA"]).tolist(),
        "bounds": (queue.bounds(), queue.files, queue.skipped, queue.file_size),
        "times": [
            queue.get_offset_in_queue_by_time(ms, log, boundary=way) for ms in times for way in ("lower", "upper")
        ],
        "corrected": queue.correct_min_offset(log.min_phy_offset + 1),
    }


def queues_of(root: str | Path) -> Answers:
    with CommitLog.open(f"{root}/commitlog") as log, ConsumeQueueTable.open(f"{root}/consumequeue") as table:
        found: Answers = {"all": (list(table._bounds(table.queues())), table.skipped)}
        for topic, queue_id in table.queues():
            with ConsumeQueue.open(f"{root}/consumequeue/{topic}/{queue_id}") as queue:
                found[f"{topic} {queue_id}"] = queue_answers(queue, log)
        return found


def test_consume_queues(golden: tuple[StoreCase, Pair]) -> None:
    pair = golden[1]
    if (pair[0] / "consumequeue").exists():
        same(queues_of(pair[0]), queues_of(pair[1]), pair)


def others_of(root: Path, at: str | Path) -> Answers:
    found: Answers = {"checkpoint": Checkpoint.read(f"{at}/checkpoint")}
    for path in sorted(root.glob("batchconsumequeue/*/*")):
        with BatchConsumeQueue.open(f"{at}/{path.relative_to(root)}") as queue:
            units = joined(iter([queue.units(), queue.units(1, 3)]))
            times = [queue.get_offset_in_queue_by_time(ms, boundary="upper") for ms in (0, FIRST, 2**50)]
            found[str(path)] = units, queue.files, queue.max_offset_in_queue, queue.get(1), times
    for path in sorted(root.glob("consumequeue_ext/*/*")):
        with ConsumeQueueExt.open(f"{at}/{path.relative_to(root)}") as ext:
            units = joined(iter([ext.units()]))
            found[str(path)] = units, [ext.get(at) for at in units["address"]], ext._tags_codes(units["address"])
    return found


def test_batch_queues_extensions_and_checkpoint(golden: tuple[StoreCase, Pair]) -> None:
    root, url = golden[1]
    same(others_of(root, root), others_of(root, url), golden[1])


def store_answers(root: str | Path, geometry: tuple[int, int]) -> Answers:
    with MessageStore.open(root, hash_slot_num=geometry[0], index_num=geometry[1]) as store:
        found: Answers = {
            "queues": store.queues,
            "consumed": (store.consumer_offsets, store.consumer_offsets.lag, store.delay_offsets),
            "topics": store.topics,
            "checkpoint": store.checkpoint,
        }
        for name in store.queues:
            found[f"one {name}"] = store.get_message(*name, 0, max_msg_nums=5, tags="TagA || TagB")
            for exact in (True, False):
                *said, many = store.get_messages(*name, 0, max_msg_nums=100, exact=exact)
                found[f"{exact} {name}"] = said, joined(iter([many]))
            places = store.get_messages(*name, 1, max_msg_nums=9, exact=False, columns=["phy_offset", "size"])
            found[f"places {name}"] = joined(iter([places.messages]))
        for message in store.query_message("TopicTest", "user-3").messages:
            found[f"id {message.msg_id}"] = store.view_message(message.msg_id)
        first = joined(store.commit_log.scan(columns=["phy_offset", "topic", "keys"]))
        for at, topic, keys in list(zip(first["phy_offset"], first["topic"], first["keys"], strict=True))[:40]:
            found[f"look {at}"] = store.look_message_by_offset(at), store.look_message_by_offset(at + 1)
            for key in (keys or "").split()[:1]:
                found[f"key {key}"] = [store.query_message(topic, key, exact=exact) for exact in (True, False)]
        return found


def test_message_store(golden: tuple[StoreCase, Pair]) -> None:
    chosen, pair = golden
    same(store_answers(pair[0], chosen.geometry), store_answers(pair[1], chosen.geometry), pair)


def test_a_log_of_several_places(memory: Ways, golden_store: GoldenStore, tmp_path: Path) -> None:
    _, root = golden_store("basic-493")
    files = sorted((root / "commitlog").iterdir())
    for name, half in (("even", files[::2]), ("odd", files[1::2])):
        (tmp_path / name).mkdir()
        for path in half:
            (tmp_path / name / path.name).write_bytes(path.read_bytes())
    places = [memory.upload(tmp_path / "even"), str(tmp_path / "odd")]
    columns = ["phy_offset", "keys", "body"]
    with CommitLog.open(root / "commitlog") as whole, CommitLog.open(places) as parted:
        assert joined(parted.scan(columns=columns)) == joined(whole.scan(columns=columns))
        assert len(parted.files) == len(files)
    here, there = rocketmq.verify(root), rocketmq.verify(root, commitlog=places)
    kinds = [one.kind for one in here.findings]
    assert [one.kind for one in there.findings] == ["files-elsewhere", *kinds]
    assert there.messages == here.messages


# ---- verify and report


def said_elsewhere(report: Report) -> Report:
    """What the same report of files here says."""
    kinds = [one.kind for one in report.findings]
    assert kinds.count("files-elsewhere") == 1
    assert report.start is not None
    assert report.start.lock == "elsewhere"
    findings = [one for one in report.findings if one.kind != "files-elsewhere"]
    return replace(report, findings=findings, start=replace(report.start, lock="none"), seconds=0)


def same_reports(here: Report, there: Report, pair: Pair) -> None:
    assert here.start is not None
    here = replace(here, start=replace(here.start, lock="none", lock_pid=None, lock_holder=None), seconds=0)
    same(here.to_dict(), said_elsewhere(there).to_dict(), pair)


@pytest.mark.parametrize("deep", [False, True])
def test_verify(golden: tuple[StoreCase, Pair], deep: bool) -> None:
    pair = golden[1]
    same_reports(rocketmq.verify(pair[0], deep=deep), rocketmq.verify(pair[1], deep=deep), pair)


def test_report(golden: tuple[StoreCase, Pair]) -> None:
    pair = golden[1]
    here, there = rocketmq.report(pair[0]), rocketmq.report(pair[1])
    same_reports(here.verify, there.verify, pair)
    said, said_there = here.to_dict(), there.to_dict()
    for one in (said, said_there):
        del one["verify"], one["read"], one["site"]["newest_age"]  # it grows meanwhile
    of_machine = ("host", "disk_free", "days_left")
    assert [said_there["site"].pop(name) for name in of_machine] == [None] * 3  # they are on no disk of this one
    for name in of_machine:
        del said["site"][name]
    same(said, said_there, pair)


@pytest.mark.parametrize("name", KILLED_CASES)
def test_verify_of_what_a_broker_opened_again(windows: None, name: str, tmp_path: Path) -> None:
    pair = uploaded(StoreCase(name).unpack_after(tmp_path))
    same_reports(rocketmq.verify(pair[0]), rocketmq.verify(pair[1]), pair)


def damage_log(root: Path) -> None:
    path = sorted((root / "commitlog").iterdir())[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)


def damage_queue(root: Path) -> None:
    path = next(iter(sorted(root.glob("consumequeue/*/*/*"))))
    data = bytearray(path.read_bytes())
    data[25] ^= 0xFF
    path.write_bytes(data)


def damage_index(root: Path) -> None:
    path = sorted((root / "index").iterdir())[0]
    data = bytearray(path.read_bytes())
    data[40 + 3] ^= 0x55
    path.write_bytes(data)


def drop_queue(root: Path) -> None:
    for path in next(iter(sorted(root.glob("consumequeue/*/*")))).iterdir():
        path.unlink()


def drop_index(root: Path) -> None:
    sorted((root / "index").iterdir())[0].unlink()


def cut_log(root: Path) -> None:
    path = sorted((root / "commitlog").iterdir())[-1]
    path.write_bytes(path.read_bytes()[:5000])


def drop_log(root: Path) -> None:
    for path in (root / "commitlog").iterdir():
        path.unlink()


DAMAGE = [damage_log, damage_queue, damage_index, drop_queue, drop_index, cut_log, drop_log]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda one: one.__name__)
def test_verify_of_damage(windows: None, damage: Callable[[Path], None], golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-493")
    damage(root)
    pair = uploaded(root)
    for deep in (False, True):
        same_reports(rocketmq.verify(pair[0], deep=deep), rocketmq.verify(pair[1], deep=deep), pair)


@pytest.mark.parametrize("broken", ["nothing", ".fence", ".filter"])
def test_verify_of_optimized_files(windows: None, broken: str, golden_store: GoldenStore, tmp_path: Path) -> None:
    chosen, root = golden_store("basic-493")
    slots, entries = chosen.geometry
    optimize(root, root, overwrite=True, hash_slot_num=slots, index_num=entries)
    for path in (root / "mqindex-index").iterdir():
        if path.name.endswith(broken):
            data = bytearray(path.read_bytes())
            data[-3] ^= 0xFF
            path.write_bytes(data)
    pair = uploaded(root)
    here = rocketmq.verify(pair[0])
    assert bool(here.findings) == (broken != "nothing")
    same_reports(here, rocketmq.verify(pair[1]), pair)


# ---- what is refused


def test_nothing_is_written_elsewhere(memory: Ways, golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-493")
    url = memory.upload(root)
    topic = next((root / "consumequeue").iterdir()).name
    before = contents(root)
    for call in (
        lambda: CommitLog.open(f"{url}/commitlog", writable=True),
        lambda: ConsumeQueue.open(f"{url}/consumequeue/{topic}/0", writable=True),
        lambda: ConsumeQueueTable.open(f"{url}/consumequeue", writable=True),
        lambda: MessageStore.open(url, writable=True),
        lambda: repair(url),
    ):
        with pytest.raises(ReadOnlyFileError, match="copy it here, or mount its place"):
            call()
    assert contents(root) == before


def test_the_time_of_a_file_is_not_known_elsewhere(memory: Ways, golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-493")
    url = memory.upload(root)
    with CommitLog.open(f"{url}/commitlog") as log, ConsumeQueueTable.open(f"{url}/consumequeue") as table:
        queue = next(one for one in map(table.__getitem__, table.queues()) if len(one.files) > 1)
        with pytest.raises(FileStateError, match="its time of modification, which is not known elsewhere"):
            queue.get_offset_in_queue_by_time(FIRST, log)


def test_what_is_another_thing_or_nothing_is_said(memory: Ways, golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-493")
    url = memory.upload(root)
    for opened in (CommitLog.open, ConsumeQueue.open, ConsumeQueueTable.open, MessageStore.open):
        with pytest.raises(FileNotFoundError) as gone:
            opened(f"{url}/nothing")
        assert str(gone.value.filename).startswith(f"{url}/nothing")
    for opened in (CommitLog.open, ConsumeQueue.open, ConsumeQueueTable.open):
        with pytest.raises(BadMagicError, match="got a store's root"):
            opened(url)
    with CommitLog.open(f"{url}/commitlog") as log, pytest.raises(FormatError, match="not in the log"):
        log.get_message(1 << 40)
