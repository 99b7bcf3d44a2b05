"""Store options: the broker's own names, the short forms, and where each value came from."""

from __future__ import annotations

import os

import pytest

from mqindex.errors import FormatError, MQIndexError
from mqindex.rocketmq.broker_conf import read_broker_conf
from mqindex.rocketmq.brokers import TAGS_INDEXED, broker_of
from mqindex.rocketmq.log.writing.write_rules import flush_rules, places_of_new_files, write_rules
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.settings import (
    BROKER_NAME,
    LOG_FILE_SIZE,
    MAX_HASH_SLOT_NUM,
    MAX_INDEX_NUM,
    MAX_MESSAGE_SIZE,
    QUEUE_FILE_SIZE,
    SETTINGS,
)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("maxHashSlotNum=1000", "maxHashSlotNum", "1000"),
        ("  maxHashSlotNum = 1000  ", "maxHashSlotNum", "1000  "),
        ("\f maxHashSlotNum\t1000\r", "maxHashSlotNum", "1000"),
        ("maxHashSlotNum  := 1000", "maxHashSlotNum", "= 1000"),
        ("maxHashSlotNum: 1000", "maxHashSlotNum", "1000"),
        ("maxHashSlotNum 1000", "maxHashSlotNum", "1000"),
        ("brokerName=a=b", "brokerName", "a=b"),
        ("storePathRootDir=/a\\\n    /b", "storePathRootDir", "/a/b"),
        ("name=\\u6d88\\u606f", "name", "消息"),
        ("name=tab\\there", "name", "tab\there"),
        ("a\\ b=c", "a b", "c"),
        ("flag", "flag", ""),
        ("# C:\\store\\\nmaxIndexNum=20", "maxIndexNum", "20"),
        ("\\\n # b\nmaxIndexNum=20", "maxIndexNum", "20"),
        ("name=a\\\n  # b\\\\", "name", "a# b\\"),
        ("name=a\\\\\\\n b\\", "name", "a\\b"),
        ("storePathRootDir=/\u00e9\u2028", "storePathRootDir", "/\u00c3\u00a9\u00e2\u0080\u00a8"),
    ],
)
def test_an_assignment_of_a_broker_conf_is_read_as_java_reads_properties(tmp_path, line, name, value):
    conf = tmp_path / "broker.conf"
    conf.write_text(f"# comment\n! comment\n\n{line}\n", encoding="utf-8")
    assert read_broker_conf(conf) == {name: value}


@pytest.mark.parametrize(
    ("line", "name", "taken"),
    [
        ("mappedFileSizeCommitLog=4M", "mappedFileSizeCommitLog", 1 << 30),
        ("mappedFileSizeConsumeQueue=2147483648", "mappedFileSizeConsumeQueue", 6_000_000),
        ("mappedFileSizeTimerLog=1_000", "mappedFileSizeTimerLog", 104_857_600),
        ("maxIndexNum=20 ", "maxIndexNum", 20_000_000),
        ("maxHashSlotNum=", "maxHashSlotNum", 5_000_000),
        ("maxMessageSize=1\u00a0", "maxMessageSize", 4_194_304),
        ("maxMessageSize=" + 5000 * "9", "maxMessageSize", 4_194_304),
        ("maxMessageSize=1e6", "maxMessageSize", 4_194_304),
        ("listenPort=a", "listenPort", 10911),
        ("flushDiskType=BOTH", "flushDiskType", "ASYNC_FLUSH"),
        ("flushDiskType=sync_flush", "flushDiskType", "ASYNC_FLUSH"),
        ("enableLmq=yes", "enableLmq", "false"),
        ("messageIndexEnable = true\t", "messageIndexEnable", "false"),
        ("enableConsumeQueueExt=", "enableConsumeQueueExt", "false"),
    ],
)
def test_what_a_broker_cannot_read_it_has_otherwise_and_that_is_told(tmp_path, line, name, taken):
    """As the classes of the brokers 4.9.3 and 5.5.0 answered: the default of a number, off for a switch."""
    conf = tmp_path / "broker.conf"
    conf.write_text(f"brokerName=b \nnamesrvAddr=b \n{line}\n", encoding="latin-1")
    with pytest.warns(UserWarning, match=f"^{name}: {taken}, .*{conf}") as told:
        options = store_options("/s", config=conf)
    assert len(told) == 1
    assert [(one, value.value) for one, value in options.unlike] == [(name, taken)]
    assert str(options.value(SETTINGS[name])).lower() == str(taken).lower()
    rules = write_rules(options), flush_rules(options)
    assert rules == (write_rules(store_options("/s")), flush_rules(store_options("/s")))
    whole = store_options("/s", config={**WHOLE, name: str(taken)})
    assert (options.hash_slot_num, options.index_num) == (whole.hash_slot_num, whole.index_num)
    for setting in SETTINGS.values():
        assert setting is BROKER_NAME or options.value(setting) == whole.value(setting), setting.name


