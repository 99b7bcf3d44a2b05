"""Rebuild, repair and follow of a store; rebuild and repair of a Kafka partition."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.files.results.unpacking import unpack
from tests.crash import test_kafka_repair as of_kafka
from tests.crash import test_repair as of_rocketmq
from tests.faults.attempt import Lost, Told, scraps
from tests.support.growing_store import OPTIONS as FOLLOW_OPTIONS
from tests.support.growing_store import GrowingStore, Turns
from tests.support.opening import require_opens
from tests.support.sample_archive import ARCHIVE
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import contents, index_bytes, queue_bytes

__all__ = ["OPERATIONS"]

ONE = LocalEngine(1)
REBUILD_OPTIONS: dict[str, Any] = {**OPTIONS, "engine": ONE, "split_size": 4096}
REPAIR_OPTIONS: dict[str, Any] = {**of_rocketmq.OPTIONS, "engine": ONE}
KAFKA_OPTIONS: dict[str, Any] = of_kafka.OPTIONS


def require(fact: object, what: str) -> None:
    """One sentence of a judge."""
    if not fact:
        raise Lost(what)


def apart_from_backups(place: Path) -> dict[str, str]:
    """All but backups and scratch, which is looked for in one place for all operations."""
    aside = ("mqindex-backup-", ".mqindex-")
    return {path: held for path, held in contents(place).items() if not any(name in path for name in aside)}


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """The paths that are not the same in both."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


# ---- rebuild: all or nothing


@dataclass
class Rebuild:
    """`source` becomes `out`, where with `force` an old one stands."""

    name: str
    make: Callable[[Path], object]
    rebuild: Callable[..., Any]
    options: dict[str, Any]
    force: bool
    before: dict[str, str] = field(default_factory=dict)
    right: dict[str, str] = field(default_factory=dict)

    def prepare(self, place: Path) -> None:
        self.make(place / "source-0")
        self.before = contents(place / "source-0")
        self.rebuild(place / "source-0", place / "right", **self.options)
        self.right = contents(place / "right")
        shutil.rmtree(place / "right")
        if self.force:
            (place / "out").mkdir()
            (place / "out" / "old").write_bytes(b"old")

    def begin(self, place: Path) -> None: ...

    def run(self, place: Path, told: Told) -> None:
        self.rebuild(place / "source-0", place / "out", overwrite=self.force, **self.options)

    def judge(self, place: Path, told: Told) -> None:
        published = self._check(place, told)
        require(published or told.failed, "no error, and no output")
        if not published:
            self.run(place, told)
            require(self._check(place, told), "the second run published nothing")
        elif scraps(place):
            self.rebuild(place / "source-0", place / "another", **self.options)

    def _check(self, place: Path, told: Told) -> bool:
        """Whether the new output is there; nothing else changed. Where a second call failed too, the old one may be
        under the name that the error says.
        """
        require(contents(place / "source-0") == self.before, "the source changed")
        out = contents(place / "out") if (place / "out").is_dir() else None
        backups = [path for path in place.iterdir() if path.name.startswith("out.backup-")]
        published = out == self.right
        if self.force:
            require(out is not None, "the output is gone")
            said = " ".join(str(one) for one in told.failed)
            backups += [path for path in place.glob("out.exchange-*") if f"it is whole: mv {path} " in said]
            old = [place / "out", *backups][published:]
            require(any((path / "old").exists() for path in old), "the old output is gone")
        require(published or out is None or (self.force and out.keys() == {"old"}), f"half an output: {out}")
        return published


# ---- sample: both directories or none


