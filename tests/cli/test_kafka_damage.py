"""What can be read of a damaged partition: the same from a segment, a partition, a dump and Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import CorruptIndexError
from mqindex.kafka import PartitionLog, verify
from tests.support.damaged_partition import DAMAGE, SEGMENTS, damaged_partition
from tests.support.kafka_writer import FIRST_TIME

pytestmark = pytest.mark.parametrize("kind", DAMAGE)


def offsets_of(parts: Any) -> list[int]:
    return [offset for part in parts for offset in part["offset"].tolist()]


def test_a_segment_is_read_on_behind_damage_and_says_what_is_left_out(tmp_path: Path, kind: str) -> None:
    damage, found = DAMAGE[kind], list[int]()
    damaged_partition(tmp_path, kind)
    with PartitionLog.open(tmp_path) as log:
        for segment in log.segments:
            found += offsets_of(segment.records(columns=["offset"]))
            rows = segment.batches()
            assert sum(rows["count"].tolist()) == len(
                [each for each in damage.left if segment_of(each) == segment.base_offset]
            )
        (fault,) = log.damage
    assert found == damage.left
    assert (fault.kind, fault.first_offset, fault.last_offset) == (damage.kind, damage.first, damage.last)
    assert f"offsets {damage.first} to {damage.last}" in fault.words("x.log")
    (told,) = (one for one in verify(tmp_path).findings if one.kind.startswith("log-"))
    assert (told.kind, told.at, told.field) == (f"log-{fault.kind}", fault.at, fault.field)
    assert (told.expected, told.got) == (fault.expected, fault.got)


def segment_of(offset: int) -> int:
    return max(base for base in SEGMENTS if base <= offset)


def test_a_consumer_gets_no_bad_batch_and_is_told_where_to_go_on(tmp_path: Path, kind: str) -> None:
    damage = DAMAGE[kind]
    damaged_partition(tmp_path, kind)
    for level in ("read_uncommitted", "read_committed"):
        got, offset, asked = list[int](), 0, list[int]()
        with PartitionLog.open(tmp_path) as log:
            while offset < 200:
                try:
                    part = log.read(offset, isolation_level=level, columns=["offset"], max_bytes=300)["offset"].tolist()
                    got, offset = got + part, part[-1] + 1
                except CorruptIndexError as error:
                    assert f"read on from offset {damage.last + 1}" in str(error)
                    asked.append(offset)
                    offset = damage.last + 1
            assert (got, asked) == (damage.left, [damage.first])
            for lost in range(damage.first, damage.last + 1):
                with pytest.raises(CorruptIndexError, match=f"read on from offset {damage.last + 1};"):
                    log.read(lost)


def test_a_segment_reads_from_an_offset_up_to_damage_and_behind_it(tmp_path: Path, kind: str) -> None:
    damage = DAMAGE[kind]
    path = damaged_partition(tmp_path, kind)
    for indexes in ("there", "gone"):
        with PartitionLog.open(tmp_path) as log, log.segments[SEGMENTS.index(damage.segment)] as segment:
            with pytest.raises(
                CorruptIndexError, match=f"where offset {damage.first} is looked for.*offset {damage.last + 1};"
            ):
                segment.read(damage.first)
            if damage.first > damage.segment:
                assert segment.read(damage.first - 1)["offset"].tolist() == [damage.first - 1], indexes
            if damage.last + 1 in damage.left and segment_of(damage.last + 1) == damage.segment:
                assert segment.read(damage.last + 1)["offset"][0] == damage.last + 1
        path.with_suffix(".index").unlink(missing_ok=True)
        path.with_suffix(".timeindex").unlink(missing_ok=True)


def test_times_behind_damage_are_found(tmp_path: Path, kind: str) -> None:
    damage = DAMAGE[kind]
    damaged_partition(tmp_path, kind)
    asked = [FIRST_TIME + offset for offset in damage.left]
    with PartitionLog.open(tmp_path) as log:
        single = [log.offset_for_timestamp(ms) for ms in asked]
        assert [None if one is None else one.offset for one in single] == damage.left
        assert log.offsets_for_timestamps(asked)[1].tolist() == damage.left


def test_a_dump_prints_what_is_good_says_the_rest_and_exits_with_1(shell: Any, tmp_path: Path, kind: str) -> None:
    damage = DAMAGE[kind]
    path = damaged_partition(tmp_path / "d-0", kind)
    for options in ((), ("--isolation-level", "read_committed")):
        done = shell("dump", tmp_path / "d-0", "--records", "--json", *options)
        rows = [row for row in done.json if "damage" not in row]
        assert (done.status, [row["offset"] for row in rows]) == (1, damage.left)
        (said,) = [row["damage"] for row in done.json if "damage" in row]
        assert said in done.err
        assert f"offsets {damage.first} to {damage.last}" in said and str(path) in said
    rows = [row for row in shell("dump", tmp_path / "d-0", "--json").json if "damage" not in row]
    assert [n for row in rows for n in range(row["base_offset"], row["last_offset"] + 1)] == damage.left
    assert json.dumps(rows)
