"""An index that is built while its log is read is the twin's and that of the stages, however the log is cut."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex.engines import Engine, LocalEngine
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import rebuild
from mqindex.rocketmq.pipeline import in_turn, stages
from mqindex.rocketmq.pipeline.split_walk import walk_split
from tests.reference.rebuild import build_index_bytes, log_files
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.memory_disk import memory_disk
from tests.support.tree import index_bytes, scraps

GEOMETRY = {"hash_slot_num": 7, "index_num": 40}


class Staged:
    """An engine whose tasks share no memory, for all that the pipeline knows."""

    def __init__(self) -> None:
        self.progress = None
        self.names: list[str] = []

    def map(self, stage, items, *, name, weights=None, unit="task"):
        self.names.append(name)
        return [stage(item) for item in items]


@contextmanager
def store_with(messages: list[tuple[LogMessage, int]], damage: float | None = None) -> Iterator[Path]:
    """A store with these messages, each with so many imitated ones in its body; `damage`: where its log is, 0..1."""
    home = Path(tempfile.mkdtemp(dir=memory_disk()))
    try:
        writer = LogWriter(home / "store" / "commitlog", mapped_file_size=16384)
        for message, inside in messages:
            if inside:
                writer.write_imitation(message, [LogMessage(keys="fake")] * inside)
            else:
                writer.write(message)
        if damage is not None:
            writer.overwrite(writer.frames[int(damage * len(writer.frames))][0] + 4, b"\xff" * 4)
        with mock.patch("os.fsync"):
            yield home
    finally:
        shutil.rmtree(home)


def rebuilt(home: Path, engine: Engine, split_size: int) -> list[bytes]:
    out = home / "out"
    rebuild(
        home / "store", out, parts=["index"], broker_version="4.9.3", split_size=split_size, engine=engine, **GEOMETRY
    )
    found = index_bytes(out)
    shutil.rmtree(out)
    assert scraps(home) == []
    return found


messages = st.lists(
    st.tuples(
        st.builds(
            LogMessage,
            keys=st.sampled_from([None, "a", "a b c", " ".join("abcdefghijklm")]),
            body=st.sampled_from([b"", b"body", bytes(900)]),
        ),
        st.sampled_from([0] * 8 + [1, 30]),
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=60)
@given(
    messages,
    st.none() | st.floats(0, 0.99),
    st.sampled_from([4096, 5000, 1 << 20]),
    st.sampled_from([1, 3]),
    st.sampled_from([0, 300, 1 << 20]),
)
def test_index_built_in_turn_is_the_twin_s(
    written: list[tuple[LogMessage, int]], damage: float | None, split_size: int, workers: int, kept: int
) -> None:
    with store_with(written, damage) as home, mock.patch.object(in_turn, "_KEPT", kept):
        found = rebuilt(home, LocalEngine(workers), split_size)
        expected = build_index_bytes(log_files(home / "store" / "commitlog"), *GEOMETRY.values(), tags=False)
        assert found == expected == rebuilt(home, Staged(), split_size)


NINE = [(LogMessage(keys=" ".join("abcdefghijklm"), body=bytes(3000)), 0)] * 9


def test_sound_log_writes_no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    staged = Staged()
    with store_with(NINE) as home:
        expected = rebuilt(home, staged, 4096)
        assert "build the index" in staged.names
        monkeypatch.setattr(stages, "build", None)  # it is not needed
        assert rebuilt(home, LocalEngine(2), 4096) == expected


@pytest.mark.parametrize(("workers", "beside"), [(1, False), (2, True)])
def test_full_file_goes_to_the_disk_beside_several_workers(
    workers: int, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []

    def seen(file: MappedFile) -> None:
        names.append(threading.current_thread().name)
        flush(file)

    flush = MappedFile.flush
    monkeypatch.setattr(MappedFile, "flush", seen)
    monkeypatch.setattr(in_turn, "_FULL", 1)
    with store_with(NINE) as home:
        files = rebuilt(home, LocalEngine(workers), 4096)
    assert len(names) == len(files) > 2
    assert {name.startswith("mqindex-disk") for name in names} == {beside}


@pytest.mark.parametrize("workers", [1, 2])
def test_file_that_does_not_reach_the_disk_fails_the_rebuild(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(file: MappedFile) -> None:
        raise OSError(5, "the disk failed", file.path)

    monkeypatch.setattr(MappedFile, "flush", failing)
    with store_with(NINE) as home:
        with pytest.raises(OSError, match="the disk failed"):
            rebuilt(home, LocalEngine(workers), 4096)
        assert scraps(home) == []
        assert not (home / "out").exists()


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_failure_of_one_task_ends_those_that_wait_for_their_turn(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(split, *arguments):
        if split.start == 0:
            raise OSError(5, "the disk failed")
        return walk_split(split, *arguments)

    monkeypatch.setattr(in_turn, "_KEPT", 0)
    monkeypatch.setattr(in_turn, "walk_split", failing)
    with store_with(NINE) as home, pytest.raises(OSError, match="the disk failed"):
        rebuilt(home, LocalEngine(workers), 4096)
