"""Batch queues: compared with the log, built from it, and repaired, as a unit at a time would be."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.report import Report
from mqindex.rocketmq import BatchConsumeQueue, MessageStore, NewMessage, rebuild, repair, undo_repair, verify
from mqindex.rocketmq.serving import store_writer
from tests.reference.batch_queue import BATCH_UNIT, build_batch_queues
from tests.reference.commit_log import scan_log
from tests.reference.dispatch import Rules
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter
from tests.support.tree import contents

INNER_BATCH = 0x80
FILE_SIZE = 460  # 10 units
CONFIG = {
    "maxHashSlotNum": 5, "maxIndexNum": 64, "mappedFileSizeConsumeQueue": 400, "mapperFileSizeBatchConsumeQueue": 460
}  # fmt: skip
ONE = LocalEngine(1)
TOPICS = {"Batched"}


def batch(base: int, count: int, more: Mapping[str, str] = {}, *, queue_id: int = 0) -> LogMessage:
    """A record of `count` messages, the first of which has the queue offset `base`."""
    said = {"UNIQ_KEY": f"U{queue_id}-{base}", "INNER_NUM": str(count), "INNER_BASE": str(base), **more}
    flag = INNER_BATCH | 0x40
    return LogMessage("Batched", queue_id=queue_id, queue_offset=base, properties=list(said.items()), sys_flag=flag)


def single(offset: int, *, queue_id: int = 0, topic: str = "Batched") -> LogMessage:
    return LogMessage(topic, queue_id=queue_id, queue_offset=offset, tags="TagS", uniq_key=f"S{offset}")


def mixed(count: int = 90) -> list[LogMessage]:
    """Two batch queues and an ordinary one, in turn."""
    chosen, ends, messages = random.Random(7), [0, 0, 0], []
    for _ in range(count):
        queue_id, many = chosen.randrange(3), chosen.randrange(1, 6)
        if queue_id == 2:
            messages.append(single(ends[2], topic="Plain", queue_id=0))
            many = 1
        elif many == 1:
            messages.append(single(ends[queue_id], queue_id=queue_id))
        else:
            messages.append(batch(ends[queue_id], many, queue_id=queue_id))
        ends[queue_id] += many
    return messages


def make_store(root: Path, messages: Iterable[LogMessage], topics: Iterable[str] = TOPICS) -> Path:
    """A log, what its broker had in topics.json, and what a rebuild makes of it, in place."""
    writer = LogWriter(root / "commitlog", mapped_file_size=4096)
    for number, message in enumerate(messages):
        writer.write(LogMessage(**{**vars(message), "store_timestamp": FIRST_TIME + number}))
    types = {**{topic: {"queue.type": "BatchCQ"} for topic in topics}, "Plain": {}}
    table = {topic: {"topicName": topic, "attributes": attributes} for topic, attributes in types.items()}
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    rebuild(root, root / "out", config=CONFIG, engine=ONE)
    for part in (root / "out").iterdir():
        part.rename(root / part.name)
    (root / "out").rmdir()
    return root


def expected(root: Path) -> dict[str, bytes]:
    """The batch queues that the log gives, by the twin."""
    files = [(int(path.name), path.read_bytes()) for path in sorted((root / "commitlog").iterdir())]
    return build_batch_queues(scan_log(files)[0], Rules([1000]), FILE_SIZE, TOPICS)


def there(root: Path) -> dict[str, bytes]:
    paths = sorted((root / "batchconsumequeue").rglob("*"))
    return {str(path.relative_to(root)): path.read_bytes() for path in paths if path.is_file()}


def checked(root: Path) -> Report:
    return verify(root, config=CONFIG, engine=ONE)


def kinds(report: Report, severity: str = "error") -> set[str]:
    return {one.kind for one in report.findings if one.severity == severity}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "store", mixed())


# ---- built


@pytest.mark.parametrize("split_size", [4096, 1 << 20])
def test_rebuild_writes_what_a_unit_at_a_time_gives(split_size: int, tmp_path: Path) -> None:
    root = make_store(tmp_path / "store", mixed(300))
    report = rebuild(root, tmp_path / "out", config=CONFIG, engine=LocalEngine(2), split_size=split_size)
    assert (report.ok, report.findings) == (True, [])
    assert there(tmp_path / "out") == expected(root)
    assert {Path(name).parts[1:3] for name in expected(root)} == {("Batched", "0"), ("Batched", "1")}
    assert contents(tmp_path / "out" / "consumequeue") == contents(root / "consumequeue")


def test_a_store_as_it_was_built_is_clean(store: Path) -> None:
    report = checked(store)
    assert (report.ok, kinds(report), kinds(report, "warning")) == (True, set(), set())
    assert report.units == 90
    assert repair(store, config=CONFIG, engine=ONE).out_files == []


def test_a_broker_of_4_x_does_not_look_at_them(store: Path) -> None:
    a_file(store, 1).unlink()
    assert kinds(verify(store, config=CONFIG, engine=ONE, broker_version="4.9.3")) == set()
    assert "missing-units" in kinds(checked(store))


def test_units_lead_to_every_message(store: Path) -> None:
    for queue_id in (0, 1):
        with BatchConsumeQueue.open(store / "batchconsumequeue" / "Batched" / str(queue_id)) as queue:
            assert queue.min_offset_in_queue == 0
            assert all(queue.get(offset) is not None for offset in range(queue.max_offset_in_queue))
            assert queue.max_offset_in_queue > 50


# ---- compared and repaired


def a_file(root: Path, number: int) -> Path:
    return sorted((root / "batchconsumequeue" / "Batched" / "0").iterdir())[number]


def patched(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


def free_place(path: Path) -> int:
    return next(at for at in range(0, FILE_SIZE, 46) if not any(path.read_bytes()[at : at + 46]))


def beyond(root: Path) -> None:
    path = a_file(root, -1)
    patched(path, free_place(path), BATCH_UNIT.pack(2**30, 100, 0, FIRST_TIME, 500, 1, -1, 0))


def foreign(root: Path) -> None:
    """In place of a unit one that no record of the queue has."""
    path = a_file(root, 1)
    (phy_offset,) = struct.unpack(">q", path.read_bytes()[46:54])
    patched(path, 46, struct.pack(">q", phy_offset + 1))


def last_two_gone(root: Path) -> None:
    path = a_file(root, -1)
    patched(path, free_place(path) - 92, bytes(92))


def with_ordinary_queue(root: Path) -> None:
    a_file(root, -1).unlink()
    shutil.rmtree(root / "consumequeue")


def only(name: str) -> Callable[[Path], object]:
    def spoil(root: Path) -> None:
        queue = a_file(root, 0).parent
        for path in queue.iterdir():
            path.unlink()
        (queue / name).write_bytes(bytes(FILE_SIZE))

    return spoil


DAMAGE: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "all gone": (lambda root: shutil.rmtree(root / "batchconsumequeue"), {"batch-queue-missing"}),
    "a queue gone": (lambda root: shutil.rmtree(a_file(root, 0).parent), {"batch-queue-missing"}),
    "first gone": (lambda root: a_file(root, 0).unlink(), {"missing-units"}),
    "second gone": (lambda root: a_file(root, 1).unlink(), {"missing-units", "queue-file-missing"}),
    "last gone": (lambda root: a_file(root, -1).unlink(), {"batch-queue-behind"}),
    "last two units gone": (last_two_gone, {"batch-queue-behind"}),
    "cut": (
        lambda root: a_file(root, 1).write_bytes(bytes(a_file(root, 1).read_bytes()[:100])),
        {"queue-size", "queue-file-missing", "missing-units"},
    ),
    "phy_offset": (foreign, {"foreign-unit", "missing-units"}),
    "size": (lambda root: patched(a_file(root, 1), 54, b"\0\0\0\1"), {"wrong-unit"}),
    "tags_code": (lambda root: patched(a_file(root, 1), 58, b"\1"), {"wrong-unit"}),
    "store_timestamp": (lambda root: patched(a_file(root, 1), 66, b"\1"), {"wrong-unit"}),
    "msg_base_offset": (lambda root: patched(a_file(root, 1), 80, b"\1"), {"wrong-unit"}),
    "batch_size": (lambda root: patched(a_file(root, 1), 82, b"\1"), {"wrong-unit"}),
    "compacted_offset": (lambda root: patched(a_file(root, 1), 84, bytes(4)), {"wrong-unit"}),
    "disorder": (lambda root: patched(a_file(root, 1), 0, a_file(root, 1).read_bytes()[46:92]), {"wrong-unit"}),
    "beyond": (beyond, {"queue-beyond-log"}),
    "stray": (lambda root: (a_file(root, 0).parent / "copy.bak").write_bytes(b"x"), {"stray-queue-file"}),
    "only a stray": (only("junk"), {"batch-queue-missing", "stray-queue-file"}),
    "only a number that is too short": (only("0" * 19), {"batch-queue-missing", "stray-queue-file"}),
    "with an ordinary queue": (with_ordinary_queue, {"batch-queue-behind", "queue-missing"}),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_and_mended(damage: str, store: Path) -> None:
    """A broker never writes the units again: it reads its log on from where the furthest of all queues ends."""
    spoil, found = DAMAGE[damage]
    before = there(store)
    others = contents(store / "consumequeue"), contents(store / "index")
    spoil(store)
    damaged = contents(store)
    report = checked(store)
    assert kinds(report) == found
    planned = repair(store, config=CONFIG, engine=ONE, dry_run=True)
    assert planned.actions == report.actions != []
    assert contents(store) == damaged
    mended = repair(store, config=CONFIG, engine=ONE)
    assert (mended.ok, mended.actions) == (True, report.actions)
    assert there(store) == before == expected(store)
    assert (contents(store / "consumequeue"), contents(store / "index")) == others
    assert kinds(checked(store)) == set()
    assert repair(store, config=CONFIG, engine=ONE).out_files == []
    assert mended.backup is not None
    undo_repair(store, mended.backup)
    again = contents(store)
    for name in [name for name in again if name.startswith(("mqindex-backup-", "lock"))]:
        del again[name]
    assert again == {name: sha for name, sha in damaged.items() if name != "lock"}


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda path: patched(path, free_place(path) - 46 + 12, b"\1"), "wrong-unit"),
        (lambda path: patched(path, free_place(path) - 46, bytes(46)), "batch-queue-behind"),
        (Path.unlink, "batch-queue-behind"),
        (lambda path: path.write_bytes(path.read_bytes()[:100]), "queue-size"),
        (lambda path: patched(path, 0, path.read_bytes()[46:92]), "wrong-unit"),
    ],
)
def test_units_of_messages_that_the_log_lost_are_kept(
    spoil: Callable[[Path], object], found: str, tmp_path: Path
) -> None:
    """Of expired files, and of a damaged stretch."""
    root = make_store(tmp_path / "store", mixed(200))
    before = there(root)
    logs = sorted((root / "commitlog").iterdir())
    logs[0].unlink()
    patched(logs[2], 1000, bytes(700))
    lost = checked(root)
    assert {"queue-units-expired", "queue-units-of-damaged-log"} <= kinds(lost, "info")
    assert kinds(lost) == {"log-bad-size"}
    spoil(a_file(root, -1))
    assert found in kinds(checked(root))
    repair(root, config=CONFIG, engine=ONE)
    assert there(root) == before
    assert kinds(checked(root)) == {"log-bad-size"}


def test_units_of_lost_messages_that_are_gone_too_are_left_out(tmp_path: Path) -> None:
    root = make_store(tmp_path / "store", mixed(200))
    sorted((root / "commitlog").iterdir())[0].unlink()
    a_file(root, 0).unlink()
    a_file(root, 2).unlink()
    assert repair(root, config=CONFIG, engine=ONE).ok
    assert kinds(checked(root)) == set()
    with BatchConsumeQueue.open(a_file(root, 0).parent) as queue:
        first = queue.min_offset_in_queue
        assert all(queue.get(offset) is not None for offset in range(first, queue.max_offset_in_queue))


def test_a_queue_whose_messages_have_all_expired_stays(tmp_path: Path) -> None:
    messages = [batch(7 * number, 7) for number in range(30)]
    messages += [single(number, topic="Plain") for number in range(60)]
    root = make_store(tmp_path / "store", messages)
    for path in sorted((root / "commitlog").iterdir())[:2]:
        path.unlink()
    expired = [
        one for one in checked(root).findings if one.kind == "queue-units-expired" and "Batched" in str(one.path)
    ]
    assert [one.got for one in expired] == [30]
    (a_file(root, 0).parent / "copy.bak").touch()
    patched(a_file(root, 2), 46 * 9, BATCH_UNIT.pack(2**30, 100, 0, FIRST_TIME, 500, 1, -1, 0))
    assert repair(root, config=CONFIG, engine=ONE).ok
    with BatchConsumeQueue.open(a_file(root, 0).parent) as queue:
        assert queue.max_offset_in_queue == 7 * 29


# ---- what records say of themselves


@pytest.mark.parametrize(
    "said",
    [
        *({"INNER_NUM": text} for text in ("abc", "-1", "0", "32768", str(2**40), "1.0", " 3", "9" * 400)),
        *({"INNER_BASE": text} for text in ("x", "-5", str(2**63), "1e3", "9" * 400)),
    ],
)
def test_records_whose_numbers_cannot_be_are_left_out_and_told(said: dict[str, str], tmp_path: Path) -> None:
    messages = [batch(0, 3), batch(3, 4), batch(7, 2, said), batch(9, 5)]
    root = make_store(tmp_path / "store", messages)
    assert there(root) == expected(root)
    with BatchConsumeQueue.open(root / "batchconsumequeue" / "Batched" / "0") as queue:
        assert queue.units()["msg_base_offset"].tolist() == [0, 3, 9]
    report = checked(root)
    assert (kinds(report), kinds(report, "warning")) == (set(), {"queue-offset-impossible"})
    assert repair(root, config=CONFIG, engine=ONE).out_files == []
    again = rebuild(root, tmp_path / "out", config=CONFIG, engine=ONE)
    assert "queue-offset-impossible" in kinds(again, "warning")


def test_a_record_that_says_only_one_number_is_one_message(tmp_path: Path) -> None:
    one = LogMessage("Batched", queue_offset=5, properties=[("INNER_NUM", "4"), ("UNIQ_KEY", "u")])
    root = make_store(tmp_path / "store", [one, batch(6, 2)])
    with BatchConsumeQueue.open(root / "batchconsumequeue" / "Batched" / "0") as queue:
        units = queue.units()
        assert list(zip(units["msg_base_offset"], units["batch_size"], strict=True)) == [(5, 1), (6, 2)]


def test_a_topic_that_was_created_again_and_again_begins_with_the_last_time(tmp_path: Path) -> None:
    ends = itertools.chain.from_iterable(range(0, 3 * (1 + number % 5), 3) for number in range(60))
    root = make_store(tmp_path / "store", [batch(base, 3) for base in ends])
    assert there(root) == expected(root)
    assert sum(map(len, there(root).values())) == FILE_SIZE
    assert not kinds(checked(root))
    assert repair(root, config=CONFIG, engine=ONE).out_files == []


@pytest.mark.parametrize("early", [0, 40])
def test_a_topic_that_was_created_again_begins_anew(early: int, tmp_path: Path) -> None:
    ends = list(itertools.accumulate([3] * 40, initial=early))
    messages = [batch(base, 3) for base in ends[:-1]] + [batch(base, 2) for base in range(0, 60, 2)]
    root = make_store(tmp_path / "store", messages)
    assert there(root) == expected(root)
    assert "queue-began-again" in kinds(checked(root), "info") | kinds(checked(root), "warning")
    assert not kinds(checked(root))
    a_file(root, 1).unlink()
    assert "missing-units" in kinds(checked(root))
    repair(root, config=CONFIG, engine=ONE)
    assert there(root) == expected(root)


# ---- what is not known is not guessed


def test_without_the_length_of_the_files_nothing_is_written(store: Path) -> None:
    """Not the ordinary queues either: with these a broker would never write the batch queues."""
    shutil.rmtree(store / "batchconsumequeue")
    shutil.rmtree(store / "consumequeue" / "Plain")
    before = contents(store)
    config = {name: value for name, value in CONFIG.items() if "Batch" not in name}
    with pytest.raises(FileStateError, match="with mapperFileSizeBatchConsumeQueue=13800000 in it"):
        repair(store, config=config, engine=ONE)
    assert {**contents(store), "lock": ""} == {**before, "lock": ""}
    report = rebuild(store, store.parent / "out", config=config, engine=ONE)
    assert kinds(report, "warning") == {"queue-file-size-unknown"}
    assert {len(data) for data in there(store.parent / "out").values()} == {13_800_000}


def test_a_topic_that_has_no_batch_queues_gets_none(store: Path) -> None:
    """With them no broker starts; and with the ordinary queues alone it would never write these."""
    shutil.rmtree(store / "batchconsumequeue")
    shutil.rmtree(store / "consumequeue" / "Plain")
    table = {name: {"topicName": name} for name in ("Plain", "Batched")}
    (store / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    before = contents(store)
    assert "batch-queue-missing" in kinds(checked(store))
    with pytest.raises(FileStateError, match=r"queue\.type BatchCQ of topic Batched"):
        repair(store, config=CONFIG, engine=ONE)
    assert {**contents(store), "lock": ""} == {**before, "lock": ""}
    assert repair(store, config=CONFIG, engine=ONE, parts=["index"]).actions == []


# ---- any damage


def spoilt(root: Path, chosen: random.Random) -> None:
    """A file of the log and some of the batch queues are lost, cut, longer, zeroed in part or overwritten."""
    logs = sorted((root / "commitlog").iterdir())
    chosen.choice([logs[0].unlink, logs[2].unlink, lambda: patched(logs[1], 700, chosen.randbytes(90))])()
    for path in chosen.sample(sorted((root / "batchconsumequeue").glob("*/*/*")), 3):
        data, at = path.read_bytes(), chosen.randrange(FILE_SIZE)
        content = chosen.choice([
            None, data[:at], data + data[:at], data[:at] + bytes(46) + data[at + 46 :], chosen.randbytes(FILE_SIZE)
        ])  # fmt: skip
        path.unlink() if content is None else path.write_bytes(content)


@pytest.mark.parametrize("seed", range(12))
def test_after_a_repair_of_any_damage_no_batch_queue_has_an_error(seed: int, tmp_path: Path) -> None:
    root = make_store(tmp_path / "store", mixed(200))
    spoilt(root, random.Random(seed))
    assert kinds(checked(root))
    repair(root, config=CONFIG, engine=ONE)
    left = [one for one in checked(root).findings if one.severity == "error" and "batchconsumequeue" in str(one.path)]
    assert left == []
    assert repair(root, config=CONFIG, engine=ONE).out_files == []


@pytest.mark.parametrize("last", [single(10**6, topic="Plain"), single(10**6), batch(10**6, 3)])
def test_a_store_is_opened_for_writing_with_batch_queues_that_reach_the_logs_end(
    last: LogMessage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a clean end the log was ahead of all queues: only the ordinary ones went on, the others stayed behind."""
    messages = mixed()
    following = 1 + max(one.queue_offset for one in messages if (one.topic, one.queue_id) == (last.topic, 0))
    messages.append(batch(following, 3) if last.sys_flag else single(following, topic=last.topic))
    root = make_store(tmp_path / "store", messages)
    told = expected(root)
    for name in ("batchconsumequeue", "consumequeue"):
        shutil.rmtree(root / name)
    with (
        MessageStore.open(root, writable=True, config=CONFIG) as store,
        pytest.raises(ValueError, match="got Batched, whose queues are batched"),
    ):
        store.put_message(NewMessage("Batched", b"x"))
    assert there(root) == told
    assert verify(root, config=CONFIG).ok
    monkeypatch.setattr(store_writer, "_mend", pytest.fail)  # nothing is left
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        assert store.put_message(NewMessage("Plain", b"x")).queue_offset > 0
    assert there(root) == told
