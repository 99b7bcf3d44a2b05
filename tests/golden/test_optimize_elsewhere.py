"""Index files elsewhere, optimized there or here: byte for byte what is optimized here."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import CorruptIndexError, FileStateError, GeometryError, OutputExistsError, ReadOnlyFileError
from mqindex.files.places import remote_file
from mqindex.rocketmq import IndexService, optimize, optimized_file
from tests.support.elsewhere import Ways, memory
from tests.support.golden import STORE_CASES, case
from tests.unit.test_rebuild_elsewhere import files_below

__all__ = ["memory"]  # a fixture

optimizing = importlib.import_module("mqindex.rocketmq.optimize")  # not the function of that name
OUT = "memory://results/cold"


def there_of(memory: Ways, url: str) -> tuple[dict[str, bytes], Any]:
    """The files of a result, and their list."""
    found = memory.files(url)
    return found, json.loads(found.pop("mqindex.json"))


@pytest.mark.parametrize("name", STORE_CASES)
def test_the_files_are_those_of_here(name: str, tmp_path: Path, memory: Ways) -> None:
    root = case(name).unpack(tmp_path)
    url = memory.upload(root)
    made = optimize(root, tmp_path / "here")
    expected = files_below(tmp_path / "here")
    assert any(name.startswith("mqindex-index/") for name in expected)
    for n, (source, out) in enumerate(((url, tmp_path / "there"), (root, f"{OUT}-1"), (url, f"{OUT}-2"))):
        report = optimize(source, out)
        assert (report.files, report.entries) == (made.files, made.entries)
        if not n:
            assert files_below(tmp_path / "there") == expected
            continue
        found, listed = there_of(memory, str(out))
        assert found == expected
        assert {one["name"]: one["size"] for one in listed["files"]} == {
            name: len(data) for name, data in found.items()
        }
        assert [listed["hash_slot_num"], listed["index_num"]] == list(report.settings["geometry"].value)
        assert sorted(report.out_files) == sorted(f"{out}/{name}" for name in expected)


def test_a_file_from_elsewhere_is_copied_a_part_at_a_time(
    tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it was in memory: 420 MB, of each of several at once."""
    with IndexService.open(
        tmp_path / "store" / "index", hash_slot_num=1000, index_num=100_000, writable=True
    ) as service:
        numbers = np.arange(90_000)
        service.build_index("T", [f"k{n}" for n in numbers], numbers * 100, 1_700_000_000_000 + numbers)
    url, held = memory.upload(tmp_path / "store"), list[int]()
    monkeypatch.setattr(remote_file, "_BLOCK", 4096)
    monkeypatch.setattr(remote_file, "REQUEST", 65_536)
    have, copied = remote_file.RemoteFile._have, optimized_file.copied

    def counted(file: remote_file.RemoteFile, blocks: Any) -> Any:
        mapped = have(file, blocks)
        held.append(4096 * np.count_nonzero(file._there))
        return mapped

    def begun(*arguments: Any) -> Any:
        held.clear()  # the files' geometry is known by now
        return copied(*arguments)

    monkeypatch.setattr(remote_file.RemoteFile, "_have", counted)
    monkeypatch.setattr(optimized_file, "copied", begun)
    for source, out in ((tmp_path / "store", "here"), (url, "there")):
        optimize(source, tmp_path / out, engine=LocalEngine(1))
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here")
    assert len(held) > 10
    assert max(held) <= 2 * 65_536


def test_another_geometry_a_directory_and_one_file(tmp_path: Path, memory: Ways) -> None:
    root = case("medium-493").unpack(tmp_path)
    url, given = memory.upload(root), {"hash_slot_num": 11, "index_num": 5000}
    first = sorted(path.name for path in (root / "index").iterdir())[0]
    for n, part in enumerate(("index", f"index/{first}")):
        optimize(root / part, tmp_path / f"here-{n}", **given)
        optimize(f"{url}/{part}", f"{OUT}-{n}", **given)
        assert there_of(memory, f"{OUT}-{n}")[0] == files_below(tmp_path / f"here-{n}")
    with pytest.raises(GeometryError, match="optimized already"):
        optimize(f"{OUT}-0", f"{OUT}-again", hash_slot_num=12)
    optimize(f"{OUT}-0", f"{OUT}-again")
    assert there_of(memory, f"{OUT}-again")[0] == there_of(memory, f"{OUT}-0")[0]


