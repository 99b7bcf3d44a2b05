"""Index files of Kafka with a hole of terabytes behind their entries: only their data is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mqindex.errors import CorruptIndexError
from mqindex.files.reading.sparse import SparseFile
from mqindex.kafka import TransactionIndex, repair, verify
from mqindex.kafka.index.index_entries import entries_before_zeros, read_entries
from mqindex.kafka.index.transaction_index import AbortedTxn, aborted_bytes
from mqindex.kafka.layout import IndexKind
from tests.golden.test_kafka_report import case_interval
from tests.support.golden_kafka import PartitionCase

LONGEST = (8 << 40, 1 << 40, 1 << 33)  # bytes: as far as the file system allows


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read asked for."""
    found: list[int] = []
    usual = SparseFile.read

    def counted(self: SparseFile, start: int, stop: int) -> bytes:
        found.append(stop - start)
        return usual(self, start, stop)

    monkeypatch.setattr(SparseFile, "read", counted)
    return found


def lengthen(path: Path) -> None:
    for size in LONGEST:
        try:
            os.truncate(path, size)
        except OSError:
            continue
        return


@pytest.mark.parametrize("kind", [IndexKind.OFFSET, IndexKind.TIME])
def test_a_hole_of_terabytes_is_not_read(tmp_path: Path, read: list[int], kind: IndexKind) -> None:
    """A broker's own tool reads it all; 8 TiB took hours."""
    path = tmp_path / f"{0:020d}.{kind.value}"
    path.write_bytes(bytes(range(1, kind.entry_size + 1)) * 3)
    places = os.path.getsize(path) // kind.entry_size
    lengthen(path)
    assert entries_before_zeros(path, kind) == places
    found = read_entries(str(path), kind, 100)
    assert (found.places - found.zeros, len(found)) == (places, 1)
    assert sum(read) < 1 << 20


def test_a_partition_with_one_is_verified_and_repaired(tmp_path: Path, read: list[int]) -> None:
    case = PartitionCase("410-codecs")
    closed, given = case.closed(tmp_path), {"index_interval_bytes": case_interval(case)}
    wanted = {path.name: path.read_bytes() for path in closed.glob("*index")}
    for path in closed.glob("*index"):
        lengthen(path)
    assert not verify(closed, **given).ok
    assert sum(read) < 1 << 20
    assert repair(closed, **given).ok
    assert {path.name: path.read_bytes() for path in closed.glob("*index")} == wanted


@pytest.mark.parametrize("behind", [b"", b"\1" * 34])
def test_a_transaction_index_with_one(tmp_path: Path, read: list[int], behind: bytes) -> None:
    """It was out of memory."""
    path = tmp_path / f"{100:020d}.txnindex"
    path.write_bytes(aborted_bytes([AbortedTxn(5, 102, 106, 107)]))
    lengthen(path)
    with path.open("ab") as file:
        file.write(behind)
    with TransactionIndex.open(path) as index:
        if behind:
            with pytest.raises(CorruptIndexError, match="a hole of the file"):
                index.entries()
        else:
            assert next(index.entries()).producer_id == 5
    report = verify(path)
    assert [one.kind for one in report.findings if one.severity == "error"]
    assert 2 <= report.entries <= 4096  # the first block, and one for the hole
    assert sum(read) < 1 << 20
