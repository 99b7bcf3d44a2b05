"""Look-ups in index files elsewhere: the answers of the same files here, and only the ranges on their way are read."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import numpy as np
import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from mqindex.errors import (
    BadMagicError,
    ClosedFileError,
    FileStateError,
    GeometryError,
    ReadOnlyFileError,
    TruncatedFileError,
)
from mqindex.files.reading.remote import RemoteFile, RemotePlace
from mqindex.rocketmq import IndexFile, IndexService, optimize

SLOTS, ENTRIES, COUNT = 3000, 5000, 12_000
START = 1_700_000_000_000


class Counted:
    """Requests of ranges of one kind of file: (path, start, stop)."""

    def __init__(self) -> None:
        self.ranges: list[tuple[str, int, int]] = []

    def of(self, part: str) -> int:
        return sum(part in path for path, _, _ in self.ranges)

    def bytes(self) -> int:
        return sum(stop - start for _, start, stop in self.ranges)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found, read = Counted(), RemotePlace.read

    def reading(place: RemotePlace, ranges: Any) -> list[bytes]:
        found.ranges += [(place.path, *each) for each in ranges]
        return read(place, ranges)

    monkeypatch.setattr(RemotePlace, "read", reading)
    return found


def make(root: Path, *, keys: int = 4000, count: int = COUNT) -> Path:
    numbers = np.random.default_rng(1).integers(0, keys, count)
    with IndexService.open(root / "index", hash_slot_num=SLOTS, index_num=ENTRIES, writable=True) as service:
        service.build_index("T", [f"k{n}" for n in numbers], np.arange(count) * 100, START + np.arange(count) * 50)
    return root / "index"


def url_of(index: Path) -> str:
    """The same files in fsspec's memory; the store's root is the name."""
    memory = fsspec.filesystem("memory")
    root = f"/{index.parent.name}-{random.randrange(1 << 60)}"
    memory.put(str(index.parent), root, recursive=True)
    return f"memory:/{root}/index"


@pytest.fixture(autouse=True)
def _empty_memory() -> Iterator[None]:
    yield
    fsspec.filesystem("memory").store.clear()


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
@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_answers_are_those_of_the_files_here(index: Path, window: dict[str, int], scheme: str) -> None:
    keys = [f"k{n}" for n in random.Random(7).sample(range(6000), 300)]
    url = url_of(index) if scheme == "memory" else f"file://{index}"
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
            assert (ours.order(), ours.check()) == (theirs.order(), theirs.check())


def test_few_pages_are_read_of_an_optimised_file(tmp_path: Path, counted: Counted) -> None:
    made = make(tmp_path / "store")
    optimize(made, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    url = url_of(tmp_path / "out" / "index")
    with IndexService.open(url) as there:  # the fences know the geometry
        assert {(file.hash_slot_num, file.index_num) for file in there.files} == {(SLOTS, ENTRIES)}
        before = len(counted.ranges)
        there.query_offset("T", "k17")
        asked = counted.ranges[before:]
        # of each file the page that the fence names, and where an entry begins on it, the one beside it
        assert len([one for one in asked if "/index/" in one[0]]) <= 2 * len(there.files)
        assert sum(stop - start for path, start, stop in asked if "/index/" in path) <= 3 * 4096 * len(there.files)


def test_of_the_filter_only_rows_are_read_and_once_for_all_files(tmp_path: Path, counted: Counted) -> None:
    made = make(tmp_path / "store")
    optimize(made, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    with IndexService.open(url_of(tmp_path / "out" / "index")) as there:
        assert len(there.files) > 2
        assert counted.of(".filter") == 0
        before = counted.of("/index/")
        assert there.query_offset("T", "gone").phy_offsets.tolist() == []
        assert 1 <= counted.of(".filter") <= 3  # the beginning, the place of the row, the row
        assert there.query_offsets("T", [f"gone{n}" for n in range(50)]).to_pylist() == [[]] * 50
        assert counted.of("/index/") - before <= 3  # one of 256 is not dropped
        asked = counted.of(".filter")
        there.query_offsets("T", [f"gone{n}" for n in range(50)])
        assert counted.of(".filter") == asked


def test_of_one_file_the_filter_saves_nothing(tmp_path: Path, counted: Counted) -> None:
    made = make(tmp_path / "store")
    optimize(made, tmp_path / "out", hash_slot_num=SLOTS, index_num=ENTRIES)
    with IndexFile.open(f"{url_of(tmp_path / 'out' / 'index')}/{sorted(made.iterdir())[0].name}") as file:
        assert file.select_phy_offsets(["gone"], topic="T").to_pylist() == [[]]
        assert counted.of(".filter") == 0


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


def test_entries_of_one_slot_are_read_in_few_requests(tmp_path: Path, counted: Counted) -> None:
    count = 400_000
    with IndexService.open(tmp_path / "s" / "index", hash_slot_num=8, index_num=count + 1, writable=True) as service:
        service.build_index("T", ["hot"] * count, np.arange(count) * 100, START + np.arange(count) * 1000)
    optimize(tmp_path / "s" / "index", tmp_path / "o", hash_slot_num=8, index_num=count + 1)
    with IndexService.open(url_of(tmp_path / "o" / "index")) as there:
        before = len(counted.ranges)
        assert there.query_offset("T", "hot", end=START + 5000).phy_offsets.tolist() == [500, 400, 300, 200, 100, 0]
        assert len(counted.ranges) - before < 30  # of 1950 pages


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


def test_a_file_that_is_replaced_meanwhile_is_told(tmp_path: Path) -> None:
    path = next(make(tmp_path / "store", count=4000).iterdir())
    with IndexFile.open(f"file://{path}", hash_slot_num=SLOTS, index_num=ENTRIES) as file:
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data[:-20] + b"\x07" * 20)
        with pytest.raises(FileStateError, match="the file was replaced while it was read"):
            file.select_phy_offsets([f"k{n}" for n in range(50)], topic="T")
    with IndexFile.open(f"file://{path}", hash_slot_num=SLOTS, index_num=ENTRIES) as file:
        path.write_bytes(data[:-4096])
        with pytest.raises((FileStateError, TruncatedFileError)):
            file.slots()


class Waiting(AsyncFileSystem):  # type: ignore[misc]
    """fsspec's memory, as the file systems behind a network: each request takes a moment, several are under way."""

    protocol = "waiting"
    cachable = False
    at_once = most_at_once = 0
    failing: Exception | None = None
    short = 0  # bytes that are missing from each answer

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        Waiting.at_once += 1
        Waiting.most_at_once = max(Waiting.at_once, Waiting.most_at_once)
        for _ in range(100):  # until a second one has come, which takes long where the machine is busy
            await asyncio.sleep(0.002)
            if Waiting.most_at_once > 1:
                break
        Waiting.at_once -= 1
        if Waiting.failing is not None:
            raise Waiting.failing
        data: bytes = MemoryFileSystem().cat_file(path, start, end)
        return data[: len(data) - Waiting.short]

    async def _info(self, path: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = MemoryFileSystem().info(path)
        return found

    async def _ls(self, path: str, detail: bool = True, **options: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = MemoryFileSystem().ls(path, detail=detail)
        return found


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> type[Waiting]:
    fsspec.register_implementation("waiting", Waiting, clobber=True)
    for name in ("at_once", "most_at_once", "failing", "short"):
        monkeypatch.setattr(Waiting, name, getattr(Waiting, name))
    return Waiting


def test_several_requests_are_under_way(index: Path, waiting: type[Waiting]) -> None:
    keys = [f"k{n}" for n in range(0, 6000, 50)]
    url = url_of(index).replace("memory:/", "waiting:/")
    with (
        IndexService.open(index, hash_slot_num=SLOTS, index_num=ENTRIES) as here,
        IndexService.open(url, hash_slot_num=SLOTS, index_num=ENTRIES) as there,
    ):
        assert there.query_offsets("T", keys).to_pylist() == here.query_offsets("T", keys).to_pylist()
    assert waiting.most_at_once > 1


@pytest.mark.parametrize("error", [RuntimeError("no such host"), OSError("refused"), TimeoutError(), PermissionError()])
def test_what_fails_on_the_way_names_the_url(index: Path, waiting: type[Waiting], error: Exception) -> None:
    url = url_of(index).replace("memory:/", "waiting:/")
    with IndexService.open(url, hash_slot_num=SLOTS, index_num=ENTRIES) as there:
        waiting.failing = error
        with pytest.raises(OSError) as raised:
            there.query_offsets("T", [f"k{n}" for n in range(500)])
        assert str(raised.value.filename).startswith(url.removesuffix("index"))
        waiting.failing, waiting.short = None, 1
        with pytest.raises(TruncatedFileError, match="a range came back with another length"):
            there.query_offsets("T", [f"k{n}" for n in range(500)])
        waiting.short = 0
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


@pytest.mark.parametrize("size", [None, 1 << 62, 1 << 80, "5"])
def test_a_length_that_is_none_is_refused(
    waiting: type[Waiting], size: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told(self: Waiting, path: str, **options: Any) -> dict[str, Any]:
        return {"name": path, "size": size, "type": "file"}

    monkeypatch.setattr(waiting, "_info", told)
    with pytest.raises(OSError, match=r"no memory for its|does not say how long it is") as raised:
        IndexFile.open("waiting://x/index/1")
    assert raised.value.filename == "waiting://x/index/1"


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
    with pytest.raises(GeometryError, match="pass hash_slot_num= and index_num="):
        IndexService.open(url)
    with pytest.raises(GeometryError):
        IndexFile.open(f"{url}/{name}", hash_slot_num=SLOTS + 5, index_num=ENTRIES - 1)
    with pytest.raises(ReadOnlyFileError, match="copy them here"):
        IndexFile.open(f"{url}/{name}", writable=True)
    with pytest.raises(ReadOnlyFileError, match="copy them here"):
        IndexService.open(url, writable=True)
    with pytest.raises(ValueError, match=r"nosuch://.*whose scheme fsspec knows"):
        IndexService.open("nosuch://bucket/index")
    with pytest.raises(IsADirectoryError):
        IndexFile.open(url)
    with pytest.raises(ImportError, match=r"s3://bucket/index needs a package that fsspec names: Install s3fs"):
        IndexService.open("s3://bucket/index")


class Told(MemoryFileSystem):  # type: ignore[misc]
    """fsspec's memory under another name; `info` and `ls` give `about` instead of what it knows."""

    protocol = "told"
    about: ClassVar[dict[str, Any]] = {}
    forbidden = ""  # part of the paths that may not be read

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(MemoryFileSystem._strip_protocol(path.replace("told://", "memory://")))

    def _allow(self, path: str) -> None:
        if Told.forbidden and Told.forbidden in path:
            raise PermissionError(path)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        self._allow(path)
        found = MemoryFileSystem().info(path)
        return {"name": path, "size": found["size"], "type": found["type"], **Told.about}

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[dict[str, Any]]:
        found = MemoryFileSystem().ls(path, detail=True)
        return [{"name": one["name"], "type": one["type"], **Told.about, "size": None} for one in found]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        self._allow(path)
        found: bytes = MemoryFileSystem().cat_file(path, start, end)
        return found


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> type[Told]:
    fsspec.register_implementation("told", Told, clobber=True)
    for name, value in (("about", {}), ("forbidden", "")):
        monkeypatch.setattr(Told, name, value)
    return Told


def open_told(url: str, **options: int) -> IndexService:
    return IndexService.open(url.replace("memory:/", "told:/"), **(options or GIVEN))


GIVEN = {"hash_slot_num": SLOTS, "index_num": ENTRIES}
KEYS = [f"k{n}" for n in range(400)]


def answers(place: str | Path, **options: Any) -> list[list[int]]:
    with IndexService.open(place, **(options or GIVEN)) as service:
        return service.query_offsets("T", KEYS).to_pylist()


def test_a_file_system_whose_reads_share_a_place_is_read_by_one_at_a_time(index: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.add(index.parent, "store")
    expected = answers(index)
    url = f"tar://store/index::file://{tmp_path}/x.tar"
    for _ in range(5):
        assert answers(url) == expected
    with IndexService.open(url, **GIVEN) as service:
        found: list[list[list[int]]] = []
        ask = lambda: found.append(service.query_offsets("T", KEYS).to_pylist())  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [expected] * 4


def test_places_in_an_archive(index: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "x"), "zip", index.parent)
    name = sorted(index.iterdir())[-1].name
    assert answers(f"zip://index::file://{archive}") == answers(index)
    with (
        IndexFile.open(index / name, **GIVEN) as here,
        IndexFile.open(f"zip://index/{name}::file://{archive}", **GIVEN) as there,
    ):
        assert (
            there.select_phy_offsets(KEYS, topic="T").to_pylist()
            == here.select_phy_offsets(KEYS, topic="T").to_pylist()
        )
    (tmp_path / "no.zip").write_bytes(b"no zip")
    with pytest.raises(OSError, match="BadZipFile") as raised:
        IndexService.open(f"zip://index::file://{tmp_path}/no.zip")
    assert raised.value.filename == f"zip://index::file://{tmp_path}/no.zip"


@pytest.mark.parametrize("word", ["Last-Modified", "LastModified", "etag", "ETag", "created", "Content-MD5"])
def test_whatever_a_place_tells_of_a_file_shows_that_it_was_replaced(index: Path, told: type[Told], word: str) -> None:
    told.about = {word: "then"}
    with open_told(url_of(index)) as there:
        told.about = {word: "now"}
        with pytest.raises(FileStateError, match="the file was replaced while it was read"):
            there.query_offsets("T", KEYS)


def test_what_another_thread_reads_meanwhile_stays_in_doubt(tmp_path: Path, told: type[Told]) -> None:
    path = next(make(tmp_path / "store", count=4000).iterdir())
    file = RemoteFile(RemotePlace.of(f"{url_of(path.parent)}/{path.name}".replace("memory:/", "told:/")))
    file.need([0])
    version = file._place.version

    def late() -> tuple[object, ...]:
        before = version()
        file.need([9])  # of another thread; the file was replaced by then
        return before

    file._place.version = late  # type: ignore[method-assign]
    file.require_same()
    file._place.version = lambda: ("another",)  # type: ignore[method-assign]
    with pytest.raises(FileStateError):
        file.require_same()


def test_what_a_listing_says_of_files(index: Path, told: type[Told]) -> None:
    """A link is of type "other" in a directory here; a page of names has no lengths, and links to sort it."""
    expected, url = answers(index), url_of(index)
    root = MemoryFileSystem()._strip_protocol(url)
    MemoryFileSystem().pipe(f"{root}/?C=N;O=D", b"")
    told.about = {"type": "other"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_told(url) as there:
            assert there.query_offsets("T", KEYS).to_pylist() == expected
    told.about = {}
    MemoryFileSystem().makedirs(f"{root}/1")
    MemoryFileSystem().pipe(f"{root}/99991231235959999", b"")
    with pytest.warns(UserWarning, match="skipped, it is empty"), open_told(url) as there:
        assert there.query_offsets("T", KEYS).to_pylist() == expected


@pytest.mark.parametrize("forbidden", ["mqindex-index", ".filter"])
def test_sidecars_that_may_not_be_read_are_done_without(index: Path, told: type[Told], forbidden: str) -> None:
    told.forbidden = forbidden
    with open_told(url_of(index)) as there:
        assert there.query_offsets("T", KEYS).to_pylist() == answers(index)


def test_a_damaged_file_does_not_refute_the_geometry_of_others(tmp_path: Path) -> None:
    index = make(tmp_path / "store")
    path = sorted(index.iterdir())[0]
    data = path.read_bytes()
    path.write_bytes(data[:-40_000] + bytes(40_000))
    assert answers(url_of(index)) == answers(index)


def test_entries_that_are_put_meanwhile_are_told(tmp_path: Path, told: type[Told]) -> None:
    """Pages that were read before lack them; without an error older entries of the same slots would not be found."""
    given = {"hash_slot_num": 500_000, "index_num": 20_000}  # no gap between pages is so short that it is read too

    def put(start: int) -> None:
        with IndexService.open(tmp_path / "index", **given, writable=True) as service:
            service.build_index("T", [*KEYS] * 20, range(start, start + 8000), [START] * 8000)

    put(0)
    url = url_of(tmp_path / "index")
    with open_told(url, **given) as there:
        put(8000)
        (path,) = (tmp_path / "index").iterdir()
        MemoryFileSystem().pipe(f"{MemoryFileSystem._strip_protocol(url)}/{path.name}", path.read_bytes())
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


def test_a_query_names_one_file() -> None:
    url = "https://host/index/20231114221320000?key=x"
    place = RemotePlace(url, url, None, nullcontext())
    assert (place.name, place.parent) == ("20231114221320000", None)
    with pytest.raises(ValueError, match="without a query"):
        place / "name"


def test_errors_that_are_returned_are_raised(
    tmp_path: Path, waiting: type[Waiting], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As fsspec did until 2024.9 whatever `on_error` said."""
    url = url_of(make(tmp_path / "store")).replace("memory:/", "waiting:/")
    with IndexService.open(url, **GIVEN) as there:
        for file in there.files:
            fs = file._file._place._fs  # type: ignore[attr-defined]
            monkeypatch.setattr(fs, "cat_ranges", lambda paths, *args, **options: [FileNotFoundError()] * len(paths))
        with pytest.raises(FileNotFoundError) as raised:
            there.query_offsets("T", KEYS)
        assert str(raised.value.filename).startswith(url)


def test_a_key_that_is_none_is_a_type_error(index: Path) -> None:
    with IndexService.open(url_of(index), **GIVEN) as there, pytest.raises(TypeError, match="key"):
        there.files[0].select_phy_offset(None)  # type: ignore[arg-type]


NEVER_ENDS = """
import fsspec, sys, threading
from fsspec.implementations.memory import MemoryFileSystem
from mqindex.rocketmq import IndexService

class Stuck(MemoryFileSystem):
    protocol = "stuck"

    def info(self, path, **options):
        print("asked", flush=True)
        threading.Event().wait()

    def ls(self, path, detail=True, **options):
        return [{"name": f"/x/2023111422132000{n}", "size": 5, "type": "file"} for n in range(9)]

fsspec.register_implementation("stuck", Stuck)
IndexService.open("stuck://x")
"""


def test_an_interrupt_waits_for_no_request() -> None:
    command, pipe = [sys.executable, "-c", NEVER_ENDS], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"asked\n"
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert said.splitlines()[-1] == b"KeyboardInterrupt"
