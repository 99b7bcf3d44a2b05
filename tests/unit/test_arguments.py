"""Wrong arguments of the Python calls: a plain error of one sentence, whatever the value is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.errors import CorruptIndexError, GeometryError
from mqindex.kafka.directories.producer_state import read_producers
from mqindex.rocketmq import IndexFile, IndexService, MessageStore, NewMessage
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


def test_the_class_of_an_engine_is_no_engine(tmp_path):
    """It ended in a `TypeError` of its own `map`."""
    store = case("basic-493").unpack(tmp_path / "store")
    with pytest.raises(TypeError, match=r"^engine: expected LocalEngine\(\) or .*, got the class LocalEngine$"):
        rocketmq.verify(store, engine=LocalEngine)


_PATHS: list[tuple[str, Callable[[Any], object]]] = [
    ("store", rocketmq.verify),
    ("store", rocketmq.repair),
    ("store", rocketmq.report),
    ("store", lambda path: rocketmq.rebuild(path, "out")),
    ("store", lambda path: rocketmq.follow(path, "out", stop=list)),
    ("store", lambda path: rocketmq.undo_repair(path, "mqindex-backup-1")),
    ("index", lambda path: rocketmq.optimize(path, "out")),
    ("out", lambda path: rocketmq.optimize("index", path)),
    ("out", lambda path: rocketmq.rebuild("store", path)),
    ("out", lambda path: rocketmq.follow("store", path, stop=list)),
    ("config", lambda path: rocketmq.verify("store", config=path or 1)),
    ("commitlog", lambda path: rocketmq.verify("store", commitlog=path or 1)),
    ("commitlog", lambda path: rocketmq.verify("store", commitlog=["log", path])),
    ("path", IndexFile.open),
    ("path", lambda path: IndexFile.create(path, hash_slot_num=5, index_num=9)),
    ("directory", IndexService.open),
    ("root", MessageStore.open),
    ("directories", rocketmq.CommitLog.open),
    ("directories", lambda path: rocketmq.CommitLog.open([path], writable=True)),
    ("directory", rocketmq.ConsumeQueue.open),
    ("directory", rocketmq.ConsumeQueueExt.open),
    ("directory", rocketmq.ConsumeQueueTable.open),
    ("directory", rocketmq.BatchConsumeQueue.open),
    ("path", rocketmq.Checkpoint.read),
    ("directory", kafka.verify),
    ("directory", kafka.repair),
    ("directory", kafka.report),
    ("directory", lambda path: kafka.rebuild(path, "out")),
    ("out", lambda path: kafka.rebuild("orders-0", path)),
    ("directory", lambda path: kafka.undo_repair(path, "mqindex-backup-1")),
    ("directory", kafka.PartitionLog.open),
    ("log_path", kafka.LogSegment.open),
    ("path", kafka.OffsetIndex.open),
    ("path", lambda path: kafka.TimeIndex.create(path, 0)),
    ("path", kafka.TransactionIndex.open),
    ("path", read_producers),
]


@pytest.mark.parametrize("path", [b"somewhere", 5, None])
@pytest.mark.parametrize(("argument", "call"), _PATHS)
def test_a_path_is_text_or_a_path(argument, call, path, tmp_path, monkeypatch):
    """bytes ended as whatever the standard library says of them, or were taken here and refused there."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=rf"^{argument}: expected (a str or a path|one directory or more), got "):
        call(path)


