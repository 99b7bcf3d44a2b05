"""Verdicts on index files: what a broker, a restart or `optimize` leaves is right, and what look-ups miss is not."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.report import Finding
from mqindex.rocketmq import IndexService, optimize, repair, verify
from tests.reference.commit_log import index_strings, scan_log
from tests.reference.dispatch import Rules
from tests.reference.index_service import IndexService as Twin
from tests.reference.queue_files import build_queues
from tests.reference.rebuild import log_files
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

LEVELS = [1000, 5000, 10000]


class Store:
    """Messages of one topic with these keys, and what a broker before 5.4 makes of them."""

    def __init__(
        self, root: Path, keys: Iterable[str], geometry: tuple[int, int] = (97, 20_000), log_file_size: int = 1 << 16,
        step: int = 10, unique: Callable[[int], str | None] = lambda n: None,
    ) -> None:  # fmt: skip
        self.root = root
        self.given = {
            "broker_version": "4.9.3", "hash_slot_num": geometry[0], "index_num": geometry[1],
            "engine": LocalEngine(1),
        }  # fmt: skip
        log = LogWriter(root / "commitlog", mapped_file_size=log_file_size)
        for n, each in enumerate(keys):
            time = FIRST_TIME + n * step
            log.write(LogMessage("T", keys=each, uniq_key=unique(n), store_timestamp=time, queue_offset=n))
        self.messages = scan_log(log_files(root / "commitlog"))[0]
        self.service = Twin(*geometry)
        for name, data in build_queues(self.messages, Rules(LEVELS), 400).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)

    def put(self, which: Iterable[int] | None = None) -> None:
        """The index entries of these messages, in this order; None: of all."""
        for n in range(len(self.messages)) if which is None else which:
            message = self.messages[n]
            self.service.build_index(index_strings(message, tags=False), message.phy_offset, message.store_timestamp)

    def save(self) -> list[Path]:
        (self.root / "index").mkdir()
        paths = [self.root / "index" / str(20231114221320000 + n) for n in range(len(self.service.files))]
        for path, file in zip(paths, self.service.files, strict=True):
            path.write_bytes(file.flush())
        return paths

    def errors(self, *, deep: bool) -> list[Finding]:
        return [one for one in verify(self.root, deep=deep, **self.given).findings if one.severity == "error"]

    def is_clean(self) -> bool:
        return not self.errors(deep=False) + self.errors(deep=True) + repair(self.root, **self.given).actions

    def entries_of(self, key: str) -> int:
        with IndexService.open(self.root / "index", hash_slot_num=97, index_num=20_000) as index:
            return len(index.query_offsets("T", [key]).values)


@pytest.mark.parametrize("optimized", [False, True])
def test_a_hole_in_the_middle_of_a_file_is_seen_without_deep(tmp_path: Path, optimized: bool) -> None:
    """A broker whose newest file was deleted, or whose index was switched off for a while, goes on in the last file."""
    store = Store(tmp_path, [f"k{n}" for n in range(2000)])
    store.put([*range(800), *range(1200, 2000)])
    store.save()
    if optimized:
        optimize(tmp_path / "index", tmp_path, overwrite=True)
    for deep in (False, True):
        first = store.errors(deep=deep)[0]
        assert first.kind == "missing-entries"
        if not optimized:
            assert first.expected == f"400 entries from phy offset {store.messages[800].phy_offset} on"
    assert repair(tmp_path, **store.given).actions
    assert store.is_clean()
    assert store.entries_of("k1000") == 1


def test_restarts_in_the_middle_of_a_file_are_no_hole(tmp_path: Path) -> None:
    store = Store(tmp_path, [f"k{n}" for n in range(2000)])
    store.put([*range(800), *range(799, 1500), *range(1499, 2000)])
    store.save()
    assert store.is_clean()


@pytest.mark.parametrize("count", [100, 101, 512, 2000])
def test_a_message_may_have_a_key_many_times(tmp_path: Path, count: int) -> None:
    store = Store(tmp_path, [" ".join(["a"] * count), " ".join(f"x{n}" for n in range(200))])
    store.put()
    store.save()
    assert store.is_clean()


def test_a_key_twice_in_the_first_message_that_is_left(tmp_path: Path) -> None:
    """The index file begins in the file before with messages that have expired: its first one left is whole."""
    keys = [*(f"k{n}" for n in range(18)), "x U18" + " " * 100, *(f"k{n}" for n in range(19, 24))]
    store = Store(tmp_path, keys, (7, 20), 2048, unique=lambda n: "U18" if n == 18 else None)
    assert store.messages[18].phy_offset == 2048
    store.put()
    store.save()
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    assert store.is_clean()


@pytest.mark.parametrize("keys", ["b a b a", "a a", "a b", "a b a"])
def test_a_message_that_a_roll_cut_is_indexed_again(tmp_path: Path, keys: str) -> None:
    store = Store(tmp_path, [keys if n == 17 else f"k{n}" for n in range(40)], (7, 20))
    store.put([*range(18), *range(17, 40)])
    store.save()
    assert store.is_clean()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_messages_are_optimized(tmp_path: Path, count: int) -> None:
    """No offset falls in the file, as the entries of one message only change their order, so nothing shows it."""
    for n, key in enumerate("abcdefgh"):
        root = tmp_path / key
        root.mkdir()
        store = Store(root, [key] * count, unique=lambda at, n=n: f"U{n}{at}")  # type: ignore[misc]
        store.put()
        store.save()
        optimize(root / "index", root, overwrite=True)
        assert store.is_clean()
        assert store.entries_of(key) == count


@pytest.mark.parametrize("at", [7, 15])
def test_an_empty_file_begins_and_ends_with_its_seeds(tmp_path: Path, at: int) -> None:
    """A begin that is too early makes look-ups with a begin time stop there."""
    store = Store(tmp_path, [*(f"k{n}" for n in range(19)), ""], (7, 20))
    store.put()
    paths = store.save()
    assert len(paths) == 2
    assert store.is_clean()
    good = paths[1].read_bytes()
    data = bytearray(good)
    data[at] ^= 64
    paths[1].write_bytes(data)
    for deep in (False, True):
        assert [one.kind for one in store.errors(deep=deep)] == ["index-empty"]
    assert repair(tmp_path, **store.given).actions
    assert store.is_clean()


def test_the_end_time_is_checked_where_the_first_messages_expired(tmp_path: Path) -> None:
    store = Store(tmp_path, [f"k{n}" for n in range(200)], log_file_size=4096, step=350)
    store.put()
    (path,) = store.save()
    min((tmp_path / "commitlog").iterdir()).unlink()
    assert store.is_clean()
    data = bytearray(path.read_bytes())
    end = struct.unpack_from(">q", data, 8)[0]
    struct.pack_into(">q", data, 8, end - 100)
    path.write_bytes(data)
    for deep in (False, True):
        assert "wrong-time" in {one.kind for one in store.errors(deep=deep)}
