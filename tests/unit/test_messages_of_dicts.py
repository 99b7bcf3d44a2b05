"""Messages that are put as a list of dicts: those of the same `NewMessage`s."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import CapacityError
from mqindex.rocketmq import CommitLog, MessageStore, NewMessage
from mqindex.rocketmq.messages.log_columns import COLUMNS

GEOMETRY = {"hash_slot_num": 50, "index_num": 400, "broker_version": "4.9.3"}
TIME = 1_700_000_000_000
ROWS: list[dict[str, Any]] = [
    {"topic": "T", "body": b"one", "keys": "k1 k2", "store_timestamp": TIME, "born_timestamp": TIME},
    {"topic": "U", "queue_id": 3, "tags": "TagA", "store_timestamp": TIME + 1, "born_timestamp": TIME},
    {
        "topic": "T", "body": b"three", "properties": {"a": "b"}, "uniq_key": "u", "flag": 7, "keys": None,
        "queue_id": None, "store_timestamp": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "born_timestamp": TIME,
        "born_host": "1.2.3.4:5",
    },
]  # fmt: skip


def test_dicts_are_the_messages_of_the_same_fields(tmp_path: Path) -> None:
    made: list[Any] = [NewMessage(**{**row, "queue_id": row.get("queue_id") or 0}) for row in ROWS]
    tables = []
    for name, messages in (("dicts", ROWS), ("messages", made), ("tuple", tuple(ROWS))):
        with MessageStore.open(tmp_path / name, writable=True, **GEOMETRY) as store:
            put = store.put_messages(messages)
            assert put.queue_offsets.tolist() == [0, 0, 1]
            (batch,) = store.commit_log.scan(columns=COLUMNS)
            tables.append(batch.to_arrow())
    assert tables[0] == tables[1] == tables[2]


def test_a_log_takes_their_queue_offsets(tmp_path: Path) -> None:
    with CommitLog.open(tmp_path / "log", writable=True) as log:
        log.append_messages([{"topic": "T", "queue_offset": 5}, {"topic": "T", "queue_offset": 6}])
        assert next(log.scan())["queue_offset"].tolist() == [5, 6]
        with pytest.raises(ValueError, match="the queue_offset of each, got none in row 1"):
            log.append_messages([{"topic": "T", "queue_offset": 7}, {"topic": "T"}])


@pytest.mark.parametrize(
    ("rows", "error", "said"),
    [
        ([{"topic": "T"}, NewMessage("T")], TypeError, "messages: expected dicts, got NewMessage in row 1"),
        ([NewMessage("T"), {"topic": "T"}], TypeError, "messages: expected NewMessage, got dict in row 1"),
        ([{"topic": "T", "boddy": b""}], ValueError, "messages: expected columns among .* got boddy"),
        ([{"topic": "T"}, {"body": b"x"}], ValueError, "messages: expected the topic of each, got none in row 1"),
        ([{"body": b"x"}], ValueError, "messages: expected a column topic"),
        ([{"topic": "T"}, {"topic": "T", "body": "x" * 5_000_000}], CapacityError, "row 1"),
        ([{"topic": "T"}, {"topic": "T", "flag": "x"}], TypeError, "flag"),
        ([{"topic": "T"}, {"topic": "T", "store_timestamp": "x"}], TypeError, "store_timestamp"),
    ],
)
def test_a_row_that_is_wrong_is_named_and_nothing_is_put(
    rows: list[Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    with MessageStore.open(tmp_path / "store", writable=True, **GEOMETRY) as store:
        with pytest.raises(error, match=said):
            store.put_messages(rows)
        assert store.commit_log.max_phy_offset == 0
        assert len(store.put_messages([]).phy_offsets) == 0