WHOLE = {
    "maxHashSlotNum": 5_000_000,
    "maxIndexNum": 20_000_000,
    "mappedFileSizeCommitLog": 1 << 30,
    "mappedFileSizeConsumeQueue": 6_000_000,
    "mappedFileSizeTimerLog": 104_857_600,
}


@pytest.mark.parametrize(
    ("said", "number"), [("+4096", 4096), ("007", 7), ("\\u0665", 5), ("\\uff15", 5), ("2147483647", 2**31 - 1)]
)
def test_a_number_is_read_as_java_reads_it(tmp_path, said, number):
    conf = tmp_path / "broker.conf"
    conf.write_text(f"maxMessageSize={said}\nmessageIndexEnable=TRUE\n")
    options = store_options("/s", config=conf)
    assert (options.value(MAX_MESSAGE_SIZE), options.index_switch, options.unlike) == (number, None, ())


def test_the_blank_of_a_text_is_what_the_version_makes_of_it(tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("flushDiskType=SYNC_FLUSH \nstoreType=defaultRocksDB\\u0000\n")
    new = store_options("/s", config=conf, broker_version="5.2.0")
    assert (flush_rules(new).sync, new.queues_in_rocksdb) == (True, True)
    with pytest.warns(UserWarning, match=r"flushDiskType: ASYNC_FLUSH, .*ignores 'SYNC_FLUSH '"):
        old = store_options("/s", config=conf, broker_version="5.1.4")
    assert flush_rules(old).sync is False
    with pytest.raises(FormatError, match=r"flushDiskType: a broker before 5\.2 keeps the blank.*--broker-version"):
        store_options("/s", config=conf)


@pytest.mark.parametrize("value", ["20 ", " 20", "\t20"])
def test_a_mapping_may_hold_no_blanks_either(value):
    with pytest.raises(ValueError, match="maxIndexNum: expected no blank before or after the value"):
        store_options("/s", config={"maxIndexNum": value})
    assert store_options("/s", config={"maxIndexNum": "20", "messageIndexEnable": "false "}).index_num == 20


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("listenPort=-1", "listenPort: expected a whole number"),
        ("mappedFileSizeCommitLog=0", "mappedFileSizeCommitLog: expected a whole number from 1"),
        ("brokerIP1=10.0.0.300", "brokerIP1: expected an IP address, got '10.0.0.300'"),
        ("maxIndexNum=1", "expected maxIndexNum 2 or more"),
    ],
)
def test_a_setting_that_is_wrong_names_its_file(tmp_path, line, says):
    conf = tmp_path / "broker.conf"
    conf.write_text(f"brokerName=b\n{line}\n")
    with pytest.raises(MQIndexError, match=says) as caught:
        options = store_options("/s", config=conf)
        write_rules(options)
        flush_rules(options)
    assert caught.value.path == str(conf)
    assert str(conf) in str(caught.value)


def test_short_forms_win_over_the_configuration():
    options = store_options("/s", config={"maxHashSlotNum": "7", "maxIndexNum": "20"}, hash_slot_num=100)
    assert (options.hash_slot_num, options.index_num) == (100, 20)


def test_only_brokers_before_4_5_2_read_the_old_names_of_sizes():
    config = {"mapedFileSizeCommitLog": 4096, "mapedFileSizeConsumeQueue": "200"}
    old, new = (store_options("/s", config=config, broker_version=version) for version in ("4.5.1", "4.5.2"))
    assert (old.given(LOG_FILE_SIZE), old.given(QUEUE_FILE_SIZE)) == (4096, 200)
    assert (new.given(LOG_FILE_SIZE), new.given(QUEUE_FILE_SIZE), new.settings) == (None, None, ())
    with pytest.raises(ValueError, match=r"only brokers before 4\.5\.2 read this name.*--broker-version"):
        store_options("/s", config=config)
    both = {"mappedFileSizeCommitLog": 8192, "mapedFileSizeCommitLog": 4096}
    brokers = [store_options("/s", config=both, broker_version=version) for version in ("4.5.1", "5.1.0")]
    assert [one.given(LOG_FILE_SIZE) for one in brokers] == [4096, 8192]
    same = {"mapedFileSizeCommitLog": 1 << 30, "mapedFileSizeConsumeQueue": "6000000"}
    assert store_options("/s", config=same).given(LOG_FILE_SIZE) is None


