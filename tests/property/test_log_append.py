"""Any messages, appended in any way, give the bytes that the from-the-document writer writes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex.rocketmq import CommitLog, NewMessage
from tests.reference.commit_log import encode, scan_log
from tests.reference.rebuild import log_files
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.memory_disk import memory_disk

FILE_SIZE = 1024
int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
address = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str)
text = st.text(st.characters(exclude_characters="\x02", exclude_categories=["Cs"]), min_size=1, max_size=12)
name = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=8)
messages = st.builds(
    LogMessage,
    topic=st.text("aé消%-_|Z9", min_size=1, max_size=42),
    properties=st.dictionaries(name.filter(lambda name: name not in ("KEYS", "TAGS", "UNIQ_KEY")), text, max_size=3),
    keys=st.none() | text,
    tags=st.none() | text,
    uniq_key=st.none() | text,
    body=st.binary(max_size=300),
    store_timestamp=int64,
    born_timestamp=int64,
    born_host=st.tuples(address, int32),
    store_host=st.tuples(address, int32),
    queue_id=int32,
    queue_offset=int64,
    flag=int32,
    sys_flag=st.sampled_from((0, 1, 2, 8, 0x40, 0x700)),
    reconsume_times=int32,
    prepared_transaction_offset=int64,
)
requests = st.lists(st.tuples(st.sampled_from(("one", "many", "whole")), st.lists(messages, min_size=1, max_size=4)))


@settings(max_examples=150)
@given(requests, st.booleans())
def test_appended_log_has_the_bytes_of_the_document(
    requests: list[tuple[str, list[LogMessage]]], separator: bool
) -> None:
    with tempfile.TemporaryDirectory(dir=memory_disk()) as folder:
        writer = LogWriter(Path(folder, "expected"), mapped_file_size=FILE_SIZE)
        version = "5.0.0" if not separator else "5.2.0"
        log = CommitLog.open(
            Path(folder, "log"), writable=True, mapped_file_size=FILE_SIZE, broker_version=version, flush="async"
        )
        with log:
            for how, batch in requests:
                append(log, writer, how, [message for message in batch if fits(message, separator)], separator)
            assert log.max_phy_offset == writer.position
        files = log_files(Path(folder, "log"))
        assert files == log_files(Path(folder, "expected"))
        records, damage, _ = scan_log(files)
        assert damage == []
        whole = dict(files)
        for record in records:
            start = record.phy_offset // FILE_SIZE * FILE_SIZE
            at = record.phy_offset - start
            assert encode(record) == whole[start][at : at + record.size]


def append(log: CommitLog, writer: LogWriter, how: str, batch: list[LogMessage], separator: bool) -> None:
    expected = [as_expected(message, separator) for message in batch]
    if how == "one":
        offsets = [
            log.append_message(as_new(message), queue_offset=message.queue_offset).phy_offset for message in batch
        ]
        assert offsets == writer.write(*expected)
        return
    batch, expected = (batch[:1], expected[:1]) if how == "whole" else (batch, expected)
    result = log.append_messages(
        [as_new(message) for message in batch],
        queue_offset=[message.queue_offset for message in batch],
        whole=how == "whole",
    )
    assert result.phy_offsets.tolist() == writer.write(*expected)


def fits(message: LogMessage, separator: bool) -> bool:
    writer_size = 115 + len(message.body) + len(message.topic.encode()) + 60
    return len(message.topic.encode()) <= 127 and writer_size + 200 <= FILE_SIZE


def pairs(message: LogMessage) -> list[tuple[str, str]]:
    named = (("KEYS", message.keys), ("TAGS", message.tags), ("UNIQ_KEY", message.uniq_key))
    assert isinstance(message.properties, dict)
    return [*message.properties.items(), *((name, value) for name, value in named if value is not None)]


def as_expected(message: LogMessage, separator: bool) -> LogMessage:
    values = {name: getattr(message, name) for name in LogMessage.__dataclass_fields__}
    return LogMessage(**{**values, "properties": pairs(message), "separator": separator})


def as_new(message: LogMessage) -> NewMessage:
    def host(of: tuple[str, int]) -> str:
        return f"[{of[0]}]:{of[1]}" if ":" in of[0] else f"{of[0]}:{of[1]}"

    same = ("topic", "body", "queue_id", "tags", "keys", "uniq_key", "properties", "flag", "sys_flag")
    same += ("born_timestamp", "store_timestamp", "reconsume_times", "prepared_transaction_offset")
    values = {name: getattr(message, name) for name in same}
    return NewMessage(**values, born_host=host(message.born_host), store_host=host(message.store_host))
