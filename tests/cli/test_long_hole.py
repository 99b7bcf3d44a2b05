"""`dump` of an index file of Kafka that has a hole of terabytes between its entries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mqindex.kafka.layout import IndexKind
from tests.cli.conftest import Shell
from tests.unit.test_kafka_long_hole import lengthen


@pytest.mark.parametrize("kind", [IndexKind.OFFSET, IndexKind.TIME])
def test_a_hole_between_entries_is_left_out_of_a_listing(tmp_path: Path, shell: Shell, kind: IndexKind) -> None:
    """It was listed place by place: terabytes of zeros."""
    path = tmp_path / f"{0:020d}.{kind.value}"
    path.write_bytes(bytes(range(1, kind.entry_size + 1)) * 3)
    lengthen(path)
    with path.open("ab") as file:
        file.write(b"\1" * kind.entry_size)
    if os.stat(path).st_blocks * 512 > 1 << 20:
        return  # this file system has no holes
    done = shell("dump", path, "--format", "csv")
    assert done.status == 1 and len(done.out.splitlines()) < 1 << 19
    assert "places of zeros from entry" in done.err and "left out: a hole of the file" in done.err