def test_a_value_names_its_source(tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("maxIndexNum=20\n")
    options = store_options("/s", config=conf, hash_slot_num=7)
    assert str(options.reported(MAX_HASH_SLOT_NUM)) == "7 (given)"
    assert str(options.reported(MAX_INDEX_NUM)) == f"20 ({conf})"
    assert str(options.reported(LOG_FILE_SIZE)) == f"{1 << 30} (the broker's default, {conf} sets no other)"
    assert store_options("/s").reported(LOG_FILE_SIZE) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("/s/commitlog",)),
        ({"commitlog": "/a"}, ("/a",)),
        ({"commitlog": ["/a", "/b", "/a"]}, ("/a", "/b")),
        ({"config": {"storePathCommitLog": "/a,/b", "readOnlyCommitLogStorePaths": "/c"}}, ("/a", "/b", "/c")),
        ({"config": {"storePathCommitLog": "/a"}, "commitlog": "/z"}, ("/z",)),
    ],
)
def test_the_commit_log_may_lie_in_several_places(given, expected):
    assert store_options("/s", **given).commitlog == expected


@pytest.mark.parametrize("version", ["4.9.1", "4.9.2", None])
def test_before_4_9_2_a_comma_is_a_part_of_the_name(tmp_path, monkeypatch, version):
    monkeypatch.chdir(tmp_path)
    config = {"storePathCommitLog": "log,1", "readOnlyCommitLogStorePaths": "old"}
    places = ("log,1",) if version == "4.9.1" else ("log", "1", "old")
    given = store_options("s", config=config, broker_version=version)
    assert given.commitlog == tuple(str(tmp_path / place) for place in places)
    assert places_of_new_files(given) == [str(tmp_path / place) for place in places if place != "old"]


def test_a_name_with_a_comma_that_is_there_asks_for_the_version(tmp_path):
    """One that is empty is made by each broker of 4.9.2 and later 4.9, with its log in the parts."""
    log = tmp_path / "log,1"
    log.mkdir()
    conf = tmp_path / "broker.conf"
    conf.write_text(f"storePathCommitLog={log}\n")
    assert store_options("/s", config=conf).commitlog == (str(tmp_path / "log"), os.path.abspath("1"))
    (log / f"{0:020d}").touch()
    with pytest.raises(FormatError, match=r"storePathCommitLog: a broker before 4\.9\.2 .*--broker-version") as told:
        store_options("/s", config=conf)
    assert told.value.path == str(conf)
    assert store_options("/s", config=conf, broker_version="4.9.1").commitlog == (str(log),)


def test_a_copy_with_a_log_does_not_take_that_of_the_store_it_was_copied_from(tmp_path):
    """The broker.conf names the original's log: verify found faults in a sound copy, and repair wrote them into it."""
    live, copy = tmp_path / "live" / "store", tmp_path / "copy"
    for log in (live / "commitlog", copy / "commitlog"):
        log.mkdir(parents=True)
        (log / f"{0:020d}").touch()
    conf = tmp_path / "broker.conf"
    conf.write_text(f"storePathRootDir={live}\nstorePathCommitLog={live / 'commitlog'}\n")
    with pytest.raises(FormatError, match="says which of them belongs to this store") as told:
        store_options(copy, config=conf)
    assert told.value.path == str(conf)
    assert store_options(copy, config=conf, commitlog=copy / "commitlog").commitlog == (str(copy / "commitlog"),)
    (tmp_path / "link").symlink_to(live)  # the store itself, by another name
    assert store_options(tmp_path / "link", config=conf).commitlog == (str(live / "commitlog"),)
    (copy / "commitlog" / f"{0:020d}").unlink()  # the log was left where it is
    assert store_options(copy, config=conf).commitlog == (str(live / "commitlog"),)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"hash_slot_num": 0}, "hash_slot_num"),
        ({"config": {"maxIndexNum": "many"}}, "maxIndexNum"),
        ({"config": {"maxIndexNum": "1_000"}}, "maxIndexNum"),
        ({"broker_version": "newest"}, "broker_version"),
        ({"config": {"maxIndexNum": 4000.0}}, "maxIndexNum"),
        ({"config": {"mappedFileSizeConsumeQueueExt": 23}}, "mappedFileSizeConsumeQueueExt"),
        ({"config": {"maxHashSlotNum": True}}, "maxHashSlotNum"),
        ({"config": {"mappedFileSizeCommitLog": 4096.5}}, "mappedFileSizeCommitLog"),
        ({"commitlog": []}, "commitlog"),
        ({"commitlog": ""}, "commitlog"),
        ({"commitlog": ["/a", ""]}, "commitlog"),
    ],
)
def test_a_wrong_option_is_named(given, named):
    with pytest.raises(ValueError, match=f"^{named}: expected"):
        store_options("/s", **given)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("4.9.3", False), ("5.3.3", False), ("5.4.0", True), ("5.5.0-SNAPSHOT", True), ("V5_5".replace("_", "."), True)],
)
def test_tags_are_indexed_from_5_4_on(version, expected):
    assert broker_of(version).does(TAGS_INDEXED) is expected
