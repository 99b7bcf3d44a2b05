"""The error that a user of Spark catches has the source's sentence in its first lines, before any traceback."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mqindex.errors import FormatError
from mqindex.spark.sources.sentence_first import sentence_first
from tests.support.kafka_writer import KafkaRecord, PartitionWriter
from tests.support.log_writer import LogMessage, LogWriter

TRACEBACK = "Traceback (most recent call last)"


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    writer = LogWriter(tmp_path / "commitlog")
    at = writer.write(*(LogMessage(body=bytes(1000)) for _ in range(200)))[3]
    data = bytearray(writer.path(0).read_bytes())
    data[at + 4 : at + 8] = b"\1\2\3\4"
    writer.path(0).write_bytes(data)
    return tmp_path


def before_the_traceback(frame: Any) -> str:
    with pytest.raises(Exception) as caught:  # of PySpark, which wraps it by when it happens
        frame()
    text, found, _ = str(caught.value).partition(TRACEBACK)
    assert found
    return text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"speed": "9"}, "ValueError: speed: rocketmq_commitlog has no such option: expected"),
        ({"filterPushdown": "true"}, "ValueError: filterPushdown: rocketmq_commitlog has no such option"),
        ({"columns": "topics"}, "ValueError: columns: expected some of topic,"),
        ({"startTime": "noon"}, "ValueError: startTime: 'noon': expected ms since the epoch"),
    ],
)
def test_a_wrong_option_is_in_the_first_line(
    registered: Any, damaged: Path, options: dict[str, str], sentence: str
) -> None:
    reader = registered.read.format("rocketmq_commitlog").options(**options)
    first = before_the_traceback(lambda: reader.load(str(damaged)).collect()).splitlines()[0]
    assert first.startswith("[PYTHON_DATA_SOURCE_ERROR] Failed to ")
    assert f": {sentence}" in first


def test_what_the_plan_meets_is_in_the_first_line(registered: Any, tmp_path: Path) -> None:
    for source, sentence in (
        ("rocketmq_commitlog", "FileNotFoundError: [Errno 2] no such directory"),
        ("rocketmq_index", "FileNotFoundError: [Errno 2] "),
        ("kafka_log", "FileNotFoundError: [Errno 2] "),
    ):
        reader = registered.read.format(source)
        said = before_the_traceback(lambda: reader.load(str(tmp_path / "gone")).collect())  # noqa: B023
        assert sentence in said.splitlines()[0] and str(tmp_path / "gone") in said.splitlines()[0]


def test_what_a_task_meets_is_in_the_second_line(registered: Any, damaged: Path) -> None:
    said = before_the_traceback(lambda: registered.read.format("rocketmq_commitlog").load(str(damaged)).collect())
    first, second, *_ = said.splitlines()
    assert "An exception was thrown from the Python worker" in first
    assert second.startswith("mqindex.errors.FormatError: the log is damaged: log-bad-magic: ")
    assert second.endswith("failOnDataLoss=false leaves it out")


def test_damage_of_a_record_batch_is_there_too(registered: Any, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "orders-0")
    writer.append([KafkaRecord(bytes(100))])
    writer.append([KafkaRecord(bytes(100))])
    writer.close()
    log = tmp_path / "orders-0" / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:90] + b"x" + log.read_bytes()[91:])
    said = before_the_traceback(lambda: registered.read.format("kafka_log").load(str(tmp_path)).collect())
    assert said.splitlines()[1].startswith("mqindex.errors.FormatError: the log is damaged: bad-crc: ")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("keys: expected text"),
        FileNotFoundError(2, "no such directory", "/data"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        FormatError("it is damaged", path="log", at=3, expected=1, got=2, hint="read another one"),
    ],
)
def test_the_error_is_the_same_for_those_who_catch_it(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, sentence_first(), sentence_first():
        raise error
    assert str(caught.value) == str(error)
    assert vars(caught.value).items() >= vars(error).items()
    assert getattr(caught.value, "filename", None) == getattr(error, "filename", None)
    caught.value.__cause__ = None  # as PySpark does
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert lines[0] == lines[-1] == traceback.format_exception_only(error)[0].strip()


def test_an_error_that_cannot_be_made_again_stays_as_it_is() -> None:
    class Odd(OSError):
        def __init__(self) -> None:
            super().__init__(5, "odd")

    with pytest.raises(Odd, match="odd"), sentence_first():
        raise Odd
