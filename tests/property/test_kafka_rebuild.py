"""Random partitions: rebuilt as the twin recovers them; and an index that verify calls right answers rightly."""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from mqindex._words import plural
from mqindex.engines import LocalEngine
from mqindex.kafka import rebuild, repair, verify
from tests.reference import kafka_recover as twin
from tests.reference.kafka_index import Refused
from tests.reference.kafka_partition import read_partition
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

ONE = LocalEngine(1)
PASSED_OVER = {"log-magic", "log-offset-order", "log-count"}  # what a recovery does not look at
ENDINGS = (".index", ".timeindex", ".txnindex")

timestamps = st.integers(-1, 40).map(lambda step: FIRST_TIME + 10 * step if step > 3 else step)
records = st.lists(
    st.builds(
        KafkaRecord, value=st.none() | st.binary(max_size=40), key=st.none() | st.just(b"k"), timestamp=timestamps
    ),
    min_size=1,
    max_size=4,
)
steps = st.one_of(
    st.tuples(st.just("append"), records, st.sampled_from([0, 1, 2, 2, 2]), st.sampled_from(["none", "gzip"])),
    st.tuples(st.just("begin"), records, st.integers(0, 2)),
    st.tuples(st.just("end"), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("skip"), st.integers(1, 5)),
)
scripts = st.lists(steps, min_size=1, max_size=25)
lean = settings(max_examples=60)


def write(directory: Path, script: list[Any], base: int, interval: int) -> Path:
    writer = PartitionWriter(directory, base, index_interval=interval)
    for step in script:
        if step[0] == "append":
            _, what, magic, codec = step
            writer.append(what, magic=magic, codec=codec)
        elif step[0] == "begin":
            writer.append(step[1], producer_id=step[2], producer_epoch=0, base_sequence=0, transactional=True)
        elif step[0] == "end":
            writer.marker(step[1], abort=step[2], timestamp=FIRST_TIME + 200)
        elif step[0] == "roll":
            writer.roll() if writer.path().stat().st_size else None
        else:
            writer.skip(step[1])
    writer.close()
    return directory


def index_files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.suffix in ENDINGS}


