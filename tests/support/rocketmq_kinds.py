"""Of each kind of finding of a RocketMQ store one that has it: what is done to a store, and how it is looked at."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mqindex.rocketmq import rebuild
from mqindex.rocketmq.settings import MESSAGE_DELAY_LEVEL
from tests.golden import test_blank_queue_files as blanks
from tests.golden import test_sidecars as sidecars
from tests.golden.test_start_rocksdb import in_rocksdb
from tests.hostile import test_changed_broker
from tests.support.golden import case
from tests.support.kafka_log_dir import ONE
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter
from tests.support.offsets_given_again import CONFIG, store_with_offsets_given_again
from tests.support.rocketmq_damage import BATCH_DAMAGE, DAMAGE, EXT_DAMAGE
from tests.support.small_store import OPTIONS, make_small_store
from tests.unit import test_batch_queues as batches
from tests.unit.test_deleted_topics import list_topics

__all__ = ["ELSEWHERE", "SHOWN"]

Made = Callable[[Path], tuple[Path, dict[str, Any]]]
_FIRST: Final = "0" * 20
_FILES: Final = {"mappedFileSizeConsumeQueue": 1000, "mappedFileSizeCommitLog": 65536}


def how(version: str | None = "4.9.3", **more: Any) -> dict[str, Any]:
    """How the store `basic-493` is looked at."""
    config = {**_FILES, **more.pop("config", {})}
    return {"hash_slot_num": 100, "index_num": 400, "broker_version": version, "engine": ONE, "config": config, **more}


def _basic(damage: str | Callable[[Path], object], version: str | None = "4.9.3", **more: Any) -> Made:
    spoil = DAMAGE[damage] if isinstance(damage, str) else damage

    def make(home: Path) -> tuple[Path, dict[str, Any]]:
        store = case("basic-493").unpack(home)
        spoil(store)
        return store, how(version, **more)

    return make


def _unasked(damage: str) -> Made:
    """Of which nothing is given."""

    def make(home: Path) -> tuple[Path, dict[str, Any]]:
        store = case("basic-493").unpack(home)
        DAMAGE[damage](store)
        return store, {"engine": ONE}

    return make


def _ext(name: str) -> Made:
    def make(home: Path) -> tuple[Path, dict[str, Any]]:
        chosen = case("ipv6-batch-ext-493")
        store = chosen.unpack(home)
        EXT_DAMAGE[name](store)
        return store, {"engine": ONE, "broker_version": "4.9.3", "config": chosen.truth["config"]}

    return make


def _batch(name: str) -> Made:
    def make(home: Path) -> tuple[Path, dict[str, Any]]:
        store = batches.make_store(home / "store", batches.mixed())
        BATCH_DAMAGE[name](store)
        return store, {"engine": ONE, "broker_version": "5.5.1", "config": batches.CONFIG}

    return make


def _log(messages: list[LogMessage], damage: Callable[[Path], object] | None = None, **more: Any) -> Made:
    """A log of these messages, and what a rebuild makes of it."""

    def make(home: Path) -> tuple[Path, dict[str, Any]]:
        store = home / "store"
        writer = LogWriter(store / "commitlog", mapped_file_size=4096)
        for number, one in enumerate(messages):
            writer.write(LogMessage(**{**vars(one), "store_timestamp": FIRST_TIME + number}))
        config = {"maxHashSlotNum": 5, "maxIndexNum": 64, "mappedFileSizeConsumeQueue": 400}
        rebuild(store, store / "out", config=config, engine=ONE, broker_version="4.9.3")
        for part in (store / "out").iterdir():
            part.rename(store / part.name)
        (store / "out").rmdir()
        if damage is not None:
            damage(store)
        return store, {"engine": ONE, "broker_version": "4.9.3", "config": config, **more}

    return make


def _queue(*offsets: int, topic: str = "T", **more: Any) -> list[LogMessage]:
    return [
        LogMessage(topic, keys=f"k{number}", uniq_key=f"U{number}", queue_offset=offset, **more)
        for number, offset in enumerate(offsets)
    ]


# ---- what is done to a store


def _write(name: str, at: int, data: bytes) -> Callable[[Path], None]:
    def write(store: Path) -> None:
        with (store / name).open("r+b") as file:
            file.seek(at)
            file.write(data)

    return write


def _index(at: int, data: bytes, number: int = 0) -> Callable[[Path], None]:
    return lambda store: _write(f"index/{sorted(path.name for path in (store / 'index').iterdir())[number]}", at, data)(
        store
    )


def _timer_at(offset: int) -> Callable[[Path], None]:
    return _new("config/timercheck", struct.pack(">4q", FIRST_TIME, 0, offset, offset).ljust(4096, b"\0"))


def _new(name: str, data: bytes | str | None = b"") -> Callable[[Path], None]:
    def make(store: Path) -> None:
        path = store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            path.mkdir()
        else:
            path.write_bytes(data.encode() if isinstance(data, str) else data)

    return make


def _frames(log: bytes) -> list[int]:
    at, found = 0, []
    while at + 8 <= len(log) and struct.unpack_from(">I", log, at + 4)[0] in (0xDAA320A7, 0xDAA320A7 ^ 2):
        found.append(at)
        at += int(struct.unpack_from(">i", log, at)[0])
    return found


def _frame(number: int, at: int, data: bytes, name: str = _FIRST) -> Callable[[Path], None]:
    """Bytes of a message of a log file."""

    def spoil(store: Path) -> None:
        path = store / "commitlog" / name
        place = _frames(path.read_bytes())[number]
        _write(f"commitlog/{name}", place + at, data)(store)

    return spoil


def _both(*damages: Callable[[Path], object]) -> Callable[[Path], None]:
    def spoil(store: Path) -> None:
        for damage in damages:
            damage(store)

    return spoil


def _offsets(table: dict[str, dict[str, int]]) -> Callable[[Path], None]:
    return _new("config/consumerOffset.json", json.dumps({"offsetTable": table}))


def _delays(table: dict[str, int]) -> Callable[[Path], None]:
    return _new("config/delayOffset.json", json.dumps({"offsetTable": table}))


def _twice(store: Path) -> None:
    one = sorted((store / "index").iterdir())[0]
    shutil.copy(one, one.with_name(str(int(one.name) + 1)))


def _optimised(damage: Callable[[Path], object]) -> Made:
    def make(home: Path) -> tuple[Path, dict[str, Any]]:
        (slots, entries), store = sidecars.CASE.geometry, sidecars.optimised_store(home)
        damage(store)
        return store, {"hash_slot_num": slots, "index_num": entries, "engine": ONE}

    return make


def _given_again(home: Path) -> tuple[Path, dict[str, Any]]:
    store_with_offsets_given_again(home, 50, range(40, 42), CONFIG)
    return home, {"config": CONFIG, "engine": ONE}


def _without_log(store: Path) -> None:
    for path in (store / "commitlog").iterdir():
        path.unlink()


def _linked(store: Path) -> None:
    path = store / "consumequeue" / "OrderTopic"
    path.rename(store.parent / "moved")
    path.symlink_to(store.parent / "moved")


def _without_offset(home: Path) -> tuple[Path, dict[str, Any]]:
    store = case("killed-lost-493").unpack(home)
    return store, {"engine": ONE, "broker_version": "5.5.0", "config": {"enableAcceleratedRecovery": "true"}}


def _delayed(first: int, stop: int) -> list[LogMessage]:
    properties = [("DELAY", "1"), ("REAL_TOPIC", "T"), ("REAL_QID", "0")]
    return _queue(*range(first, stop), topic="SCHEDULE_TOPIC_XXXX", properties=properties)


def _spoil_delay(store: Path) -> None:
    log = store / "commitlog" / _FIRST
    log.write_bytes(log.read_bytes().replace(b"DELAY\x011", b"DELAY\x01x", 1))


def _without_times(home: Path) -> tuple[Path, dict[str, Any]]:
    store = case("tx-delay-lmq-493").unpack(home)
    path = min((store / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / "1").iterdir())
    _write(str(path.relative_to(store)), 12, struct.pack(">q", -1685804066))(store)
    return store, {"engine": ONE, "config": {"messageDelayLevel": MESSAGE_DELAY_LEVEL.default}}


def _expired(home: Path) -> tuple[Path, dict[str, Any]]:
    """All messages of a queue."""
    store = case("killed-lost-493").unpack(home)
    old = store / "consumequeue" / "OldTopic" / "0"
    old.mkdir(parents=True)
    (old / _FIRST).write_bytes((struct.pack(">qiq", 100, 100, 0) * 5).ljust(1000, b"\0"))
    min((store / "commitlog").iterdir()).unlink()
    return store, {"engine": ONE}


def _changed_broker(home: Path) -> tuple[Path, dict[str, Any]]:
    test_changed_broker.make(home, [310], (50, 120))[2].unlink()
    return home, {"engine": ONE, "hash_slot_num": 50, "index_num": 120, "broker_version": "5.5.0"}


def _of_any_version(home: Path) -> tuple[Path, dict[str, Any]]:
    chosen = case("basic-550")
    store, (slots, entries) = chosen.unpack(home), chosen.geometry
    shutil.rmtree(store / "index")
    return store, {"engine": ONE, "hash_slot_num": slots, "index_num": entries}


def _deleted_topic(home: Path) -> tuple[Path, dict[str, Any]]:
    store = make_small_store(home / "store")
    shutil.rmtree(store / "consumequeue" / "Topic1" / "0")
    list_topics(store, "Topic0", "Topic2")
    return store, {**OPTIONS, "engine": ONE}


def _rocksdb(lost: str | None) -> Made:
    def make(home: Path) -> tuple[Path, dict[str, Any]]:
        store = in_rocksdb(home)
        if lost is not None:
            (store / lost).unlink()
        return store, {"engine": ONE, "broker_version": "5.3.3"}

    return make


_ORDER: Final = "consumequeue/OrderTopic/0/"
_LAST: Final = "0" * 16 + "1000"
SHOWN: Final[dict[str, Made]] = {
    # ---- a start
    "stray-log-file": _basic("log: stranger"),
    "stray-queue-file": _basic("queue: stranger"),
    "log-file-empty": _basic(_new(f"commitlog/{131072:020d}")),
    "queue-file-empty": _ext("ext: next empty"),
    "log-file-length": _basic("log: cut"),
    "queue-type": _batch("batch: ordinary queue beside"),
    "timer-wheel-length": _basic("timer wheel: cut", "5.3.3"),
    "timer-log-length": _basic(_new(f"timerlog/{_FIRST}", b"?"), "5.3.3"),
    "compaction-stray": _basic("compaction: stranger", "5.3.3"),
    "compaction-unlike": _basic(
        _both(
            _new(f"compaction/compactionLog/T/0/{_FIRST}", b"?"), _new(f"compaction/compactionCq/T/0/{46:020d}", b"?")
        ),
        "5.3.3",
    ),
    "lock-unreadable": _basic("lock: directory"),
    "queues-deleted-at-next-start": _basic(_without_log),
    "deleted-at-next-start": _basic("log: hole, killed"),
    "log-cut-at-next-start": _basic("log: hole, killed"),
    "log-not-confirmed": _basic("nothing", config={"duplicationEnable": "true"}),
    "not-a-file": _basic("abort.bak: directory", "5.3.3"),
    "not-a-directory": _basic("config: a file", "5.3.3"),
    # ---- the log
    "log-bad-magic": _basic(_frame(5, 4, b"\xa5" * 4)),
    "log-bad-size": _basic("log: hole"),
    "log-bad-length": _basic(_frame(5, 84, b"\x7f\xff\xff\xff")),
    "log-foreign": _basic("log: end"),
    "log-bad-crc": _basic(_frame(5, 88, b"\xa5" * 4), deep=True),
    "log-truncated": _basic(_frame(-1, 0, b"\0\0\xf0\0")),
    "log-missing": _basic(lambda store: shutil.rmtree(store / "commitlog")),
    "log-file-missing": _log(_queue(*range(120)), lambda store: (store / "commitlog" / f"{4096:020d}").unlink()),
    "frames-behind-log-end": _basic("log: newest body"),
    "stale-bytes-behind-log-end": _basic("log: cut"),
    # ---- the index
    "index-index-count": _basic(_index(36, b"\x7f\xff\xff\xff")),
    "index-begin-phy-offset": _basic(_index(23, b"\x07")),
    "index-end-phy-offset": _basic(_index(31, b"\x07")),
    "index-end-timestamp": _basic(_index(10, b"\x07")),
    "index-slot": _basic("index: slot"),
    "index-slot-head": _basic("index: hash"),
    "index-key-hash": _basic(_index(440 + 400, b"\x80")),
    "index-time-diff": _basic(_index(440 + 400 + 12, b"\x80")),
    "index-prev-index": _basic("index: hash"),
    "index-hash-slot-count": _basic("index: hash"),
    "index-size": _basic("index: cut"),
    "index-unreadable": _basic("index: directory", "5.3.3"),
    "index-beyond-log": _basic("log: newest lost"),
    "index-empty": _basic("index: zeros"),
    "wrong-entry": _basic("log: body"),
    "foreign-entry": _basic("log: body"),
    "wrong-time": _basic(_index(15, b"\x07")),
    "missing-entries": _basic("index: first lost"),
    "index-overlap": _basic(_twice),
    "index-order": _basic("index: swapped"),
    "stray-file": _basic("index: stranger"),
    "index-entries-expired": _basic("log: first lost"),
    "index-entries-of-damaged-log": _basic("log: hole"),
    "index-switched-off": _basic("nothing", config={"messageIndexEnable": "false"}),
    # ---- settings that are not known
    "geometry-unknown": _unasked("index: all lost"),
    "broker-version-unknown": _of_any_version,
    "queue-file-size-unknown": _unasked("queue: all lost"),
    "file-length-unknown": _log(_queue(*range(30))),
    # ---- the queues
    "queue-missing": _basic("queue: lost"),
    "queue-size": _basic("queue: cut"),
    "queue-file-missing": _log(_queue(*range(60)), lambda store: (store / f"consumequeue/T/0/{400:020d}").unlink()),
    "queue-file-blank": _basic(
        _both(lambda store: blanks.blank(store / blanks.LAST), blanks.lose_last_message, blanks.lose_last_unit), "5.3.3"
    ),
    "queue-beyond-log": _basic("log: newest lost"),
    "missing-units": _basic("queue: first lost"),
    "wrong-unit": _basic("queue: other units"),
    "offsets-served-twice": _given_again,
    "wrong-ext-unit": _ext("ext: a byte"),
    "foreign-unit": _log(
        _queue(*range(30)), _write(f"consumequeue/T/0/{400:020d}", 200, struct.pack(">qiq", 3, 90, 0))
    ),
    "invalid-unit": _log(_queue(0, 1, 2, 5, 6), _write(f"consumequeue/T/0/{_FIRST}", 60, bytes(40))),
    "queue-name": _basic(lambda store: (store / _ORDER / _LAST).rename(store / _ORDER / f"{1020:020d}")),
    "queue-offset-hole": _log(_queue(0, 1, 2, 5, 6)),
    "queue-offset-jump": _log(_queue(0, 1, 2, 10_000_000, 10_000_001)),
    "queue-offset-repeated": _log(_queue(0, 1, 2, 2, 3)),
    "queue-offset-impossible": _log(_queue(0, 1, 2, 2**60)),
    "queue-began-again": _log(_queue(*range(30), *range(12))),
    "batch-queue-missing": _batch("batch: of a queue"),
    "batch-queue-behind": _batch("batch: last lost"),
    "queue-units-expired": _basic("log: first lost"),
    "queue-units-of-damaged-log": _basic("log: hole"),
    "stale-queue-bytes": _log(
        _queue(*range(30)), _write(f"consumequeue/T/0/{400:020d}", 380, struct.pack(">qiq", 3, 90, 0))
    ),
    # ---- the small files
    "checkpoint-unreadable": _basic("checkpoint: directory"),
    "checkpoint-garbage": _basic("checkpoint: noise"),
    "checkpoint-size": _basic("checkpoint: cut"),
    "checkpoint-ahead": _basic("log: newest lost"),
    "timer-checkpoint-ahead": _basic(_timer_at(9), "5.1.4"),
    "checkpoint-missing": _basic("checkpoint: lost, killed"),
    "checkpoint-behind": _basic("nothing, killed"),
    "side-file-invalid": _basic("config: offsets"),
    "side-file-missing": _basic("config: consumers"),
    "consumer-offset-beyond-queue": _basic(_offsets({"OrderTopic@g": {"0": 100_000}})),
    "consumer-offset-expired": _basic(
        _both(DAMAGE["log: first lost"], DAMAGE["queue: first lost"], _offsets({"OrderTopic@g": {"0": 1}}))
    ),
    "consumer-offset-without-queue": _basic(_offsets({"OrderTopic@g": {"77": 1}})),
    "consumer-offset-more": _basic(_offsets({"OrderTopic@g": {str(n): 1 for n in range(100, 300)}})),
    "delay-offset-without-queue": _basic(_delays({"9": 1})),
    "delay-offset-more": _basic(_delays({str(n): 1 for n in range(100, 300)})),
    "linked-directory": _basic(_linked),
    # ---- stores of another kind
    "checkpoint-no-offset": _without_offset,
    "compaction-not-compared": _basic("compaction: stranger", "5.3.3"),
    "log-bad-delay": _log(_delayed(20, 80), _spoil_delay),
    "delay-level-unknown": _log(_delayed(20, 30), lambda store: shutil.rmtree(store / "consumequeue")),
    "delay-offset-beyond-queue": _log(_delayed(20, 30), _delays({"1": 99})),
    "delay-offset-expired": _log(_delayed(20, 30), _delays({"1": 3})),
    "no-deliver-time": _without_times,
    "message-indexed-twice": lambda home: (case("killed-493").unpack_after(home), {"engine": ONE}),
    "queue-min-offset-stale": _expired,
    "tags-unknown": _changed_broker,
    "topic-deleted": _deleted_topic,
    "queues-elsewhere": _rocksdb(None),
    "topics-elsewhere": _rocksdb(None),
    "rocksdb-incomplete": _rocksdb("consumequeue/CURRENT"),
    "sidecar-unused": _optimised(sidecars.cut),
    "sidecar-wrong": _optimised(sidecars.forge_slots),
    "sidecar-behind": _optimised(sidecars.appended),
    "sidecar-alone": _optimised(sidecars.alone),
}
ELSEWHERE: Final = {
    "files-elsewhere": "a store that is on no disk of this machine: golden/test_elsewhere.py",
    "result-changed": "only of a result in an object store, which no repair takes: cli/test_unfinished_results.py",
    "not-rebuilt": "one of several stores, only of a rebuild: unit/test_several_stores.py",
    "not-writable": "a file of another user: golden/test_start_check.py",
    "queue-unreadable": "a file that is cut meanwhile: golden/test_unread_files.py",
    "file-unread": "a disk that fails, and only a rebuild goes on: golden/test_unread_files.py",
    "log-expired-meanwhile": "a broker that deletes files meanwhile: hostile/test_expiry.py",
    "log-grew-meanwhile": "a broker that writes meanwhile: unit/test_verify_undispatched.py",
    "compaction-not-written": "only a rebuild says it: unit/test_compacted_topics.py",
    "written-since-repair": "only a repair that is taken back says it: crash/test_undo.py",
}
"""Kinds that no such damage shows: why, and which tests do."""
