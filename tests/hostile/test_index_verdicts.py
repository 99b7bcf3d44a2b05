"""Verdicts on index files: what a broker, a restart or `optimize` leaves is right, and what look-ups miss is not."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.report import Finding
from mqindex.rocketmq import IndexService, optimize, repair, verify
from tests.reference.commit_log import index_strings, scan_log
from tests.reference.dispatch import Rules
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.index_service import IndexService as Twin
from tests.reference.queue_files import build_queues
from tests.reference.rebuild import log_files
from tests.support.index_entries import entries_of
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter
from tests.support.nightly import one_of, some
from tests.support.tree import index_bytes

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


EQUAL = ["a a a a a", "a a a a b", "b a a a a", "x a a a a a y", "a b a b a b", "Aa BB Aa BB Aa"]


@pytest.mark.parametrize(
    ("keys", "index_num", "again", "optimized"), one_of(3, EQUAL, [2, 3, 4, 9], [False, True], [False, True])
)
def test_equal_keys_of_a_message_fill_files(
    tmp_path: Path, keys: str, index_num: int, again: bool, optimized: bool
) -> None:
    """Which of them a file has is only known from the files beside it. A restarted broker indexes the message again."""
    store = Store(tmp_path, ["p q", keys, "z"], (50, index_num))
    store.put([0, 1, 1, 2] if again else None)
    store.save()
    if optimized:
        optimize(tmp_path / "index", tmp_path, hash_slot_num=50, index_num=index_num, overwrite=True)
    assert store.is_clean()


@pytest.mark.parametrize("seed", some(range(20, 32), lambda seed: seed > 24))
def test_messages_of_few_keys_fill_files(tmp_path: Path, seed: int) -> None:
    """A broker that lost its last file indexes a message again in a new one; `optimize` changes the order of keys."""
    r = random.Random(seed)
    keys = [" ".join(r.choices("abc", k=r.randrange(1, 14))) for _ in range(30)]
    geometry = r.choice([2, 5, 50]), r.choice([3, 4])
    store = Store(tmp_path, keys, geometry)
    for n in range(30):
        store.put([n])
        if r.random() < 0.1:
            if len(store.service.files) > 1 and r.random() < 0.5:
                del store.service.files[-1]
            store.put(range(n + 1))
    store.save()
    assert store.is_clean()
    optimize(tmp_path / "index", tmp_path, hash_slot_num=geometry[0], index_num=geometry[1], overwrite=True)
    assert store.is_clean()


@pytest.mark.parametrize("lost", range(6))
def test_a_lost_file_of_equal_keys_comes_back(tmp_path: Path, lost: int) -> None:
    store = Store(tmp_path, ["p q", "x a a a a a y", "z"], (50, 3))
    store.put()
    paths = store.save()
    for number, path in enumerate(paths):
        path.rename(path.with_name(f"2023111422132{number}000"))
    before = entries_of(tmp_path, (50, 3))
    (tmp_path / "index" / f"2023111422132{lost}000").unlink(missing_ok=True)
    repair(tmp_path, **store.given)
    assert entries_of(tmp_path, (50, 3)) == before
    assert store.is_clean()


@pytest.mark.parametrize("index_num", [8, 4000])
@pytest.mark.parametrize("optimized", [False, True])
def test_entries_lost_among_equal_keys_come_back(tmp_path: Path, index_num: int, optimized: bool) -> None:
    """The file that repair writes begins and ends inside the message."""
    store = Store(tmp_path, ["p q", "x a a a a a y", "z"], (1000, index_num))
    times = {message.phy_offset: message.store_timestamp for message in store.messages}
    entries = [(key, message.phy_offset) for message in store.messages for key in index_strings(message, tags=False)]
    (tmp_path / "index").mkdir()
    seed = (0, 0)
    for name, part in (("20231114221320000", entries[:5]), ("20231114221325000", entries[7:])):
        file = TwinFile(1000, index_num, *seed)
        assert all(file.put(key, phy_offset, times[phy_offset]) for key, phy_offset in part)
        (tmp_path / "index" / name).write_bytes(file.flush())
        seed = entries[6][1], times[entries[6][1]]
    if optimized:
        optimize(tmp_path / "index", tmp_path, hash_slot_num=1000, index_num=index_num, overwrite=True)
    assert [one.expected for one in store.errors(deep=False)] == [f"2 entries from phy offset {entries[6][1]} on"]
    assert repair(tmp_path, **store.given).entries == 2
    assert store.is_clean()
    assert entries_of(tmp_path, (1000, index_num)).total() == len(entries)


@pytest.mark.parametrize("keys", [17, 23, 30, 38])
def test_a_message_over_several_files_is_indexed_again(tmp_path: Path, keys: int) -> None:
    """The file in which the restarted broker went on is not the last one, though it begins last in the message."""
    every = [" ".join(f"x{(n * 7 + at) % 40}" for at in range(keys)) for n in range(6)]
    store = Store(tmp_path, every, (50, 16))
    store.put([0, 1, 2, 2, 3, 4, 5, 5])
    store.save()
    told = [one for one in verify(tmp_path, **store.given).findings if one.severity != "info"]
    assert told == []
    assert store.is_clean()


@pytest.mark.parametrize("slots", [2, 3, 5])
@pytest.mark.parametrize("kept", [2, 4, 6])
@pytest.mark.parametrize("keys", ["a b q r s a b", "a a b a a a b", "Aa b BB c Aa b d"])
def test_only_the_last_message_of_an_optimized_file_is_left(tmp_path: Path, slots: int, kept: int, keys: str) -> None:
    """It goes on in the next file, and has the same keys at its begin and at its end."""
    every = ["k0 k1 k2 k3 k4 k5"] * 34 + [keys + " " * 200, "z", "zz"]
    store = Store(tmp_path, every, (slots, 1 + (34 * 6 + kept) // 2), 2048)
    assert [store.messages[n].phy_offset for n in (17, 34)] == [2048, 4096]
    store.put()
    store.save()
    optimize(tmp_path / "index", tmp_path, hash_slot_num=slots, index_num=store.given["index_num"], overwrite=True)
    assert store.is_clean()
    (tmp_path / "commitlog" / f"{2048:020d}").unlink()
    before = index_bytes(tmp_path)
    assert {one.kind for deep in (False, True) for one in store.errors(deep=deep)} == {"log-file-missing"}
    repair(tmp_path, **store.given)
    assert index_bytes(tmp_path) == before


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
