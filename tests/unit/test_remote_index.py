"""Look-ups in index files elsewhere: the answers of the same files here, and only the ranges on their way are read."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.errors import (
    BadMagicError,
    ClosedFileError,
    FileStateError,
    GeometryError,
    ReadOnlyFileError,
    TruncatedFileError,
)
from mqindex.files.places.paged_file import PagedFile
from mqindex.files.places.place import Place, place_of
from mqindex.files.places.storage import Stat
from mqindex.rocketmq import IndexFile, IndexService, key_hashes, optimize
from mqindex.rocketmq.index import elsewhere, geometry
from mqindex.rocketmq.index.index_file import asked_hashes
from mqindex.rocketmq.queue.batch.batch_consume_queue import batch_queue_end
from mqindex.rocketmq.sidecar.binding import sealed
from mqindex.rocketmq.sidecar.layout import FENCE_HEADER_SIZE, FenceHeader
from tests.support.elsewhere import WAYS, Ways, memory
from tests.support.golden import case

__all__ = ["memory"]  # a fixture

SLOTS, ENTRIES, COUNT = 3000, 5000, 12_000
START = 1_700_000_000_000


def make(root: Path, *, keys: int = 4000, count: int = COUNT) -> Path:
    numbers = np.random.default_rng(1).integers(0, keys, count)
    with IndexService.open(root / "index", hash_slot_num=SLOTS, index_num=ENTRIES, writable=True) as service:
        service.build_index("T", [f"k{n}" for n in numbers], np.arange(count) * 100, START + np.arange(count) * 50)
    return root / "index"


def url_of(index: Path) -> str:
    """The same files elsewhere; the store's root is the first name."""
    return f"{WAYS.upload(index.parent)}/index"


@pytest.fixture(autouse=True)
def _memory(memory: Ways) -> None:
    """Every test has an empty one."""


