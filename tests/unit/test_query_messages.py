"""`query_messages` and `get_many`: what they take, and what they say."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex import Columns
from mqindex.errors import ClosedFileError
from mqindex.rocketmq import MessageStore, rebuild, scan, verify
from tests.support.log_writer import LogMessage, LogWriter

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

GEOMETRY = {"hash_slot_num": 5, "index_num": 40, "broker_version": "4.9.3"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store = tmp_path / "store"
    bodies = [(zlib.compress(b"one"), 1), (b"two", 0), (zlib.compress(b"three")[:-3], 1), (b"no stream", 1)]
    LogWriter(store / "commitlog").write(
        *(LogMessage(keys=f"k{number} all", body=body, sys_flag=flag) for number, (body, flag) in enumerate(bodies))
    )
    rebuild(store, tmp_path / "built", parts=["index"], **GEOMETRY)
    os.rename(tmp_path / "built/index", store / "index")
    return store


@pytest.mark.parametrize(
    "made",
    [list, tuple, iter, np.array, lambda keys: np.array(keys, "S"), pa.array, pl.Series],
    ids=["list", "tuple", "iterator", "text", "bytes", "arrow", "polars"],
)
def test_keys_come_in_any_form(made: Callable[[list[str]], Any], root: Path) -> None:
    with MessageStore.open(root, **GEOMETRY) as store:
        found = store.query_messages("TopicTest", made(["k1", "none", "k0"]), columns=["keys", "body"])
        assert list(found) == ["key_number", "keys", "body"]
        assert found["key_number"].tolist() == [0, 2]
        assert found["keys"].to_pylist() == ["k1 all", "k0 all"]
        assert found["body"].to_pylist() == [b"two", b"one"]


def test_no_key_and_no_message_are_no_row_of_the_same_columns(root: Path) -> None:
    with MessageStore.open(root, **GEOMETRY) as store:
        for exact in (True, False):
            for keys in ([], ["none"], [""]):
                found = store.query_messages("TopicTest", keys, exact=exact)
                assert len(found) == 0 and found["key_number"].dtype == np.int64
                assert found.to_arrow().schema == store.query_messages("TopicTest", ["k1"]).to_arrow().schema
        assert len(store.get_many([])) == 0
    (root / "index" / os.listdir(root / "index")[0]).unlink()
    (root / "index").rmdir()
    for exact in (True, False):
        with (
            MessageStore.open(root) as store,
            pytest.warns(UserWarning, match="the store of this log has no index file, and no message is found"),
        ):
            assert len(store.query_messages("TopicTest", ["k1"], exact=exact)) == 0


def test_times_and_properties_are_those_of_a_scan(root: Path) -> None:
    wanted = ["store_timestamp", "phy_offset", "properties", "born_timestamp"]
    expected = Columns.concat(list(scan(root, columns=wanted, cache=False))).to_arrow()
    with MessageStore.open(root, **GEOMETRY) as store:
        found = store.query_messages("TopicTest", ["all"], columns=wanted).to_arrow()
        assert found.drop_columns("key_number") == expected
        places = expected["phy_offset"].to_pylist()
        assert store.get_many(places, columns=wanted).to_arrow().drop_columns("row") == expected
        assert store.get_many([], columns=wanted).to_arrow().drop_columns("row").schema == expected.schema


def test_bodies_that_do_not_decompress_are_null_and_said_to_be(root: Path) -> None:
    with MessageStore.open(root, **GEOMETRY) as store:
        with pytest.warns(
            UserWarning, match=r"2 bodies .* null; .* offset \d+: .* cut short.* decompress=False"
        ) as said:
            found = store.query_messages("TopicTest", ["all", "k2"], columns=["body"])
        assert found["body"].to_pylist() == [b"one", b"two", None, None, None]
        assert [one.filename for one in said] == [__file__]
        stored = store.query_messages("TopicTest", ["k3"], columns=["body"], decompress=False)
        assert stored["body"].to_pylist() == [b"no stream"]
        places = store.query_messages("TopicTest", ["k3"], columns=["phy_offset"])["phy_offset"]
        with pytest.warns(UserWarning, match="1 body cannot be") as said:
            store.get_many(places, columns=["body"])
        assert [one.filename for one in said] == [__file__]


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"keys": "k1"}, TypeError, "keys: expected a sequence of str"),
        ({"keys": pa.array(["a", None])}, ValueError, "1"),
        ({"topic": 5}, TypeError, "topic: expected str"),
        ({"columns": ["bodies"]}, ValueError, "columns: expected some of"),
        ({"exact": 1}, TypeError, "exact"),
        ({"decompress": None}, TypeError, "decompress"),
        ({"max_num": -1}, ValueError, "max_num"),
    ],
)
def test_a_wrong_argument_is_named(root: Path, asked: dict[str, Any], error: type[Exception], said: str) -> None:
    with MessageStore.open(root, **GEOMETRY) as store, pytest.raises(error, match=said):
        store.query_messages(**{"topic": "TopicTest", "keys": ["k1"], **asked})


def test_a_closed_store_answers_nothing(root: Path) -> None:
    with MessageStore.open(root, **GEOMETRY) as store:
        pass
    with pytest.raises(ClosedFileError):
        store.query_messages("TopicTest", ["k1"])
    with pytest.raises(ClosedFileError):
        store.get_many([0])


def test_what_was_just_put_is_found(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path / "store", writable=True, **GEOMETRY) as store:
        put = store.put_messages({"topic": "T", "body": [b"a", b"b"], "keys": ["k1", "k2"]})
        assert store.query_messages("T", ["k2", "k1"])["body"].to_pylist() == [b"b", b"a"]
        assert store.get_many(put.phy_offsets[::-1])["keys"].to_pylist() == ["k2", "k1"]


def test_a_million_hits_are_few_calls(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many keys nothing is done for each one in Python."""
    with MessageStore.open(root, **GEOMETRY) as store:
        found = store.query_messages("TopicTest", ["k1"] * 100_000, columns=["phy_offset"])
        assert len(found) == 100_000 and found["key_number"][-1] == 99_999


def test_good_messages_behind_damage_of_the_last_file_are_answered(tmp_path: Path) -> None:
    store = tmp_path / "store"
    places = LogWriter(store / "commitlog").write(
        *(LogMessage(keys=f"k{number}", queue_offset=number) for number in range(6))
    )
    rebuild(store, tmp_path / "built", **GEOMETRY)
    for part in ("index", "consumequeue"):
        os.rename(tmp_path / "built" / part, store / part)
    (log,) = (store / "commitlog").iterdir()
    with log.open("r+b") as file:
        file.seek(places[2] + 4)
        file.write(bytes(4))
    with MessageStore.open(store, **GEOMETRY) as opened:
        found = opened.get_many([places[5], places[1]], columns=["keys"])
        assert found["keys"].to_pylist() == ["k5", "k1"]
        assert getattr(opened.look_message_by_offset(places[4]), "keys", None) == "k4"
        assert [message.keys for message in opened.get_message("TopicTest", 0, 3).messages] == ["k3", "k4", "k5"]
        assert opened.query_messages("TopicTest", ["k3"], columns=["keys"])["keys"].to_pylist() == ["k3"]
    (said,) = (one for one in verify(store, **GEOMETRY).findings if one.kind == "frames-behind-log-end")
    assert f"3 complete frames behind its end are not read: from phy offset {places[2]} to" in str(said)
