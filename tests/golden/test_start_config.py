"""Whether a broker starts with what is in `config/`, and with the files of its timers: as 4.9.3 and 5.5.0 did."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FormatError
from mqindex.report import Finding, Obstacle, Report
from mqindex.rocketmq import MessageStore, repair, verify
from mqindex.rocketmq.queue.topic_kinds import topic_kind
from mqindex.wording.verdict import verdict
from tests.support.golden import BASIC, case
from tests.support.locks import held

ONE = LocalEngine(1)
OLD, NEW = "4.9.3", "5.5.0"
NAMES = ("topics.json", "consumerOffset.json", "consumerFilter.json", "delayOffset.json", "subscriptionGroup.json")
BLANK_TILL_5_4 = tuple(name for name in NAMES[:-1] if name != "consumerOffset.json")
EVERY_NAME = (*NAMES, "consumerOrderInfo.json", "topicQueueMapping.json")
ZEROS = "\0" * 700


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = case("basic-493").unpack(tmp_path)
    for name in NAMES:
        (root / "config" / name).write_text("{}")
    return root


def look(root: Path, version: str | None = None, **given: object) -> Report:
    return verify(root, engine=ONE, broker_version=version, **given)  # type: ignore[arg-type]


def starts(root: Path, version: str | None, **given: object) -> bool | None:
    start = look(root, version, **given).start
    assert start is not None
    return start.starts


def obstacles(root: Path, version: str | None = None, **given: object) -> list[Obstacle]:
    start = look(root, version, **given).start
    assert start is not None
    return list(start.obstacles)


def put(root: Path, name: str, text: str | None, backup: str | None) -> Path:
    path = root / "config" / name
    for one, content in ((path, text), (path.with_name(f"{name}.bak"), backup)):
        one.unlink(missing_ok=True)
        if content is not None:
            one.write_text(content)
    return path


def invalid(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.kind == "side-file-invalid"]


def test_the_store_starts(store: Path) -> None:
    assert [starts(store, version) for version in (OLD, NEW, None)] == [True, True, True]
    assert look(store).findings == []


# ---- the JSON files


@pytest.mark.parametrize("name", NAMES)
def test_zeros_in_the_file_and_its_backup_stop_every_broker(name: str, store: Path) -> None:
    """It said that a broker starts: zeros were nothing to it. A power loss leaves such files."""
    path = put(store, name, ZEROS, ZEROS)
    for version in (OLD, NEW, None):
        report = look(store, version)
        assert [(one.path, one.brokers) for one in obstacles(store, version)] == [(str(path), "every")]
        assert [(one.severity, one.got) for one in invalid(report)] == [("error", "zeros")]
        assert "no broker starts" in (invalid(report)[0].hint or "")


def test_of_an_empty_file_the_backup_is_loaded(store: Path) -> None:
    put(store, "topics.json", "", ZEROS)
    assert starts(store, None) is False
    put(store, "topics.json", None, ZEROS)
    assert starts(store, None) is False
    put(store, "topics.json", "", "")
    assert starts(store, None) is True


@pytest.mark.parametrize("backup", [None, "", "{}"])
def test_zeros_stop_no_broker_whose_backup_is_good_or_not_there(backup: str | None, store: Path) -> None:
    put(store, "topics.json", ZEROS, backup)
    report = look(store)
    assert obstacles(store) == []
    assert [one.severity for one in invalid(report)] == ["error" if not backup else "warning"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["{broken", "7", "true", '"x"', "[1]", "{}x", "abc", " \0"])
def test_what_no_broker_can_take_stops_every_one(name: str, text: str, store: Path) -> None:
    put(store, name, text, text)
    assert [one.brokers for one in obstacles(store)] == ["every"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("topics.json", '{"topicConfigTable":[]}'),
        ("topics.json", '{"topicConfigTable":null}'),
        ("topics.json", '{"topicConfigTable":{"T":7}}'),
        ("topics.json", '{"topicConfigTable":{"T":{"perm":"x"}}}'),
        ("consumerOffset.json", '{"offsetTable":7}'),
        ("consumerOffset.json", '{"offsetTable":{"T@g":[]}}'),
        ("consumerOffset.json", '{"offsetTable":{"T@g":{0:"x"}}}'),
        ("consumerFilter.json", '{"filterDataByTopic":[]}'),
        ("delayOffset.json", '{"offsetTable":[]}'),
        ("delayOffset.json", '{"offsetTable":null}'),
        ("delayOffset.json", '{"offsetTable":{1:null}}'),
        ("subscriptionGroup.json", '{"subscriptionGroupTable":{"g":null}}'),
    ],
)
def test_json_of_another_shape_stops_every_broker(name: str, text: str, store: Path) -> None:
    """Only what is no JSON was an obstacle."""
    path = put(store, name, text, text)
    assert [(one.path, one.brokers) for one in obstacles(store)] == [(str(path), "every")]
    assert [(one.severity, one.path) for one in invalid(look(store))] == [("error", str(path))]
    put(store, name, text, "{}")
    assert [(one.severity, one.path) for one in invalid(look(store))] == [("warning", str(path))]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("topics.json", "null"),
        ("consumerOffset.json", '{"offsetTable":null}'),
        ("consumerOffset.json", '{"offsetTable":{"T@g":{0:1.5}}}'),
        ("topics.json", '{"topicConfigTable":{"T":{"perm":null,"order":0}}}'),
        ("topics.json", "\0{}\0\0"),
    ],
)
def test_what_every_broker_takes_stops_none(name: str, text: str, store: Path) -> None:
    put(store, name, text, ZEROS)
    assert [starts(store, version) for version in (OLD, NEW, None)] == [True, True, True]


@pytest.mark.parametrize(("text", "names"), [("[]", NAMES), (" \t\r\n", BLANK_TILL_5_4)])
def test_brokers_before_5_4_take_blanks_and_an_empty_array(text: str, names: tuple[str, ...], store: Path) -> None:
    """`[]` was said to stop 4.9.3, and blanks to stop none."""
    for name in names:
        path = put(store, name, text, text)
        assert [starts(store, version) for version in (OLD, "5.3.3", NEW, None)] == [True, True, False, None]
        assert [(one.path, one.brokers) for one in obstacles(store)] == [(str(path), "from 5.4 on")]
        assert "brokers before 5.4 take it" in (invalid(look(store))[0].hint or "")
        put(store, name, text, "{}")
        assert starts(store, None) is True
        put(store, name, "{}", None)


def test_brokers_from_5_0_on_take_no_blanks_for_offsets(store: Path) -> None:
    """`ConsumerOffsetManager.load` of 4.9.7 gave an empty table, that of 5.0.0 and later the one of the `.bak`."""
    path = put(store, "consumerOffset.json", " \t\r\n", " \t\r\n")
    assert [starts(store, version) for version in ("4.9.7", "5.0.0", NEW, None)] == [True, False, False, None]
    assert [(one.path, one.brokers) for one in obstacles(store)] == [(str(path), "from 5.0 on")]
    assert "brokers before 5.0 take it" in (invalid(look(store))[0].hint or "")


def test_brokers_of_5_1_to_5_3_take_blanks_for_groups(store: Path) -> None:
    """`SubscriptionGroupManager.decode` of 5.0.0 threw, that of 5.1.0 and 5.3.3 took them, that of 5.4.0 threw."""
    path = put(store, "subscriptionGroup.json", "\n", "\n")
    versions = (OLD, "5.0.0", "5.1.0", "5.3.3", "5.4.0", None)
    assert [starts(store, version) for version in versions] == [False, False, True, True, False, None]
    assert [(one.path, one.brokers) for one in obstacles(store)] == [
        (str(path), "before 5.1"),
        (str(path), "from 5.4 on"),
    ]
    hint = invalid(look(store))[0].hint or ""
    assert "brokers from 5.1 on, before 5.4 take it" in hint
    put(store, "subscriptionGroup.json", "\n", "[]")
    assert [one.brokers for one in obstacles(store)] == ["from 5.4 on"]


@pytest.mark.parametrize("name", ["consumerOrderInfo.json", "topicQueueMapping.json", "timermetrics"])
def test_what_came_with_5_0_stops_no_older_broker(name: str, store: Path) -> None:
    put(store, name, ZEROS, ZEROS)
    assert [starts(store, version) for version in (OLD, "5.0.0", None)] == [True, False, None]
    assert [one.brokers for one in obstacles(store)] == ["from 5.0 on"]


def test_repair_leaves_them_as_errors(store: Path) -> None:
    put(store, "topics.json", ZEROS, ZEROS)
    (store / "timerwheel").write_bytes(bytes(1000))
    left = repair(store, engine=ONE, broker_version=NEW)
    assert {one.kind for one in left.findings if one.severity == "error"} >= {"side-file-invalid", "timer-wheel-length"}


# ---- files that are missing beside others


def missing(report: Report) -> list[tuple[str, str, object]]:
    return [
        (one.severity, Path(one.path or "").name, one.expected)
        for one in report.findings
        if one.kind == "side-file-missing"
    ]


def test_topics_that_their_broker_does_not_know(store: Path) -> None:
    """Every pull ended in CODE: 17, and the store was clean."""
    names = {path.name for path in (store / "consumequeue").iterdir()}
    topics = sum(topic_kind(name) == "messages" for name in names)
    assert 0 < topics < len(names)
    put(store, "topics.json", None, None)
    report = look(store)
    assert missing(report) == [("warning", "topics.json", f"{topics} topics")]
    assert (report.ok, "CODE 17" in (report.findings[0].hint or "")) == (True, True)
    put(store, "topics.json", None, "{}")
    assert missing(look(store)) == []


def test_offsets_that_are_lost(store: Path, tmp_path: Path) -> None:
    put(store, "consumerOffset.json", None, None)
    assert missing(look(store)) == [("warning", "consumerOffset.json", "offsets of groups")]
    put(store, "lmqConsumerOffset.json", "{}", None)
    assert missing(look(store)) == []
    root = case("tx-delay-lmq-493").unpack(tmp_path / "delayed")
    for name in NAMES[:2]:
        put(root, name, "{}", None)
    assert missing(look(root)) == []
    put(root, "delayOffset.json", None, None)
    assert [name for _, name, _ in missing(look(root))] == ["delayOffset.json"]


def test_offsets_that_a_young_broker_has_not_written_yet(tmp_path: Path) -> None:
    """It does ten seconds after its start; killed before, it left two warnings: restore the file."""
    root = case("clock-back-493").unpack(tmp_path)
    for path in (root / "config").iterdir():
        path.unlink()
    put(root, "subscriptionGroup.json", "{}", None)
    assert [name for _, name, _ in missing(look(root))] == ["topics.json"]


def test_a_store_without_its_configuration_is_clean(store: Path) -> None:
    for name in NAMES:
        if name != "delayOffset.json":
            put(store, name, None, None)
    assert look(store).findings == []
    (store / "config" / "delayOffset.json").unlink()
    (store / "config").rmdir()
    assert look(store).findings == []


def test_topics_in_rocksdb_are_in_no_file(store: Path) -> None:
    put(store, "topics.json", None, None)
    assert missing(look(store, config={"configManagerVersion": "v2"})) == []


# ---- timers

WHEEL = 38_707_200
LOG_FILE = 104_857_600


def sparse(path: Path, size: int) -> Path:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path


@pytest.mark.parametrize("size", [1000, 19_000_000, WHEEL + 1])
def test_a_wheel_of_another_length_stops_5_x(size: int, store: Path) -> None:
    """The store was clean, and a broker said to start."""
    path = sparse(store / "timerwheel", size)
    assert [starts(store, version) for version in (OLD, "5.0.0", NEW, None)] == [True, False, False, None]
    assert [(one.path, one.brokers) for one in obstacles(store)] == [(str(path), "from 5.0 on")]
    wrong = [(one.kind, one.path, one.expected, one.got) for one in look(store, NEW).findings]
    assert wrong == [("timer-wheel-length", str(path), WHEEL, size)]
    assert look(store, OLD).findings == look(store, NEW, config={"timerWheelEnable": "false"}).findings == []


@pytest.mark.parametrize("size", [0, WHEEL])
def test_a_wheel_that_is_new_or_whole_is_well(size: int, store: Path) -> None:
    sparse(store / "timerwheel", size)
    assert (starts(store, NEW), look(store, NEW).findings) == (True, [])


def test_a_wheel_that_is_a_directory_stops_5_x(store: Path) -> None:
    (store / "timerwheel").mkdir()
    assert [one.reason for one in obstacles(store, NEW)] == ["a directory, not a file"]


def test_with_snapshots_the_newest_is_the_wheel(store: Path) -> None:
    sparse(store / "timerwheel", 1000)
    sparse(store / "timerwheel.52", WHEEL)
    sparse(store / "timerwheel.104", WHEEL)
    assert (starts(store, NEW), starts(store, NEW, config={"timerWheelSnapshotFlush": "true"})) == (False, True)
    sparse(store / "timerwheel.104", 7)
    (one,) = obstacles(store, NEW, config={"timerWheelSnapshotFlush": "true"})
    assert one.path == str(store / "timerwheel.104")


def test_a_file_of_the_timer_log_of_another_length_stops_5_x(store: Path, tmp_path: Path) -> None:
    path = sparse(store / "timerlog" / f"{0:020d}", 1000)
    conf = tmp_path / "broker.conf"
    conf.write_text("\n".join(BASIC))
    assert [starts(store, version, config=conf) for version in (OLD, NEW, None)] == [True, False, None]
    wrong = [(one.severity, one.path, one.expected, one.got) for one in look(store, NEW, config=conf).findings]
    assert wrong == [("error", str(path), LOG_FILE, 1000)]
    assert [starts(store, NEW, config={"mappedFileSizeTimerLog": size}) for size in (1000, 2000)] == [True, False]
    conf.write_text("\n".join((*BASIC, "mappedFileSizeTimerLog=x")))
    with pytest.warns(UserWarning, match=f"mappedFileSizeTimerLog: {LOG_FILE}, .*{conf}"):
        assert [one.expected for one in look(store, NEW, config=conf).findings] == [LOG_FILE]
    conf.write_text("\n".join((*BASIC, "mappedFileSizeTimerLog=0")))
    with pytest.raises(FormatError, match=f"mappedFileSizeTimerLog: .*{conf}"):
        look(store, NEW, config=conf)


def test_the_length_of_one_file_of_the_timer_log_is_not_guessed(store: Path) -> None:
    path = sparse(store / "timerlog" / f"{0:020d}", 1000)
    report = look(store, NEW)
    assert (starts(store, NEW), report.ok) == (None, False)
    assert obstacles(store, NEW) == [
        Obstacle(
            str(path),
            f"1000 bytes, not {LOG_FILE}, the default",
            "unless mappedFileSizeTimerLog is 1000",
            "--broker-conf",
        )
    ]
    assert [(one.severity, one.kind) for one in report.findings] == [("error", "timer-log-length")]
    assert report.start is not None
    said = dict(verdict(report.start, str(store)))["would a broker start"]
    assert said.startswith("not known: timerlog/")
    assert said.endswith("(unless mappedFileSizeTimerLog is 1000; --broker-conf tells)")
    sparse(path, LOG_FILE)
    assert (starts(store, NEW), look(store, NEW).findings) == (True, [])


def test_two_files_of_the_timer_log_show_their_length(store: Path) -> None:
    log = store / "timerlog"
    sparse(log / f"{0:020d}", 2000)
    last = sparse(log / f"{2000:020d}", 2000)
    sparse(log / f"{4000:020d}", 0)  # a broker deletes it
    assert (starts(store, NEW), look(store, NEW).findings) == (True, [])
    sparse(last, 1999)
    assert [(one.path, one.reason) for one in obstacles(store, NEW)] == [(str(last), "1999 bytes, not 2000")]


def test_a_stray_file_in_the_timer_log_stops_5_x(store: Path) -> None:
    sparse(store / "timerlog" / "copy", LOG_FILE)
    assert [one.reason for one in obstacles(store, NEW)] == ["not named by a number"]


def test_a_directory_in_the_timer_log_stops_who_stops_at_one_in_the_log(store: Path) -> None:
    """5.0.0 did not come up with it, and was said to start."""
    path = store / "timerlog" / "lost+found"
    path.mkdir(parents=True)
    assert [starts(store, version) for version in (OLD, "5.0.0", "5.1.0", NEW, None)] == [True, False, True, True, None]
    assert [(one.path, one.brokers) for one in obstacles(store)] == [(str(path), "from 5.0 on, before 5.1")]
    told = [(one.kind, one.path, one.hint) for one in look(store, "5.0.0").findings]
    assert told == [("timer-log-length", str(path), "the broker refuses to start: move it elsewhere")]


def test_an_empty_last_file_of_the_timer_log_is_deleted_from_5_1_3_on(store: Path) -> None:
    """5.1.0 did not come up with it, and was said to start."""
    path = sparse(store / "timerlog" / f"{0:020d}", 0)
    assert [starts(store, version) for version in ("5.0.0", "5.1.0", "5.1.3", NEW)] == [False, False, True, True]
    start = look(store, "5.1.3").start
    assert start is not None
    assert start.deletes == (str(path),)
    with held(store / "lock"):  # the broker makes it at this moment
        assert (starts(store, "5.1.0"), look(store, "5.1.0").findings) == (True, [])


# ---- what is no file, or no directory


def test_a_directory_in_the_place_of_a_file_is_as_one_that_cannot_be_read(store: Path) -> None:
    """There was no verdict: verify ended with exit code 2. The real 4.9.3 came up with it."""
    path = put(store, "topics.json", None, None)
    path.mkdir()
    report = look(store, OLD)
    assert (starts(store, OLD), report.ok) == (True, False)
    assert [(one.path, one.expected, one.got) for one in invalid(report)] == [(str(path), "a file", "a directory")]
    path.with_name("topics.json.bak").write_text("{broken")
    assert starts(store, OLD) is False
    path.with_name("topics.json.bak").write_text("{}")
    assert [one.severity for one in invalid(look(store, OLD))] == ["warning"]


def test_who_asks_for_what_a_directory_holds_the_place_of_is_told(store: Path) -> None:
    path = put(store, "topics.json", None, None)
    path.mkdir()
    with (
        MessageStore.open(store) as opened,
        pytest.raises(FormatError, match=r"a directory, not a file: .*topics\.json"),
    ):
        opened.topics  # noqa: B018


def test_a_file_in_the_place_of_the_configuration_stops_5_x(store: Path) -> None:
    """A broker finds no file there; the one of its timers it has to make. 4.9.3 came up, 5.5.0 did not."""
    config = store / "config"
    shutil.rmtree(config)
    config.touch()
    assert [starts(store, version) for version in (OLD, NEW, None)] == [True, False, None]
    assert starts(store, NEW, config={"timerWheelEnable": "false"}) is True
    assert [(one.path, one.brokers) for one in obstacles(store)] == [(str(config), "from 5.0 on")]
    told = [(one.kind, one.path, one.got) for one in look(store, NEW).findings]
    assert told == [("not-a-directory", str(config), "a file")]


def test_a_directory_in_the_place_of_the_timers_checkpoint_stops_5_x(store: Path) -> None:
    path = store / "config" / "timercheck"
    path.mkdir()
    assert [starts(store, version) for version in (OLD, "5.0.0", NEW, None)] == [True, False, False, None]
    assert starts(store, NEW, config={"timerWheelEnable": "false"}) is True
    assert [(one.kind, one.path) for one in look(store, NEW).findings] == [("not-a-file", str(path))]


@pytest.mark.parametrize("name", ["abort", "abort.bak"])
def test_a_directory_in_the_place_of_abort_stops_5_x(name: str, store: Path) -> None:
    """5.x writes its process id into it, and what was there into its `.bak`; for 4.9.3 it is there, and that is all."""
    (store / name).mkdir()
    assert [starts(store, version) for version in (OLD, NEW, None)] == [True, False, None]
    told = [(one.severity, one.path) for one in look(store, NEW).findings if one.kind == "not-a-file"]
    assert told == [("error", str(store / name))]
    assert not any(one.kind == "not-a-file" for one in look(store, OLD).findings)


# ---- compacted topics


def compacted(store: Path) -> Path:
    """The log of a compacted queue, and its queue."""
    for name in ("compactionLog", "compactionCq"):
        queue = store / "compaction" / name / "Compact" / "0"
        queue.mkdir(parents=True)
        sparse(queue / f"{0:020d}", 4600)
    return store / "compaction" / "compactionLog" / "Compact" / "0"


def test_compacted_topics_are_told_as_not_compared(store: Path) -> None:
    """Nothing was said of them, whole, damaged or gone."""
    compacted(store)
    told = [("info", "compaction-not-compared", str(store / "compaction"))]
    assert [(one.severity, one.kind, one.path) for one in look(store, NEW).findings] == told
    assert (starts(store, NEW), look(store, "5.0.0").findings) == (True, [])
    assert look(store, NEW, config={"enableCompaction": "false"}).findings == []
    shutil.rmtree(store / "compaction")
    assert look(store, NEW).findings == []
    table = '{"topicConfigTable":{"Compact":{"topicName":"Compact","attributes":{"cleanup.policy":"COMPACTION"}}}}'
    put(store, "topics.json", table, None)
    assert ("info", "compaction-not-compared", str(store / "compaction")) in [
        (one.severity, one.kind, one.path) for one in look(store, NEW).findings
    ]


@pytest.mark.parametrize("name", ["foo", "2147483648", "0.bak", "+"])
def test_a_directory_that_is_no_compacted_queue_stops_brokers_from_5_1_on(name: str, store: Path) -> None:
    """Java's parseInt throws, and the broker ends."""
    path = compacted(store).with_name(name)
    path.mkdir()
    assert [starts(store, version) for version in ("5.0.0", "5.1.0", NEW, None)] == [True, False, False, None]
    assert [(one.path, one.brokers) for one in obstacles(store)] == [(str(path), "from 5.1 on")]
    errors = [(one.kind, one.path) for one in look(store, NEW).findings if one.severity == "error"]
    assert errors == [("compaction-stray", str(path))]
    assert starts(store, NEW, config={"enableCompaction": "false"}) is True


