"""Pages of files elsewhere that a machine keeps: right answers whoever wrote them, and an end to what they take."""

from __future__ import annotations

import errno
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.errors import FileStateError
from mqindex.files.places import page_cache
from mqindex.files.places.page_cache import PAGE, PageCache, of_this_machine
from mqindex.files.places.paged_file import PagedFile
from mqindex.files.places.place import Place, place_of
from mqindex.files.places.storage import Stat
from mqindex.rocketmq import IndexService, optimize
from tests.support.elsewhere import WAYS, Ways, memory

__all__ = ["memory"]  # a fixture

SLOTS, ENTRIES, COUNT = 3000, 5000, 12_000
START = 1_700_000_000_000
KEYS = [f"k{n}" for n in random.Random(7).sample(range(6000), 300)]
GIVEN = {"hash_slot_num": SLOTS, "index_num": ENTRIES}


@pytest.fixture(autouse=True)
def _memory(memory: Ways) -> None:
    """Every test has an empty one."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


@pytest.fixture(params=["ordinary", "optimised"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    numbers = np.random.default_rng(1).integers(0, 4000, COUNT)
    with IndexService.open(tmp_path / "store" / "index", writable=True, **GIVEN) as service:
        service.build_index("T", [f"k{n}" for n in numbers], np.arange(COUNT) * 100, START + np.arange(COUNT) * 50)
    if request.param == "ordinary":
        return tmp_path / "store" / "index"
    optimize(tmp_path / "store" / "index", tmp_path / "out", **GIVEN)
    return tmp_path / "out" / "index"


def url_of(index: Path) -> str:
    return f"{WAYS.upload(index.parent)}/index"


def kept(url: str, home: Path) -> Place:
    """A place whose pages are kept, as a new process has it."""
    place = place_of(url)
    assert isinstance(place, Place)
    place.storage.pages = PageCache(str(home))
    return place


def asked(place: str | Path, keys: list[str] = KEYS) -> list[list[int]]:
    with IndexService.open(place, **GIVEN) as service:
        return service.query_offsets("T", keys).to_pylist()


def held(home: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in home.iterdir())


def test_what_one_process_read_no_other_asks_for(index: Path, home: Path, memory: Ways) -> None:
    url, expected = url_of(index), asked(index)
    assert asked(kept(url, home)) == expected
    memory.ranges.clear()
    assert asked(kept(url, home)) == expected
    assert memory.ranges == []
    more = [f"k{n}" for n in range(6000)]
    first = kept(url, home)
    with IndexService.open(first, **GIVEN) as before:  # opened before another one reads more
        assert asked(kept(url, home), more) == asked(index, more)
        memory.ranges.clear()
        assert before.query_offsets("T", more).to_pylist() == asked(index, more)
        assert memory.ranges == []


def test_of_another_version_nothing_is_taken(tmp_path: Path, home: Path, memory: Ways) -> None:
    source = random.Random(2)
    data = [source.randbytes(40 * PAGE + 7) for _ in range(2)]
    for version in (0, 1, 0, 1):
        memory.put("memory://x/file", data[version])
        with PagedFile(kept("memory://x/file", home)) as file:
            assert file.read(3 * PAGE, 9 * PAGE + 5) == data[version][3 * PAGE : 9 * PAGE + 5]
    memory.put("memory://y/file", data[1][:-1])
    with PagedFile(kept("memory://y/file", home)) as file:
        assert file.read(0, len(data[1])) == data[1][:-1]


def test_without_an_etag_what_was_replaced_meanwhile_is_not_kept(home: Path, memory: Ways) -> None:
    memory.etags = False
    old, new = bytes(20 * PAGE), b"\1" * (20 * PAGE)
    memory.put("memory://x/file", old)
    was = place_of("memory://x/file").stat()  # type: ignore[attr-defined]
    file = PagedFile(kept("memory://x/file", home))
    memory.put("memory://x/file", new)
    memory.told = Stat(was.size, "later")
    with pytest.raises(FileStateError, match="the file was replaced while it was read"):
        file.read(0, PAGE)
    memory.told = was
    again = PagedFile(kept("memory://x/file", home))
    assert not again.present.any()


@pytest.mark.parametrize("fails", ["pages", "marks", "open"])
def test_a_full_disk_is_no_cache_and_no_error(
    index: Path, home: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, expected, write, create = url_of(index), asked(index), os.pwrite, os.open

    def full(fd: int, data: Any, at: int) -> int:
        if fails == "pages" or bytes(data).strip(b"\1") == b"":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data, at)

    def none(path: Any, flags: int, *mode: int, **rest: Any) -> int:
        if str(path).startswith(str(home)) and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return create(path, flags, *mode, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open" if fails == "open" else "pwrite", none if fails == "open" else full)
        assert asked(kept(url, home)) == expected
    assert asked(kept(url, home)) == expected  # what was written without its mark is read again


def test_those_used_longest_ago_go_and_who_uses_them_does_not_notice(
    home: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = random.Random(4)
    data = [source.randbytes(64 * PAGE) for _ in range(6)]
    monkeypatch.setattr(page_cache, "_MOST", 3 * 70 * PAGE)
    monkeypatch.setattr(page_cache, "_TRIMMED", PAGE)
    files = []
    for number, content in enumerate(data):
        memory.put(f"memory://x/{number}", content)
        files.append(PagedFile(kept(f"memory://x/{number}", home)))
        files[-1].populate()
        time.sleep(0.02)  # the file system's clock
        assert held(home) <= 3 * 70 * PAGE
    assert len(list(home.iterdir())) == 3
    for file, content in zip(files, data, strict=True):
        assert file.read(0, len(content)) == content
    memory.ranges.clear()
    with PagedFile(kept("memory://x/5", home)) as file:
        assert file.read(0, 64 * PAGE) == data[5]
    assert memory.ranges == []
    with PagedFile(kept("memory://x/0", home)) as file:
        assert file.read(0, 64 * PAGE) == data[0]
    assert memory.ranges != []


def test_what_had_to_go_is_not_written_to(home: Path, memory: Ways) -> None:
    data = random.Random(5).randbytes(90 * PAGE)
    memory.put("memory://x/file", data)
    file = PagedFile(kept("memory://x/file", home))
    file.need([0, 1])
    (path,) = home.iterdir()
    path.unlink()
    with PagedFile(kept("memory://x/file", home)) as other:  # of the same name
        other.need([50])
        file.need([2, 80])
        assert (
            file.read(0, 3 * PAGE) + file.read(80 * PAGE, 81 * PAGE) == data[: 3 * PAGE] + data[80 * PAGE : 81 * PAGE]
        )
        assert np.flatnonzero(PagedFile(kept("memory://x/file", home)).present).tolist() == [50]
        assert other.read(0, len(data)) == data


def test_no_more_than_a_quarter_of_what_is_free_is_taken(home: Path, memory: Ways, monkeypatch: Any) -> None:
    usage = page_cache.shutil.disk_usage(home)._replace(free=100 * PAGE)
    monkeypatch.setattr(page_cache.shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(page_cache, "_TRIMMED", PAGE)
    data = random.Random(6).randbytes(90 * PAGE)
    memory.put("memory://x/file", data)
    with PagedFile(kept("memory://x/file", home)) as file:
        assert file.read(0, len(data)) == data
    assert held(home) <= 50 * PAGE


def test_once_a_third_was_asked_for_all_is_read(home: Path, memory: Ways) -> None:
    memory.put("memory://x/file", random.Random(8).randbytes(90 * PAGE))
    with PagedFile(kept("memory://x/file", home)) as file:
        file.need(np.arange(0, 30))
        assert not file.whole
        file.need([60])
        assert file.whole
    plain = PagedFile(place_of("memory://x/file"))  # type: ignore[arg-type]
    plain.need(np.arange(31))
    assert not plain.whole


def test_a_process_that_is_killed_at_any_write_leaves_only_pages_that_are_right(
    home: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random.Random(9).randbytes(40 * PAGE)
    memory.put("memory://x/file", data)
    place = kept("memory://x/file", home)
    found, name, write = place.stat(), place.storage.full_name(place.path), os.pwrite
    counts = []
    for writes in range(12):
        child = os.fork()
        if not child:
            left = [writes]

            def killed(fd: int, some: Any, at: int, left: list[int] = left) -> int:
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return write(fd, bytes(some)[:PAGE], at)  # as a full disk does before it refuses

            monkeypatch.setattr(os, "pwrite", killed)
            pages = PageCache(str(home)).open(name, found)
            assert pages is not None
            while True:
                for first in (4, 20):
                    pages.keep(first * PAGE, data[first * PAGE : (first + 3) * PAGE])
        os.waitpid(child, 0)
        pages = PageCache(str(home)).open(name, found)
        assert pages is not None
        there = np.flatnonzero(pages.there()).tolist()
        counts.append(len(there))
        assert all(pages.memory[page * PAGE :][:PAGE] == data[page * PAGE :][:PAGE] for page in there)
    assert counts == [0] * 4 + [3] * 4 + [6] * 4


def test_the_cache_is_this_users_and_of_this_run_of_the_machine(tmp_path: Path, monkeypatch: Any) -> None:
    inner = tmp_path / "spark-0a1b" / "executor-2c" / "blockmgr-3d4e"
    inner.mkdir(parents=True)
    assert of_this_machine([str(inner)]) is not None
    (made,) = [path for path in tmp_path.iterdir() if path.name.startswith("mqindex-pages-")]
    assert made.stat().st_mode & 0o777 == 0o700
    assert of_this_machine([str(inner)]) is not None
    (tmp_path / "boot").write_text("of-another-start\n")
    monkeypatch.setattr(page_cache, "_BOOT", str(tmp_path / "boot"))
    assert of_this_machine([str(tmp_path)]) is not None
    (other,) = [path for path in tmp_path.iterdir() if path.name.startswith("mqindex-pages-")]
    assert other != made
    other.chmod(0o755)
    assert of_this_machine([str(tmp_path)]) is None
    other.rmdir()
    other.symlink_to(inner)
    assert of_this_machine([str(tmp_path)]) is None
    assert of_this_machine([str(tmp_path / "absent")]) is None
    monkeypatch.setattr(page_cache, "_BOOT", str(tmp_path / "unknown"))
    assert of_this_machine([str(inner)]) is None


def test_two_servers_of_one_name_are_two_files(memory: Ways) -> None:
    one, other = (place_of("memory://x/file", {"endpoint": name}).storage for name in ("a", "b"))  # type: ignore
    assert one.full_name("file") != other.full_name("file")


def test_look_ups_of_spark_keep_what_they_read(
    index: Path, home: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these look-ups is one of a new worker: it lists the files, and reads none of them again."""
    pa = pytest.importorskip("pyarrow")
    from mqindex.spark.functions import rocketmq as functions

    url, expected = url_of(index), asked(index)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{home}/blockmgr-00ff,/elsewhere")
    for number in range(2):
        functions._kept_pages.cache_clear()
        functions._opened.cache_clear()
        memory.ranges.clear()
        lookup = functions.Lookup(url, "T", **GIVEN)
        assert lookup(pa.array(KEYS)).to_pylist() == expected
        assert bool(memory.ranges) == (number == 0)
    assert [path.name.startswith("mqindex-pages-") for path in home.iterdir()] == [True]
    functions._kept_pages.cache_clear()
    functions._opened.cache_clear()
