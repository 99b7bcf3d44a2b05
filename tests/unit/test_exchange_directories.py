"""`rebuild --force`: a directory takes the place of another, and any of its renames may fail."""

from __future__ import annotations

import errno
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.files.results import staging
from mqindex.files.results.publication import Publication, publish


class Failing:
    """Lets the renames of these numbers fail, counted from 1."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, swaps: bool) -> None:
        self.calls, self.fail = 0, frozenset[int]()
        for name in ("rename", "swap"):
            monkeypatch.setattr(disk, name, self._counted(getattr(disk, name)))
        if not swaps:
            monkeypatch.setattr(disk, "swap", lambda one, other: False)

    def _counted(self, call: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
        def counted(one: str, other: str) -> Any:
            self.calls += 1
            if self.calls in self.fail:
                raise OSError(errno.EIO, os.strerror(errno.EIO), one)
            return call(one, other)

        return counted


def make(parent: Path) -> tuple[str, str]:
    """A new directory in a scratch, and an old one in its place."""
    source, out = parent / "scratch" / "result", parent / "out"
    for directory, word in ((source, "new"), (out, "old")):
        directory.mkdir(parents=True)
        (directory / "word").write_text(word)
    return str(source), str(out)


def word(directory: Path) -> str | None:
    return (directory / "word").read_text() if directory.exists() else None


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("swaps", [True, False], ids=["swap", "no swap"])
def test_renames_that_fail_never_leave_the_place_empty_without_saying_so(
    swaps: bool, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(monkeypatch, swaps=swaps)
    seen = set()
    for some in itertools.combinations(range(1, 7), number):
        parent = tmp_path / "-".join(map(str, some))
        source, out = make(parent)
        failing.calls, failing.fail = 0, frozenset(some)
        backup = parent / "out.backup"
        try:
            staging.exchange(source, out, str(backup))
        except (OSError, FileStateError) as raised:
            seen.add(type(raised))
            error: Exception | None = raised
        else:
            error = None
        reached = sum(one <= failing.calls for one in some)
        if isinstance(error, FileStateError) and swaps:
            (beside,) = parent.glob("out.exchange-*")
            assert (word(beside), word(parent / "out")) == ("old", "new")
            assert str(error).endswith(f"mv {beside} {backup}")
            failing.fail = frozenset()
            staging.end_exchange(out, str(backup))
            assert word(backup) == "old"
            continue
        assert (error is None) == (word(parent / "out") == "new"), some
        assert not list(parent.glob("out.exchange-*"))
        if error is None:
            assert reached == 0 or (swaps and word(backup) == "old")
            assert word(backup) == "old"
        elif isinstance(error, FileStateError):
            assert word(backup) == "old"
            assert str(error).endswith(f"mv {backup} {out}")
        else:
            assert word(parent / "out") == "old"
            assert not backup.exists()
    assert seen == ({OSError} if number == 1 else {OSError, FileStateError})


def test_an_interrupt_right_after_the_swap_takes_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = make(tmp_path)
    swap = disk.swap

    def interrupted(one: str, other: str) -> bool:
        swap(one, other)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(disk, "swap", interrupted)
    with pytest.raises(KeyboardInterrupt):
        staging.exchange(source, out, str(tmp_path / "out.backup"))
    assert sorted(os.listdir(tmp_path)) == ["out", "scratch"]
    assert (word(tmp_path / "out"), word(Path(source))) == ("old", "new")


def test_a_swap_with_a_name_that_is_not_there(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    with pytest.raises(FileNotFoundError) as raised:
        disk.swap(one, other)
    assert (raised.value.filename, raised.value.filename2) == (one, other)


@pytest.mark.parametrize("swapped", [False, True])
def test_the_next_run_ends_an_exchange_that_was_killed(swapped: bool, tmp_path: Path) -> None:
    """A backup's name led to the new directory, if the run was killed just before it swapped the two."""
    source, out = make(tmp_path)
    beside = f"{out}.exchange-{os.stat(source).st_ino}"
    os.rename(source, beside)
    if swapped:
        assert disk.swap(beside, out)
    (tmp_path / "out.exchange-notes").mkdir()
    staging.end_exchange(out, f"{out}.backup")
    assert word(tmp_path / "out") == ("new" if swapped else "old")
    assert word(tmp_path / "out.backup") == ("old" if swapped else None)
    assert sorted(os.listdir(tmp_path)) == ["out", *["out.backup"] * swapped, "out.exchange-notes", "scratch"]


def test_a_second_attempt_to_publish_says_too_where_the_old_output_is(tmp_path: Path) -> None:
    source, out = make(tmp_path)
    scratch = os.path.dirname(source)
    os.rename(source, f"{scratch}/built")
    aside = f"{out}.backup"
    os.mkdir(aside)  # of another run in the same second
    publication = Publication(scratch, out, aside, ((f"{scratch}/built", "new"),))
    first = publish(publication)
    assert first.backup == f"{aside}-2"
    assert word(Path(f"{aside}-2")) == "old"
    assert publish(publication)[:2] == first[:2]


def test_how_long_the_names_took_to_become_durable_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0

    def slow(path: str) -> None:
        nonlocal seconds
        seconds += 100.0

    source, out = make(tmp_path)
    monkeypatch.setattr(disk, "sync_directory", slow)
    monkeypatch.setattr(time, "perf_counter", lambda: seconds)
    scratch = os.path.dirname(source)
    os.rename(source, f"{scratch}/built")
    publication = Publication(scratch, f"{out}-new", None, ((f"{scratch}/built", "index"),))
    assert publish(publication).fsync_seconds == 300.0  # the result, what is in it, and what it is in
    assert publish(publication).fsync_seconds == 0.0