@pytest.mark.parametrize("path", ["some\0where", Path("some\0where"), "some\ud800where"])
@pytest.mark.parametrize(("argument", "call"), _PATHS)
def test_a_path_can_be_a_name(argument, call, path, tmp_path, monkeypatch):
    """It was "embedded null byte", or a `UnicodeEncodeError`, from wherever it met the system first."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"^{argument}: expected a path, got .*, which no file can have as its name$"):
        call(path)


@pytest.mark.parametrize("call", [rocketmq.undo_repair, kafka.undo_repair])
def test_a_backup_is_text_or_a_path(call, tmp_path):
    place = tmp_path / "place"
    made = case("basic-493").unpack(place) if call is rocketmq.undo_repair else PartitionCase("410-txn").closed(place)
    with pytest.raises(TypeError, match=r"^backup: expected a str or a path, got b'mqindex-backup-1'$"):
        call(made, b"mqindex-backup-1")


@pytest.mark.parametrize("number", [1.5, np.float64(4096), True, "4096"])
@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("workers", LocalEngine),
        ("split_size", lambda number: rocketmq.rebuild("store", "out", split_size=number)),
        ("mapped_file_size", lambda number: rocketmq.CommitLog.open(".", mapped_file_size=number)),
        ("file_size", lambda number: rocketmq.ConsumeQueue.open("queue", file_size=number, writable=True)),
        ("file_size", lambda number: rocketmq.ConsumeQueueTable.open("queues", file_size=number)),
        ("index_interval_bytes", lambda number: kafka.verify("orders-0", index_interval_bytes=number)),
        ("max_index_size", lambda number: kafka.verify("orders-0", max_index_size=number)),
        ("max_index_size", lambda number: kafka.OffsetIndex.create("index", 0, max_index_size=number)),
        ("base_offset", lambda number: kafka.OffsetIndex.create("index", number)),
        ("base_offset", lambda number: kafka.LogSegment.open("log", base_offset=number)),
        ("base_offset", lambda number: kafka.TransactionIndex.open("index", base_offset=number)),
    ],
)
def test_a_number_is_whole(argument, call, number, tmp_path, monkeypatch):
    """Some were taken as they are, 1.5 for a number of threads."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=f"^{argument}: expected a whole number"):
        call(number)


def test_a_number_may_be_numpy_s(tmp_path):
    """As an option of Kafka's partitions it was refused, as one of RocketMQ's stores it was taken."""
    partition = PartitionCase("410-txn").closed(tmp_path / "kafka")
    report = kafka.verify(partition, index_interval_bytes=np.int64(4096), max_index_size=np.int32(10_485_760))
    assert type(report.to_dict()["settings"]["index_interval_bytes"]["value"]) is int
    assert LocalEngine(np.int64(2)).workers == 2


@pytest.mark.parametrize("call", [rocketmq.repair, lambda store, **parts: rocketmq.rebuild(store, "out", **parts)])
def test_parts_are_several_names(call):
    """One str was taken letter by letter."""
    with pytest.raises(TypeError, match=r"^parts: expected a sequence of names, got one str, 'index'$"):
        call("store", parts="index")


def test_a_number_is_no_configuration(tmp_path):
    """It was taken for an open file, which was then closed."""
    with open(tmp_path / "mine", "w") as mine:
        with pytest.raises(TypeError, match=r"^config: expected a str or a path, got \d+$"):
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


# ---- the calls that look keys up: one sentence in all of them


Lookup = Callable[..., list[int]]
MS = 1_700_000_000_000


@pytest.fixture
def lookups(tmp_path: Path) -> Iterator[dict[str, Lookup]]:
    """The calls that find topic `T` and key `a` at 300, 200 and 100, each as a function of its limit."""
    with MessageStore.open(tmp_path / "store", writable=True) as store:
        for number in range(3):
            store.put_message(NewMessage("T", b"x", keys="a", store_timestamp=MS + number))
        store.flush()
        with IndexService.open(tmp_path / "store" / "index") as service:
            file = service.files[0]
            yield {
                "of a file": lambda **limit: file.select_phy_offset("T#a", **limit).tolist(),
                "of a file, many": lambda **limit: file.select_phy_offsets(["a"], topic="T", **limit)[0].tolist(),
                "of a service": lambda **limit: service.query_offset("T", "a", **limit).phy_offsets.tolist(),
                "of a service, many": lambda **limit: service.query_offsets("T", ["a"], **limit)[0].tolist(),
                "of a store": lambda **limit: places(store, **limit),
                "of a store, exact": lambda **limit: places(store, exact=True, **limit),
            }


def places(store: MessageStore, **limits: Any) -> list[int]:
    return [message.phy_offset for message in reversed(store.query_message("T", "a", **limits).messages)]


@pytest.mark.parametrize("most", [2, np.int64(2), np.int8(2), np.uint64(2), np.array(2), 2**31, 2**63 - 1], ids=repr)
def test_any_whole_number_of_64_bits_limits_an_answer(most: Any, lookups: dict[str, Lookup]) -> None:
    """NumPy's were a bare `TypeError` in the bulk calls; an array of no dimension was counted down in place."""
    before = int(most)
    found = {name: look(max_num=most) for name, look in lookups.items()}
    assert len(found["of a file"]) == min(before, 3)
    assert found == dict.fromkeys(found, found["of a file"])
    assert most == before