def test_look_ups_there_use_what_was_made(tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    root, (slots, entries) = case("basic-493").unpack(tmp_path), case("basic-493").geometry
    given = {"hash_slot_num": slots, "index_num": entries}
    keys = [f"user-{n}" for n in range(20)]
    optimize(memory.upload(root), OUT)
    with IndexService.open(root / "index", **given) as here:
        expected = here.query_offsets("BBTopic", keys).to_pylist()
    memory.ranges.clear()
    with IndexService.open(f"{OUT}/index", **given) as there:
        assert there.query_offsets("BBTopic", keys).to_pylist() == expected
    assert any(map(len, expected))
    assert memory.of(".fence") > 0


def test_a_filter_of_many_files_is_woven_of_those_that_are_known(
    tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimizing, "FILTER_MOST_FILES", 2)
    root = case("basic-493").unpack(tmp_path)
    optimize(root, tmp_path / "here")
    optimize(memory.upload(root), OUT)
    assert there_of(memory, OUT)[0] == files_below(tmp_path / "here")


def test_nothing_there_is_overwritten_or_written_in_place(tmp_path: Path, memory: Ways) -> None:
    root = case("basic-493").unpack(tmp_path)
    url = memory.upload(root)
    before = memory.files(url)
    for overwrite in (False, True):
        with pytest.raises(ReadOnlyFileError, match=f"^only files of this machine are written in place: {url}; "):
            optimize(url, url, overwrite=overwrite)
        for out in (f"{url}/index", f"{url}/commitlog/cold", f"{url}/index/cold"):
            with pytest.raises(ValueError, match="expected a place of its own"):
                optimize(url, out, overwrite=overwrite)
    with pytest.raises(OutputExistsError, match="the output exists and is not empty"):
        optimize(root, url)
    with pytest.raises(OutputExistsError, match="nothing is overwritten in an object store"):
        optimize(root, OUT, overwrite=True)
    with pytest.raises(FileNotFoundError, match="no such index"):
        optimize(f"{url}/nothing", OUT)
    assert memory.files(url) == before
    assert not memory.files(OUT)


def test_a_damaged_file_is_refused_as_here(tmp_path: Path, memory: Ways) -> None:
    root = case("basic-493").unpack(tmp_path)
    path = sorted((root / "index").iterdir())[1]
    data = bytearray(path.read_bytes())
    data[-4:] = b"\0\0\0\1"
    path.write_bytes(data)
    url, said = memory.upload(root), []
    for source, out in ((root, tmp_path / "here"), (url, OUT)):
        with pytest.raises(CorruptIndexError) as refused:
            optimize(source, out)
        said.append(str(refused.value).replace(str(source), "STORE"))
    assert said[0] == said[1]
    assert not memory.files(OUT)
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("part", ["part", ".fence", ".keys", "filter", "index/", "owner", "mqindex.json"])
def test_a_run_that_fails_leaves_nothing(part: str, tmp_path: Path, memory: Ways) -> None:
    root = case("basic-493").unpack(tmp_path)
    memory.forbidden = part
    with pytest.raises(PermissionError):
        optimize(root, OUT)
    memory.forbidden = ""
    assert not [name for name in memory.files(OUT) if not name.startswith("_mqindex-")]


def test_a_file_that_is_replaced_meanwhile_is_an_error(
    tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = case("medium-493").unpack(tmp_path)
    url = memory.upload(root)
    path = sorted((root / "index").iterdir())[0]
    monkeypatch.setattr(remote_file, "_BLOCK", 4096)
    monkeypatch.setattr(remote_file, "REQUEST", 4096)
    release = remote_file.RemoteFile.release

    def late(file: remote_file.RemoteFile, stop: int) -> None:
        if file.path == f"{url}/index/{path.name}" and stop == 4096:
            memory.put(file.path, path.read_bytes())
        release(file, stop)

    monkeypatch.setattr(remote_file.RemoteFile, "release", late)
    with pytest.raises(FileStateError, match="the file was replaced while it was read") as raised:
        optimize(url, OUT)
    assert raised.value.path == f"{url}/index/{path.name}"
    assert not memory.files(OUT)
