"""Pieces of any size come out as one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.files import disk
from mqindex.rocketmq.pipeline import stages
from mqindex.rocketmq.pipeline.stages import BlockWriter


@pytest.mark.parametrize("sizes", [[], [0], [3], [8], [9], [5, 3], [5, 4], [5, 20, 1], [1] * 30, [8, 0, 8]])
def test_pieces_are_written_in_order(sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_SIZE", 8)
    pieces = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    with disk.new_file(str(tmp_path / "file")) as fd:
        writer = BlockWriter(fd)
        for piece in pieces:
            reused = bytearray(piece)
            writer.write(memoryview(reused))
            reused[:] = bytes(len(piece))
        writer.flush()
    assert (tmp_path / "file").read_bytes() == b"".join(pieces)