@pytest.mark.parametrize(
    ("most", "error", "sentence"),
    [
        (-1, ValueError, "0 or more, got -1"),
        (np.int64(-5), ValueError, "0 or more, got -5"),
        (2**63, OverflowError, "64 bits, got 9223372036854775808"),
        (-(2**64), OverflowError, "64 bits, got -18446744073709551616"),
        (10**30, OverflowError, f"64 bits, got 1{'0' * 30}"),
        (1.0, TypeError, "a whole number, got 1.0"),
        (None, TypeError, "a whole number, got None"),
        (True, TypeError, "a whole number, got True"),
    ],
)
def test_a_wrong_limit_is_named_in_every_call(
    most: Any, error: type[Exception], sentence: str, lookups: dict[str, Lookup]
) -> None:
    """2**64 was "too large to convert to C long" in one call, and an answer in another."""
    said = {}
    for name, look in lookups.items():
        with pytest.raises(error) as told:
            look(max_num=most)
        said[name] = str(told.value)
    assert said == dict.fromkeys(said, f"max_num: expected {sentence}")


def test_a_wrong_limit_is_refused_where_there_is_no_index_to_ask(tmp_path: Path) -> None:
    with (
        MessageStore.open(case("basic-493").unpack(tmp_path)) as store,
        pytest.raises(OverflowError, match=r"^max_num: expected 64 bits, got "),
    ):
        (Path(store.root) / "index").rename(tmp_path / "index")
        store.query_message("T", "a", max_num=2**64)


@pytest.mark.parametrize("wrong", [b"a", None, 1, ["a"], np.array("a")], ids=repr)
def test_a_key_is_text(wrong: Any, tmp_path: Path) -> None:
    """`topic#key` was made of any object: its answer was always empty."""
    sentence = f"^key: expected str, got {type(wrong).__name__}$"
    with IndexService.open(tmp_path / "index", hash_slot_num=5, index_num=9, writable=True) as service:
        for topic in ("T", None):
            with pytest.raises(TypeError, match=sentence):
                service.query_offset(topic, wrong)


@pytest.mark.parametrize("wrong", [b"T", 1, ["T"], np.array("T")], ids=repr)
def test_a_topic_is_text(wrong: Any, tmp_path: Path) -> None:
    sentence = f"^topic: expected str, got {type(wrong).__name__}$"
    with IndexService.open(tmp_path / "index", hash_slot_num=5, index_num=9, writable=True) as service:
        service._create_index_file()
        for call in (
            lambda: service.query_offset(wrong, "a"),
            lambda: service.query_offsets(wrong, ["a"]),
            lambda: service.build_index(wrong, ["a"], [1], [MS]),
            lambda: service.files[0].select_phy_offsets(["a"], topic=wrong),
            lambda: service.files[0].put_keys(["a"], [1], [MS], topic=wrong),
            lambda: rocketmq.key_hashes(["a"], topic=wrong),
        ):
            with pytest.raises(TypeError, match=sentence):
                call()


def test_without_a_topic_a_key_is_a_whole_one(tmp_path: Path) -> None:
    with IndexService.open(tmp_path / "index", hash_slot_num=5, index_num=9, writable=True) as service:
        service.build_index("T", ["a", "b"], [100, 200], [MS, MS])
        service.build_index(np.str_("T"), [np.str_("a")], [300], [MS])
        for topic, key in (("T", "a"), (None, "T#a"), (np.str_("T"), np.str_("a")), (None, np.str_("T#a"))):
            assert service.query_offset(topic, key).phy_offsets.tolist() == [300, 100]
            assert service.query_offsets(topic, [key]).to_pylist() == [[300, 100]]


# ---- the geometry of index files: one sentence in all of them


WRONG_TYPES = ["100", 100.0, 1.5, True, np.float64(100), b"100", [100]]
WRONG_NUMBERS = [0, -1, 2**31, 2**64, np.int64(0)]