@given(script=scripts, base=st.integers(0, 2**40), interval=st.integers(0, 400))
@lean
def test_a_rebuild_is_what_was_written_live(script: list[Any], base: int, interval: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        directory = write(Path(home) / "topic-0", script, base, interval)
        report = rebuild(directory, Path(home) / "out", index_interval_bytes=interval, engine=ONE)
        assert report.findings == []
        assert index_files(Path(home) / "out") == index_files(directory)
        found = verify(directory, index_interval_bytes=interval, engine=ONE, deep=True).findings
        assert {one.kind for one in found} <= {"segment-gap"}  # of a script that skips offsets where a segment ends


damage = st.tuples(st.integers(0, 60), st.integers(0, 10**6))


@given(script=scripts, damage=damage, old=st.booleans(), interval=st.integers(0, 300))
@lean
def test_a_rebuild_of_a_damaged_log_is_the_twins(
    script: list[Any], damage: tuple[int, int], old: bool, interval: int
) -> None:
    cut, flip = damage
    with tempfile.TemporaryDirectory() as home:
        directory = write(Path(home) / "topic-0", script, 100, interval)
        logs = sorted(directory.glob("*.log"))
        data = bytearray(logs[-1].read_bytes())
        if data and flip % 3:
            data[flip % len(data)] ^= 1 << flip % 8
        logs[-1].write_bytes(data[: max(len(data) - cut, 0)])
        chosen: dict[str, Any] = {"index_interval_bytes": interval, "kafka_version": "1.1.1" if old else None}
        report = rebuild(directory, Path(home) / "out", engine=ONE, **chosen)
        expected, segments = {}, []
        for path in logs:
            try:
                made = recovered_past_damage(path.read_bytes(), int(path.stem), interval=interval, first_offsets=old)
            except Refused:
                assert not report.ok
                segments.append([])
                continue
            segments.append(made.batches)
            expected |= {f"{path.stem}.index": made.index, f"{path.stem}.timeindex": made.timeindex}
            told = [each for each in report.findings if each.path == str(path) and each.kind not in PASSED_OVER]
            size, good = path.stat().st_size, sum(batch.size for batch in made.batches)
            assert bool(told) == (size > good)
            if len(told) == 1:
                assert f"{plural(size - good, 'byte')} " in str(told[0].hint)
        aborted = twin.aborted_transactions(segments)
        expected |= {f"{path.stem}.txnindex": entries for path, entries in zip(logs, aborted, strict=True) if entries}
        assert index_files(Path(home) / "out") == expected


def recovered_past_damage(log: bytes, base: int, **how: Any) -> twin.RecoveredTwin:
    """Where batches behind damage contradict those before, what a broker's recovery gives."""
    try:
        return twin.recover(log, base, past_damage=True, **how)
    except Refused:
        return twin.recover(log, base, **how)


def answers(directory: Path) -> tuple[list[Any], list[Any]]:
    """What a broker with these files answers; what it falls over counts as an answer of its own."""
    partition = read_partition(directory)
    asked = [(segment, segment.base + more) for segment in partition.segments for more in range(60)]
    times = [FIRST_TIME + 10 * step + less for step in range(3, 90) for less in (0, -1)]
    return (
        [safely(segment.translate, offset) for segment, offset in asked],
        [safely(partition.fetch, time) for time in (*times, 0, 1, 2, 3)],
    )


def safely(question: Callable[[int], Any], of: int) -> Any:
    try:
        return question(of)
    except (struct.error, IndexError, ValueError, OverflowError, EOFError) as error:
        return type(error)


def mutated(data: bytes, size: int, kind: str, where: int) -> bytes:
    changed = bytearray(data)
    entries = len(data) // size
    if kind == "cut":
        return data[: where % (entries + 1) * size]
    if kind == "zeros":
        return data + bytes(where % 30)
    if entries < 2:
        return data + b"\0\0\0\1"
    entry = where % (entries - 1) * size
    if kind == "flip":
        changed[where % len(data)] ^= 1 << where % 8
    elif kind == "flip low":
        changed[entry + (where // entries % (size // 4)) * 4 + 3] ^= 1 << where % 8
    elif kind == "flip last":
        changed[-1 - where % size] ^= 1 << where % 8
    elif kind == "borrow":  # its second field, in the place of the one before
        changed[entry + size - 4 : entry + size] = changed[entry + 2 * size - 4 : entry + 2 * size]
        del changed[entry + size : entry + 2 * size]
    elif kind == "double":
        changed[entry:entry] = changed[entry : entry + size]
    elif kind == "swap":
        last = changed[-size:]
        changed[-size:] = changed[entry : entry + size]
        changed[entry : entry + size] = last
    else:
        changed[entry : entry + size] = changed[:size]
    return bytes(changed)


def several_segments(directory: Path, source: random.Random, interval: int) -> Path:
    """Three segments of a dozen batches, with times that go back now and then."""
    writer, step = PartitionWriter(directory, 7, index_interval=interval), 4
    for segment in range(3):
        if segment:
            writer.roll()
        for _ in range(source.randrange(8, 14)):
            step = max(step + source.randrange(-3, 5), 4)
            times = [FIRST_TIME + 10 * (step + source.randrange(3)) for _ in range(source.randrange(1, 4))]
            writer.append([KafkaRecord(timestamp=time) for time in times], magic=source.choice([1, 2, 2]))
    writer.close()
    return directory


@given(
    source=st.integers(0, 2**32).map(random.Random),
    interval=st.sampled_from([0, 80, 200]),
    kind=st.sampled_from(["flip", "flip low", "flip last", "borrow", "cut", "double", "swap", "zeros", "copy"]),
)
@settings(lean, max_examples=120)
def test_an_index_that_verify_calls_right_answers_rightly(source: random.Random, interval: int, kind: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        directory = several_segments(Path(home) / "topic-0", source, interval)
        (Path(home) / ".kafka_cleanshutdown").touch()
        right = answers(directory)
        path = source.choice([path for path in sorted(directory.iterdir()) if path.suffix in ENDINGS[:2]])
        size = 8 if path.suffix == ".index" else 12
        path.write_bytes(mutated(path.read_bytes(), size, kind, source.randrange(10**6)))
        report = verify(directory, index_interval_bytes=interval, engine=ONE)
        if report.ok:
            assert answers(directory) == right
        assert repair(directory, index_interval_bytes=interval, engine=ONE).ok
        assert answers(directory) == right
