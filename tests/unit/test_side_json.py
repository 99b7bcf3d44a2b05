"""Side files: the JSON that a broker writes, its `.bak`, and what is told where neither can be read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mqindex.errors import FormatError
from mqindex.rocketmq import ConsumerOffsets, TopicConfig
from mqindex.rocketmq.checks.start.config_files import config_findings
from mqindex.rocketmq.metadata.config_json import parse_side_json
from mqindex.rocketmq.metadata.consumer_offsets import read_delay_offsets
from mqindex.rocketmq.metadata.topic_configs import read_topic_configs, read_topic_table

OFFSETS = '{\n\t"offsetTable":{\n\t\t"TopicA@GroupA":{0:12,1:9\n\t\t},\n\t\t"%RETRY%GroupA@GroupA":{0:0\n\t\t}\n\t}\n}'
OFFSETS_5 = '{"dataVersion":{"counter":3},"groupTopicMap":{"G":["T"]},"offsetTable":{"T@G":{"0":7}}}'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":{0:1,1:2}}', {"a": {"0": 1, "1": 2}}),
        ('{"a":{-1:1}}', {"a": {"-1": 1}}),
        ('{a:1,b_c : "x{0:1}"}', {"a": 1, "b_c": "x{0:1}"}),
        ('{"q\\"{1:2":{3:4}}', {'q"{1:2': {"3": 4}}),
        ('{"a":[true,false,null]}', {"a": [True, False, None]}),
    ],
)
def test_names_without_quotes_are_names_and_strings_are_left_alone(text: str, found: object) -> None:
    assert parse_side_json(text) == found


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", "{1}", "{" * 100_000, '{"a":' + "9" * 5000 + "}", "\0\0\0"])
def test_what_is_no_json_is_a_format_error(text: str) -> None:
    with pytest.raises(FormatError):
        parse_side_json(text)


def test_consumer_offsets_of_both_forms(tmp_path: Path) -> None:
    (tmp_path / "consumerOffset.json").write_text(OFFSETS)
    read = ConsumerOffsets._read(str(tmp_path), lambda topic, queue_id: 20 if topic == "TopicA" else 0)
    assert dict(read) == {"TopicA@GroupA": {0: 12, 1: 9}, "%RETRY%GroupA@GroupA": {0: 0}}
    assert read.lag == {"TopicA@GroupA": {0: 8, 1: 11}, "%RETRY%GroupA@GroupA": {0: 0}}
    assert read.query_offset("GroupA", "TopicA", 1) == 9
    assert read.query_offset("GroupA", "TopicA", 2) == read.query_offset("GroupB", "TopicA", 0) == -1
    (tmp_path / "consumerOffset.json").write_text(OFFSETS_5)
    (tmp_path / "lmqConsumerOffset.json").write_text('{"lmqOffsetTable":{"%LMQ%a@%LMQ%g":5},"offsetTable":{}}')
    both = ConsumerOffsets._read(str(tmp_path), lambda topic, queue_id: 10)
    assert (dict(both), both.lag["%LMQ%a@%LMQ%g"]) == ({"T@G": {0: 7}, "%LMQ%a@%LMQ%g": {0: 5}}, {0: 5})


@pytest.mark.parametrize(
    "main", [None, "", "\0" * 100, "{broken", '{"offsetTable":[]}', '{"offsetTable":{"T@G":{0:"x"}}}']
)
def test_the_backup_is_taken_where_the_file_cannot_be_read(main: str | None, tmp_path: Path) -> None:
    if main is not None:
        (tmp_path / "consumerOffset.json").write_text(main)
    (tmp_path / "consumerOffset.json.bak").write_text(OFFSETS_5)
    assert ConsumerOffsets._read(str(tmp_path), lambda *queue: 0) == {"T@G": {0: 7}}


@pytest.mark.parametrize("meanwhile", [None, "", OFFSETS_5[:30]])
def test_a_file_that_is_being_saved_is_looked_at_again(
    meanwhile: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker deletes it and renames the new one, or writes into it; beside one that saved, verify warned."""
    path = tmp_path / "consumerOffset.json"
    (tmp_path / "consumerOffset.json.bak").write_text(OFFSETS)

    def being_saved() -> None:
        path.unlink(missing_ok=True)
        if meanwhile is not None:
            path.write_text(meanwhile)

    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            path.write_text(OFFSETS_5)

    monkeypatch.setattr(time, "sleep", sleep)
    being_saved()
    assert list(config_findings(str(path))) == []
    being_saved()
    looks.clear()
    assert ConsumerOffsets._read(str(tmp_path), lambda *queue: 0) == {"T@G": {0: 7}}
    (tmp_path / "topics.json.bak").write_text("{}")
    assert read_topic_table(str(tmp_path)) is None