@pytest.fixture(params=["ordinary", "optimised"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made = make(tmp_path / "store")
    if request.param == "ordinary":
        return made
    optimize(made, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    return tmp_path / "out" / "index"


WINDOWS: list[dict[str, int]] = [
    {},
    {"max_num": 0},
    {"max_num": 1},
    {"begin": START + 100_000},
    {"end": START + 200_000},
    {"begin": START + 100_000, "end": START + 300_000, "max_num": 2},
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_answers_are_those_of_the_files_here(index: Path, window: dict[str, int]) -> None:
    keys = [f"k{n}" for n in random.Random(7).sample(range(6000), 300)]
    url = url_of(index)
    with (
        IndexService.open(index, hash_slot_num=SLOTS, index_num=ENTRIES) as here,
        IndexService.open(url, hash_slot_num=SLOTS, index_num=ENTRIES) as there,
    ):
        expected = here.query_offsets("T", keys, **window).to_pylist()
        assert there.query_offsets("T", keys, **window).to_pylist() == expected
        for key in keys[:20]:
            one, other = (service.query_offset("T", key, **window) for service in (there, here))
            assert (one.phy_offsets.tolist(), *one[1:]) == (other.phy_offsets.tolist(), *other[1:])
        for ours, theirs in zip(there.files, here.files, strict=True):
            assert ours.header == theirs.header
            name = f"T#{keys[0]}"
            assert ours.select_phy_offset(name, **window).tolist() == theirs.select_phy_offset(name, **window).tolist()
            assert (ours.slots() == theirs.slots()).all()
            assert (ours.entries()["phy_offset"] == theirs.entries()["phy_offset"]).all()
            assert (ours._order(), ours._check()) == (theirs._order(), theirs._check())


def test_few_pages_are_read_of_an_optimised_file(tmp_path: Path, memory: Ways) -> None:
    made = make(tmp_path / "store")
    optimize(made, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    url = url_of(tmp_path / "out" / "index")
    with IndexService.open(url) as there:  # the fences know the geometry
        assert {(file.hash_slot_num, file.index_num) for file in there.files} == {(SLOTS, ENTRIES)}
        before = len(memory.ranges)
        there.query_offset("T", "k17")
        asked = memory.ranges[before:]
        # of each file the page that the fence names, and where an entry begins on it, the one beside it
        assert len([one for one in asked if "/index/" in one[0]]) <= 2 * len(there.files)
        assert sum(stop - start for path, start, stop in asked if "/index/" in path) <= 3 * 4096 * len(there.files)


def test_of_the_filter_only_rows_are_read_and_once_for_all_files(tmp_path: Path, memory: Ways) -> None:
    made = make(tmp_path / "store")
    optimize(made, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    with IndexService.open(url_of(tmp_path / "out" / "index")) as there:
        assert len(there.files) > 2
        assert memory.of(".filter") == 1  # the beginning, with the places of the rows
        before = memory.of("/index/")
        assert there.query_offset("T", "gone").phy_offsets.tolist() == []
        assert memory.of(".filter") <= 2  # the row
        assert there.query_offsets("T", [f"gone{n}" for n in range(50)]).to_pylist() == [[]] * 50
        assert memory.of("/index/") - before <= 3  # one of 256 is not dropped
        asked = memory.of(".filter")
        there.query_offsets("T", [f"gone{n}" for n in range(50)])
        assert memory.of(".filter") == asked


class Waves:
    """Counts rounds of requests: each waits until no other has come for a while, and these are one round.

    `asked`: of each round, what was asked for.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *what: str) -> None:
        self.rounds, self._waiting, self._last = 0, 0, 0.0
        self.asked: list[set[str]] = []
        self._changed = threading.Condition()
        for name in what or ("read",):
            monkeypatch.setattr(Place, name, self._counted(name))

    def _counted(self, name: str) -> Callable[..., Any]:
        call = getattr(Place, name)

        def counted(place: Place, *arguments: Any) -> Any:
            self._wait(name)
            return call(place, *arguments)

        return counted

    def _wait(self, what: str) -> None:
        with self._changed:
            self._last, own = time.monotonic(), self.rounds
            if len(self.asked) == own:
                self.asked.append(set())
            self.asked[own].add(what)
            while self.rounds == own:
                self._changed.wait(0.05)
                if self.rounds == own and time.monotonic() - self._last > 0.25:
                    self.rounds += 1
                    self._changed.notify_all()


def test_many_optimised_files_are_asked_in_few_rounds(
    tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1000 keys in 12 files take two rounds for the filter, and one for the pages of all files."""
    with IndexService.open(tmp_path / "s" / "index", hash_slot_num=6000, index_num=9001, writable=True) as service:
        numbers = np.random.default_rng(1).permutation(12 * 9000)
        service.build_index("T", [f"k{n}" for n in numbers], np.arange(len(numbers)), START + np.arange(len(numbers)))
        keys = [f"k{n}" for n in range(1000)]
        expected = service.query_offsets("T", keys).to_pylist()
        single = service.query_offset("T", "k17")
    optimize(tmp_path / "s" / "index", tmp_path / "o", hash_slot_num=6000, index_num=9001)
    with IndexService.open(url_of(tmp_path / "o" / "index")) as there:
        assert len(there.files) == 12
        with monkeypatch.context() as patch:
            waves = Waves(patch)
            assert there.query_offsets("T", keys).to_pylist() == expected
        assert waves.rounds <= 3
    with IndexService.open(url_of(tmp_path / "o" / "index")) as there, monkeypatch.context() as patch:
        waves = Waves(patch)
        assert there.query_offset("T", "k17").phy_offsets.tolist() == single.phy_offsets.tolist()
        assert waves.rounds <= 3


LISTED_THEN_READ = [{"entries"}, {"read"}, {"read"}, {"read"}]


@pytest.mark.parametrize("told", ["given", "default", "a list"])
def test_opening_takes_one_round_of_lists_and_one_of_ranges(
    told: str, tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then 1000 keys take one for the rows of the filter and one for the pages; no file is asked for by itself."""
    pair = 6000, 9001
    with IndexService.open(tmp_path / "s" / "index", hash_slot_num=6000, index_num=9001, writable=True) as service:
        numbers = np.random.default_rng(1).permutation(20 * 9000 - 500)
        service.build_index("T", [f"k{n}" for n in numbers], np.arange(len(numbers)), START + np.arange(len(numbers)))
        keys = [f"k{n}" for n in range(1000)]
        expected = service.query_offsets("T", keys).to_pylist()
    optimize(tmp_path / "s" / "index", tmp_path / "o", hash_slot_num=6000, index_num=9001)
    url = url_of(tmp_path / "o" / "index")
    given = {"hash_slot_num": pair[0], "index_num": pair[1]} if told == "given" else {}
    if told == "default":
        monkeypatch.setattr(elsewhere, "DEFAULT", pair)
    if told == "a list":
        said = {"schema": "mqindex.result/1", "files": [], "hash_slot_num": pair[0], "index_num": pair[1]}
        memory.put(f"{url.removesuffix('index')}mqindex.json", json.dumps(said).encode())
    with monkeypatch.context() as patch:
        waves = Waves(patch, "read", "entries", "stat", "stat_now")
        with IndexService.open(url, **given) as there:
            assert (there.hash_slot_num, there.index_num, len(there.files)) == (*pair, 20)
            assert there.query_offsets("T", keys).to_pylist() == expected
    assert waves.asked == LISTED_THEN_READ[: len(waves.asked)]


def test_a_file_that_is_replaced_after_the_list_is_told(index: Path, memory: Ways) -> None:
    url = url_of(index)
    path = sorted(index.iterdir())[0]
    with IndexService.open(url, **GIVEN) as there:
        memory.put(f"{url}/{path.name}", path.read_bytes()[:-20] + b"\x07" * 20)
        with pytest.raises(FileStateError, match="the file was replaced while it was read"):
            there.query_offsets("T", KEYS)


def test_a_fence_of_another_geometry_and_other_entries_is_of_no_use(tmp_path: Path, memory: Ways) -> None:
    """Of the same length, with the same header: only the entries show it."""
    optimize(make(tmp_path / "store", count=4000), tmp_path / "out", **GIVEN)
    (fence,) = (tmp_path / "out" / "mqindex-index").glob("*.fence")
    data = fence.read_bytes()
    header = FenceHeader.from_bytes(data)
    other = header._replace(hash_slot_num=SLOTS + 5, index_num=ENTRIES - 1)
    fence.write_bytes(sealed(other.to_bytes()) + data[FENCE_HEADER_SIZE:])
    index = tmp_path / "out" / "index"
    assert answers(url_of(index)) == answers(index)
    with IndexService.open(url_of(index)) as there:  # the pages show it
        assert (there.hash_slot_num, there.index_num) == (SLOTS, ENTRIES)


def test_entries_in_another_order_than_the_fence_was_made_of(tmp_path: Path, memory: Ways) -> None:
    """As of a repair: the same header, the same geometry. The slots are read, and the answers are right."""
    made = make(tmp_path / "store")
    optimize(made, tmp_path / "out", **GIVEN)
    for path in made.iterdir():
        (tmp_path / "out" / "index" / path.name).write_bytes(path.read_bytes())
    url = url_of(tmp_path / "out" / "index")
    with IndexService.open(url, **GIVEN) as there, IndexService.open(made, **GIVEN) as here:
        for _ in range(2):
            assert there.query_offsets("T", KEYS).to_pylist() == here.query_offsets("T", KEYS).to_pylist()
    assert memory.of(".fence") == len(list(made.iterdir()))


def test_entries_of_a_slot_on_two_pages_are_read_at_once(tmp_path: Path, memory: Ways) -> None:
    pair = {"hash_slot_num": 20_000, "index_num": 50_001}
    with IndexService.open(tmp_path / "s" / "index", **pair, writable=True) as service:
        service.build_index("T", [f"k{n}" for n in range(50_000)], range(50_000), [START] * 50_000)
    optimize(tmp_path / "s" / "index", tmp_path / "o", **pair)
    (path,) = (tmp_path / "o" / "index").iterdir()
    url = f"{url_of(path.parent)}/{path.name}"
    for key in range(0, 50_000, 250):
        with IndexFile.open(url, **pair) as there:
            there.select_phy_offset("T#gone")
            before = memory.of("/index/")
            assert there.select_phy_offset(f"T#k{key}").tolist() == [key]
            assert memory.of("/index/") - before <= 1


def test_of_one_file_the_filter_saves_nothing(tmp_path: Path, memory: Ways) -> None:
    made = make(tmp_path / "store")
    optimize(made, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    with IndexFile.open(f"{url_of(tmp_path / 'out' / 'index')}/{sorted(made.iterdir())[0].name}") as file:
        assert file.select_phy_offsets(["gone"], topic="T").to_pylist() == [[]]
        assert memory.of(".filter") == 0


@pytest.mark.parametrize("damage", ["fence", "filter", "other filter", "other file", "appended", "gone"])
def test_sidecars_that_are_of_no_use_change_no_answer(tmp_path: Path, damage: str) -> None:
    made = make(tmp_path / "store", count=4000)
    optimize(made, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    (path,) = (tmp_path / "out" / "index").iterdir()
    sidecars = tmp_path / "out" / "mqindex-index"
    if damage in ("fence", "filter"):
        side = sidecars / (f"{path.name}.fence" if damage == "fence" else "keys.filter")
        data = bytearray(side.read_bytes())
        data[-5] ^= 255
        side.write_bytes(data)
    elif damage == "other filter":  # of as many entries, in the same geometry
        optimize(make(tmp_path / "other", keys=50, count=4000), tmp_path / "b", hash_slot_num=SLOTS, index_num=ENTRIES)
        shutil.copy(tmp_path / "b" / "mqindex-index" / "keys.filter", sidecars)
    elif damage == "gone":
        (sidecars / "keys.filter").unlink()
    else:
        other = make(tmp_path / "other", keys=50 if damage == "other file" else 4000, count=4000)
        path.write_bytes(next(other.iterdir()).read_bytes())
        if damage == "appended":
            with IndexFile.open(path, hash_slot_num=SLOTS, index_num=ENTRIES, writable=True) as file:
                file.put_key("T#k3", 10**9, START + 10**6)
    keys = [f"k{n}" for n in range(500)]
    with (
        IndexFile.open(path, hash_slot_num=SLOTS, index_num=ENTRIES) as here,
        IndexFile.open(f"{url_of(path.parent)}/{path.name}", hash_slot_num=SLOTS, index_num=ENTRIES) as there,
    ):
        expected = here.select_phy_offsets(keys, topic="T").to_pylist()
        assert there.select_phy_offsets(keys, topic="T").to_pylist() == expected


def test_entries_of_one_slot_are_read_in_few_requests(tmp_path: Path, memory: Ways) -> None:
    count = 400_000
    with IndexService.open(tmp_path / "s" / "index", hash_slot_num=8, index_num=count + 1, writable=True) as service:
        service.build_index("T", ["hot"] * count, np.arange(count) * 100, START + np.arange(count) * 1000)
    optimize(tmp_path / "s" / "index", tmp_path / "o", hash_slot_num=8, index_num=count + 1)
    with IndexService.open(url_of(tmp_path / "o" / "index")) as there:
        before = len(memory.ranges)
        assert there.query_offset("T", "hot", end=START + 5000).phy_offsets.tolist() == [500, 400, 300, 200, 100, 0]
        assert len(memory.ranges) - before < 30  # of 1950 pages


def test_any_bytes_end_in_the_answer_of_the_same_file_here(tmp_path: Path) -> None:
    source = random.Random(3)
    path = next(make(tmp_path / "store", count=4000).iterdir())
    good = path.read_bytes()
    keys = [f"k{n}" for n in range(300)]
    for _ in range(40):
        data = bytearray(good)
        for _ in range(source.choice([1, 50, 5000])):
            data[source.randrange(40 if source.random() < 0.1 else len(data))] = source.randrange(256)
        path.write_bytes(data)
        answers = []
        for place in (str(path), f"{url_of(path.parent)}/{path.name}"):
            try:
                with IndexFile.open(place, hash_slot_num=SLOTS, index_num=ENTRIES) as file:
                    hits = file.select_phy_offsets(keys, topic="T", max_num=5, begin=START + 1000).to_pylist()
                answers.append(str(hits))
            except GeometryError:
                answers.append("geometry")
        assert answers[0] == answers[1] or answers[1] == "geometry"


def test_a_stale_fence_does_not_vouch_for_another_geometry(tmp_path: Path, memory: Ways) -> None:
    made = make(tmp_path / "store", count=4000)
    optimize(made, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    index = tmp_path / "out" / "index"
    shutil.copy(next(made.iterdir()), next(index.iterdir()))  # the same header, and entries in another order
    for place in (index, url_of(index)):
        with pytest.raises(GeometryError):
            IndexService.open(place, hash_slot_num=SLOTS + 5, index_num=ENTRIES - 1)


def test_a_file_that_is_replaced_meanwhile_is_told(tmp_path: Path, memory: Ways) -> None:
    path = next(make(tmp_path / "store", count=4000).iterdir())
    url = f"{url_of(path.parent)}/{path.name}"
    data = path.read_bytes()
    with IndexFile.open(url, hash_slot_num=SLOTS, index_num=ENTRIES) as file:
        memory.put(url, data[:-20] + b"\x07" * 20)
        with pytest.raises(FileStateError, match="the file was replaced while it was read"):
            file.select_phy_offsets([f"k{n}" for n in range(50)], topic="T")
    with IndexFile.open(url, hash_slot_num=SLOTS, index_num=ENTRIES) as file:
        memory.put(url, data[:-4096])
        with pytest.raises((FileStateError, TruncatedFileError)):
            file.slots()


def test_several_requests_are_under_way(index: Path, memory: Ways) -> None:
    memory.waits = True
    keys = [f"k{n}" for n in range(0, 6000, 50)]
    url = url_of(index)
    with (
        IndexService.open(index, hash_slot_num=SLOTS, index_num=ENTRIES) as here,
        IndexService.open(url, hash_slot_num=SLOTS, index_num=ENTRIES) as there,
    ):
        assert there.query_offsets("T", keys).to_pylist() == here.query_offsets("T", keys).to_pylist()
    assert memory.most_at_once > 1


@pytest.mark.parametrize("error", [RuntimeError("no such host"), OSError("refused"), TimeoutError(), PermissionError()])
def test_what_fails_on_the_way_names_the_url(index: Path, memory: Ways, error: Exception) -> None:
    url = url_of(index)
    with IndexService.open(url, hash_slot_num=SLOTS, index_num=ENTRIES) as there:
        memory.failing = error
        with pytest.raises(OSError) as raised:
            there.query_offsets("T", [f"k{n}" for n in range(500)])
        assert str(raised.value.filename).startswith(url.removesuffix("index"))
        memory.failing, memory.short = None, 1
        with pytest.raises(FileStateError, match="a range came back with another length"):
            there.query_offsets("T", [f"k{n}" for n in range(500)])
        memory.short = 0
        assert len(there.query_offsets("T", [f"k{n}" for n in range(500)]).values) > 500


def test_a_closed_one_says_so_and_gives_its_memory_back(index: Path) -> None:
    there = IndexService.open(url_of(index), hash_slot_num=SLOTS, index_num=ENTRIES)
    file = there.files[0]
    file.entries()
    there.close()
    there.close()
    of_service = partial(there.query_offset, "T", "k")
    for call in (file.entries, file.slots, partial(file.select_phy_offset, "T#k1"), of_service):
        with pytest.raises(ClosedFileError):
            call()


def test_a_length_for_which_there_is_no_memory_is_refused(memory: Ways) -> None:
    memory.told = Stat(1 << 62)
    with pytest.raises(OSError, match="no memory for its") as raised:
        IndexFile.open("memory://x/index/1")
    assert raised.value.filename == "memory://x/index/1"


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    index = make(tmp_path / "store")
    url = url_of(index)
    name = sorted(index.iterdir())[0].name
    with pytest.raises(FileNotFoundError) as gone:
        IndexService.open("memory://nothing/index")
    assert gone.value.filename == "memory://nothing/index"
    with pytest.raises(FileNotFoundError):
        IndexFile.open("memory://nothing/index/20231114221320000")
    with pytest.raises(BadMagicError, match=r"got a store's root; its index is memory://.*/index"):
        IndexService.open(url.removesuffix("/index"))
    (tmp_path / "few").mkdir()
    with IndexFile.create(tmp_path / "few" / "1", hash_slot_num=5, index_num=100_000) as few:
        few.put_keys(KEYS[:9], range(9), [START] * 9)
    with pytest.raises(GeometryError, match=r"do not show its geometry.*pass hash_slot_num= and index_num="):
        IndexService.open(WAYS.upload(tmp_path / "few"))
    with pytest.raises(GeometryError):
        IndexFile.open(f"{url}/{name}", hash_slot_num=SLOTS + 5, index_num=ENTRIES - 1)
    with pytest.raises(ReadOnlyFileError, match="copy it here"):
        IndexFile.open(f"{url}/{name}", writable=True)
    with pytest.raises(ReadOnlyFileError, match="copy it here"):
        IndexService.open(url, writable=True)
    with pytest.raises(ValueError, match=r"nosuch://bucket/index: expected a URL of .*, s3, s3a, s3n, got nosuch://"):
        IndexService.open("nosuch://bucket/index")
    with pytest.raises(IsADirectoryError):
        IndexFile.open(url)


GIVEN = {"hash_slot_num": SLOTS, "index_num": ENTRIES}
KEYS = [f"k{n}" for n in range(400)]


def answers(place: str | Path, **options: Any) -> list[list[int]]:
    with IndexService.open(place, **(options or GIVEN)) as service:
        return service.query_offsets("T", KEYS).to_pylist()


@pytest.mark.parametrize("now", [Stat(1, "then"), Stat(2, "now")], ids=["length", "version"])
def test_whatever_a_place_tells_of_a_file_shows_that_it_was_replaced(index: Path, memory: Ways, now: Stat) -> None:
    memory.etags = False
    with IndexService.open(url_of(index), **GIVEN) as there:
        memory.told = now
        with pytest.raises(FileStateError, match="the file was replaced while it was read"):
            there.query_offsets("T", KEYS)


def test_what_another_thread_reads_meanwhile_stays_in_doubt(
    tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.etags = False
    path = next(make(tmp_path / "store", count=4000).iterdir())
    file = PagedFile(place_of(f"{url_of(path.parent)}/{path.name}"))
    file.need([0])
    stat = Place.stat_now

    def late(place: Place) -> Stat:
        before = stat(place)
        file.need([9])  # of another thread; the file was replaced by then
        return before

    monkeypatch.setattr(Place, "stat_now", late)
    file.require_same()
    memory.told = Stat(1, "another")
    monkeypatch.setattr(Place, "stat_now", stat)
    with pytest.raises(FileStateError):
        file.require_same()


def test_what_a_listing_says_of_files(index: Path, memory: Ways) -> None:
    """A directory whose name is a number is no file; a newest file that is empty is one that a broker begins."""
    expected, url = answers(index), url_of(index)
    memory.put(f"{url}/1/anything", b"x")
    memory.put(f"{url}/99991231235959999", b"")
    with pytest.warns(UserWarning, match="skipped, it is empty"), IndexService.open(url, **GIVEN) as there:
        assert there.query_offsets("T", KEYS).to_pylist() == expected


@pytest.mark.parametrize("forbidden", ["mqindex-index", ".filter"])
def test_sidecars_that_may_not_be_read_are_done_without(index: Path, memory: Ways, forbidden: str) -> None:
    memory.forbidden = forbidden
    with IndexService.open(url_of(index), **GIVEN) as there:
        assert there.query_offsets("T", KEYS).to_pylist() == answers(index)


def test_a_damaged_file_does_not_refute_the_geometry_of_others(tmp_path: Path) -> None:
    index = make(tmp_path / "store")
    path = sorted(index.iterdir())[0]
    data = path.read_bytes()
    path.write_bytes(data[:-40_000] + bytes(40_000))
    assert answers(url_of(index)) == answers(index)


def test_entries_that_are_put_meanwhile_are_told(tmp_path: Path, memory: Ways) -> None:
    """Pages that were read before lack them; without an error older entries of the same slots would not be found."""
    memory.etags = False

    def put(start: int) -> None:
        with IndexService.open(tmp_path / "index", **WIDE, writable=True) as service:
            service.build_index("T", [*KEYS] * 20, range(start, start + 8000), [START] * 8000)

    put(0)
    url = url_of(tmp_path / "index")
    with IndexService.open(url, **WIDE) as there:
        put(8000)
        (path,) = (tmp_path / "index").iterdir()
        memory.put(f"{url}/{path.name}", path.read_bytes())
        with pytest.raises(FileStateError, match="entries were put into the file while it was read"):
            there.query_offsets("T", KEYS)


def test_times_at_the_end_of_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "store" / "index" / "20231114221320000"
    path.parent.mkdir(parents=True)
    last = 2**63 - 10_000_000
    with IndexFile.create(path, hash_slot_num=SLOTS, index_num=ENTRIES, end_timestamp=last) as file:
        file.put_keys(KEYS * 10, range(4000), [last + n for n in range(4000)], topic="T")
    optimize(path.parent, tmp_path / "out", **GIVEN)
    assert answers(url_of(tmp_path / "out" / "index")) == answers(path.parent)


def test_a_key_that_is_none_is_a_type_error(index: Path) -> None:
    with IndexService.open(url_of(index), **GIVEN) as there, pytest.raises(TypeError, match="key"):
        there.files[0].select_phy_offset(None)  # type: ignore[arg-type]


def test_who_does_not_answer_says_nothing_of_a_file(tmp_path: Path, memory: Ways) -> None:
    """A server that failed once made another kind of a file, another geometry of an index, no queue of a queue."""
    url = url_of(make(tmp_path / "store"))
    file = place_of(f"{url}/{sorted(path.name for path in (tmp_path / 'store' / 'index').iterdir())[0]}")
    queues = f"{WAYS.upload(case('ipv6-batch-ext-493').unpack(tmp_path))}/batchconsumequeue"
    memory.put(f"{queues}/T/0/{0:020d}", bytes(46))
    asks = (
        lambda: geometry.is_index_file(file),
        lambda: geometry.fits(file, (SLOTS, ENTRIES)),
        lambda: batch_queue_end(place_of(queues), "T", 0),
    )
    for ask in asks:
        ask()
        memory.failing = PermissionError(13, "no")
        with pytest.raises(PermissionError):
            ask()
        memory.failing = None


WIDE = {"hash_slot_num": 500_000, "index_num": 20_000}  # no gap between pages is so short that it is read too


def test_few_entries_are_read_before_they_are_shown(tmp_path: Path) -> None:
    with IndexService.open(tmp_path / "index", **WIDE, writable=True) as service:
        service.build_index("T", KEYS * 40, range(16_000), [START] * 16_000)
    (path,) = (tmp_path / "index").iterdir()
    for start, stop in ((1, 10), (700, 900)):
        with (
            IndexFile.open(path, **WIDE) as here,
            IndexFile.open(f"{url_of(path.parent)}/{path.name}", **WIDE) as there,
        ):
            expected = here.entries(start, stop)
            assert {name: column.tolist() for name, column in there.entries(start, stop).items()} == {
                name: column.tolist() for name, column in expected.items()
            }
            assert there._order() == here._order()


@pytest.mark.parametrize("optimised", [False, True])
@pytest.mark.parametrize("count", [500, 12_000, 19_998, 19_999])
def test_some_pages_show_the_geometry(tmp_path: Path, memory: Ways, count: int, optimised: bool) -> None:
    store = tmp_path / "store"
    with IndexService.open(store / "index", **WIDE, writable=True) as service:
        service.build_index("T", [f"k{n}" for n in range(count)], range(count), [START] * count)
    if optimised:
        optimize(store / "index", tmp_path / "out", **WIDE)
        store = tmp_path / "out"
        shutil.rmtree(store / "mqindex-index")
    (path,) = (store / "index").iterdir()
    place = place_of(f"{url_of(store / 'index')}/{path.name}")
    for show in (geometry.infer, lambda paths: next(filter(None, (IndexFile.open(one) for one in paths)))):
        memory.ranges.clear()
        found = show([place])
        pair = found if isinstance(found, tuple) else (found.hash_slot_num, found.index_num)
        assert pair == (WIDE["hash_slot_num"], WIDE["index_num"])
        assert sum(stop - start for _, start, stop in memory.ranges) < path.stat().st_size / 2
    memory.ranges.clear()
    assert geometry.fits(place, pair)
    assert not geometry.fits(place, (WIDE["hash_slot_num"] - 5, WIDE["index_num"] + 1))
    assert sum(stop - start for _, start, stop in memory.ranges) < path.stat().st_size / 2


def test_the_list_of_a_result_says_the_geometry_of_files_without_entries(tmp_path: Path, memory: Ways) -> None:
    root = tmp_path / "out"
    (root / "index").mkdir(parents=True)
    with IndexFile.create(root / "index" / "1", **GIVEN) as file:
        file.flush()
    url = WAYS.upload(root)
    with pytest.raises(GeometryError):
        geometry.infer([place_of(f"{url}/index/1")])
    files = [{"name": "index/1", "size": (root / "index" / "1").stat().st_size, "crc32c": "00000000"}]
    memory.put(f"{url}/mqindex.json", json.dumps({"schema": "mqindex.result/1", "files": files, **GIVEN}).encode())
    assert geometry.infer([place_of(f"{url}/index/1")]) == (SLOTS, ENTRIES)


def test_what_was_read_ahead_for_lower_limits_is_no_answer_to_higher_ones(index: Path) -> None:
    name = sorted(path.name for path in index.iterdir())[0]
    hashes = key_hashes(KEYS, topic="T")
    with (
        IndexFile.open(index / name, **GIVEN) as here,
        IndexFile.open(f"{url_of(index)}/{name}", **GIVEN) as there,
    ):
        asked = asked_hashes(hashes, alone=True)
        there._read_ahead(asked, 0, 0, 2**63 - 1)
        expected = here._select_hashes(hashes)
        assert [one.tolist() for one in there._select_hashes(hashes, asked=asked)] == [one.tolist() for one in expected]


def test_pages_that_were_not_read_are_lent_to_no_kernel(tmp_path: Path) -> None:
    path = next(make(tmp_path / "store", count=4000).iterdir())
    with PagedFile(place_of(f"{url_of(path.parent)}/{path.name}")) as file:
        file.need([0])
        assert bytes(memoryview(file.lent([0]))[:40]) == path.read_bytes()[:40]
        for use in (lambda: file.lent([0, 9]), lambda: file.map, lambda: file.map[:40]):
            with pytest.raises(AssertionError, match="had not been read"):
                use()
        assert bytes(memoryview(file.window(9 * 4096, 9 * 4096 + 5))[9 * 4096 :][:5]) == file.read(
            9 * 4096, 9 * 4096 + 5
        )
        file.populate()
        assert file.map[:] == path.read_bytes()
