"""All queries of one dataset answer of the same messages while a broker appends; a new dataset sees the new ones."""

from __future__ import annotations

import threading
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import mqindex
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter
from tests.support.log_writer import LogMessage, LogWriter

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

FILE_SIZE = 16384


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zone maps of tests are not the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Log:
    """A growing log of RocketMQ."""

    time, place, topic = "store_timestamp", "phy_offset", "topic"

    def __init__(self, root: Path) -> None:
        self.path, self._numbers = root / "commitlog", count()
        self._writer = LogWriter(self.path, mapped_file_size=FILE_SIZE)

    def append(self, number: int, topic: str = "T") -> None:
        for n in (next(self._numbers) for _ in range(number)):
            self._writer.write(LogMessage(topic, body=bytes(500), store_timestamp=FIRST_TIME + n))


class Partition:
    """A growing log of Kafka."""

    time, place, topic = "timestamp", "offset", "topic"

    def __init__(self, root: Path) -> None:
        self.path, self._root, self._numbers = root / "logs", root / "logs", count()
        self._writers: dict[str, Any] = {}

    def append(self, number: int, topic: str = "T") -> None:
        writer = self._writers.setdefault(topic, None) or PartitionWriter(self._root / f"{topic}-0")
        self._writers[topic] = writer
        for n in (next(self._numbers) for _ in range(number)):
            writer.append([KafkaRecord(bytes(500), b"k", timestamp=FIRST_TIME + n)])


@pytest.mark.parametrize("kind", [Log, Partition])
@pytest.mark.parametrize("first", ["all", "time", "place"])
def test_what_is_appended_between_two_queries_is_in_neither(kind: Any, first: str, tmp_path: Path) -> None:
    log = kind(tmp_path)
    log.append(20)
    log.append(3, "U")
    table = mqindex.dataset(log.path)
    asked = {
        "all": None,
        "time": pc.field(log.time) >= pa.scalar(FIRST_TIME, pa.timestamp("ms", "UTC")),
        "place": pc.field(log.place) >= 0,
    }
    assert len(table.to_table(filter=asked[first])) == 23
    log.append(2)
    assert all(len(table.to_table(filter=one)) == 23 for one in asked.values())
    log.append(60)  # the next file
    log.append(1, "New")
    assert all(len(table.to_table(filter=one)) == 23 for one in asked.values())
    assert len(table.filter(pc.field("topic") == "T").to_table()) == 20
    assert all(len(mqindex.dataset(log.path).to_table(filter=one)) == 86 for one in asked.values())


@pytest.mark.parametrize("topics", [[], ["T"]], ids=["an empty log dir", "another topic"])
def test_a_partition_that_appears_after_a_query_that_found_none_is_in_no_other(
    topics: list[str], tmp_path: Path
) -> None:
    log = Partition(tmp_path)
    log.path.mkdir()
    (log.path / "meta.properties").write_text("version=1\nbroker.id=0\n")
    (log.path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    for topic in topics:
        log.append(1, topic)
    table, of_new = mqindex.dataset(log.path), pc.field("topic") == "New"
    assert table.count_rows(of_new) == 0
    log.append(1, "New")
    assert (table.count_rows(of_new), table.count_rows()) == (0, len(topics))
    assert mqindex.dataset(log.path).count_rows(of_new) == 1


@pytest.mark.parametrize("kind", [Log, Partition])
def test_a_log_that_grows_while_it_is_read_has_the_same_end_for_the_next_query(kind: Any, tmp_path: Path) -> None:
    log = kind(tmp_path)
    log.append(20)
    table = mqindex.dataset(log.path)
    batches = table.scanner(columns=[log.place]).to_batches()
    log.append(2)
    some = [next(batches)]
    log.append(60)
    seen = sum(map(len, [*some, *batches]))
    assert seen in (20, 22) and len(table.to_table()) == seen


@pytest.mark.parametrize("kind", [Log, Partition])
def test_a_self_join_in_sql_sees_one_state(kind: Any, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    log = kind(tmp_path)
    log.append(20)
    query = f'SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM t WHERE "{log.place}" >= 0)'
    made = mqindex.sql(query, t=log.path)
    from mqindex.tables import table_dataset

    plain, calls = table_dataset.TableDataset._batches, []

    def appending(self: Any, *arguments: Any) -> Any:
        yield from plain(self, *arguments)
        calls.append(log.append(1))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table_dataset.TableDataset, "_batches", appending)
        ((one, other),) = made.fetchall()
    assert one == other and len(calls) == 2


@pytest.mark.parametrize("kind", [Log, Partition])
def test_a_query_that_opened_the_log_before_another_one_answers_of_the_same(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = kind(tmp_path)
    log.append(20)
    table = mqindex.dataset(log.path)
    of_broker = mqindex.rocketmq if kind is Log else mqindex.kafka
    plain, others = of_broker.scan, list[threading.Thread]()
    rows: list[int] = []

    def slow(*arguments: Any, **options: Any) -> Any:
        opened = plain(*arguments, **options)
        if not others:
            log.append(60)  # the next file
            others.append(threading.Thread(target=lambda: rows.append(table.count_rows())))
            others[0].start()
            others[0].join(1)
        return opened

    monkeypatch.setattr(of_broker, "scan", slow)
    rows.append(table.count_rows())
    others[0].join()
    assert rows[0] == rows[1] and len(rows) == 2


def test_a_transaction_that_is_committed_between_two_queries_is_in_neither(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord(b"plain", timestamp=FIRST_TIME)])
    writer.append([KafkaRecord(b"in it", timestamp=FIRST_TIME)], producer_id=7, producer_epoch=0, transactional=True)
    table = mqindex.dataset(tmp_path / "t-0", isolation_level="read_committed")
    assert table.count_rows() == 1
    writer.marker(7, abort=False)
    writer.append([KafkaRecord(b"new", timestamp=FIRST_TIME)])
    assert table.count_rows() == 1
    assert mqindex.dataset(tmp_path / "t-0", isolation_level="read_committed").count_rows() == 3
    writer.close()


@pytest.mark.parametrize("place", [0, FILE_SIZE - 1], ids=["all of it", "less"])
def test_what_is_behind_the_end_of_the_log_is_said_once_by_each_query(place: int, tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append(20)
    (file,) = log.path.iterdir()
    with open(file, "r+b") as opened:
        opened.seek(log._writer.frames[7][0])
        opened.write(bytes(8))
    table = mqindex.dataset(log.path)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = table.to_table(filter=pc.field("phy_offset") >= place)
        assert len(said) == 1 and "behind" in str(said[0].message), [str(one.message) for one in said]
    assert len(found) == (7 if not place else 0)
