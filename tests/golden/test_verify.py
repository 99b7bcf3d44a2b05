"""`verify` finds nothing wrong with what a broker left, and says what is missing where something is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import CommitLog, rebuild, repair, verify
from tests.support.golden import STORE_CASES, StoreCase, case
from tests.support.tree import identities, index_paths

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)
quick_and_deep = pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])


@each_store
@quick_and_deep
def test_store_of_a_broker_is_right(name: str, deep: bool, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    before = identities(root)
    report = verify(root, deep=deep)
    told = {(finding.severity, finding.kind) for finding in report.findings if finding.severity != "info"}
    special = {
        "killed-493": {("warning", "deleted-at-next-start")},  # the entries all come back
        "killed-lost-493": {("error", "deleted-at-next-start")},
    }
    assert told == special.get(name, set()), report.findings
    assert report.files == len(chosen.truth["indexFiles"])
    assert identities(root) == before


@quick_and_deep
def test_message_that_was_indexed_twice_after_a_crash_is_no_error(deep: bool, tmp_path: Path) -> None:
    report = verify(case("killed-493").unpack_after(tmp_path), deep=deep)
    assert report.ok, report.findings


@quick_and_deep
def test_entries_that_a_crash_lost_are_missed(deep: bool, tmp_path: Path) -> None:
    report = verify(case("killed-lost-493").unpack_after(tmp_path), deep=deep)
    assert not report.ok


@each_store
@pytest.mark.parametrize("which", ["first", "middle", "newest"])
@quick_and_deep
def test_index_file_that_is_gone_is_missed(name: str, which: str, deep: bool, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    paths = index_paths(root)
    {"first": paths[0], "middle": paths[len(paths) // 2], "newest": paths[-1]}[which].unlink()
    slots, entries = chosen.geometry
    options: dict[str, Any] = {"hash_slot_num": slots, "index_num": entries, "broker_version": chosen.version}
    assert not verify(root, deep=deep, **options).ok


@quick_and_deep
def test_index_of_another_log_is_found_out(deep: bool, tmp_path: Path) -> None:
    root = case("basic-493").unpack(tmp_path)
    other = case("clock-back-493").unpack(tmp_path)
    assert not verify(root, deep=deep, commitlog=other / "commitlog").ok


@pytest.mark.parametrize("field", [0, 4, 12], ids=["key_hash", "phy_offset", "time_diff"])
def test_only_a_deep_look_finds_a_wrong_entry_far_from_the_ends(field: int, golden_store: GoldenStore) -> None:
    """key_hash is changed by a multiple of the number of slots, so that the chains stay right."""
    chosen, root = golden_store("medium-493")
    path, expected = index_paths(root)[1], index_paths(root)[1].read_bytes()
    slots, entries = chosen.geometry
    at = 40 + 4 * slots + 20 * (entries // 2) + field
    spoilt = bytearray(expected)
    value = int.from_bytes(spoilt[at : at + 4], "big") + (slots if field == 0 else 1)
    spoilt[at : at + 4] = value.to_bytes(4, "big")
    path.write_bytes(spoilt)
    assert verify(root).ok
    report = verify(root, deep=True)
    assert not report.ok
    assert any(finding.path == str(path) for finding in report.findings)
    assert repair(root).ok
    assert path.read_bytes() == spoilt
    repair(root, deep=True)
    assert [file.read_bytes() for file in index_paths(root)][1] == expected


@pytest.mark.parametrize("work", ["verify", "rebuild", "repair"])
def test_the_length_of_the_log_does_not_hang_on_holes_in_its_file(work: str, tmp_path: Path) -> None:
    """It was where the file system had blocks, which changes on a store that nobody touches, and with every copy."""
    chosen = case("basic-493")
    root = chosen.unpack(tmp_path)
    last = max((root / "commitlog").iterdir())
    with CommitLog.open(root / "commitlog") as log:
        wanted = log.max_phy_offset

    def length() -> int:
        if work == "rebuild":
            return rebuild(root, tmp_path / "out", overwrite=True).bytes
        return verify(root).bytes if work == "verify" else repair(root, dry_run=True).bytes

    data = last.read_bytes()
    last.write_bytes(data)  # every block is there
    assert length() == wanted
    used = data.rstrip(b"\0")
    with open(last, "wb") as file:  # a hole behind the last page
        file.write(used)
        file.truncate(len(data))
    assert length() == wanted
