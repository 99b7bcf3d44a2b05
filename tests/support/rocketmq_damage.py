"""Kinds of damage to a RocketMQ store, each with a name: a function that does it to a copy of the store `basic-493`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["DAMAGE"]

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