def geometry_calls(root: Path, out: Path) -> dict[str, Callable[..., Any]]:
    file = sorted((root / "index").iterdir())[0]
    return {
        "IndexFile.open": lambda **given: IndexFile.open(file, **given),
        "IndexFile.create": lambda **given: IndexFile.create(out, **given),
        "IndexService.open": lambda **given: IndexService.open(root / "index", **given),
        "IndexService.open, new": lambda **given: IndexService.open(out, **given, writable=True),
        "MessageStore.open": lambda **given: MessageStore.open(root, **given),
        "verify": lambda **given: rocketmq.verify(root, **given),
        "report": lambda **given: rocketmq.report(root, **given),
        "repair": lambda **given: rocketmq.repair(root, **given, dry_run=True),
        "rebuild": lambda **given: rocketmq.rebuild(root, out, **given),
        "optimize": lambda **given: rocketmq.optimize(root, out, **given),
        "hash_slots": lambda hash_slot_num=1, index_num=None: rocketmq.hash_slots(["a"], hash_slot_num),
    }


@pytest.mark.parametrize("name", ["hash_slot_num", "index_num"])
@pytest.mark.parametrize("value", [*WRONG_TYPES, *WRONG_NUMBERS], ids=repr)
def test_a_wrong_geometry_is_named_in_every_call(name: str, value: Any, tmp_path: Path) -> None:
    """It was taken in one call, ignored in another, and a bare error of Python in a third."""
    root, out = case("basic-493").unpack(tmp_path), tmp_path / "out"
    error = ValueError if any(value is one for one in WRONG_NUMBERS) else TypeError
    said = {}
    for call, function in geometry_calls(root, out).items():
        if (call, name) != ("hash_slots", "index_num"):
            with pytest.raises(error) as told:
                function(**{name: value})
            said[call] = str(told.value)
    assert said == dict.fromkeys(said, f"{name}: expected a whole number from 1 to 2147483647, got {value!r}")
    assert not out.exists()


def test_a_geometry_that_takes_no_entry_is_refused_in_every_call(tmp_path: Path) -> None:
    """`verify` and `report` never ended; in others it fitted every file by its length, and good ones were condemned."""
    root, out, conf = case("basic-493").unpack(tmp_path), tmp_path / "out", tmp_path / "broker.conf"
    conf.write_text("brokerName=a\nmaxIndexNum=1\n")
    calls = geometry_calls(root, out)
    del calls["hash_slots"]
    for call in [call for call in calls if call.startswith("IndexFile.")]:  # a broker has such a file, without entries
        del calls[call]
    given: list[dict[str, Any]] = [{"hash_slot_num": 5, "index_num": 1}]
    said = {}
    for call, function in calls.items():
        takes_config = call in ("verify", "repair", "rebuild", "report", "MessageStore.open")
        for options in [*given, *([{"config": {"maxIndexNum": 1}}, {"config": conf}] if takes_config else [])]:
            with pytest.raises(GeometryError) as told:
                function(**options)
            named = str(conf) in str(told.value)
            assert named == (options.get("config") == conf)
            name = "maxIndexNum" if "config" in options else "index_num"
            said[call, str(options)] = str(told.value).replace(f"{conf}: ", "").replace(f" {name} ", " index_num ")
    sentence = "a file of this geometry holds no entry: expected index_num 2 or more, got 1"
    assert said == dict.fromkeys(said, sentence)
    assert len(said) == len(calls) + 10
    assert not out.exists()


def test_half_a_geometry_that_leaves_no_entry_is_refuted(tmp_path: Path) -> None:
    root = case("basic-493").unpack(tmp_path)
    slots = (min((root / "index").iterdir()).stat().st_size - 60) // 4  # the length has room for one place more
    for call in (rocketmq.verify, rocketmq.repair, rocketmq.report):
        with pytest.raises(GeometryError, match=f"another geometry than was given.* got hash_slot_num {slots}, "):
            call(root, hash_slot_num=slots)
    with pytest.raises(GeometryError):
        IndexService.open(root / "index", hash_slot_num=slots)


def test_a_geometry_that_is_not_given_is_none_only_where_one_is_inferred(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^index_num: expected a whole number from 1 to 2147483647, got None$"):
        IndexFile.create(tmp_path / "index", hash_slot_num=5, index_num=None)  # type: ignore[arg-type]


def test_a_geometry_may_be_of_any_whole_number(tmp_path: Path) -> None:
    slots, entries = np.int32(5), np.int64(8)
    with IndexFile.create(tmp_path / "index", hash_slot_num=slots, index_num=entries) as index:
        assert (type(index.hash_slot_num), type(index.index_num)) == (int, int)
        assert index.put_key("a", 1, MS)
    with IndexFile.open(tmp_path / "index", hash_slot_num=slots) as index:
        assert repr((index.hash_slot_num, index.index_num)) == "(5, 8)"


@pytest.mark.parametrize("seed", ["end_phy_offset", "end_timestamp"])
def test_a_seed_has_64_bits(seed: str, tmp_path: Path) -> None:
    with pytest.raises(OverflowError, match=f"^{seed}: expected 64 bits, got {2**64}$"):
        IndexFile.create(tmp_path / "index", hash_slot_num=5, index_num=8, **{seed: 2**64})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("wrong", "got"), [(5, "5"), ([None], "None"), (b"log", "b'log'"), (["log", b"x"], "b'x'")])
