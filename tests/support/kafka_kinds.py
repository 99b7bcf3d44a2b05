"""Of each kind of finding of a Kafka log dir one that has it: what is done to it, and how it is looked at."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.support.kafka_damage import DAMAGE, INTERVAL, batches_in, filled_log_dir
from tests.support.kafka_log_dir import META, ONE, PROPERTIES
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, crc32c, snapshot

__all__ = ["ELSEWHERE", "SHOWN"]

Made = Callable[[Path], tuple[Path, dict[str, Any]]]
Damage = Callable[[Path], object]
_DELETED: Final = f"topic-0.{32 * 'a'}-delete"


def _dir(*damages: str | Damage, unclean: bool = False, **more: Any) -> Made:
    def make(home: Path) -> tuple[Path, dict[str, Any]]:
        log_dir = filled_log_dir(home / "logs")
        for damage in damages:
            (DAMAGE[damage] if isinstance(damage, str) else damage)(log_dir)
        if unclean:
            (log_dir / ".kafka_cleanshutdown").unlink()
            (log_dir / "recovery-point-offset-checkpoint").write_text("0\n1\ntopic 0 30\n")
        return log_dir, {"index_interval_bytes": INTERVAL, "engine": ONE, **more}

    return make


def _written(write: Callable[[PartitionWriter], None], **more: Any) -> Made:
    """A log dir that a writer of one partition leaves."""

    def make(home: Path) -> tuple[Path, dict[str, Any]]:
        home = home / "logs"
        writer = PartitionWriter(home / "topic-0", index_interval=more.get("index_interval_bytes", 10))
        write(writer)
        writer.close()
        (home / "meta.properties").write_text(PROPERTIES)
        (home / ".kafka_cleanshutdown").touch()
        return home, {"engine": ONE, **more}

    return make


# ---- what is done to a log dir


def _new(name: str, data: str = "") -> Damage:
    def make(log_dir: Path) -> None:
        path = log_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data)

    return make


def _batch(at: int, data: bytes, *, number: int = 3, base: int = 10, sealed: bool = False) -> Damage:
    """Bytes of a batch; `sealed`: with the right checksum."""

    def spoil(log_dir: Path) -> None:
        path = log_dir / "topic-0" / f"{base:020d}.log"
        log = bytearray(path.read_bytes())
        begin, end = batches_in(bytes(log))[number:][:2]
        log[begin + at : begin + at + len(data)] = data
        if sealed:
            log[begin + 17 : begin + 21] = struct.pack(">I", crc32c(bytes(log[begin + 21 : end])))
        path.write_bytes(log)

    return spoil


def _entry(ending: str, number: int, change: Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, ...]]) -> Damage:
    """An entry of an index, from what it and the following one were."""
    form = {"index": ">ii", "timeindex": ">qi", "txnindex": ">hqqqq"}[ending]

    def spoil(log_dir: Path) -> None:
        path = log_dir / "topic-0" / f"{10:020d}.{ending}"
        data, size = bytearray(path.read_bytes()), struct.calcsize(form)
        one = struct.unpack_from(form, data, size * number)
        following = struct.unpack_from(form, data, size * min(number + 1, len(data) // size - 1))
        struct.pack_into(form, data, size * number, *change(one, following))
        path.write_bytes(data)

    return spoil


def _behind(log_dir: Path) -> None:
    """The last entry leads to a place behind its batch."""
    path = log_dir / "topic-0" / f"{10:020d}.index"
    data = path.read_bytes()
    path.write_bytes(data[:-12] + data[-4:])


def _copied(name: str, *damages: Damage) -> Damage:
    def copy(log_dir: Path) -> None:
        shutil.copytree(log_dir / "topic-0", log_dir / name)
        for damage in damages:
            damage(log_dir)

    return copy


def _swapping(log_dir: Path) -> None:
    for path in list((log_dir / "topic-0").glob(f"{27:020d}.*")):
        path.rename(f"{path}.swap")


def _linked(log_dir: Path) -> None:
    (log_dir / "topic-0").rename(log_dir.parent / "moved")
    (log_dir / "topic-0").symlink_to(log_dir.parent / "moved")


def _seconds(writer: PartitionWriter) -> None:
    writer.append([KafkaRecord(timestamp=FIRST_TIME // 1000)])


def _often_closed(writer: PartitionWriter) -> None:
    for number in range(20):
        writer.append([KafkaRecord(bytes(50), timestamp=FIRST_TIME + number)])
    (writer.path("index")).write_bytes(b"")


SHOWN: Final[dict[str, Made]] = {
    # ---- the log of a segment
    "log-tail": _dir("log torn oldest"),
    "log-bad-crc": _dir("log flip oldest"),
    "log-bad-length": _dir("log tail newest"),
    "log-offset-order": _dir(_batch(0, struct.pack(">q", 17))),
    "log-magic": _dir(_batch(16, b"\x05")),
    "log-count": _dir(_batch(57, struct.pack(">i", 100), sealed=True)),
    "log-leader-epoch": _dir(_batch(12, struct.pack(">i", 7))),
    "log-records": _dir(_batch(61, b"\x7f", sealed=True), deep=True),
    "log-refused": _dir("log order middle", unclean=True),
    "log-not-a-file": _dir("log no file"),
    "segment-name": _dir("name of 21 digits"),
    "segment-overlap": _dir(_batch(0, struct.pack(">q", 60), number=8)),
    "segment-gap": _dir("log gone middle"),
    "log-end": _dir("log last newest"),
    "log-max-timestamp": _dir(_batch(35, struct.pack(">q", FIRST_TIME), sealed=True), deep=True),
    # ---- offset and time index
    "offset-index-length": _dir("index uneven oldest"),
    "offset-index-order": _dir("log gone oldest"),
    "offset-index-unwritten": _dir("index zeros oldest"),
    "offset-index-missing": _dir("index lost oldest"),
    "offset-index-beyond-log": _dir("log torn oldest"),
    "offset-index-offset": _dir(_behind),
    "offset-index-origin": _dir(_entry("index", 2, lambda one, following: (following[0] - 1, one[1]))),
    "offset-index-position": _dir(_entry("index", 2, lambda one, _: (one[0], one[1] + 1))),
    "offset-index-end": _dir("index beyond newest"),
    "offset-index-empty": _dir("index empty oldest"),
    "offset-index-perhaps-lost": _written(_often_closed),
    "time-index-length": _dir("timeindex uneven oldest"),
    "time-index-order": _dir("log gone oldest"),
    "time-index-unwritten": _dir("timeindex zeros oldest"),
    "time-index-missing": _dir("timeindex lost oldest"),
    "time-index-beyond-log": _dir("timeindex beyond oldest"),
    "time-index-offset": _dir(_entry("timeindex", 2, lambda one, following: (one[0], following[1]))),
    "time-index-origin": _dir(_entry("timeindex", 2, lambda one, _: (one[0], one[1] - 2))),
    "time-index-empty": _dir("timeindex empty oldest"),
    "time-index-incomplete": _dir("timeindex cut oldest"),
    "index-unlike-rebuilt": _dir("log flip oldest"),
    # ---- the transaction index
    "transaction-index-length": _dir("txnindex cut oldest"),
    "transaction-index-version": _dir(_entry("txnindex", 0, lambda one, _: (9, *one[1:]))),
    "transaction-index-order": _dir("txnindex zeros oldest"),
    "transaction-index-range": _dir(_entry("txnindex", 0, lambda one, _: (*one[:2], -5, *one[3:]))),
    "transaction-index-offset": _dir("txnindex zeros oldest"),
    "transaction-index-missing": _dir("txnindex lost oldest"),
    "transaction-index-incomplete": _dir("txnindex empty oldest"),
    "transaction-index-unknown": _dir("txnindex beyond oldest"),
    "transaction-index-first-offset": _dir(_entry("txnindex", 0, lambda one, _: (*one[:2], one[2] + 1, *one[3:]))),
    "transaction-index-last-stable-offset": _dir(_entry("txnindex", 0, lambda one, _: (*one[:4], 10_000))),
    # ---- what is no file
    "index-not-a-file": _dir("txnindex directory oldest"),
    "snapshot-not-a-file": _dir(lambda log_dir: (log_dir / "topic-0" / f"{27:020d}.snapshot").mkdir()),
    # ---- the files of a partition and of a log dir
    "deleted-not-loaded": _dir(_copied(_DELETED, _new(f"{_DELETED}/leader-epoch-checkpoint", "x"))),
    "leader-epoch-checkpoint": _dir("epochs"),
    "leader-epochs-lost": _dir("epochs lost"),
    "stray-directory": _dir("stray directory"),
    "duplicate-directory": _dir("two of a partition"),
    "stray-segment-file": _dir("stray segment file"),
    "log-start-beyond-end": _dir("log start beyond"),
    "log-start-beyond-epoch": _dir(_new("log-start-offset-checkpoint", "0\n1\ntopic 0 20\n")),
    "record-times": _written(_seconds),
    "log-lost": _dir("high watermarks"),
    "no-segment": _dir("empty partition"),
    "meta-properties": _dir("meta.properties"),
    "meta-properties-incomplete": _dir(_new("meta.properties", "version=0\nbroker.id=1\n")),
    "meta-properties-missing": _dir("meta.properties lost"),
    "partition-metadata": _dir("partition.metadata"),
    "topic-id": _dir(
        _copied("topic-1"), _copied("topic-2", _new("topic-2/partition.metadata", META.replace("eBhZ", "fBhZ")))
    ),
    "offset-checkpoint": _dir("recovery points"),
    "producer-snapshot": _dir("snapshot"),
    "open-transactions": _dir(lambda log_dir: snapshot(log_dir / "topic-0" / f"{61:020d}.snapshot", (5, 58))),
    "orphan-index": _dir("orphan"),
    "leftover-file": _dir(_new(f"topic-0/{10:020d}.log.deleted")),
    "segment-swapping": _dir(_swapping),
    "linked-directory": _dir(_linked),
}
ELSEWHERE: Final = {
    "files-elsewhere": "a log dir that is on no disk of this machine: golden/test_kafka_elsewhere.py",
    "result-changed": "only of a result in an object store, which no repair takes: cli/test_unfinished_results.py",
    "not-rebuilt": "one of several log dirs, only of a rebuild: unit/test_several_stores.py",
    "not-writable": "a file of another user: unit/test_kafka_start.py",
    "indexes-unknown": "only of one file, which no repair takes: unit/test_kafka_single_file.py",
    "log-missing": "only of one file, which no repair takes: unit/test_kafka_single_file.py",
    "partition-gone": "a broker that deletes it meanwhile: unit/test_kafka_deleted_segments.py",
    "segments-gone": "a broker that deletes them meanwhile: unit/test_kafka_deleted_segments.py",
    "written-since-repair": "only a repair that is taken back says it: crash/test_undo.py",
}
"""Kinds that no such damage shows: why, and which tests do."""