class Unpack:
    """`mqindex sample`: what an archive holds appears beside what is there."""

    name = "sample"

    def __init__(self) -> None:
        self.right: dict[str, str] = {}

    def prepare(self, place: Path) -> None:
        (place / "mine").write_bytes(b"mine")
        self._unpack(place)
        self.right = contents(place)
        for top in ("store", "orders-0"):
            shutil.rmtree(place / top)

    def begin(self, place: Path) -> None: ...

    def run(self, place: Path, told: Told) -> None:
        self._unpack(place)

    def judge(self, place: Path, told: Told) -> None:
        if told.failed and not (place / "store").exists():
            require(not (place / "orders-0").exists(), "one directory without the other")
            self._unpack(place)
        require(apart_from_backups(place) == self.right, "not what the archive holds")

    def _unpack(self, place: Path) -> None:
        with ARCHIVE.open("rb") as archive:
            unpack(archive, str(place))


# ---- repair: every file the old or the new one


@dataclass
class Repair:
    """What is broken at `place` is repaired; the old files stay somewhere."""

    name: str
    make: Callable[[Path], object]
    repair: Callable[..., Any]
    options: dict[str, Any]
    old: dict[str, str] = field(default_factory=dict)
    right: dict[str, str] = field(default_factory=dict)

    def prepare(self, place: Path) -> None:
        self.make(place / "broken-0")
        self.old = contents(place / "broken-0")
        shutil.copytree(place / "broken-0", place / "right-0")
        self.repair(place / "right-0", **self.options)
        self.right = apart_from_backups(place / "right-0")
        shutil.rmtree(place / "right-0")

    def begin(self, place: Path) -> None: ...

    def run(self, place: Path, told: Told) -> None:
        self.repair(place / "broken-0", **self.options)

    def judge(self, place: Path, told: Told) -> None:
        if self.repair in _OF_STORES:
            require_opens(place / "broken-0", **of_rocketmq.OPTIONS)
        here = apart_from_backups(place / "broken-0")
        require(told.failed or here == self.right, f"no error, and not repaired: {differing(here, self.right)}")
        for path, held in here.items():
            require(held in (self.old.get(path), self.right.get(path)), f"{path}: neither the old nor the new file")
        require(self.old.keys() & self.right.keys() <= here.keys(), "a file is gone that was there before and after")
        self._check_nothing_lost(place)
        self.repair(place / "broken-0", **self.options)
        here = apart_from_backups(place / "broken-0")
        require(here == self.right, f"the second run left other files: {differing(here, self.right)}")
        self._check_nothing_lost(place)

    def _check_nothing_lost(self, place: Path) -> None:
        lost = set(self.old.values()) - set(contents(place / "broken-0").values())
        require(not lost, f"gone: {[path for path, held in self.old.items() if held in lost]}")


@dataclass
class Undo:
    """What a repair moved is put back: every file the old or the new one, and none is gone."""

    name: str
    make: Callable[[Path], object]
    repair: Callable[..., Any]
    undo: Callable[..., Any]
    options: dict[str, Any]
    moved_whole: str = ""  # a directory that no one call can give another's place
    old: dict[str, str] = field(default_factory=dict)
    right: dict[str, str] = field(default_factory=dict)

    def prepare(self, place: Path) -> None:
        self.make(place / "broken-0")
        self.old = contents(place / "broken-0")
        self.backup = Path(self.repair(place / "broken-0", **self.options).backup).name
        self.right = apart_from_backups(place / "broken-0")

    def begin(self, place: Path) -> None: ...

    def run(self, place: Path, told: Told) -> None:
        self.undo(place / "broken-0", self.backup)

    def judge(self, place: Path, told: Told) -> None:
        root = place / "broken-0"
        if self.repair in _OF_STORES:
            require_opens(root, **of_rocketmq.OPTIONS)
        here = apart_from_backups(root)
        require(told.failed or here == self.old, f"no error, and not put back: {differing(here, self.old)}")
        for path, held in here.items():
            require(held in (self.old.get(path), self.right.get(path)), f"{path}: neither the old nor the new file")
        gone = self.old.keys() & self.right.keys() - here.keys()
        require(all(self.moved_whole and path.startswith(self.moved_whole) for path in gone), f"gone: {sorted(gone)}")
        lost = {*self.old.values(), *self.right.values()} - set(contents(root).values())
        require(not lost, "a file is nowhere")
        if (root / self.backup).exists():
            self.undo(root, self.backup)
        here = apart_from_backups(root)
        require(here == self.old, f"the second run left other files: {differing(here, self.old)}")


