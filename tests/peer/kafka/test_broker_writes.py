"""A real Kafka broker writes; mqindex reads everything back equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mqindex.kafka import OffsetIndex, PartitionLog, TimeIndex, TransactionIndex, offsets_for_time, scan, verify
from tests.peer.kafka.client import Isolation, Record
from tests.peer.kafka.conftest import Written
from tests.peer.kafka.workload import CODECS, ISOLATIONS, TOPICS, TRANSACTIONAL

TIMESTAMP_TYPES = {0: "CreateTime", 1: "LogAppendTime"}
MAX_BYTES = 20_000  # several reads of every segment


def consume(log: PartitionLog, isolation: Isolation) -> Iterator[Record]:
    """A whole partition, read after read, in the shape of the client's records."""
    at = 0
    while (got := log.read(at, max_bytes=MAX_BYTES, isolation_level=isolation)).num_rows:
        numbers = zip(*(got[name].tolist() for name in ("offset", "timestamp", "timestamp_type")), strict=True)
        contents = zip(*(got[name].to_pylist() for name in ("key", "value", "headers")), strict=True)
        for (at, timestamp, kind), (key, value, headers) in zip(numbers, contents, strict=True):
            yield Record(at, timestamp, TIMESTAMP_TYPES[kind], key, value, tuple(headers))
        at += 1


def codecs_of(log: PartitionLog) -> set[int]:
    return {attributes & 7 for segment in log.segments for attributes in segment.batches()["attributes"].tolist()}


def test_every_record_is_read_as_the_client_reads_it(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    counted = dict.fromkeys(ISOLATIONS, 0)
    for topic, said in written[version].answers.items():
        assert len(said.records["read_uncommitted"]) == written[version].sent[topic].records
        with PartitionLog.open(written[version].partition(topic)) as log:
            assert codecs_of(log) == set(range(len(CODECS))), topic
            for isolation in ISOLATIONS:
                assert list(consume(log, isolation)) == said.records[isolation], (topic, isolation)
                rows = [
                    row
                    for batch in scan(written[version].partition(topic), isolation_level=isolation)
                    for row in zip(batch["offset"].tolist(), batch["key"], batch["value"], strict=True)
                ]
                assert rows == [(one.offset, one.key, one.value) for one in said.records[isolation]], (topic, isolation)
                counted[isolation] += len(said.records[isolation])
    proven(
        f"{counted['read_uncommitted']} records of all codecs, {counted['read_committed']} of them for read_committed: "
        "each read by mqindex with offset, timestamp, key, value and headers equal"
    )


def test_every_time_is_answered_as_the_broker_answers(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    asked = 0
    for topic, said in written[version].answers.items():
        with PartitionLog.open(written[version].partition(topic)) as log:
            times, offsets = log.offsets_for_timestamps(list(said.by_time))
            assert list(zip(times.tolist(), offsets.tolist(), strict=True)) == list(said.by_time.values()), topic
            for time, answer in said.by_time.items():
                assert (log.offset_for_timestamp(time) or (-1, -1)) == answer, (topic, time)
                (offset,) = offsets_for_time(written[version].partition(topic), time)["offset"].tolist()
                assert offset == (log.log_end_offset if answer == (-1, -1) else answer[1]), (topic, time)
        asked += len(said.by_time)
    proven(f"{asked} times, start, end and greatest timestamp among them, answered by mqindex as by the broker")


def test_a_reader_begins_where_the_client_begins(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    asked = 0
    for topic, said in written[version].answers.items():
        with PartitionLog.open(written[version].partition(topic)) as log:
            for isolation, firsts in said.first_records.items():
                for offset, first in firsts.items():
                    got = log.read(offset, isolation_level=isolation, columns=["offset"])["offset"].tolist()
                    assert (got or [-1])[0] == first, (topic, isolation, offset)
                asked += len(firsts)
    proven(f"{asked} reads begin at the record at which the client's seek began")


def test_every_aborted_transaction_is_collected(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    aborted = 0
    for topic, sent in written[version].sent.items():
        with PartitionLog.open(written[version].partition(topic)) as log:
            assert len(log.collect_aborted_transactions(0, log.log_end_offset)) == sent.aborted, topic
        assert (sent.aborted > 0) == (topic in TRANSACTIONAL)
        aborted += sent.aborted
    proven(f"{aborted} aborted transactions collected from the transaction indexes, as many as were aborted")


def test_a_clean_stop_leaves_clean_indexes(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    files = 0
    for topic in TOPICS:
        for suffix, kind in (("index", OffsetIndex), ("timeindex", TimeIndex), ("txnindex", TransactionIndex)):
            for path in written[version].partition(topic).glob(f"*.{suffix}"):
                with kind.open(path) as index:
                    index.sanity_check()
                files += 1
    report = verify(written[version].log_dir, deep=True)
    assert [finding for finding in report.findings if finding.severity != "info"] == []
    assert report.ok
    assert report.files >= files  # the broker has partitions of its own
    proven(f"verify --deep finds nothing in {report.files} index files and {report.batches} batches of the log dir")


def test_a_running_brokers_partitions_are_read_and_verified(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    for topic, seen in written[version].meanwhile.items():
        assert seen.index_bytes == 10_485_760, "not the index of an active segment"
        assert seen.report.ok, seen.report.findings
        assert seen.by_time == list(written[version].answers[topic].by_time.values()), topic
    proven("while the broker runs, mqindex finds its partitions in order and answers their times as the broker does")