def test_a_commit_log_is_a_directory(wrong: Any, got: str, tmp_path: Path) -> None:
    root = case("basic-493").unpack(tmp_path)
    sentence = f"^commitlog: expected one directory or more, got {got}$"
    for call in (rocketmq.verify, rocketmq.repair, MessageStore.open):
        with pytest.raises(TypeError, match=sentence):
            call(root, commitlog=wrong)
    with pytest.raises(TypeError, match=sentence):
        rocketmq.rebuild(root, tmp_path / "out", commitlog=wrong)


def test_an_empty_path_is_refused_in_every_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was the current directory, or a file that is not there, or asked which backups there are."""
    root = case("basic-493").unpack(tmp_path)
    monkeypatch.chdir(root)
    calls: dict[str, Callable[[], object]] = {
        "store": lambda: rocketmq.verify(""),
        "out": lambda: rocketmq.rebuild(root, ""),
        "backup": lambda: rocketmq.undo_repair(root, ""),
        "commitlog": lambda: rocketmq.verify(root, commitlog=[""]),
        "config": lambda: rocketmq.verify(root, config=""),
        "root": lambda: MessageStore.open(""),
        "path": lambda: IndexFile.open(""),
        "directory": lambda: kafka.verify(""),
        "log_path": lambda: kafka.LogSegment.open(""),
    }
    said = {}
    for name, call in calls.items():
        with pytest.raises(ValueError, match="empty") as told:
            call()
        said[name] = str(told.value)
    assert said == {name: f"{name}: expected a path, got an empty one" for name in calls}


# ---- subclasses of str, NumPy's and those of enums, are text; NumPy's numbers are numbers


class Word(str, Enum):  # noqa: UP042 - a StrEnum is formatted as its value, this as its name
    PATH = "named.index"
    TOPIC = "Orders"


def test_a_path_may_be_of_a_subclass_of_str(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`create` ended in a kernel's `TypeError`, and left the file."""
    monkeypatch.chdir(tmp_path)
    for path in (np.str_("numpy.index"), Word.PATH):
        with IndexFile.create(path, hash_slot_num=5, index_num=9) as index:
            index.put_key("a", 1, MS)
        with IndexFile.open(path, hash_slot_num=5, index_num=9) as index:
            assert (type(index.path), index.select_phy_offset("a").tolist()) == (str, [1])
    assert sorted(os.listdir()) == ["named.index", "numpy.index"]


def test_a_message_may_be_of_subclasses_of_str(tmp_path: Path) -> None:
    """A topic was refused, which the bulk call takes; of an enum, a property was written as its name, `Word.PATH`."""
    with MessageStore.open(tmp_path, writable=True, config={"mappedFileSizeCommitLog": 1 << 20}) as store:
        store.put_message(NewMessage(Word.TOPIC, b"", keys=np.str_("a"), tags=Word.PATH, properties={"x": Word.PATH}))
        found = store.look_message_by_offset(0)
    assert found is not None
    assert (found.topic, found.keys, found.tags, found.properties["x"]) == ("Orders", "a", "named.index", "named.index")


@pytest.mark.parametrize("properties", [{"a": 1}, {1: "a"}, {"a": b"x"}], ids=repr)
def test_properties_are_text(tmp_path: Path, properties: Any) -> None:
    with (
        MessageStore.open(tmp_path, writable=True, config={"mappedFileSizeCommitLog": 1 << 20}) as store,
        pytest.raises(TypeError, match=r"^properties: expected str, got (int|bytes)$"),
    ):
        store.put_message(NewMessage("T", b"", properties=properties))


