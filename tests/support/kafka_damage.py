"""Every kind of damage to a Kafka log dir that the tests know, each with a name: a function that does it to one."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tests.support.kafka_log_dir import META, PROPERTIES
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, snapshot

__all__ = ["DAMAGE", "INTERVAL", "LOG_DAMAGE", "STOPS", "batches_in", "filled_log_dir"]

INTERVAL: Final = 100
_SEGMENTS: Final = (10, 27, 44)  # base offsets


def filled_log_dir(home: Path) -> Path:
    """One partition of three closed segments with entries in every index; in each a transaction was aborted."""
    writer = PartitionWriter(home / "topic-0", _SEGMENTS[0], index_interval=INTERVAL)
    for base in _SEGMENTS:
        if writer.next_offset != _SEGMENTS[0]:
            writer.roll()
        assert writer.next_offset == base
        for number in range(8):
            time = FIRST_TIME + 1000 * writer.next_offset
            paid = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
            records = [KafkaRecord(b"value" * 5, timestamp=time), KafkaRecord(timestamp=time)]
            writer.append(records, **(paid if number == 5 else {}))
        writer.marker(5, timestamp=FIRST_TIME + 1000 * writer.next_offset)
    writer.close()
    (writer.directory / "partition.metadata").write_text(META)
    (writer.directory / "leader-epoch-checkpoint").write_text("0\n1\n0 10\n")
    snapshot(writer.directory / f"{writer.next_offset:020d}.snapshot", (5, -1))
    (home / "meta.properties").write_text(PROPERTIES)
    (home / ".kafka_cleanshutdown").touch()
    (home / "recovery-point-offset-checkpoint").write_text(f"0\n1\ntopic 0 {writer.next_offset}\n")
    return home


def batches_in(log: bytes) -> list[int]:
    """Where the batches of a whole log begin, and where it ends."""
    at, found = 0, [0]
    while at < len(log):
        at += 12 + int(struct.unpack_from(">i", log, at + 8)[0])
        found.append(at)
    return found


def _file(log_dir: Path, segment: int, ending: str) -> Path:
    return log_dir / "topic-0" / f"{_SEGMENTS[segment]:020d}.{ending}"


# ---- the logs


def _flip(log: bytearray, at: list[int]) -> None:
    log[at[3] + 62] ^= 0x40


def _value(log: bytearray, at: list[int]) -> None:
    log[log.index(b"value", at[3])] ^= 1


def _zero(log: bytearray, at: list[int]) -> None:
    log[at[3] : at[5]] = bytes(at[5] - at[3])


def _size(log: bytearray, at: list[int]) -> None:
    log[at[3] + 8] ^= 0x40


def _short(log: bytearray, at: list[int]) -> None:
    log[at[3] + 11] += 3


def _twice(log: bytearray, at: list[int]) -> None:
    _zero(log, at)
    log[at[7] + 62] ^= 0x40


def _first(log: bytearray, at: list[int]) -> None:
    log[0 : at[1]] = bytes(at[1])


def _last(log: bytearray, at: list[int]) -> None:
    log[-1] ^= 1


def _torn(log: bytearray, at: list[int]) -> None:
    del log[-5:]


def _tail(log: bytearray, at: list[int]) -> None:
    log += bytes(300)


def _gone(log: bytearray, at: list[int]) -> None:
    log[:] = b""


def _order(log: bytearray, at: list[int]) -> None:
    log[at[3] : at[3] + 8] = struct.pack(">q", 11)


def _far(log: bytearray, at: list[int]) -> None:
    log[at[3] : at[3] + 8] = struct.pack(">q", 2**40)


LOG_DAMAGE: Final[dict[str, Callable[[bytearray, list[int]], None]]] = {
    "flip": _flip,
    "value": _value,
    "zero": _zero,
    "size": _size,
    "short": _short,
    "twice": _twice,
    "first": _first,
    "last": _last,
    "torn": _torn,
    "tail": _tail,
    "gone": _gone,
    "order": _order,
    "far": _far,
}
"""What a log can become, given where its batches begin."""


def _of_log(segment: int, spoil: Callable[[bytearray, list[int]], None], log_dir: Path) -> None:
    path = _file(log_dir, segment, "log")
    log = bytearray(path.read_bytes())
    spoil(log, batches_in(log))
    path.write_bytes(log)


# ---- the indexes


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: -8 if path.suffix == ".index" else -12])


def _beyond(path: Path) -> None:
    size = {".index": 8, ".timeindex": 12, ".txnindex": 34}[path.suffix]
    path.write_bytes(path.read_bytes() + b"\x7f" * size)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _content(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


INDEX_DAMAGE: Final[dict[str, Callable[[Path], None]]] = {
    "lost": Path.unlink,
    "empty": _content(b""),
    "cut": _truncated,
    "beyond": _beyond,
    "zeros": lambda path: os.truncate(path, 10_485_756),
    "uneven": lambda path: os.truncate(path, path.stat().st_size + 1),
    "directory": _directory,
    "noise": _content(bytes(range(1, 103))),
}


# ---- what a start needs


def _written(name: str, content: str) -> Callable[[Path], None]:
    def write(log_dir: Path) -> None:
        (log_dir / name).write_text(content)

    return write


def _no_file(name: str) -> Callable[[Path], None]:
    def make(log_dir: Path) -> None:
        (log_dir / name).unlink(missing_ok=True)
        (log_dir / name).mkdir()

    return make


def _without(name: str) -> Callable[[Path], None]:
    return lambda log_dir: (log_dir / name).unlink()


def _copied(name: str) -> Callable[[Path], None]:
    def copy(log_dir: Path) -> None:
        shutil.copytree(log_dir / "topic-0", log_dir / name)

    return copy


STOPS: Final[dict[str, Callable[[Path], None]]] = {
    "nothing": lambda log_dir: None,
    "meta.properties": _written("meta.properties", "version=7\n"),
    "meta.properties lost": _without("meta.properties"),
    "meta.properties without ids": _written("meta.properties", "version=1\n"),
    "meta.properties no file": _no_file("meta.properties"),
    "partition.metadata": _written("topic-0/partition.metadata", "x"),
    "partition.metadata no file": _no_file("topic-0/partition.metadata"),
    "epochs": _written("topic-0/leader-epoch-checkpoint", "0\n5\n"),
    "epochs lost": _without("topic-0/leader-epoch-checkpoint"),
    "epochs no file": _no_file("topic-0/leader-epoch-checkpoint"),
    "recovery points": _written("recovery-point-offset-checkpoint", "x"),
    "log starts": _written("log-start-offset-checkpoint", "x"),
    "log start beyond": _written("log-start-offset-checkpoint", "0\n1\ntopic 0 5000\n"),
    "high watermarks": _written("replication-offset-checkpoint", "0\n1\ntopic 0 5000\n"),
    "cleaner no file": _no_file("cleaner-offset-checkpoint"),
    "stray directory": lambda log_dir: (log_dir / "photos").mkdir(),
    "stray segment file": lambda log_dir: (log_dir / "topic-0" / "notes.log").touch(),
    "name of 21 digits": lambda log_dir: (log_dir / "topic-0" / f"{90:021d}.log").touch(),
    "log no file": lambda log_dir: (log_dir / "topic-0" / f"{90:020d}.log").mkdir(),
    "orphan": lambda log_dir: (log_dir / "topic-0" / f"{90:020d}.index").touch(),
    "empty partition": lambda log_dir: (log_dir / "topic-1").mkdir(),
    "two of a partition": _copied("topic-00"),
    "future": _copied(f"topic-0.{32 * 'a'}-future"),
    "being deleted": _copied(f"topic-0.{32 * 'a'}-delete"),
    "put aside": _copied(f"topic-0.{32 * 'a'}-stray"),
    "snapshot": _written(f"topic-0/{61:020d}.snapshot", "x"),
    "snapshot lost": _without(f"topic-0/{61:020d}.snapshot"),
    "unclean": _without(".kafka_cleanshutdown"),
}


def _all() -> dict[str, Callable[[Path], None]]:
    found: dict[str, Callable[[Path], None]] = dict(STOPS)
    for segment, where in enumerate(("oldest", "middle", "newest")):
        found |= {f"log {name} {where}": partial(_of_log, segment, spoil) for name, spoil in LOG_DAMAGE.items()}
        for ending in ("index", "timeindex", "txnindex"):
            found |= {
                f"{ending} {name} {where}": partial(_of_index, segment, ending, change)
                for name, change in INDEX_DAMAGE.items()
            }
    return found


def _of_index(segment: int, ending: str, change: Callable[[Path], None], log_dir: Path) -> None:
    change(_file(log_dir, segment, ending))


DAMAGE: Final = _all()
"""All of it, by name."""
