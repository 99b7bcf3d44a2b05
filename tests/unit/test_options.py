"""Store options: the broker's own names, the short forms, and where each value came from."""

from __future__ import annotations

import pytest

from mqindex.errors import FormatError, MQIndexError
from mqindex.rocketmq.log.write_rules import flush_rules, write_rules
from mqindex.rocketmq.options import store_options, tags_indexed
from mqindex.rocketmq.settings import read_broker_conf


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


@pytest.mark.parametrize("line", ["maxIndexNum=20 ", "messageIndexEnable = true\t", "storePathCommitLog=/a\\u0020"])
def test_a_blank_that_a_broker_does_not_overlook_is_told(tmp_path, line):
    conf = tmp_path / "broker.conf"
    conf.write_text(f"brokerName=b \nmessageIndexEnable=false \n{line}\n")
    with pytest.raises(FormatError, match="expected no blank before or after the value"):
        store_options("/s", config=conf)


@pytest.mark.parametrize("value", ["20 ", " 20", "\t20"])
def test_a_mapping_may_hold_no_blanks_either(value):
    with pytest.raises(ValueError, match="maxIndexNum: expected no blank before or after the value"):
        store_options("/s", config={"maxIndexNum": value})
    assert store_options("/s", config={"maxIndexNum": "20", "messageIndexEnable": "false "}).index_num == 20


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("flushDiskType=BOTH", "flushDiskType: expected SYNC_FLUSH or ASYNC_FLUSH"),
        ("listenPort=a", "listenPort: expected a whole number"),
        ("brokerIP1=10.0.0.300", "brokerIP1: expected an IP address, got '10.0.0.300'"),
        ("enabledAppendPropCRC=yes", "enabledAppendPropCRC: expected true or false"),
        ("maxIndexNum=1", "expected index_num 2 or more"),
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
    assert (old.mapped_file_size, old.consume_queue_file_size) == (4096, 200)
    assert (new.mapped_file_size, new.consume_queue_file_size, new.settings) == (None, None, ())
    with pytest.raises(ValueError, match=r"only brokers before 4\.5\.2 read this name.*--broker-version"):
        store_options("/s", config=config)
    both = {"mappedFileSizeCommitLog": 8192, "mapedFileSizeCommitLog": 4096}
    sizes = [
        store_options("/s", config=both, broker_version=version).mapped_file_size for version in ("4.4.0", "5.1.0")
    ]
    assert sizes == [4096, 8192]
    same = {"mapedFileSizeCommitLog": 1 << 30, "mapedFileSizeConsumeQueue": "6000000"}
    assert store_options("/s", config=same).mapped_file_size is None


def test_a_value_names_its_source(tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("maxIndexNum=20\n")
    options = store_options("/s", config=conf, hash_slot_num=7)
    assert str(options.value("hash_slot_num")) == "7 (given)"
    assert str(options.value("index_num")) == f"20 ({conf})"
    assert options.value("broker_version") is None


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


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"hash_slot_num": 0}, "hash_slot_num"),
        ({"config": {"maxIndexNum": "many"}}, "maxIndexNum"),
        ({"config": {"maxIndexNum": "1_000"}}, "maxIndexNum"),
        ({"broker_version": "newest"}, "broker_version"),
        ({"config": {"maxIndexNum": 4000.0}}, "maxIndexNum"),
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
    assert tags_indexed(version) is expected
