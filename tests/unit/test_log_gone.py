"""A log in several directories, of which one is not mounted: which one it is, and what it would cost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.rocketmq import rebuild, repair, verify
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import contents

ONE = LocalEngine(1)
SEVERITIES = {"error", "warning"}


@pytest.fixture
def store(tmp_path: Path) -> tuple[Path, list[Path]]:
    """A store, and the directories of its log: two files, two, and one."""
    root = make_small_store(tmp_path / "store")
    places = [tmp_path / name for name in "abc"]
    for place in places:
        place.mkdir()
    for number, path in enumerate(sorted((root / "commitlog").iterdir())):
        shutil.move(path, places[number // 2])
    return root, places


def told(root: Path, places: list[Path]) -> list[tuple[str, str, str | None]]:
    report = verify(root, commitlog=places, engine=ONE, **OPTIONS)
    return [(one.severity, one.kind, one.path) for one in report.findings if one.severity in SEVERITIES]


@pytest.mark.parametrize("which", range(3))
def test_the_directory_that_is_not_there_is_named(store: tuple[Path, list[Path]], which: int) -> None:
    """The first of them was: "no message in it", though it was full of them."""
    root, places = store
    shutil.move(places[which], root.parent / "elsewhere")
    assert told(root, places) == [("error", "log-missing", str(places[which]))]
    before = contents(root)
    with pytest.raises(FileStateError, match=f"{places[which]}: .* no such directory"):
        repair(root, commitlog=places, engine=ONE, **OPTIONS)
    assert contents(root) == before


def test_the_begin_of_the_log_is_perhaps_not_mounted(store: tuple[Path, list[Path]]) -> None:
    """All was clean, and a rebuild said nothing; a broker that ran so deleted four index files after a minute."""
    root, places = store
    shutil.move(places[0], root.parent / "elsewhere")
    places[0].mkdir()
    warning = ("warning", "log-missing", str(places[0]))
    assert told(root, places) == [warning]
    report = rebuild(root, root.parent / "out", commitlog=places, engine=ONE, **OPTIONS)
    assert [(one.severity, one.kind, one.path) for one in report.findings] == [warning]
    assert "3 index files of messages before phy offset 4096" in str(report.findings[0])


def expired(store: tuple[Path, list[Path]]) -> tuple[Path, list[Path]]:
    """The same store, after a broker deleted the log of the first directory and the index files that lead there."""
    root, places = store
    for path in [*places[0].iterdir(), *sorted((root / "index").iterdir())[:3]]:
        path.unlink()
    return root, places


def test_a_directory_whose_messages_expired_is_none_that_is_missing(store: tuple[Path, list[Path]]) -> None:
    """A broker deletes the index files with them; the first that it keeps reaches into the log."""
    root, places = expired(store)
    assert told(root, places) == []


def test_the_last_index_file_stays_for_ever(store: tuple[Path, list[Path]]) -> None:
    """No later message has keys: the broker deletes all index files but the last one, whatever it is of."""
    root, places = store
    for path in places[0].iterdir():
        path.unlink()
    kept = sorted((root / "index").iterdir())[1]
    for path in (root / "index").iterdir():
        if path != kept:
            path.unlink()
    assert "log-missing" not in {kind for _, kind, _ in told(root, places)}


def test_a_directory_whose_turn_has_not_come_is_none_that_is_missing(store: tuple[Path, list[Path]]) -> None:
    root, places = store
    empty = root.parent / "d"
    empty.mkdir()
    assert told(root, [*places, empty]) == []


@pytest.mark.parametrize("lost", [None, "index"], ids=["index", "queues"])
def test_a_rebuild_says_that_the_log_ends_before_the_index(tmp_path: Path, lost: str | None) -> None:
    """`dledger-n0` of a store that had gone over to DLedger was moved away: the plain part was all, and nothing told.

    The plain log then ends with a full file, and index and queues go on after it.
    """
    root = make_small_store(tmp_path / "store")
    if lost:
        shutil.rmtree(root / lost)
    assert rebuild(root, tmp_path / "whole", engine=ONE, **OPTIONS).findings == []
    for path in sorted((root / "commitlog").iterdir())[2:]:
        path.unlink()
    report = rebuild(root, tmp_path / "out", engine=ONE, **OPTIONS)
    (warning,) = report.findings
    assert (warning.severity, warning.kind) == ("warning", "log-missing")
    assert warning.path == str(root / "commitlog" / f"{2048:020d}")
    assert "its last file, which ends at 4096" in str(warning)
    assert "if another volume or a DLedger log has its later part, these messages are not in it" in str(warning)


FAR = 7 * 10**16


def damage(path: Path, at: int, value: int) -> None:
    """Eight bytes of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(value.to_bytes(8, "big"))


def of_queues(root: Path) -> list[Path]:
    return sorted(path for path in (root / "consumequeue").rglob("*") if path.is_file())


@pytest.mark.parametrize("number", [0, 2, -1])
def test_one_damaged_header_does_not_make_the_log_end_early(tmp_path: Path, number: int) -> None:
    """It was "messages up to phy offset 70000000000000000"."""
    root = make_small_store(tmp_path / "store")
    damage(sorted((root / "index").iterdir())[number], 24, FAR)
    assert rebuild(root, tmp_path / "out", engine=ONE, **OPTIONS).findings == []


def test_one_damaged_unit_does_not_make_the_log_end_early(tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    shutil.rmtree(root / "index")
    damage(of_queues(root)[0], 0, FAR)
    assert rebuild(root, tmp_path / "out", engine=ONE, **OPTIONS).findings == []


def test_the_queues_say_it_where_the_header_is_damaged(tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    for path in sorted((root / "index").iterdir()):
        damage(path, 24, FAR)
    for path in sorted((root / "commitlog").iterdir())[2:]:
        path.unlink()
    (warning,) = rebuild(root, tmp_path / "out", engine=ONE, **OPTIONS).findings
    assert warning.kind == "log-missing"
    assert str(FAR) not in str(warning)
    assert "as consumequeue/" in str(warning)


def test_one_damaged_header_is_no_directory_that_is_missing(store: tuple[Path, list[Path]]) -> None:
    """A directory whose turn had not come: a repair refused, as if its volume were not mounted."""
    root, places = store
    empty = root.parent / "d"
    empty.mkdir()
    damage(sorted((root / "index").iterdir())[-1], 24, FAR)
    assert "log-missing" not in {kind for _, kind, _ in told(root, [*places, empty])}
    assert repair(root, commitlog=[*places, empty], engine=ONE, **OPTIONS).ok


def test_one_damaged_header_is_no_begin_that_is_missing(store: tuple[Path, list[Path]]) -> None:
    root, places = expired(store)
    damage(sorted((root / "index").iterdir())[0], 24, 1)
    assert "log-missing" not in {kind for _, kind, _ in told(root, places)}
