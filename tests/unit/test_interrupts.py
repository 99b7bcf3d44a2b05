"""Signals that arrive while something is cleaned up: it is done, and then they have their effect."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from mqindex.files import disk
from mqindex.files.results import staging
from mqindex.files.results.staging import interrupts_wait


@pytest.fixture
def before() -> object:
    return signal.getsignal(signal.SIGINT)


def test_signals_while_a_scratch_is_removed_leave_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: object
) -> None:
    """The second one left the scratch, and its files, where it was: in the store, or beside the result."""
    remove, sent = disk.remove, []

    def interrupted(path: str) -> None:
        sent.append(path)
        signal.raise_signal(signal.SIGINT)
        remove(path)

    with pytest.raises(KeyboardInterrupt), staging.scratch(str(tmp_path)) as scratch:
        for number in range(4):
            disk.write_new(os.path.join(scratch, str(number)), b"bytes")
        monkeypatch.setattr(disk, "remove", interrupted)
    assert (os.listdir(tmp_path), len(sent)) == ([], 5)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_while_a_directory_takes_the_place_of_another_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "new"):
        (tmp_path / name / name).mkdir(parents=True)
    rename = disk.rename

    def interrupted(source: str, target: str) -> None:
        signal.raise_signal(signal.SIGINT)
        rename(source, target)

    monkeypatch.setattr(disk, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        staging.exchange(str(tmp_path / "new"), str(tmp_path / "old"), str(tmp_path / "aside"))
    assert (os.listdir(tmp_path / "old"), os.listdir(tmp_path / "aside")) == (["new"], ["old"])
    assert sorted(os.listdir(tmp_path)) == ["aside", "old"]


def test_each_kind_of_signal_has_its_effect_once_and_afterwards(before: object) -> None:
    seen: list[int] = []
    usual = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with interrupts_wait():
            for _ in range(3):
                signal.raise_signal(signal.SIGTERM)
            assert seen == []
        assert seen == [signal.SIGTERM]
        signal.raise_signal(signal.SIGTERM)
        assert seen == [signal.SIGTERM] * 2
        with interrupts_wait():
            pass
        assert len(seen) == 2
    finally:
        signal.signal(signal.SIGTERM, usual)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_of_the_block_comes_first_and_a_handler_outlives_nothing(before: object) -> None:
    with pytest.raises(KeyError), interrupts_wait():
        raise KeyError
    with pytest.raises(KeyboardInterrupt) as caught, interrupts_wait():
        signal.raise_signal(signal.SIGINT)
        raise KeyError
    assert isinstance(caught.value.__context__, KeyError)
    assert signal.getsignal(signal.SIGINT) is before


def test_what_takes_too_long_is_interrupted(monkeypatch: pytest.MonkeyPatch, before: object) -> None:
    monkeypatch.setattr(staging, "_PATIENCE", -1.0)
    reached = False
    with pytest.raises(KeyboardInterrupt), interrupts_wait():
        signal.raise_signal(signal.SIGINT)
        reached = True
    assert not reached
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_nothing_changes(tmp_path: Path, before: object) -> None:
    seen: list[object] = []

    def work() -> None:
        with staging.scratch(str(tmp_path)), interrupts_wait():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (seen, os.listdir(tmp_path)) == ([before], [])
