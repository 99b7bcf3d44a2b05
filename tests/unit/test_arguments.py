"""Wrong arguments of the Python calls: a plain error of one sentence, whatever the value is."""

from __future__ import annotations

import os

import pytest

from mqindex import kafka, rocketmq
from mqindex.errors import CorruptIndexError
from mqindex.kafka.partition.producer_state import read_producers
from mqindex.rocketmq import IndexFile, IndexService
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase


@pytest.mark.parametrize("engine", ["spark", 5])
def test_what_is_no_engine_is_refused(tmp_path, engine):
    """`--engine spark` is a word, `engine=` an object: the word ended as an `AttributeError`."""
    store = case("basic-493").unpack(tmp_path / "store")
    log_dir = PartitionCase("410-txn").closed(tmp_path / "kafka")
    sentence = r"^engine: expected LocalEngine\(\) or SparkEngine\(spark\), got "
    for call in (rocketmq.verify, rocketmq.repair, kafka.verify, kafka.repair):
        with pytest.raises(TypeError, match=sentence):
            call(store if call.__module__.startswith("mqindex.rocketmq") else log_dir, engine=engine)
    with pytest.raises(TypeError, match=sentence):
        rocketmq.rebuild(store, tmp_path / "out", engine=engine)
    with pytest.raises(TypeError, match=sentence):
        kafka.rebuild(log_dir, tmp_path / "out", engine=engine)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("call", [rocketmq.repair, lambda store, **parts: rocketmq.rebuild(store, "out", **parts)])
def test_parts_are_several_names(call):
    """One str was taken letter by letter."""
    with pytest.raises(TypeError, match=r"^parts: expected a sequence of names, got one str, 'index'$"):
        call("store", parts="index")


def test_a_number_is_no_configuration(tmp_path):
    """It was taken for an open file, which was then closed."""
    with open(tmp_path / "mine", "w") as mine:
        with pytest.raises(TypeError, match=r"os\.PathLike object, not int"):
            rocketmq.verify(tmp_path, config=mine.fileno())
        os.fstat(mine.fileno())


def test_a_version_is_text(tmp_path):
    with pytest.raises(TypeError, match=r"^broker_version: expected a version like '4.9.3', got 5.4$"):
        rocketmq.verify(tmp_path, broker_version=5.4)


@pytest.mark.parametrize("tags", [None, 5, b"TagA"])
def test_a_tag_is_text(tags):
    with pytest.raises(TypeError, match=f"^tags: expected str, got {type(tags).__name__}$"):
        rocketmq.tag_hash(tags)


def test_a_version_of_kafka_is_text(tmp_path):
    with pytest.raises(TypeError, match=r"^kafka_version: expected numbers and dots, as '3.9.1', got 3.9$"):
        kafka.verify(tmp_path, kafka_version=3.9)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "expected 10 bytes or more, got 0"),
        (b"\0\2" + bytes(8), "field version: expected 1, got 2"),
    ],
)
def test_what_is_no_snapshot_is_told_what_it_is(tmp_path, data, sentence):
    path = tmp_path / "00000000000000000005.snapshot"
    path.write_bytes(data)
    with pytest.raises(CorruptIndexError, match=f"^no snapshot that a broker reads: {path} ?:? ?{sentence}$"):
        read_producers(path)


@pytest.mark.parametrize("keys", [{"a", "b"}, frozenset("a"), {"a": 1}, {"a": 1}.items(), "a", b"a", 5, None])
def test_keys_are_a_sequence(keys, tmp_path):
    """The keys of a set were put in whatever order it has, those of a mapping without its values."""
    sentence = "^keys: expected a sequence of str, got "
    with pytest.raises(TypeError, match=sentence):
        rocketmq.key_hashes(keys)
    with IndexFile.create(tmp_path / "index", hash_slot_num=5, index_num=9) as index:
        with pytest.raises(TypeError, match=sentence):
            index.put_keys(keys, [1], [1])
        with pytest.raises(TypeError, match=sentence):
            index.select_phy_offsets(keys)
    with IndexService.open(tmp_path / "all", hash_slot_num=5, index_num=9, writable=True) as service:
        with pytest.raises(TypeError, match=sentence):
            service.build_index("T", keys, [1], [1])
        with pytest.raises(TypeError, match=sentence):
            service.query_offsets("T", keys)


def test_the_names_of_a_mapping_are_keys_in_its_order():
    assert rocketmq.key_hashes({"b": 1, "a": 2}.keys()).tolist() == rocketmq.key_hashes(["b", "a"]).tolist()
