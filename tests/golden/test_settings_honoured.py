"""Settings that are given are held against the files; those that turn files off are honoured; misspelt ones refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import BadMagicError, FileStateError, FormatError, GeometryError
from mqindex.report import Report
from mqindex.rocketmq import IndexService, MessageStore, rebuild, repair, verify
from mqindex.rocketmq.index.opening import geometry_of
from mqindex.rocketmq.options import store_options
from tests.golden.test_nothing_guessed import broker_conf
from tests.reference.batch_queue import build_batch_queues
from tests.reference.commit_log import scan_log
from tests.reference.dispatch import Rules
from tests.support.golden import BASIC, StoreCase
from tests.support.tree import contents, index_bytes, index_paths, queue_contents

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
ONE = LocalEngine(1)


@pytest.fixture
def basic(golden_store: GoldenStore) -> Path:
    return golden_store("basic-493")[1]


def found(report: Report, kind: str) -> list[str]:
    return [str(finding) for finding in report.findings if finding.kind == kind]


# ---- geometry


@pytest.mark.parametrize(
    "given",
    [
        {"hash_slot_num": 200, "index_num": 380},  # of the files' own length
        {"hash_slot_num": 100, "index_num": 300},
        {"hash_slot_num": 105},
        {"index_num": 399},
        {"config": {"maxHashSlotNum": 5_000_000, "maxIndexNum": 20_000_000}},
    ],
)
def test_geometry_that_the_files_refute_condemns_no_file(basic: Path, given: dict[str, Any]) -> None:
    """413 errors were found, and repair would have replaced all files."""
    before = contents(basic)
    for call in (verify, repair):
        with pytest.raises(GeometryError) as told:
            call(basic, engine=ONE, **given)  # type: ignore[operator]
        assert "hash_slot_num 100, index_num 400" in str(told.value)
        assert "got hash_slot_num " in str(told.value)
    if "config" not in given:
        with pytest.raises(GeometryError):
            IndexService.open(basic / "index", **given)
    assert contents(basic) == before


def test_rebuild_goes_to_another_geometry_as_it_is_told(basic: Path, tmp_path: Path) -> None:
    report = rebuild(basic, tmp_path / "out", engine=ONE, hash_slot_num=200, index_num=380)
    assert report.ok
    assert verify(basic, engine=ONE).ok


def test_geometry_decides_where_no_file_can_refute_it(basic: Path) -> None:
    for path in index_paths(basic):
        path.write_bytes(bytes(path.stat().st_size))
    assert repair(basic, engine=ONE, hash_slot_num=100, index_num=400).ok
    assert verify(basic, engine=ONE, deep=True).ok


def test_empty_index_files_are_named_and_their_neighbour_is_not(basic: Path) -> None:
    """Two of 0 bytes outvoted the good one, and it was told to be damaged."""
    good, *others = index_paths(basic)
    for path in others[2:]:
        path.unlink()
    for path in others[:2]:
        path.write_bytes(b"")
    report = verify(basic, engine=ONE)
    assert [one.path for one in report.findings if one.kind == "index-size"] == [str(path) for path in others[:2]]
    assert repair(basic, engine=ONE).ok
    assert index_paths(basic)[0] == good


def test_lone_empty_index_file_is_no_reason_for_the_default(basic: Path) -> None:
    first, *others = index_paths(basic)
    for path in others:
        path.unlink()
    first.write_bytes(b"")
    report = verify(basic, engine=ONE)
    assert found(report, "geometry-unknown")
    with pytest.raises(GeometryError, match="--hash-slot-num 5000000 --index-num 20000000"):
        repair(basic, engine=ONE)


# ---- names


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("maxhashslotnum", "maxHashSlotNum"),
        ("maxHashSlotNums", "maxHashSlotNum"),
        ("max_index_num", "maxIndexNum"),
        ("mapedFileSizeConsumeQeue", "mapedFileSizeConsumeQueue"),
        ("storePathCommitlog", "storePathCommitLog"),
        ("messageIndexEnabled", "messageIndexEnable"),
        ("enableLMQ", "enableLmq"),
    ],
)
def test_setting_that_is_nearly_one_is_refused_by_name(basic: Path, tmp_path: Path, name: str, meant: str) -> None:
    for config in ({name: "1"}, broker_conf(tmp_path, f"{name}=1")):
        with pytest.raises(ValueError, match=f"^{name}: expected {meant}; no broker has a setting {name}"):
            verify(basic, engine=ONE, config=config)


def test_settings_of_a_broker_that_are_not_read_are_passed_over(basic: Path, tmp_path: Path) -> None:
    lines = [
        *BASIC,
        "brokerId=0",
        "brokerIP2=10.0.0.1",
        "haListenPort=10912",
        "deleteWhen=04",
        "brokerRole=ASYNC_MASTER",
    ]
    conf = broker_conf(tmp_path, *lines)
    assert verify(basic, engine=ONE, config=conf).ok
    assert verify(basic, engine=ONE, config={"brokerId": 0, "x": 1}).ok


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n",
        "broker.id=0\nlog.dirs=/tmp/kafka-logs\n",
        '{\n"dataVersion":{\n"counter":3\n}\n}\n',
        "\x7fELF\x02\x01\x01\0\0",
    ],
    ids=["empty", "comment", "passwd", "kafka", "json", "binary"],
)
def test_file_that_sets_nothing_of_a_broker_is_no_broker_conf(basic: Path, tmp_path: Path, text: str) -> None:
    """`--broker-conf /etc/passwd` was taken."""
    (tmp_path / "file").write_text(text)
    with pytest.raises(BadMagicError, match="not a broker's configuration"):
        verify(basic, engine=ONE, config=tmp_path / "file")


# ---- switches


@pytest.mark.parametrize("switch", ["messageIndexEnable", "indexFileWriteEnable"])
def test_index_that_is_switched_off_is_not_asked_for(basic: Path, tmp_path: Path, switch: str) -> None:
    shutil.rmtree(basic / "index")
    before = contents(basic)
    config = {switch: "false"}
    if switch == "indexFileWriteEnable":  # nothing else says that the broker is one that reads it
        with pytest.raises(ValueError, match="--broker-version"):
            verify(basic, engine=ONE, config=config)
    given: dict[str, Any] = {"engine": ONE, "config": config, "broker_version": "5.4.0"}
    report = verify(basic, **given)
    assert report.ok
    assert report.actions == []
    assert len(found(report, "index-switched-off")) == 1
    assert switch in found(report, "index-switched-off")[0]
    mended = repair(basic, **given)
    assert mended.ok
    assert mended.actions == []
    assert contents(basic) == before
    built = rebuild(basic, tmp_path / "out", **given)
    assert built.ok
    assert found(built, "index-switched-off")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["consumequeue"]
    assert queue_contents(tmp_path / "out") == queue_contents(basic)


def test_switch_that_an_old_broker_does_not_know_changes_nothing(basic: Path) -> None:
    shutil.rmtree(basic / "index")
    report = verify(basic, engine=ONE, config={"indexFileWriteEnable": "false"}, broker_version="4.9.3")
    assert not report.ok
    assert found(report, "missing-entries")


def test_index_files_from_before_it_was_switched_off_stay(basic: Path) -> None:
    index_paths(basic)[-1].unlink()
    expected = index_bytes(basic)
    assert verify(basic, engine=ONE, config={"messageIndexEnable": False}).ok
    assert repair(basic, engine=ONE, config={"messageIndexEnable": False}).ok
    assert index_bytes(basic) == expected


# ---- queues of other kinds


def into_rocksdb(root: Path, home: str = "consumequeue") -> None:
    """The queues as a broker with storeType=defaultRocksDB keeps them."""
    shutil.rmtree(root / "consumequeue")
    (root / home).mkdir()
    files = {"CURRENT": b"MANIFEST-000005\n", "MANIFEST-000005": b"?", "OPTIONS-000007": b"?", "000004.log": b""}
    for name, content in files.items():
        (root / home / name).write_bytes(content)


@pytest.mark.parametrize("home", ["consumequeue", "consumequeue_rocksdb"])
def test_queues_in_rocksdb_are_no_damage_and_get_no_files(basic: Path, tmp_path: Path, home: str) -> None:
    """It was taken for damage, and classic queues were written into it."""
    expected = index_bytes(basic)
    into_rocksdb(basic, home)
    (basic / "config" / "consumerOffset.json").write_text('{"offsetTable":{"AaTopic@g":{0:3}}}')
    report = verify(basic, engine=ONE, deep=True)
    assert [(one.severity, one.kind, one.path) for one in report.findings] == [
        ("info", "queues-elsewhere", str(basic / home))
    ]
    index_paths(basic)[1].unlink()
    before = contents(basic / home)
    assert repair(basic, engine=ONE).ok
    assert index_bytes(basic) == expected
    assert contents(basic / home) == before
    built = rebuild(basic, tmp_path / "out", engine=ONE)
    assert found(built, "queues-elsewhere")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index"]
    with pytest.raises(FileStateError, match="RocksDB"):
        MessageStore.open(basic, writable=True)
    assert contents(basic / home) == before


def test_store_type_says_that_queues_are_in_rocksdb(basic: Path) -> None:
    into_rocksdb(basic)
    for written in ("defaultRocksDB", "DEFAULTROCKSDB"):
        report = verify(basic, engine=ONE, config={"storeType": written})
        assert report.ok
        assert found(report, "queues-elsewhere")


def test_queues_that_are_written_twice_are_compared(basic: Path) -> None:
    """A broker with rocksdbCQDoubleWriteEnable has both in one directory; so does one that went over to RocksDB."""
    (basic / "consumequeue" / "CURRENT").write_bytes(b"MANIFEST-000005\n")
    (basic / "consumequeue" / "MANIFEST-000005").write_bytes(b"?")
    for given in ({"rocksdbCQDoubleWriteEnable": "true"}, {"storeType": "default"}):
        report = verify(basic, engine=ONE, config=given)
        assert (report.ok, report.units, report.findings) == (True, 548, [])


def test_of_queues_beside_rocksdb_it_is_not_known_which_the_broker_reads(basic: Path) -> None:
    """Old directories were compared, and "repaired", though no broker read them."""
    (basic / "consumequeue" / "CURRENT").write_bytes(b"MANIFEST-000005\n")
    (basic / "consumequeue" / "MANIFEST-000005").write_bytes(b"?")
    next((basic / "consumequeue" / "BBTopic" / "0").iterdir()).unlink()
    before = contents(basic / "consumequeue")
    for report in (verify(basic, engine=ONE), repair(basic, engine=ONE)):
        assert report.ok
        assert "give the broker's own --broker-conf" in found(report, "queues-elsewhere")[0]
    assert contents(basic / "consumequeue") == before


def test_batch_queues_that_are_gone_are_missed(basic: Path) -> None:
    """A store whose `batchconsumequeue/` is gone was clean."""
    in_batches(basic)
    assert verify(basic, engine=ONE).ok
    shutil.rmtree(basic / "batchconsumequeue" / "AaTopic" / "0")
    assert len(found(verify(basic, engine=ONE), "batch-queue-missing")) == 1
    shutil.rmtree(basic / "batchconsumequeue")
    report = verify(basic, engine=ONE)
    assert not report.ok
    missing = [finding for finding in report.findings if finding.kind == "batch-queue-missing"]
    assert len(missing) > 1
    assert "5.5.0 left out the log's first file" in str(missing[0].hint)  # seen: a real one without queues
    assert report.actions == [f"write the units of queue AaTopic/{number} anew" for number in range(len(missing))]
    with pytest.raises(FileStateError, match="with mapperFileSizeBatchConsumeQueue=13800000 in it"):
        repair(basic, engine=ONE)
    assert repair(basic, engine=ONE, config={"mapperFileSizeBatchConsumeQueue": 4600}).ok
    assert not (basic / "consumequeue" / "AaTopic").exists()
    assert verify(basic, engine=ONE).ok


# ---- a whole configuration


def without(name: str) -> list[str]:
    return [line for line in BASIC if not line.startswith(f"{name}=")]


def test_what_a_whole_configuration_does_not_set_is_the_broker_s_default(basic: Path, tmp_path: Path) -> None:
    """What the files show was taken: a broker of this very configuration does not start, or reads them wrongly."""
    assert verify(basic, engine=ONE, config=broker_conf(tmp_path, *BASIC), broker_version="4.9.3").ok
    with pytest.raises(GeometryError, match=r"5000000, index_num 20000000 \(the broker's default, .* sets no other\)"):
        verify(basic, engine=ONE, config=broker_conf(tmp_path, *without("maxIndexNum")[:1], *BASIC[3:]))
    for name in ("mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue"):
        for old in ("", f"maped{name[6:]}={dict(line.split('=') for line in BASIC)[name]}"):
            report = verify(
                basic, engine=ONE, config=broker_conf(tmp_path, *without(name), old), broker_version="4.9.3"
            )
            assert report.start is not None and (report.ok, report.start.starts) == (False, False), name


def test_queues_are_not_written_anew_in_a_length_that_nobody_chose(basic: Path, tmp_path: Path) -> None:
    """A file of a few settings, where a whole broker.conf is expected, would have cost every queue its length."""
    conf = broker_conf(tmp_path, *without("mappedFileSizeConsumeQueue"))
    before = contents(basic)
    for write in (partial(repair, engine=ONE), partial(repair, engine=ONE, dry_run=True)):
        with pytest.raises(FileStateError, match="with mappedFileSizeConsumeQueue=1000 if that is right"):
            write(basic, config=conf, broker_version="4.9.3")
    (basic / "abort").unlink(missing_ok=True)
    with pytest.raises(FileStateError, match="another length than the broker's default"):
        MessageStore.open(basic, writable=True, config=conf, broker_version="4.9.3")
    (basic / "abort").unlink(missing_ok=True)
    assert {path: data for path, data in contents(basic).items() if path in before} == before


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("storePathCommitLog=", "deletes every consume queue"),
        ("storePathCommitLog=/a, /b", "without blanks before or after their names"),
        ("storePathRootDir=/data/rmq", "keeps its log in ~/store/commitlog, not in /data/rmq"),
        ("storePathRootDir=D:\\users", "four hexadecimal digits"),
    ],
)
def test_settings_with_which_a_broker_takes_another_log_or_does_not_start(
    basic: Path, tmp_path: Path, line: str, says: str
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("\n".join((*BASIC, line)), encoding="latin-1")
    with pytest.raises(FormatError, match=says):
        verify(basic, engine=ONE, config=conf, broker_version="4.9.3")


def test_read_only_directories_count_beside_several_only(basic: Path) -> None:
    given = {"storePathCommitLog": str(basic / "commitlog"), "readOnlyCommitLogStorePaths": "/old"}
    assert store_options(basic, config=given).commitlog == (str(basic / "commitlog"),)
    with pytest.raises(TypeError, match="commitlog= takes several directories"):
        store_options(basic, config={"storePathCommitLog": ["/a", "/b"]})


def test_a_configuration_of_another_program_is_none(basic: Path, tmp_path: Path) -> None:
    for text in ("tickTime=2000\ninitLimit=10\ndataDir=/z\nclientPort=2181\n", "x=1\n" * (1 << 18)):
        (tmp_path / "zoo.cfg").write_text(text)
        with pytest.raises(BadMagicError, match="not a broker's configuration"):
            verify(basic, engine=ONE, config=tmp_path / "zoo.cfg")


def test_a_wrong_setting_is_told_before_a_store_is_mended(golden_store: GoldenStore) -> None:
    _, root = golden_store("killed-493")
    before = contents(root)
    for config in ({"flushDiskType": "async"}, {"maxMessageSize": ""}, {"enabledAppendPropCRC": "1"}):
        with pytest.raises(ValueError, match=next(iter(config))):
            MessageStore.open(root, writable=True, config=config)
        assert contents(root) == before


def _queried(store: Path, conf: Path) -> None:
    with MessageStore.open(store, config=conf) as opened:
        opened.query_message("T", "k")


def _in_turn(store: Path, conf: Path) -> dict[str, Callable[[], object]]:
    return {
        "read": lambda: _queried(store, conf),
        "write": lambda: MessageStore.open(store, config=conf, writable=True).close(),
        "verify": lambda: verify(store, config=conf, engine=ONE),
        "repair": lambda: repair(store, config=conf, engine=ONE),
        "rebuild": lambda: rebuild(store, store.parent / "out", config=conf, engine=ONE),
        "index": lambda: geometry_of(str(store / "index"), {"config": conf}),
    }


@pytest.mark.parametrize(
    ("lines", "call", "says"),
    [
        (("mappedFileSizeCommitLog=4096",), "read", "mappedFileSizeCommitLog=4096"),
        (("mappedFileSizeCommitLog=4096",), "write", "mappedFileSizeCommitLog=4096"),
        ((), "read", "no mappedFileSizeCommitLog that a broker takes"),
        (("mappedFileSizeConsumeQueue=2000",), "write", "mappedFileSizeConsumeQueue=2000"),
        *(
            (("maxHashSlotNum=105",), call, "maxHashSlotNum=105, maxIndexNum=400")
            for call in ("read", "write", "verify", "repair", "index")
        ),
        *(
            (("maxHashSlotNum=2147483647",), call, "maxHashSlotNum=2147483647, maxIndexNum=400")
            for call in ("verify", "repair", "rebuild")
        ),
    ],
)
def test_files_that_refute_a_broker_conf_name_it_and_the_setting(
    basic: Path, tmp_path: Path, lines: tuple[str, ...], call: str, says: str
) -> None:
    usual = [line for line in BASIC if lines or "CommitLog" not in line]
    conf = tmp_path / "broker.conf"
    conf.write_text("\n".join((*usual, *lines)))
    before = contents(basic)
    with pytest.raises((FormatError, GeometryError), match=re.escape(f"{conf} has {says};")):
        _in_turn(basic, conf)[call]()
    assert {**contents(basic), "lock": b""} == {**before, "lock": b""}


def test_a_batch_queue_that_ends_before_the_log_is_behind(basic: Path) -> None:
    """The store was clean: after its repair a 5.5.0 broker read its log on from the end, and the batches were lost."""
    in_batches(basic)
    assert verify(basic, engine=ONE).ok
    before = contents(basic / "batchconsumequeue")
    behind = basic / "batchconsumequeue" / "AaTopic" / "0"
    path = max(behind.iterdir())
    units = path.read_bytes().rstrip(b"\0")
    path.write_bytes(units[: len(units) // 46 * 46 - 46 * 2].ljust(4600, b"\0"))
    (one,) = [finding for finding in verify(basic, engine=ONE).findings if finding.kind == "batch-queue-behind"]
    assert (one.severity, one.path) == ("error", str(behind))
    assert "3 units from phy offset " in str(one.expected)
    assert repair(basic, engine=ONE).ok
    assert contents(basic / "batchconsumequeue") == before


def in_batches(basic: Path) -> None:
    """The queues of one topic become batch queues, of batches of one message."""
    table = {"AaTopic": {"topicName": "AaTopic", "attributes": {"queue.type": "BatchCQ"}}}
    (basic / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    shutil.rmtree(basic / "consumequeue" / "AaTopic")
    files = [(int(path.name), path.read_bytes()) for path in sorted((basic / "commitlog").iterdir())]
    for name, data in build_batch_queues(scan_log(files)[0], Rules([1000]), 4600, {"AaTopic"}).items():
        (basic / name).parent.mkdir(parents=True, exist_ok=True)
        (basic / name).write_bytes(data)