def test_a_file_that_no_broker_saves_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("waited"))
    assert ConsumerOffsets._read(str(tmp_path), lambda *queue: 0) == {}
    (tmp_path / "consumerOffset.json").write_text(OFFSETS_5 + "\n")
    assert ConsumerOffsets._read(str(tmp_path), lambda *queue: 0) == {"T@G": {0: 7}}


def test_where_neither_can_be_read_the_error_names_the_file(tmp_path: Path) -> None:
    for name in ("consumerOffset.json", "consumerOffset.json.bak"):
        (tmp_path / name).write_text("{broken")
    with pytest.raises(FormatError, match=r"no JSON: .*consumerOffset\.json at byte 1") as caught:
        ConsumerOffsets._read(str(tmp_path), lambda *queue: 0)
    assert caught.value.path == str(tmp_path / "consumerOffset.json")


@pytest.mark.parametrize("value", ["-1e400", "null", '"x"', str(2**63), '"9" "9"', "{}"])
def test_an_offset_that_is_no_number_is_an_error(value: str, tmp_path: Path) -> None:
    (tmp_path / "delayOffset.json").write_text(f'{{"offsetTable":{{1:{value}}}}}')
    with pytest.raises(FormatError):
        read_delay_offsets(str(tmp_path))


def test_delay_offsets_are_by_level(tmp_path: Path) -> None:
    assert read_delay_offsets(str(tmp_path)) == {}
    (tmp_path / "delayOffset.json").write_text('{\n\t"offsetTable":{1:5,3:77\n\t}\n}')
    assert read_delay_offsets(str(tmp_path)) == {1: 5, 3: 77}


def test_values_of_other_types_are_what_a_broker_makes_of_them(tmp_path: Path) -> None:
    (tmp_path / "delayOffset.json").write_text('{"offsetTable":{1:1.5,2:true,3:"7"}}')
    assert read_delay_offsets(str(tmp_path)) == {1: 1, 2: 1, 3: 7}
    (tmp_path / "topics.json").write_text('{"topicConfigTable":{"T":{"order":1,"perm":null,"attributes":null}}}')
    assert read_topic_configs(str(tmp_path)) == {"T": TopicConfig("T", order=True)}


@pytest.mark.parametrize("text", ["{}", "\0{}\0\0", "\ufeff{}"])
def test_zeros_and_a_mark_around_json_are_nothing(text: str) -> None:
    assert parse_side_json(text) == {}


@pytest.mark.parametrize(
    ("text", "got"), [("null", "null"), ("[]", "an array"), ("true", "true"), ('"x"', '"x"'), ("7", "7")]
)
def test_what_is_no_object_is_said_as_the_file_has_it(text: str, got: str) -> None:
    """`mqindex info` said "got NoneType" of null."""
    with pytest.raises(FormatError, match="expected an object") as caught:
        parse_side_json(text)
    assert caught.value.got == got


def test_a_table_that_is_null_is_said_as_the_file_has_it(tmp_path: Path) -> None:
    (tmp_path / "delayOffset.json").write_text('{"offsetTable":null}')
    with pytest.raises(FormatError, match="offsetTable: expected an object, got null"):
        read_delay_offsets(str(tmp_path))


def test_zeros_in_both_are_no_answer(tmp_path: Path) -> None:
    """It was none: no groups, where a broker does not start."""
    for name in ("consumerOffset.json", "consumerOffset.json.bak"):
        (tmp_path / name).write_bytes(bytes(700))
    with pytest.raises(FormatError, match="no JSON"):
        ConsumerOffsets._read(str(tmp_path), lambda *queue: 0)


def test_topics_have_the_broker_s_defaults(tmp_path: Path) -> None:
    table = (
        '"T":{"order":true,"perm":4,"readQueueNums":8,"writeQueueNums":2,"attributes":{"queue.type":"BatchCQ"}},"U":{}'
    )
    (tmp_path / "topics.json").write_text(f'{{"dataVersion":{{}},"topicConfigTable":{{{table}}}}}')
    assert read_topic_configs(str(tmp_path)) == {
        "T": TopicConfig("T", 8, 2, 4, order=True, attributes={"queue.type": "BatchCQ"}),
        "U": TopicConfig("U"),
    }
    (tmp_path / "topics.json").write_text('{"topicConfigTable":{"T":{"order":[]}}}')
    with pytest.raises(FormatError, match="truth value"):
        read_topic_configs(str(tmp_path))
