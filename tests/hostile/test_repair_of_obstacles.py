"""What keeps a broker from starting, and a repair does not mend, is left as an error; and none of it is overlooked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.report import Report
from mqindex.rocketmq import MessageStore, rebuild, repair, undo_repair, verify
from tests.support.small_store import OPTIONS, QUEUE_FILE_SIZE, make_small_store
from tests.support.tree import contents

CONFIG = {"mappedFileSizeConsumeQueue": QUEUE_FILE_SIZE}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_small_store(tmp_path / "store")


def errors(report: Report) -> list[tuple[str, str]]:
    return [(one.kind, Path(one.path).name) for one in report.findings if one.severity == "error"]


def both(store: Path) -> tuple[Report, Report]:
    """What is left after a repair, and what `verify` says then."""
    left = repair(store, config=CONFIG, engine=LocalEngine(1), **OPTIONS)
    return left, verify(store, deep=True, config=CONFIG, engine=LocalEngine(1), **OPTIONS)


@pytest.mark.parametrize("unclean", [False, True])
def test_the_lock_of_a_repair_is_not_taken_for_a_broker(store: Path, unclean: bool) -> None:
    """It was: an empty next file is what a running broker makes, so the repair said done, and no broker started."""
    if unclean:
        (store / "abort").touch()
    (store / "commitlog" / ".snapshot").mkdir()
    last = sorted((store / "commitlog").glob("0*"))[-1]
    (store / "commitlog" / f"{int(last.name) + 2048:020d}").touch()
    left, after = both(store)
    assert errors(left) == errors(after)
    assert {kind for kind, _ in errors(left)} == {"stray-log-file", "log-file-empty"}


@pytest.mark.parametrize("name", ["checkpoint", "config/topics.json"])
def test_what_a_repair_does_not_mend_is_left_as_an_error(store: Path, name: str) -> None:
    if name == "checkpoint":
        (store / name).unlink()
        (store / name).mkdir()
    else:
        (store / "config").mkdir()
        (store / name).write_text("{")
        (store / f"{name}.bak").write_text("{")
    left, after = both(store)
    assert after.start is not None
    assert after.start.starts is False
    assert {(kind, Path(name).name) for kind in ("checkpoint-unreadable", "side-file-invalid")} & {*errors(left)}


def test_a_checkpoint_that_the_repair_writes_is_none_that_is_left(store: Path) -> None:
    (store / "abort").touch()
    (store / "checkpoint").unlink()
    (store / "checkpoint").mkdir()
    left, after = both(store)
    assert (left.ok, after.ok, (store / "checkpoint").is_file()) == (True, True, True)


@pytest.mark.parametrize("given", [True, False])
def test_a_directory_among_index_files_ends_nothing(store: Path, given: bool) -> None:
    """It ended in IsADirectoryError, whatever else there was to tell and to mend."""
    stray = store / "index" / "20200101000000000"
    (stray / "below").mkdir(parents=True)
    before = contents(store)
    options = {**OPTIONS} if given else {"broker_version": "5.3.3"}
    report = verify(store, config=CONFIG, engine=LocalEngine(1), **options)
    assert ("index-unreadable", stray.name) in errors(report)
    assert report.entries > 0
    done = repair(store, config=CONFIG, engine=LocalEngine(1), **options)
    assert f"move {stray.name} to the backup" in done.actions
    assert not stray.exists()
    assert done.backup is not None
    undo_repair(store, done.backup)
    assert {name: what for name, what in contents(store).items() if "-backup-" not in name} == before


def test_a_queue_whose_only_file_has_an_odd_name_ends_nothing(store: Path) -> None:
    """`ValueError: zip() argument 2 is longer than argument 1` was all that anybody was told."""
    (first,) = (store / "consumequeue" / "Topic0" / "0").glob(f"{0:020d}")
    others = [path for path in first.parent.iterdir() if path != first]
    first.rename(first.with_name(f"{7:020d}"))
    for path in others:
        path.unlink()
    report = verify(store, config=CONFIG, engine=LocalEngine(1), **OPTIONS)
    assert ("stray-queue-file", f"{7:020d}") in errors(report)
    left, after = both(store)
    assert (errors(left), errors(after), first.exists()) == ([], [], True)


def test_a_number_that_is_not_of_20_digits_is_no_file_of_a_log(store: Path) -> None:
    """A broker takes `4096` for the last file of the log, by its name, and goes on writing behind it: over the log."""
    second = sorted((store / "commitlog").iterdir())[1]
    shutil.copy(second, store / "commitlog" / str(int(second.name)))
    left, after = both(store)
    assert errors(left) == errors(after) == [("stray-log-file", str(int(second.name)))]


def test_a_file_that_two_directories_of_a_log_have_is_told(store: Path) -> None:
    """The first one was taken, and nobody was told: a copy that was begun and not finished hides messages."""
    second, other = sorted((store / "commitlog").iterdir())[1], store / "more"
    other.mkdir()
    shutil.copy(second, other)
    report = verify(store, commitlog=[store / "commitlog", other], config=CONFIG, engine=LocalEngine(1), **OPTIONS)
    assert errors(report) == [("stray-log-file", second.name)]


@pytest.mark.parametrize("name", ["index", "consumequeue"])
@pytest.mark.parametrize("what", ["a file", "a link that leads nowhere"])
def test_a_part_that_is_no_directory_is_told_and_never_replaced(store: Path, name: str, what: str) -> None:
    """`Not a directory` was all that verify and repair said of a file; a link to a volume that is not mounted was moved
    away, and a directory made in its place.
    """
    shutil.rmtree(store / name)
    if what == "a file":
        (store / name).write_bytes(b"mine")
    else:
        (store / name).symlink_to("/nowhere/volume")
    before = look(store, name)
    report = verify(store, config=CONFIG, engine=LocalEngine(1), **OPTIONS)
    assert ("not-a-directory", name) in errors(report)
    for dry_run in (True, False):
        with pytest.raises(FileStateError, match=f"not a directory: .*/{name}: expected a directory, got {what}; move"):
            repair(store, dry_run=dry_run, config=CONFIG, engine=LocalEngine(1), **OPTIONS)
    with pytest.raises(FileStateError, match="not a directory"):
        MessageStore.open(store, writable=True, config=CONFIG, **OPTIONS)
    assert look(store, name) == before
    done = rebuild(store, store.parent / "out", config=CONFIG, engine=LocalEngine(1), **OPTIONS)
    assert (done.entries > 0, done.units > 0) == (True, True)
    (store / name).unlink()
    assert errors(both(store)[1]) == []


def look(store: Path, name: str) -> tuple[list[str], str | bytes, dict[str, str]]:
    part = store / name
    held = str(part.readlink()) if part.is_symlink() else part.read_bytes()
    return sorted(path.name for path in store.iterdir() if path.name != "lock"), held, contents(store / "commitlog")
