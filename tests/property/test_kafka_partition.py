"""Random partitions and the twin: every answer, with indexes as written, lost, untrimmed and in disorder."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex.errors import CorruptIndexError
from mqindex.kafka import PartitionLog
from tests.golden.test_kafka_partition import consumed
from tests.reference.kafka_partition import Partition, batches, read_partition
from tests.support.kafka_writer import CODECS, FIRST_TIME, KafkaRecord, PartitionWriter

ASKED = [*range(-5, 0), *(FIRST_TIME + ms for ms in range(-4, 62, 7))]
thorough = settings(max_examples=40)
few = settings(max_examples=20)
times = st.integers(-3, 40) | st.just(60)
texts = st.none() | st.binary(max_size=6)
records = st.lists(
    st.builds(
        KafkaRecord,
        texts,
        texts,
        times.map(lambda ms: FIRST_TIME + ms),
        st.lists(st.tuples(st.text(max_size=3), texts), max_size=1),
    ),
    min_size=1,
    max_size=5,
)
appends = st.tuples(st.just("append"), records, st.sampled_from(CODECS), st.sampled_from([None, FIRST_TIME + 20]))
old = st.tuples(st.just("old"), records, st.sampled_from(CODECS[:4]), st.integers(0, 1))
transactional = st.tuples(st.just("begin"), records, st.integers(1, 3))
markers = st.tuples(st.just("end"), st.integers(1, 3), st.booleans())
steps = st.lists(
    appends | old | transactional | markers | st.just(("roll",)) | st.tuples(st.just("skip"), st.integers(1, 5)),
    min_size=1,
    max_size=25,
)
made = st.tuples(st.sampled_from([0, 7, 1 << 40]), steps, st.sampled_from([0, 100, 4096]))


def write(directory: Path, spec: tuple[int, list[tuple[Any, ...]], int]) -> PartitionWriter:
    base, todo, interval = spec
    writer = PartitionWriter(directory, base, index_interval=interval)
    for kind, *what in todo:
        if kind == "append":
            writer.append(what[0], codec=what[1], append_time=what[2])
        elif kind == "old":
            without = [KafkaRecord(each.value, each.key, each.timestamp) for each in what[0]]
            writer.append(without, codec=what[1], magic=what[2])
        elif kind == "begin":
            fields = {"producer_id": what[1], "producer_epoch": 0, "base_sequence": 0, "transactional": True}
            writer.append(what[0], **fields)
        elif kind == "end":
            writer.marker(what[0], abort=what[1], timestamp=FIRST_TIME + 30)
        elif kind == "skip":
            writer.skip(what[0])
        elif writer.path().stat().st_size:
            writer.roll()
    writer.close()
    return writer


def questions(twin: Partition) -> tuple[list[int], list[int]]:
    asked = [*range(-5, 1), *(FIRST_TIME + ms for ms in range(-4, 62)), 2**62, -(2**63), 2**63 - 1]
    return asked, sorted({segment.base + step for segment in twin.segments for step in range(-1, 12)})


def check(directory: Path, twin: Partition) -> None:
    asked, offsets = questions(twin)
    with PartitionLog.open(directory) as log:
        assert (log.log_start_offset, log.log_end_offset) == (twin.log_start, twin.log_end)
        said = [twin.fetch(ms) for ms in asked]
        assert [log.offset_for_timestamp(ms) for ms in asked] == said
        for order in (
            sorted(range(len(asked)), key=asked.__getitem__),
            random.Random(1).choices(range(len(asked)), k=99),
        ):
            found = log.offsets_for_timestamps(np.array([asked[at] for at in order], np.int64))
            assert np.stack(found, 1).tolist() == [list(said[at] or (-1, -1)) for at in order]
        for start in offsets:
            for upper in (start + 1, start + 9, 2**62):
                assert [txn[:4] for txn in log.collect_aborted_transactions(start, upper)] == twin.aborted(start, upper)
            batches = (segment.translate(start) for segment in twin.segments if start >= twin.log_start)
            batch = next(filter(None, batches), None)
            where = log.translate_offset(start)
            assert (where and where[1:3]) == (batch and (batch.position, batch.size))


def check_reads(directory: Path, twin: Partition) -> None:
    with PartitionLog.open(directory) as log:
        end = log.last_stable_offset
        _, offsets = questions(twin)
        for offset in [twin.log_start, *(each for each in offsets[::5] if twin.log_start <= each <= twin.log_end)]:
            got = [record for poll in consumed(log, offset, "read_uncommitted") for record in poll]
            assert got == twin.read(offset)
            got = [record for poll in consumed(log, offset, "read_committed") for record in poll]
            assert got == twin.read(offset, committed=True, stable=end)
        assert end == open_from(twin)


def open_from(twin: Partition) -> int:
    """The last stable offset, from the batches alone."""
    opened: dict[int, int] = {}
    for segment in twin.segments:
        for batch in batches(segment.log):
            if batch.last_offset < twin.log_start:
                continue
            if batch.is_control:
                opened.pop(batch.producer_id, None)
            elif batch.is_transactional:
                opened.setdefault(batch.producer_id, batch.base_offset)
    return max(min(opened.values(), default=twin.log_end), twin.log_start)


@thorough
@given(made)
def test_a_partition_as_written(spec: Any) -> None:
    with TemporaryDirectory() as root:
        directory = Path(root)
        write(directory, spec)
        twin = read_partition(directory)
        check(directory, twin)
        check_reads(directory, twin)


@few
@given(made, st.data())
def test_segments_without_an_index_answer_as_after_recovery(spec: Any, data: st.DataObject) -> None:
    with TemporaryDirectory() as root:
        directory = Path(root)
        write(directory, spec)
        twin = read_partition(directory)
        for log in sorted(directory.glob("*.log")):
            if data.draw(st.booleans(), log.name):
                log.with_suffix(".index").unlink()
                for ending in data.draw(st.sampled_from([[], ["timeindex"], ["timeindex", "txnindex"]]), "also"):
                    log.with_suffix(f".{ending}").unlink(missing_ok=True)
        check(directory, twin)
        check_reads(directory, twin)


@few
@given(made, st.data())
def test_a_log_that_starts_inside_a_segment(spec: Any, data: st.DataObject) -> None:
    with TemporaryDirectory() as root:
        directory = Path(root) / "a-b-0"
        write(directory, spec)
        twin = read_partition(directory)
        twin.log_start = data.draw(st.integers(twin.log_start, twin.log_end))
        lines = ("0", "2", f"a 0 {twin.log_end + 5}", f"a-b 0 {twin.log_start}")
        (Path(root) / "log-start-offset-checkpoint").write_text("\n".join(lines) + "\n")
        check(directory, twin)
        check_reads(directory, twin)


@few
@given(made)
def test_an_untrimmed_last_segment_answers_as_a_trimmed_one(spec: Any) -> None:
    with TemporaryDirectory() as root:
        directory = Path(root)
        writer = write(directory, spec)
        twin = read_partition(directory)
        writer.preallocate(4096)
        check(directory, twin)


@few
@given(made, st.data())
def test_lost_time_indexes_mislead_as_they_mislead_the_broker(spec: Any, data: st.DataObject) -> None:
    with TemporaryDirectory() as root:
        directory = Path(root)
        write(directory, spec)
        for path in sorted(directory.glob("*.timeindex")):
            if data.draw(st.booleans(), path.name):
                path.unlink()
        check(directory, read_partition(directory))


@few
@given(made, st.randoms(use_true_random=False))
def test_entries_in_disorder_mislead_as_they_mislead_the_broker(spec: Any, rng: random.Random) -> None:
    with TemporaryDirectory() as root:
        directory = Path(root)
        write(directory, spec)
        for ending, size in (("index", 8), ("timeindex", 12)):
            for path in sorted(directory.glob(f"*.{ending}")):
                data = path.read_bytes()
                entries = [data[at : at + size] for at in range(0, len(data), size)]
                if len(entries) > 1:
                    path.write_bytes(b"".join(rng.choices(entries, k=len(entries))))
        check(directory, read_partition(directory))


@few
@given(made, st.randoms(use_true_random=False))
def test_any_bytes_in_the_indexes_end_in_an_answer_or_one_error(spec: Any, rng: random.Random) -> None:
    with TemporaryDirectory() as root:
        directory = Path(root) / "t-0"
        write(directory, spec)
        copy = Path(root) / "copy"
        for _ in range(4):
            shutil.copytree(directory, copy)
            path = rng.choice([path for path in sorted(copy.iterdir()) if path.suffix != ".log"])
            path.write_bytes(rng.randbytes(rng.choice([1, 8, 12, 34, 340])))
            with PartitionLog.open(copy) as log:
                for call in (
                    partial(log.offsets_for_timestamps, ASKED),
                    partial(log.collect_aborted_transactions, log.log_start_offset, 2**62),
                    partial(log.read, log.log_start_offset, isolation_level="read_committed"),
                    *(partial(log.offset_for_timestamp, ms) for ms in ASKED),
                ):
                    try:
                        call()
                    except CorruptIndexError as error:
                        assert error.path is not None
            shutil.rmtree(copy)
