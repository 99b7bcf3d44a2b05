"""A log elsewhere, read through windows of any size: any batches, intact and not, are those of the same log here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqindex.errors import MQIndexError
from mqindex.files.places import remote_file
from mqindex.kafka import LogSegment
from mqindex.kafka.log import batch_windows
from tests.support.elsewhere import Ways, memory
from tests.support.kafka_writer import KafkaRecord, batch, messages

__all__ = ["memory"]  # a fixture

sizes = st.integers(0, 50) | st.integers(0, 9000)


@dataclass(repr=False)
class Log:
    """The bytes of a log, which are not shown."""

    data: bytes


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Of several pages, as a rule; some with changed bytes, with a tail, or cut."""
    data = bytearray()
    for offset in range(draw(st.integers(1, 12))):
        record = KafkaRecord(bytes(draw(sizes)), timestamp=1_700_000_000_000 + offset)
        data += batch([record], offset) if draw(st.integers(0, 4)) else messages([record], offset, magic=1)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data) - 1))
        some = draw(st.binary(min_size=1, max_size=4) | st.just(bytes(5000)))
        data[at : at + len(some)] = some
    data += bytes(draw(sizes))
    return Log(bytes(data[: draw(st.integers(1, len(data)) | st.just(len(data)))]))


def answers(path: str | Path) -> list[Any]:
    found: list[Any] = []
    with LogSegment.open(path, base_offset=0) as segment:
        for check_crc in (True, False):
            found.append(segment.batches(check_crc=check_crc)["position"].tolist())
            for past_damage in (True, False):
                try:
                    made = segment.recover(index_interval_bytes=100, check_crc=check_crc, past_damage=past_damage)
                except MQIndexError as error:
                    found.append(error.what)
                else:
                    found.append((made.offset_index, made.time_index, made.valid_bytes, made.fault, made.damage))
            found.append(segment._reaches(0, segment.size, check_crc=check_crc))
        for offset in range(13):
            found.append(segment.translate_offset(offset))
            for call in (
                lambda offset=offset: segment.find_offset_by_timestamp(1_700_000_000_000 + offset),
                lambda offset=offset: segment.read(offset, max_bytes=2000)["value"].to_pylist(),
            ):
                try:
                    found.append(call())
                except MQIndexError as error:
                    found.append(str(error).replace(str(path), ""))
        found.append(segment.next_offset)
        found.append(sorted(segment.damage, key=lambda one: one.at))
    return found


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs(), first=st.integers(1, 10_000), step=st.integers(1, 10_000), margin=st.integers(0, 5000))
def test_windows_do_not_show(
    log: Log, first: int, step: int, margin: int, tmp_path_factory: pytest.TempPathFactory, memory: Ways
) -> None:
    path = tmp_path_factory.mktemp("here") / f"{0:020d}.log"
    path.write_bytes(log.data)
    url = memory.upload(path.parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_file, "_BLOCK", 4096)
        for name, size in (("FIRST", first), ("STEP", step), ("MARGIN", margin)):
            patch.setattr(batch_windows, name, size)
        there = answers(f"{url}/{path.name}")
    assert there == answers(path)
