r"""Tables for people show different values differently: byte FF and the text \xff, a tombstone and an empty value."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqindex.cli.printing.formats import FORMATS
from mqindex.columns.columns import BinaryColumn, StringColumn
from tests.cli.conftest import Shell
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter
from tests.support.log_writer import LogMessage, LogWriter

VALUES = {
    b"\xff": r"\xff",
    rb"\xff": r"\\xff",
    b"\\\xff": r"\\\xff",
    b"": '""',
    b'""': r"\x22\x22",
    b'"text"': '"text"',
    b'{"a": "\\"b\\""}': r'{"a": "\"b\""}',
    b"a\nb": r"a\nb",
    rb"a\nb": r"a\\nb",
    b"a ": r"a\x20",
    b"a": "a",
    b"\x85": r"\x85",
    "\x85".encode(): r"\u0085",
    "é".encode(): "é",
}


@pytest.mark.parametrize("broker", ["rocketmq", "kafka"])
def test_different_values_look_different(broker: str, shell: Shell, tmp_path: Path) -> None:
    if broker == "rocketmq":
        writer = LogWriter(tmp_path / "commitlog")
        for value in VALUES:
            writer.write(LogMessage(body=value))
        done = shell("messages", tmp_path, "--columns", "body", "--cache", "none")
    else:
        with_key = PartitionWriter(tmp_path / "t-0")
        with_key.append([KafkaRecord(value, timestamp=FIRST_TIME) for value in VALUES])
        with_key.close()
        done = shell("messages", tmp_path / "t-0", "--columns", "value", "--cache", "none")
    assert done.lines[1:] == list(VALUES.values())


@pytest.mark.parametrize("command", [("messages", "--cache", "none"), ("dump", "--records")])
def test_a_tombstone_is_no_empty_value(command: tuple[str, ...], shell: Shell, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord(value, b"k", FIRST_TIME) for value in (None, b"", b"v")])
    writer.close()
    done = shell(command[0], tmp_path / "t-0", *command[1:])
    rows = [line.split() for line in done.lines[1:]]
    assert ['""' in row for row in rows] == [False, True, False] and "v" in rows[2]
    assert len(rows[0]) == len(rows[1]) - 1 == len(rows[2]) - 1


TEXTS = st.text(st.sampled_from('\\xfnu0028 "\n\xff\x85a'), max_size=8)
BYTES = st.one_of(
    TEXTS.map(str.encode), st.lists(st.sampled_from([b"\\", b"x", b"f", b"\xff", b'"', b" "])).map(b"".join)
)


def line_of(value: str | bytes | None) -> str:
    data = value.encode() if isinstance(value, str) else value or b""
    kind = BinaryColumn if isinstance(value, bytes) else StringColumn
    column = kind(np.frombuffer(data, np.uint8), np.array([0, len(data)]), np.array([value is not None]))
    with redirect_stdout(io.StringIO()) as out:
        FORMATS["table"](iter([{"n": np.array([0], np.int32), "c": column}]), "messages")
    return out.getvalue()


@given(st.lists(st.none() | BYTES, min_size=2, max_size=40, unique=True))
def test_any_two_bytes(values: list[bytes | None]) -> None:
    assert len({line_of(value) for value in values}) == len(values)


@given(st.lists(st.none() | TEXTS, min_size=2, max_size=40, unique=True))
def test_any_two_texts(values: list[str | None]) -> None:
    assert len({line_of(value) for value in values}) == len(values)
