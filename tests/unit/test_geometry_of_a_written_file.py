"""The geometry of an index file while a broker writes into it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mqindex.errors import GeometryError
from mqindex.rocketmq.index.geometry import infer
from tests.support.golden import case
from tests.support.tree import index_paths


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file that a broker has just made, and has no entry in yet."""
    path = Path(index_paths(case("basic-493").unpack(tmp_path))[0])
    path.with_name("whole").write_bytes(path.read_bytes())
    path.write_bytes(bytes(path.stat().st_size))
    return path


def test_a_file_that_is_written_to_is_looked_at_again(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of 205 verifies beside a broker ended with "cannot be inferred"."""
    whole = written.with_name("whole").read_bytes()
    monkeypatch.setattr(time, "sleep", lambda seconds: written.write_bytes(whole))
    assert infer([written]) == case("basic-493").geometry


def test_a_file_that_nobody_writes_to_is_not(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(GeometryError, match="cannot be inferred"):
        infer([written])
    assert len(pauses) == 1