def test_what_stops_no_broker_among_compacted_topics(store: Path) -> None:
    path = compacted(store)
    (path.with_name("notes.txt")).touch()
    (path.parent.with_name("notes.txt")).touch()
    path.with_name("+1").mkdir()
    (path / "compacting").mkdir()
    assert starts(store, NEW) is True
    shutil.rmtree(store / "compaction" / "compactionCq" / "Compact" / "0")  # told in the log of a broker that starts
    assert starts(store, NEW) is True


def test_a_compacted_log_without_the_files_of_its_queue_is_a_question(store: Path) -> None:
    path = compacted(store)
    sparse(path / f"{4600:020d}", 4600)
    assert [starts(store, version) for version in ("5.0.0", NEW)] == [True, None]
    assert [(one.path, one.brokers) for one in obstacles(store, NEW)] == [(str(path), "perhaps from 5.1 on")]
    told = [(one.severity, one.path) for one in look(store, NEW).findings if one.kind == "compaction-unlike"]
    assert told == [("warning", str(path))]


def test_what_a_compaction_replaced_stops_brokers_from_5_1_on(store: Path) -> None:
    """Killed when it ended: 5.5.0 reads the name as a number, and starts once the file is deleted."""
    path = compacted(store)
    old = path / f"{4600:020d}.delete"
    sparse(old, 4600)
    assert [starts(store, version) for version in ("5.0.0", "5.1.0", NEW, None)] == [True, False, False, None]
    assert [(one.path, one.reason) for one in obstacles(store, NEW)] == [(str(old), "not named by a number")]
    (told,) = [one for one in look(store, NEW).findings if one.severity != "info"]
    assert (told.severity, told.kind, told.path) == ("error", "compaction-stray", str(old))
    assert told.hint is not None and "delete it;" in told.hint
    old.unlink()
    assert starts(store, NEW) is True


def test_what_a_compaction_has_not_yet_replaced_is_not_to_be_deleted(store: Path) -> None:
    """The queue still knows the old file, or the new one of its queue waits: without the file no broker starts."""
    path = compacted(store)
    old = (path / f"{0:020d}").rename(path / f"{0:020d}.delete")
    (told,) = [one for one in look(store, NEW).findings if one.kind == "compaction-stray"]
    assert told.hint is not None and f"name it {0:020d} again" in told.hint
    sparse(path / f"{0:020d}", 4600)
    waiting = store / "compaction" / "compactionCq" / "Compact" / "0" / "compacting"
    waiting.mkdir()
    sparse(waiting / f"{0:020d}", 4600)
    (told,) = [one for one in look(store, NEW).findings if one.kind == "compaction-stray"]
    assert told.path == str(old) and told.hint is not None
    assert "move the queue's directories in compactionLog and in compactionCq elsewhere" in told.hint


def test_a_stray_file_among_others_of_another_length_is_not_read(store: Path) -> None:
    """The first file of another length ends the load, and brokers after 5.1.0 start without the queue."""
    path = compacted(store)
    sparse(path / "notes", 10)
    assert starts(store, NEW) is None