@pytest.mark.parametrize("number", [np.uint64(2**64 - 1), np.int64(2**63 - 1), np.int8(127)], ids=repr)
def test_as_many_messages_as_a_number_of_numpy(tmp_path: Path, number: Any) -> None:
    """It was multiplied, and overflowed."""
    with MessageStore.open(case("basic-493").unpack(tmp_path / "store")) as store:
        topic, queue_id = next((topic, at) for topic, at in store.queues if store.consume_queue(topic, at))
        expected = store.get_message(topic, queue_id, 0, max_msg_nums=int(number))
        assert store.get_message(topic, queue_id, 0, max_msg_nums=number) == expected


def test_an_entry_of_bulk_columns_bounds_a_fetch(tmp_path: Path) -> None:
    """Positions in bulk are of 32 bits: the sum overflowed before it was cut to 32 bits."""
    with kafka.OffsetIndex.create(tmp_path / f"{0:020d}.index", 0, max_index_size=80) as index:
        index.append_many([5, 9], [100, 200])
        offsets, positions = index.lookup_many([6])
        place = kafka.OffsetPosition(offsets[0], positions[0])
        assert index.fetch_upper_bound_offset(place, np.int32(60)) == (9, 200)
        assert index.fetch_upper_bound_offset(place, np.uint64(2**64 - 1)) == (5, 100)  # 99, of 32 bits
        for wrong in (None, "1", 1.5):
            with pytest.raises(TypeError, match=r"^fetch_size: expected a whole number, got "):
                index.fetch_upper_bound_offset(place, wrong)  # type: ignore[arg-type]


_ROOM: dict[str, Any] = {"config": {"maxHashSlotNum": 100, "maxIndexNum": 400, "mappedFileSizeCommitLog": 1 << 16}}
_SWITCHES: dict[str, Callable[[Path, Any], object]] = {
    "rocketmq.verify deep": lambda at, value: rocketmq.verify(at / "store", deep=value),
    "rocketmq.repair dry_run": lambda at, value: rocketmq.repair(at / "store", dry_run=value),
    "rocketmq.rebuild overwrite": lambda at, value: rocketmq.rebuild(at / "store", at / "out", overwrite=value),
    "rocketmq.optimize overwrite": lambda at, value: rocketmq.optimize(at / "store", at / "out", overwrite=value),
    "kafka.verify check_crc": lambda at, value: kafka.verify(at / "kafka", check_crc=value),
    "kafka.repair dry_run": lambda at, value: kafka.repair(at / "kafka", dry_run=value),
    "MessageStore writable": lambda at, value: MessageStore.open(at / "store", writable=value),
    "IndexService writable": lambda at, value: IndexService.open(at / "store" / "index", writable=value),
    "CommitLog writable": lambda at, value: rocketmq.CommitLog.open(at / "store" / "commitlog", writable=value),
    "IndexFile writable": lambda at, value: IndexFile.open(next((at / "store" / "index").iterdir()), writable=value),
    "ConsumeQueueTable writable": lambda at, value: rocketmq.ConsumeQueueTable.open(at / "new", writable=value),
    "query_message exact": lambda at, value: MessageStore.open(at / "store").query_message("T", "k", exact=value),
    "scan check_crc": lambda at, value: rocketmq.CommitLog.open(at / "store" / "commitlog").scan(check_crc=value),
}


@pytest.mark.parametrize("name", [*_SWITCHES])
def test_a_switch_is_true_or_false(tmp_path: Path, name: str) -> None:
    """`dry_run="no"` counted as true and `overwrite="no"` moved the old result; an array was NumPy's own error."""
    case("basic-493").unpack(tmp_path / "golden").rename(tmp_path / "store")
    PartitionCase("410-txn").closed(tmp_path / "kafka")
    before = sorted(tmp_path.rglob("*"))
    for value in ("no", "", 0, None, np.array([True, False]), [True]):
        with pytest.raises(TypeError, match=f"^{name.split()[1]}: expected True or False, got "):
            _SWITCHES[name](tmp_path, value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_switch_of_numpy_is_one(tmp_path: Path) -> None:
    assert rocketmq.verify(case("basic-493").unpack(tmp_path / "store"), deep=np.True_).ok  # type: ignore[arg-type]


def test_a_column_whose_name_is_no_text_is_named(tmp_path: Path) -> None:
    """It ended in the words of `str.join`."""
    with (
        MessageStore.open(tmp_path / "store", writable=True, **_ROOM) as store,
        pytest.raises(ValueError, match=r"^messages: expected columns among topic, .*, got 1$"),
    ):
        store.commit_log.append_messages({1: 1})  # type: ignore[dict-item]