def broken_store(situation: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        make_small_store(root, unclean=True)
        of_rocketmq.SITUATIONS[situation](root)

    return make


def broken_both(root: Path) -> None:
    broken_store("spoilt")(root)
    of_rocketmq.queues_gone(root)


def optimize_in_place(root: Path, **options: Any) -> None:
    """What is so already stays, so a second run finishes the first one."""
    rocketmq.optimize(root, root, overwrite=True, **options)


_OF_STORES = (rocketmq.repair, optimize_in_place)


# ---- follow: what a second run reaches is exact


class Follow:
    """One round: the whole log of another's store into a directory of ours, and a clean end."""

    name = "follow"

    def __init__(self) -> None:
        self.before: dict[str, str] = {}
        self.right: tuple[list[bytes], dict[str, bytes]] = [], {}

    def prepare(self, place: Path) -> None:
        store = GrowingStore(place / "store")
        store.write(12)
        shutil.copytree(place / "store", place / "earlier")
        store.write(18)
        self.before = contents(place / "store")
        self.right = store.expected(place / "right")
        shutil.rmtree(place / "right")

    def begin(self, place: Path) -> None:
        """A first round: what it leaves says where its store is, and works there alone."""
        (place / "store").rename(place / "later")
        (place / "earlier").rename(place / "store")
        self.run(place, Told())
        (place / "store").rename(place / "earlier")
        (place / "later").rename(place / "store")

    def run(self, place: Path, told: Told) -> None:
        rocketmq.follow(place / "store", place / "out", stop=Turns(12), engine=ONE, **FOLLOW_OPTIONS)

    def judge(self, place: Path, told: Told) -> None:
        if not told.failed:
            self._check(place)
        require(contents(place / "store") == self.before, "the source changed")
        self.run(place, told)
        self._check(place)

    def _check(self, place: Path) -> None:
        require((index_bytes(place / "out"), queue_bytes(place / "out")) == self.right, "not what a rebuild gives")


OPERATIONS = [
    *(
        Rebuild(f"rocketmq-rebuild{force}", make_small_store, rocketmq.rebuild, REBUILD_OPTIONS, bool(force))
        for force in ("", "-force")
    ),
    Repair("rocketmq-repair-index", broken_store("spoilt"), rocketmq.repair, REPAIR_OPTIONS),
    Repair("rocketmq-repair-incomplete", broken_store("incomplete"), rocketmq.repair, REPAIR_OPTIONS),
    Repair("rocketmq-repair-queues", broken_store("queues spoilt"), rocketmq.repair, REPAIR_OPTIONS),
    Repair("rocketmq-repair-both", broken_both, rocketmq.repair, REPAIR_OPTIONS),
    *(
        Rebuild(f"rocketmq-optimize{force}", make_small_store, rocketmq.optimize, {"engine": ONE}, bool(force))
        for force in ("", "-force")
    ),
    Repair("rocketmq-optimize-in-place", make_small_store, optimize_in_place, {"engine": ONE}),
    *(
        Rebuild(f"kafka-rebuild{force}", of_kafka.make_partition, kafka.rebuild, KAFKA_OPTIONS, bool(force))
        for force in ("", "-force")
    ),
    Repair("kafka-repair", of_kafka.broken, kafka.repair, KAFKA_OPTIONS),
    Undo("rocketmq-undo", broken_both, rocketmq.repair, rocketmq.undo_repair, REPAIR_OPTIONS, "consumequeue/"),
    Undo("kafka-undo", of_kafka.broken, kafka.repair, kafka.undo_repair, KAFKA_OPTIONS),
    Follow(),
    Unpack(),
]  # fmt: skip
