"""`rebuild` gives the broker's index files byte for byte, however the work is cut."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import rebuild, verify
from tests.reference.rebuild import build_index_bytes, log_files
from tests.support.golden import KILLED_CASES, STORE_CASES, StoreCase, case
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import contents, identities, index_bytes, index_paths, scraps

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)


@each_store
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("split_size", [4096, 65536, None])
def test_index_files_are_the_broker_s(
    name: str, workers: int, split_size: int | None, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store(name)
    before = identities(root)
    options: dict[str, Any] = {} if split_size is None else {"split_size": split_size}
    report = rebuild(root, tmp_path / "out", parts=["index"], engine=LocalEngine(workers=workers), **options)
    assert index_bytes(tmp_path / "out") == index_bytes(root)
    assert (report.ok, report.files, report.messages) == (
        True,
        len(before_index(before)),
        len(chosen.truth["messages"]),
    )
    assert report.entries == sum(said["indexCount"] - 1 for said in chosen.truth["indexFiles"])
    assert report.units == 0
    assert not (tmp_path / "out" / "consumequeue").exists()
    assert identities(root) == before
    assert scraps(tmp_path) == []


@each_store
def test_names_are_17_digits_in_the_order_of_the_content(name: str, golden_store: GoldenStore, tmp_path: Path) -> None:
    _, root = golden_store(name)
    report = rebuild(root, tmp_path / "out", parts=["index"], engine=LocalEngine(1))
    names = [path.name for path in index_paths(tmp_path / "out")]
    assert all(len(name) == 17 and name.isascii() and name.isdigit() for name in names)
    assert list(map(Path, report.out_files)) == index_paths(tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["index"]


@each_store
def test_report_says_which_settings_were_used_and_where_they_came_from(
    name: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store(name)
    report = rebuild(root, tmp_path / "out", engine=LocalEngine(1))
    assert report.geometry is not None
    assert report.broker_version is not None
    assert tuple(report.geometry.value) == chosen.geometry
    assert report.broker_version.value == ("5.4 or newer" if chosen.truth["tagsIndexed"] else "before 5.4")
    assert report.geometry.source
    assert report.broker_version.source


@each_store
def test_store_without_any_index_needs_only_to_be_told_its_settings(
    name: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store(name)
    expected = index_bytes(root)
    shutil.rmtree(root / "index")
    slots, entries = chosen.geometry
    rebuild(root, tmp_path / "a", hash_slot_num=slots, index_num=entries, broker_version=chosen.version)
    rebuild(root, tmp_path / "b", config=chosen.truth["config"], broker_version=chosen.version)
    assert index_bytes(tmp_path / "a") == index_bytes(tmp_path / "b") == expected


@pytest.mark.parametrize("name", KILLED_CASES)
@pytest.mark.parametrize("split_size", [4096, 1 << 20])
def test_crashed_store_gives_the_index_from_before_the_crash(name: str, split_size: int, tmp_path: Path) -> None:
    expected = index_bytes(case(name).unpack(tmp_path))
    after = case(name).unpack_after(tmp_path)
    assert index_bytes(after) != expected
    rebuild(after, tmp_path / "out", split_size=split_size)
    assert index_bytes(tmp_path / "out") == expected


@pytest.mark.parametrize("under", ["basic-493", "rolls-493"])
def test_other_log_under_the_index_is_what_counts(under: str, tmp_path: Path) -> None:
    root = case(under).unpack(tmp_path)
    other = case("clock-back-493").unpack(tmp_path)
    rebuild(root, tmp_path / "out", commitlog=other / "commitlog")
    expected = build_index_bytes(log_files(other / "commitlog"), *case(under).geometry, tags=False)
    assert index_bytes(tmp_path / "out") == expected


@pytest.mark.parametrize("parts", [["index"], None])
def test_a_first_file_of_the_log_that_was_cut_to_nothing_has_not_expired(
    parts: list[str] | None, tmp_path: Path
) -> None:
    """The report was without an error, though no broker starts on that log, as verify says."""
    root = make_small_store(tmp_path / "store")
    files = sorted((root / "commitlog").iterdir())
    size = files[0].stat().st_size
    (root / "commitlog" / f"{len(files) * size:020d}").touch()  # the newest is just made
    assert rebuild(root, tmp_path / "whole", parts=parts, engine=LocalEngine(1), **OPTIONS).ok
    files[0].write_bytes(b"")
    report = rebuild(root, tmp_path / "out", parts=parts, engine=LocalEngine(1), **OPTIONS)
    lost = [(one.severity, one.kind, one.path, one.expected, one.got) for one in report.findings]
    assert lost == [("error", "log-file-length", str(files[0]), size, 0)]
    verified = [one for one in verify(root, engine=LocalEngine(1), **OPTIONS).findings if one.kind == lost[0][1]]
    assert [(one.path, one.expected, one.got) for one in verified] == [lost[0][2:]]


def test_log_in_several_directories_is_one_log(golden_store: GoldenStore, tmp_path: Path) -> None:
    _, root = golden_store("exactfit-493")
    directories = [tmp_path / "x", tmp_path / "y", tmp_path / "z"]
    for number, path in enumerate(sorted((root / "commitlog").iterdir())):
        directories[number % 3].mkdir(exist_ok=True)
        path.rename(directories[number % 3] / path.name)
    (root / "commitlog").rmdir()
    rebuild(root, tmp_path / "out", commitlog=directories)
    assert index_bytes(tmp_path / "out") == index_bytes(root)
    joined = {"storePathCommitLog": ",".join(map(str, directories))}
    rebuild(root, tmp_path / "again", config=joined)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def before_index(seen: dict[str, Any]) -> list[str]:
    return [path for path in seen if path.startswith("index/")]
