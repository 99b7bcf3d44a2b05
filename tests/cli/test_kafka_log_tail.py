"""Where a log ends: zeros and a part of a batch at a partition's end are no damage, and elsewhere they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import CorruptIndexError
from mqindex.kafka import LogSegment
from tests.support.damaged_partition import damaged_partition
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, batch


@pytest.mark.parametrize("tail", [bytes(4096), bytes(17), b"part"])
def test_a_preallocated_or_unfinished_log_is_healthy(shell: Any, tmp_path: Path, tail: bytes) -> None:
    path = damaged_partition(tmp_path / "d-0")
    part = batch([KafkaRecord(b"torn", None, FIRST_TIME)], 200)[:-3] if tail == b"part" else tail
    path.write_bytes(path.read_bytes() + part)
    for where in (tmp_path / "d-0", path):
        for option in ([], ["--records"]):
            done = shell("dump", where, "--json", *option)
            assert (done.status, done.err) == (0, "")


def test_zeros_in_an_earlier_segment_are_damage_only_where_offsets_are_missing(shell: Any, tmp_path: Path) -> None:
    damaged_partition(tmp_path / "d-0")
    first = tmp_path / "d-0" / f"{0:020d}.log"
    whole = first.read_bytes()
    first.write_bytes(whole + bytes(500))
    assert shell("dump", tmp_path / "d-0").status == 0
    first.write_bytes(whole[: len(whole) // 17 * 16] + bytes(len(whole) // 17))
    done = shell("dump", tmp_path / "d-0", "--records", "--json")
    assert done.status == 1
    assert "offsets 64 to 67" in done.err


def test_a_log_without_a_batch_is_damage_if_it_is_not_zeros(tmp_path: Path) -> None:
    path = tmp_path / f"{5:020d}.log"
    path.write_bytes(b"\xff" * 300)
    with LogSegment.open(path) as segment:
        assert segment.batches().num_rows == 0
        (fault,) = segment.damage
        assert (fault.at, fault.end, fault.first_offset, fault.last_offset) == (0, 300, 5, None)
        assert fault.left_out == "300 bytes up to byte 300 left out, offsets from 5 on"
        with pytest.raises(CorruptIndexError, match="nothing can be read behind it"):
            segment.read(5)


def test_a_batch_whose_records_cannot_be_read_is_left_out_and_the_others_are_not(tmp_path: Path) -> None:
    good = [batch([KafkaRecord(b"v%d" % n, None, FIRST_TIME)], n) for n in range(5)]
    bad = bytearray(good[2])
    bad[21 + 1] |= 1  # gzip, which it is not
    from tests.support.kafka_writer import crc32c

    bad[17:21] = crc32c(bytes(bad[21:])).to_bytes(4, "big")
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(b"".join([*good[:2], bytes(bad), *good[3:]]))
    with LogSegment.open(path) as segment:
        found = [offset for part in segment.records() for offset in part["offset"].tolist()]
        assert found == [0, 1, 3, 4]
        (fault,) = segment.damage
        assert (fault.first_offset, fault.last_offset) == (2, 2)
