"""Kinds of damage to a RocketMQ store, each with a name: a function that does it to a copy of a store.

`DAMAGE` is for the store `basic-493`, `EXT_DAMAGE` for `ipv6-batch-ext-493`, `BATCH_DAMAGE` for one with batch queues
in files of 460 bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["BATCH_DAMAGE", "DAMAGE", "EXT_DAMAGE"]

Damage = Callable[[Path], object]


def _write(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def _cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def _index(store: Path, number: int) -> Path:
    return sorted((store / "index").iterdir())[number]


def _queue(store: Path, name: str = "OrderTopic/0") -> Path:
    return store / "consumequeue" / name


def _swap(one: Path, other: Path) -> None:
    data = one.read_bytes(), other.read_bytes()
    one.write_bytes(data[1])
    other.write_bytes(data[0])


def _new(path: Path, data: bytes | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if data is None else path.write_bytes(data)


def _instead(path: Path, data: bytes | None = None) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    _new(path, data)


def _abort(damage: Damage) -> Damage:
    def both(store: Path) -> None:
        damage(store)
        (store / "abort").touch()

    return both


_LAST: Final = "0" * 16 + "1000"
_FIRST: Final = "0" * 20
_LOG: Final = Path("commitlog")
_PLAIN: Final[dict[str, Damage]] = {
    "nothing": lambda store: None,
    "index: first lost": lambda store: _index(store, 0).unlink(),
    "index: middle lost": lambda store: _index(store, 1).unlink(),
    "index: last lost": lambda store: _index(store, -1).unlink(),
    "index: all lost": lambda store: shutil.rmtree(store / "index"),
    "index: cut": lambda store: _cut(_index(store, 1), 1000),
    "index: empty": lambda store: _cut(_index(store, 1), 0),
    "index: noise": lambda store: _write(_index(store, 1), 0, b"\xa5" * 8440),
    "index: zeros": lambda store: _write(_index(store, 1), 0, bytes(8440)),
    "index: slot": lambda store: _write(_index(store, 0), 40, b"\x7f\xff\xff\xff" * 50),
    "index: hash": lambda store: _write(_index(store, 0), 40 + 400 + 40 * 20, b"\0\0\0\7"),
    "index: swapped": lambda store: _swap(_index(store, 0), _index(store, 2)),
    "index: stranger": lambda store: _new(store / "index" / "notes.txt", b"mine"),
    "index: directory": lambda store: _new(store / "index" / "20991231000000000"),
    "index: file of that name": lambda store: _instead(store / "index", b"?"),
    "queue: lost": lambda store: shutil.rmtree(_queue(store)),
    "queue: first lost": lambda store: (_queue(store) / _FIRST).unlink(),
    "queue: last lost": lambda store: (_queue(store) / _LAST).unlink(),
    "queue: cut": lambda store: _cut(_queue(store) / _FIRST, 500),
    "queue: empty": lambda store: _cut(_queue(store) / _FIRST, 0),
    "queue: last empty": lambda store: _cut(_queue(store) / _LAST, 0),
    "queue: last zeros": lambda store: _write(_queue(store) / _LAST, 0, bytes(1000)),
    "queue: zeros inside": lambda store: _write(_queue(store) / _FIRST, 200, bytes(60)),
    "queue: other units": lambda store: _write(_queue(store) / _FIRST, 20, b"\1" * 20),
    "queue: swapped": lambda store: _swap(_queue(store) / _FIRST, _queue(store, "BBTopic/0") / _FIRST),
    "queue: stranger": lambda store: _new(_queue(store) / "notes.txt", b"mine"),
    "queue: directory": lambda store: _new(_queue(store) / "old"),
    "queue: of no message": lambda store: _new(_queue(store, "Nobody/0") / _FIRST, bytes(1000)),
    "queue: topic": lambda store: _new(store / "consumequeue" / "notes.txt", b"mine"),
    "queue: all lost": lambda store: shutil.rmtree(store / "consumequeue"),
    "checkpoint: lost": lambda store: (store / "checkpoint").unlink(),
    "checkpoint: zeros": lambda store: _write(store / "checkpoint", 0, bytes(4096)),
    "checkpoint: noise": lambda store: _write(store / "checkpoint", 0, b"\xa5" * 24),
    "checkpoint: cut": lambda store: _cut(store / "checkpoint", 7),
    "checkpoint: directory": lambda store: _instead(store / "checkpoint"),
    "abort.bak: directory": lambda store: _new(store / "abort.bak"),
    "abort: directory": lambda store: _new(store / "abort"),
    "abort: not empty": lambda store: _new(store / "abort", b"?"),
    "lock: directory": lambda store: _instead(store / "lock"),
    "config: a file": lambda store: _instead(store / "config", b"x"),
    "config: offsets": lambda store: (store / "config" / "delayOffset.json").write_text("{"),
    "config: topics": lambda store: _new(store / "config" / "topics.json", b"[1"),
    "config: consumers": lambda store: _new(store / "config" / "consumerOffset.json", b" \n"),
    "compaction: stranger": lambda store: _new(store / "compaction/compactionLog/T/abc"),
    "timer wheel: cut": lambda store: _new(store / "timerwheel", b"?"),
    "log: body": lambda store: _write(store / _LOG / _FIRST, 30_100, b"\xa5" * 40),
    "log: hole": lambda store: _write(store / _LOG / _FIRST, 30_000, bytes(3000)),
    "log: end": lambda store: _write(store / _LOG / _FIRST, 60_000, bytes(5536)),
    "log: newest body": lambda store: _write(store / _LOG / f"{65536:020d}", 20_000, b"\xa5" * 400),
    "log: first lost": lambda store: (store / _LOG / _FIRST).unlink(),
    "log: newest lost": lambda store: (store / _LOG / f"{65536:020d}").unlink(),
    "log: stranger": lambda store: _new(store / _LOG / "notes.txt", b"mine"),
    "log: cut": lambda store: _cut(store / _LOG / f"{65536:020d}", 40_000),
}
DAMAGE: Final = _PLAIN | {f"{name}, killed": _abort(damage) for name, damage in _PLAIN.items()}


def _ext(store: Path, name: str = "1") -> Path:
    return sorted((store / "consumequeue_ext" / "NetTopic" / name).iterdir())[0]


_EXT: Final[dict[str, Damage]] = {
    "ext: nothing": lambda store: None,
    "ext: all lost": lambda store: shutil.rmtree(store / "consumequeue_ext"),
    "ext: of a queue": lambda store: shutil.rmtree(_ext(store).parent),
    "ext: first lost": lambda store: _ext(store).unlink(),
    "ext: cut": lambda store: _cut(_ext(store), 100),
    "ext: empty": lambda store: _cut(_ext(store), 0),
    "ext: zeros": lambda store: _write(_ext(store), 0, bytes(840)),
    "ext: noise": lambda store: _write(_ext(store), 0, b"\xa5" * 840),
    "ext: a byte": lambda store: _write(_ext(store), 50, b"\xa5"),
    "ext: swapped": lambda store: _swap(_ext(store), _ext(store, "2")),
    "ext: stranger": lambda store: _new(_ext(store).parent / "notes.txt", b"mine"),
    "ext: next empty": lambda store: _new(_ext(store).with_name(f"{int(_ext(store).name) + 8400:020d}"), b""),
    "ext: directory": lambda store: _new(_ext(store).parent / "old"),
    "ext: a file": lambda store: _instead(store / "consumequeue_ext", b"?"),
    "ext: of no queue": lambda store: _new(store / "consumequeue_ext" / "Nobody" / "0" / _FIRST, bytes(840)),
    "ext: address": lambda store: _write(_queue(store, "NetTopic/1") / _FIRST, 12, b"\x80" + bytes(6) + b"\x33"),
    "ext: units lost": lambda store: shutil.rmtree(_queue(store, "NetTopic/1")),
}
EXT_DAMAGE: Final = _EXT | {f"{name}, killed": _abort(damage) for name, damage in _EXT.items()}


def _batch(store: Path, number: int = 0, queue: str = "0") -> Path:
    return sorted((store / "batchconsumequeue" / "Batched" / queue).iterdir())[number]


_BATCH: Final[dict[str, Damage]] = {
    "batch: nothing": lambda store: None,
    "batch: all lost": lambda store: shutil.rmtree(store / "batchconsumequeue"),
    "batch: of a queue": lambda store: shutil.rmtree(_batch(store).parent),
    "batch: first lost": lambda store: _batch(store).unlink(),
    "batch: last lost": lambda store: _batch(store, -1).unlink(),
    "batch: cut": lambda store: _cut(_batch(store), 100),
    "batch: empty": lambda store: _cut(_batch(store, -1), 0),
    "batch: zeros": lambda store: _write(_batch(store), 0, bytes(460)),
    "batch: last zeros": lambda store: _write(_batch(store, -1), 0, bytes(460)),
    "batch: noise": lambda store: _write(_batch(store), 46, b"\xa5" * 46),
    "batch: swapped": lambda store: _swap(_batch(store), _batch(store, queue="1")),
    "batch: stranger": lambda store: _new(_batch(store).parent / "notes.txt", b"mine"),
    "batch: directory": lambda store: _new(_batch(store).parent / "old"),
    "batch: a file": lambda store: _instead(store / "batchconsumequeue", b"?"),
    "batch: ordinary queue beside": lambda store: _new(_queue(store, "Batched/0") / _FIRST, b"\1" * 400),
    "batch: topics lost": lambda store: (store / "config" / "topics.json").unlink(),
    "batch: log hole": lambda store: _write(store / _LOG / _FIRST, 1000, bytes(400)),
}
BATCH_DAMAGE: Final = _BATCH | {f"{name}, killed": _abort(damage) for name, damage in _BATCH.items()}
