"""Many keys at once, and many places: what a loop of single calls gives."""

from __future__ import annotations

import os
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.columns.columns import Columns
from mqindex.errors import FormatError
from mqindex.rocketmq import Message, MessageStore, rebuild
from mqindex.rocketmq.messages.log_columns import COLUMNS
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

# "Aa" and "BB" have one hash, and so have "T#Aa" and "T#BB" and all that differs in them.
WORDS = ("Aa", "BB", "AaAa", "BBBB", "AaBB", "BBAa", "key", "T#Aa", "T#BB", "é", "\U0001f511", "")
TOPICS = ("Topic", "AaBB", "BBAa")
GEOMETRY = {"hash_slot_num": 5, "index_num": 40, "broker_version": "5.4.0"}
SEEDS = range(60)


def random_message(rng: random.Random) -> LogMessage:
    keys = rng.choice([None, *(" ".join(rng.choices(WORDS, k=count)) for count in (1, 1, 2, 3))])
    body = bytes([rng.randrange(256)]) * rng.randrange(50)
    compressed = rng.random() < 0.3
    return LogMessage(
        topic=rng.choice(TOPICS),
        keys=keys or None,
        tags=rng.choice([None, "Aa", "BB", "other"]),
        uniq_key=rng.choice([None, "Aa", "BBBB", "unique"]),
        body=zlib.compress(body) if compressed else body,
        sys_flag=1 if compressed else 0,
        store_timestamp=FIRST_TIME + 700 * rng.randrange(30),
        properties=b"KEYS\x01Aa\xff BB\x02UNIQ_KEY\x01\xc3(" if rng.random() < 0.05 else None,
        crc=17 if rng.random() < 0.05 else None,
    )


def random_store(rng: random.Random, root: Path) -> Path:
    """A log whose first file may be gone, with damage, and its index."""
    writer = LogWriter(root / "commitlog", mapped_file_size=2048)
    writer.write(*(random_message(rng) for _ in range(rng.randrange(1, 80))))
    rebuild(root, f"{root}-built", parts=["index"], **GEOMETRY)
    os.rename(f"{root}-built/index", root / "index")
    files = sorted((root / "commitlog").iterdir())
    if len(files) > 1 and rng.random() < 0.3:
        files.pop(0).unlink()
    for path in files:
        if rng.random() < 0.3:
            data = bytearray(path.read_bytes())
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
    return root


def expected_row(message: Message, *, decompress: bool) -> dict[str, Any]:
    """The columns of a message but `properties`; of a body that does not decompress None."""
    row = {name: getattr(message, name) for name in COLUMNS if name not in ("body", "properties")}
    try:
        row["body"] = message.body if decompress else message.stored_body
    except FormatError:
        row["body"] = None
    return row


def rows_of(columns: Columns, *more: str) -> list[dict[str, Any]]:
    names = [*more, *(name for name in COLUMNS if name != "properties")]
    assert set(columns) == {*more, *COLUMNS}
    values = [
        column.astype("i8").tolist() if isinstance(column := columns[name], np.ndarray) else column.to_pylist()
        for name in names
    ]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


@pytest.mark.filterwarnings("ignore:.* has no index file:UserWarning")  # of messages without keys
@pytest.mark.filterwarnings("ignore:.*decompress")
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_messages_of_many_keys_are_those_of_single_queries(seed: int, exact: bool, tmp_path: Path) -> None:
    rng = random.Random(seed)
    root = random_store(rng, tmp_path / "store")
    with MessageStore.open(root, **GEOMETRY) as store:
        for _ in range(5):
            topic, decompress = rng.choice([*TOPICS, "none", ""]), rng.random() < 0.5
            keys = rng.choices([*WORDS, "none", "unique", "\ud800", "Aa\ufffd", "\ufffd("], k=rng.randrange(12))
            period = {"begin": 0, "end": 2**63 - 1}
            if rng.random() < 0.3:
                begin = FIRST_TIME + 700 * rng.randrange(30)
                period = {"begin": begin, "end": begin + 700 * rng.randrange(30)}
            asked: dict[str, Any] = {"max_num": rng.choice([0, 1, 2, 5, 64]), "exact": exact, **period}
            expected = [
                {"key_number": number, **expected_row(message, decompress=decompress)}
                for number, key in enumerate(keys)
                for message in store.query_message(topic, key, **asked).messages
            ]
            found = store.query_messages(topic, keys, decompress=decompress, **asked)
            assert rows_of(found, "key_number") == expected


@pytest.mark.filterwarnings("ignore:.*decompress")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_messages_of_many_places_are_those_of_single_looks(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    root = random_store(rng, tmp_path / "store")
    with MessageStore.open(root) as store:
        known = [place for batch in store.commit_log.scan() for place in batch["phy_offset"].tolist()]
        for _ in range(8):
            places = rng.choices([*known, 0, 1, -5, 2047, 1 << 40, *range(0, 8192, 2048)], k=rng.randrange(30))
            expected: list[dict[str, Any]] | None = []
            for number, place in enumerate(places):
                try:
                    message = store.look_message_by_offset(place)
                except FormatError:
                    expected = None
                    break
                if message is not None:
                    expected.append({"row": number, **expected_row(message, decompress=True)})
            if expected is None:
                with pytest.raises(FormatError):
                    store.get_many(places)
            else:
                assert rows_of(store.get_many(places), "row") == expected
