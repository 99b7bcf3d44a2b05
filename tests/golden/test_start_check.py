"""`verify` says what the next start of a broker would do: come up or not, delete or not, and who holds the lock."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mqindex.errors import FileStateError
from mqindex.report import Finding, Obstacle, Report, Start
from mqindex.rocketmq import IndexFile, rebuild, repair, verify
from mqindex.rocketmq.metadata.checkpoint import Checkpoint
from mqindex.wording.verdict import verdict
from tests.support.golden import BASIC, case
from tests.support.index_entries import entries_of
from tests.support.locks import can_lock, held
from tests.support.tree import identities, index_paths

OLD, NEW = {"broker_version": "4.9.3"}, {"broker_version": "5.3.3"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with several log files, left by a clean stop."""
    return case("basic-493").unpack(tmp_path)


def start_of(report: Report) -> Start:
    assert report.start is not None
    return report.start


def told(report: Report, kind: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind == kind]


def test_a_clean_store_starts(store: Path) -> None:
    before = identities(store)
    assert start_of(verify(store)) == Start(True, lock="free")
    assert identities(store) == before


# ---- what the start deletes


def test_entries_that_the_next_start_loses_are_an_error(tmp_path: Path) -> None:
    """`verify` said clean just before the broker deleted the index. The real broker, started on this, lost as many."""
    chosen = case("killed-lost-493")
    root, after = chosen.unpack(tmp_path), chosen.unpack_after(tmp_path)
    report = verify(root)
    had, has = entries_of(root, chosen.geometry), entries_of(after, chosen.geometry)
    start = start_of(report)
    assert not report.ok
    assert (start.entries_deleted, start.entries_lost) == (had.total(), (had - has).total())
    assert start.deletes == tuple(map(str, index_paths(root)))
    assert [(one.severity, one.path) for one in told(report, "deleted-at-next-start")] == [
        ("error", str(path)) for path in index_paths(root)
    ]


def test_entries_that_the_next_start_writes_again_are_a_warning(tmp_path: Path) -> None:
    chosen = case("killed-493")
    root, after = chosen.unpack(tmp_path), chosen.unpack_after(tmp_path)
    report = verify(root, broker_version="4.9.3")
    had, has = entries_of(root, chosen.geometry), entries_of(after, chosen.geometry)
    assert (had - has).total() == 0
    start = start_of(report)
    assert start.deletes == (str(index_paths(root)[-1]),)
    assert (report.ok, start.entries_deleted, start.entries_lost) == (True, 104, 0)
    assert [one.severity for one in told(report, "deleted-at-next-start")] == ["warning"]


@pytest.mark.parametrize(
    ("version", "offset", "settings", "lost"),
    [
        ("5.3.4", 40_000, {}, 1258),
        ("5.3.4", 40_000, {"commitLogRecoverMaxNum": 4, "messageIndexSafe": "true"}, 0),
        ("5.4.0", 40_000, {}, 1258),
        ("5.4.0", 40_000, {"commitLogRecoverMaxNum": 4, "messageIndexSafe": "true"}, 1086),
        ("5.4.0", 40_000, {"commitLogRecoverMaxNum": 0, "messageIndexSafe": "true"}, 0),
        ("5.5.0", 0, {}, 1455),
        ("5.5.0", 40_000, {}, 371),
        ("5.5.0", 49_152, {}, 565),
        ("5.5.0", 40_000, {"messageIndexSafe": "true"}, 0),
        ("5.5.0", 0, {"commitLogRecoverMaxNum": 4, "messageIndexSafe": "true"}, 1086),
        ("5.5.0", 40_027, {"enableAcceleratedRecovery": "true"}, 460),
        ("5.5.0", 40_112, {"enableAcceleratedRecovery": "true"}, 1466),
        ("5.5.0", 1 << 60, {"enableAcceleratedRecovery": "true"}, 1466),
        ("5.5.0", 40_027, {"messageIndexEnable": "false"}, 1466),
        ("5.5.0", 40_027, {"duplicationEnable": "true"}, None),
        ("5.5.0", 40_027, {"transRocksDBEnable": "true"}, None),
        (None, 40_000, {}, 1258),
    ],
)
def test_what_comes_back_hangs_on_where_the_broker_reads_its_log_again(
    tmp_path: Path, version: str | None, offset: int, settings: dict[str, object], lost: int | None
) -> None:
    """Of 5.x nobody could tell. Ten log files; brokers 4.9.3 and 5.5.0 lose as many in `tests/peer`."""
    root = case("killed-lost-493").unpack(tmp_path)
    left_with(root, logics_physical_offset=offset)
    start = start_of(verify(root, config=settings, broker_version=version))
    assert (start.entries_deleted, start.entries_lost) == (1466, lost)


@pytest.mark.parametrize(
    ("version", "confirmed", "lost"),
    [("5.1.0", 0, 1258), ("5.1.1", 0, 0), ("5.5.0", 0, 0), ("5.5.0", 1 << 40, 371), (None, 0, None)],
)
def test_a_broker_with_a_controller_writes_again_from_its_confirmed_offset_on(
    tmp_path: Path, version: str | None, confirmed: int, lost: int | None
) -> None:
    """The real 5.5.0 has 0 there in its first life, and loses nothing; later its log's end."""
    root = case("killed-lost-493").unpack(tmp_path)
    left_with(root, logics_physical_offset=40_000, confirm_phy_offset=confirmed)
    start = start_of(verify(root, config={"enableControllerMode": "true"}, broker_version=version))
    assert (start.entries_deleted, start.entries_lost) == (1466, lost)


@pytest.mark.parametrize(("version", "lost"), [("5.4.0", 0), ("5.5.0", 822), (None, None)])
def test_where_the_version_decides_what_is_lost_it_is_asked_for(
    tmp_path: Path, version: str | None, lost: int | None
) -> None:
    root = case("basic-550").unpack(tmp_path)
    (root / "abort").touch()
    left_with(root, index_msg_timestamp=1)
    report = verify(root, broker_version=version)
    assert (report.ok, start_of(report).entries_lost) == (lost == 0, lost)
    hints = [one.hint or "" for one in told(report, "deleted-at-next-start")]
    assert any("perhaps not all come back (--broker-version may decide it)" in hint for hint in hints) is (
        version is None
    )


@pytest.mark.parametrize(("version", "offset", "starts"), [("5.5.0", 0, False), ("5.5.0", 9, True), ("5.4.0", 0, True)])
def test_a_broker_that_is_told_to_begin_at_an_offset_needs_one(
    tmp_path: Path, version: str, offset: int, starts: bool
) -> None:
    root = case("killed-lost-493").unpack(tmp_path)
    left_with(root, logics_physical_offset=offset)
    report = verify(root, config={"enableAcceleratedRecovery": "true"}, broker_version=version)
    assert start_of(report).starts is starts
    assert [one.path for one in told(report, "checkpoint-no-offset")] == ([] if starts else [str(root / "checkpoint")])


def test_where_rocksdb_has_the_queues_too_nobody_knows_what_comes_back(tmp_path: Path) -> None:
    root = case("killed-lost-493").unpack(tmp_path)
    (root / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")
    report = verify(root, broker_version="5.5.0")
    assert (report.ok, start_of(report).entries_lost) == (False, None)
    assert "perhaps not all come back;" in (told(report, "deleted-at-next-start")[0].hint or "")


def test_with_message_index_safe_nothing_is_lost(tmp_path: Path) -> None:
    root = case("killed-lost-493").unpack(tmp_path)
    start = start_of(verify(root, config={"messageIndexSafe": "true"}, broker_version="4.9.3"))
    assert (start.entries_lost, len(start.deletes)) == (0, 1)


def test_a_checkpoint_that_knows_the_file_saves_it(tmp_path: Path) -> None:
    root = case("killed-lost-493").unpack(tmp_path)
    with IndexFile.open(index_paths(root)[-1]) as index:
        left_with(root, index_msg_timestamp=index.header.end_timestamp)
    report = verify(root)
    assert (start_of(report).deletes, told(report, "deleted-at-next-start")) == ((), [])


def test_beside_a_live_broker_it_is_an_info(tmp_path: Path) -> None:
    root = case("killed-lost-493").unpack(tmp_path)
    with held(root / "lock") as pid:
        report = verify(root)
    assert [one.severity for one in told(report, "deleted-at-next-start")] == ["info"]
    start = start_of(report)
    assert (start.lock, start.lock_pid) == ("held", pid)
    assert start.lock_holder is not None
    assert start.lock_holder.startswith("python")


def test_the_lock_of_a_repair_is_no_broker(tmp_path: Path) -> None:
    """It said that a broker runs, and passed over a file with which brokers before 5.1.3 do not start: exit code 0."""
    root = case("killed-lost-493").unpack(tmp_path)
    last = max((root / "commitlog").iterdir())
    (root / "commitlog" / f"{int(last.name) + last.stat().st_size:020d}").touch()
    before = {one.kind for one in verify(root).findings if one.severity == "error"}
    report = repair(root)
    assert before == {"deleted-at-next-start", "log-file-empty"}
    assert [one.kind for one in report.findings if one.severity == "error"] == ["log-file-empty"]
    assert [one.hint for one in told(report, "deleted-at-next-start")] == ["repaired"]
    assert [one.kind for one in verify(root).findings if one.severity == "error"] == ["log-file-empty"]


@pytest.mark.parametrize("stray", [None, "lost+found"])
def test_an_empty_log_costs_every_queue(store: Path, stray: str | None) -> None:
    """Its volume is not mounted: a broker that starts then deletes the consume queues."""
    shutil.rmtree(store / "commitlog")
    (store / "commitlog" / stray if stray else store / "commitlog").mkdir(parents=True)
    report = verify(store, **NEW)
    assert [one.severity for one in told(report, "queues-deleted-at-next-start")] == ["error"]
    assert start_of(report).deletes == (str(store / "consumequeue"),)


def test_a_log_that_is_a_file_costs_every_queue_too(store: Path) -> None:
    """There was no verdict but exit code 2, and 4.9.3 came up and deleted the queues: it lists no file there."""
    shutil.rmtree(store / "commitlog")
    (store / "commitlog").touch()
    report = verify(store, **OLD)
    assert [one.severity for one in told(report, "queues-deleted-at-next-start")] == ["error"]
    assert [one.path for one in told(report, "log-missing")] == [str(store / "commitlog")]
    assert start_of(report).deletes == (str(store / "consumequeue"),)
    for write in (lambda: repair(store), lambda: rebuild(store, store.parent / "out")):
        with pytest.raises(FileStateError, match="the commit log is missing"):
            write()


# ---- what keeps it from starting


@pytest.mark.parametrize(
    ("version", "starts", "severities"), [(None, None, ["error"]), ("4.9.3", False, ["error"]), ("5.1.0", True, [])]
)
def test_lost_and_found_stops_brokers_before_5_1(
    store: Path, version: str | None, starts: bool | None, severities: list[str]
) -> None:
    (store / "commitlog" / "lost+found").mkdir()
    report = verify(store, broker_version=version)
    assert start_of(report).starts is starts
    assert [one.severity for one in told(report, "stray-log-file")] == severities
    if starts is None:
        (obstacle,) = start_of(report).obstacles
        assert (obstacle.path, obstacle.brokers) == (str(store / "commitlog" / "lost+found"), "before 5.1")
        assert "a broker before 5.1 refuses to start" in str(told(report, "stray-log-file")[0].hint)


@pytest.mark.parametrize("version", ["4.9.3", "5.3.3"])
@pytest.mark.parametrize("name", ["notes.txt", ".nfs0001", "00000000000000000000.bak"])
def test_a_stray_file_in_the_log_stops_every_broker(store: Path, version: str, name: str) -> None:
    size = log_paths(store)[0].stat().st_size
    for length in (10, size):
        (store / "commitlog" / name).write_bytes(bytes(length))
        report = verify(store, broker_version=version)
        assert start_of(report).starts is False
        assert [one.path for one in told(report, "stray-log-file")] == [str(store / "commitlog" / name)]
        assert not report.ok


@pytest.mark.parametrize(("version", "starts"), [("4.9.3", False), ("5.1.2", False), ("5.1.3", True)])
def test_an_empty_next_file_stops_brokers_before_5_1_3(store: Path, version: str, starts: bool) -> None:
    path = next_log_file(store)
    path.touch()
    report = verify(store, broker_version=version)
    assert start_of(report).starts is starts
    assert start_of(report).deletes == ((str(path),) if starts else ())
    assert [one.severity for one in told(report, "log-file-empty")] == ([] if starts else ["error"])


def test_an_empty_file_that_is_not_the_last_by_name_stops_every_broker(store: Path) -> None:
    """`lost+found` sorts behind it: 5.1.3 and later look at the last name only."""
    next_log_file(store).touch()
    (store / "commitlog" / "lost+found").mkdir()
    assert start_of(verify(store, **NEW)).starts is False


def test_a_next_file_that_a_live_broker_is_making_is_nothing(store: Path) -> None:
    next_log_file(store).touch()
    with held(store / "lock"):
        assert start_of(verify(store, **OLD)).starts is True


@pytest.mark.parametrize("version", ["4.9.3", "5.3.3"])
def test_a_cut_last_file_stops_every_broker(store: Path, version: str) -> None:
    path = log_paths(store)[-1]
    size = path.stat().st_size
    os.truncate(path, size - 100)
    report = verify(store, broker_version=version)
    assert start_of(report).starts is False
    assert [(one.expected, one.got) for one in told(report, "log-file-length")] == [(size, size - 100)]


@pytest.mark.parametrize("version", ["4.9.3", "5.5.0"])
def test_a_log_of_which_nothing_is_confirmed(store: Path, version: str) -> None:
    """It was "yes, delete nothing": 4.9.3 never ended its start, and 5.5.0 wrote its next message at phy offset 0."""
    first = str(log_paths(store)[0])
    switches = {"duplicationEnable": "true"}
    report = verify(store, broker_version=version, config=switches)
    start = start_of(report)
    assert (report.ok, start.starts, start.cuts, start.messages_deleted) == (False, None, (first,), None)
    assert [one.path for one in told(report, "log-not-confirmed")] == [first]
    other = verify(store, broker_version=version, config={**switches, "enableControllerMode": "true"})
    assert (told(other, "log-not-confirmed"), start_of(other).starts) == ([], True)


def test_a_given_file_size_that_the_log_has_not(tmp_path: Path) -> None:
    root = case("rolls-493").unpack(tmp_path)
    size = log_paths(root)[0].stat().st_size
    assert start_of(verify(root, config={"mappedFileSizeCommitLog": str(size)})).starts is True
    assert start_of(verify(root, config={"mappedFileSizeCommitLog": str(2 * size)})).starts is False


def test_the_length_of_the_only_log_file_is_not_guessed(tmp_path: Path) -> None:
    """Its one file was cut, and a broker was said to start: the length that it has was taken for the one set."""
    root = case("rolls-493").unpack(tmp_path)
    (path,) = log_paths(root)
    os.truncate(path, path.stat().st_size - 4096)
    size = path.stat().st_size
    report = verify(root, **OLD)
    assert start_of(report).starts is None
    assert start_of(report).obstacles[0] == Obstacle(
        str(path),
        f"{size} bytes, not {1 << 30}, the default",
        f"unless mappedFileSizeCommitLog is {size}",
        "--broker-conf",
    )
    (finding,) = [one for one in told(report, "file-length-unknown") if one.path == str(path)]
    assert (finding.severity, finding.expected, finding.got) == ("info", 1 << 30, size)
    assert "--broker-conf FILE" in (finding.hint or "")
    with held(root / "lock"):  # the broker that runs has loaded it
        assert told(verify(root, **OLD), "file-length-unknown") == []


def test_a_log_file_of_another_length_than_the_other_stops_every_broker(store: Path) -> None:
    """With the first of two files cut, no file reaches to the next one: lengths were not compared at all."""
    first, last = log_paths(store)
    os.truncate(first, first.stat().st_size - 4096)
    report = verify(store, **OLD)
    assert start_of(report).starts is False
    assert [one.path for one in told(report, "log-file-length")] == [str(first)]
    assert start_of(report).obstacles[0].path == str(first) != str(last)


@pytest.mark.parametrize(
    ("directory", "setting", "size"),
    [
        ("consumequeue", "mappedFileSizeConsumeQueue", 160),
        ("consumequeue_ext", "mappedFileSizeConsumeQueueExt", 800),
    ],
)
def test_the_length_of_queue_files_that_may_all_be_cut_is_not_guessed(
    tmp_path: Path, directory: str, setting: str, size: int
) -> None:
    root = case("ipv6-batch-ext-493").unpack(tmp_path)
    files = sorted(path for path in (root / directory).rglob("*") if path.is_file())
    before = files[0].stat().st_size
    assert [start_of(verify(root, config=config)).starts for config in ({}, {setting: before})] == [True, True]
    for path in files:
        os.truncate(path, size)
    report = verify(root, **OLD)
    assert start_of(report).starts is None
    assert [one.brokers for one in start_of(report).obstacles] == [f"unless {setting} is {size}"]
    assert [(one.path, one.got) for one in told(report, "file-length-unknown")] == [(str(files[0]), size)]
    assert [start_of(verify(root, config={setting: told})).starts for told in (before, size)] == [False, True]


def test_the_verdict_names_what_is_certain_first_and_else_the_option_that_tells(tmp_path: Path) -> None:
    """It named the first obstacle, whether it was one for this broker or not, and no option."""
    root = case("rolls-493").unpack(tmp_path)
    (root / "commitlog" / "lost+found").mkdir()
    first = start_of(verify(root)).obstacles[0]
    assert (first.brokers, first.option) == ("before 5.1", "--broker-version")
    said = dict(verdict(start_of(verify(root)), str(root)))["would a broker start"]
    assert said.startswith("not known: commitlog/lost+found: a directory (before 5.1; --broker-version tells)")
    (root / "lock").unlink()
    (root / "lock").mkdir()
    said = dict(verdict(start_of(verify(root)), str(root)))["would a broker start"]
    assert said.startswith("no: lock: a directory, not a file, and ")


def test_files_of_the_default_length_are_no_question(tmp_path: Path) -> None:
    """Of one file each: what a broker makes that is not told another length."""
    root = case("medium-493").unpack(tmp_path)
    assert start_of(verify(root)).starts is None
    for path in (root / "consumequeue").rglob("*"):
        if path.is_file():
            os.truncate(path, 6_000_000)
    assert (start_of(verify(root)).starts, told(verify(root), "file-length-unknown")) == (True, [])


def test_a_stray_file_in_a_queue_stops_a_broker(store: Path) -> None:
    queue = next(path for path in (store / "consumequeue").glob("*/*"))
    (queue / "copy.bak").write_bytes(b"x")
    start = start_of(verify(store, **NEW))
    assert (start.starts, [one.path for one in start.obstacles]) == (False, [str(queue / "copy.bak")])


@pytest.mark.parametrize("name", ["copy.bak", "00000000000000000460"])
def test_a_stray_file_in_a_batch_queue_stops_a_broker(store: Path, name: str) -> None:
    queue = batch_queue(store, "Batched")
    (queue / name).write_bytes(b"x")
    report = verify(store, **NEW)
    assert start_of(report).starts is False
    assert [one.path for one in report.findings if one.severity == "error"] == [str(queue / name)]


def test_a_file_of_a_batch_queue_that_was_cut_stops_a_broker(store: Path, tmp_path: Path) -> None:
    """Nobody read its setting: with all files cut alike, as with the only one, a broker was said to start."""
    queue = batch_queue(store, "Batched")
    setting, path = "mapperFileSizeBatchConsumeQueue", queue / f"{0:020d}"
    conf = tmp_path / "broker.conf"
    conf.write_text("\n".join(BASIC))
    os.truncate(path, 4600)
    assert [start_of(verify(store, config={setting: size}, **NEW)).starts for size in (4600, 9200)] == [True, False]
    report = verify(store, **NEW)
    assert start_of(report).starts is None
    assert start_of(report).obstacles == (
        Obstacle(str(path), "4600 bytes, not 13800000, the default", f"unless {setting} is 4600", "--broker-conf"),
    )
    assert [one.path for one in told(report, "file-length-unknown")] == [str(path)]
    report = verify(store, config=conf, **NEW)
    assert start_of(report).starts is False
    assert [(one.path, one.expected, one.got) for one in told(report, "queue-size")] == [(str(path), 13_800_000, 4600)]
    os.truncate(new_file(queue / f"{4600:020d}"), 4600)
    assert start_of(verify(store, **NEW)).starts is True


def test_a_batch_queue_of_a_topic_that_is_none_stops_a_broker(store: Path) -> None:
    queue = batch_queue(store, "Batched")
    assert start_of(verify(store, **NEW)).starts is True
    (store / "config" / "topics.json").write_text("{}")
    report = verify(store, **NEW)
    assert start_of(report).starts is False
    assert [one.path for one in told(report, "queue-type")] == [str(queue)]


def test_a_broker_of_4_x_looks_at_no_batch_queue(store: Path) -> None:
    """4.9.3 starts; verify said no, because of a file and a topic that only later brokers look at."""
    queue = batch_queue(store, "Batched")
    (queue / "notes.txt").touch()
    (store / "config" / "topics.json").write_text("{}")
    assert start_of(verify(store, **NEW)).starts is False
    report = verify(store, broker_version="4.9.3")
    assert (report.ok, start_of(report).starts) == (True, True)


@pytest.mark.parametrize("topics", [None, "{}"])
@pytest.mark.parametrize("config", [{}, {"configManagerVersion": "v2"}, {"storeType": "default"}])
def test_topics_in_rocksdb_say_nothing_of_a_batch_queue(
    store: Path, topics: str | None, config: dict[str, str]
) -> None:
    """With configManagerVersion=v2 there is no topics.json, or an old one: no broker was said to start."""
    batch_queue(store, "Batched")
    path = store / "config" / "topics.json"
    path.unlink() if topics is None else path.write_text(topics)
    there = config.get("configManagerVersion") is None
    if there:
        (store / "config" / "rdb").mkdir()
        (store / "config" / "rdb" / "CURRENT").write_text("MANIFEST-000005\n")
        (store / "config" / "rdb" / "MANIFEST-000005").write_bytes(b"?")
    report = verify(store, config=config, **NEW)
    starts = None if there else True
    assert (report.ok, start_of(report).starts, told(report, "queue-type")) == (True, starts, [])
    assert [(one.severity, one.path) for one in told(report, "topics-elsewhere")] == [
        ("info", str(store / "config" / "rdb"))
    ]


def test_broker_conf_without_rocksdb_takes_topics_from_their_file(store: Path, tmp_path: Path) -> None:
    """What a broker left in RocksDB, and no longer uses, does not count."""
    queue = batch_queue(store, "Batched")
    (store / "config" / "rdb").mkdir()
    (store / "config" / "rdb" / "CURRENT").write_text("MANIFEST-000005\n")
    conf = tmp_path / "broker.conf"
    conf.write_text("\n".join(BASIC))
    report = verify(store, config=conf, **NEW)
    assert (start_of(report).starts, told(report, "topics-elsewhere")) == (True, [])
    (store / "config" / "topics.json").unlink()
    report = verify(store, config=conf, **NEW)
    assert [one.path for one in told(report, "queue-type")] == [str(queue)]


@pytest.mark.parametrize(("version", "starts"), [("4.9.3", True), ("5.3.3", False), (None, None)])
def test_a_directory_named_as_an_index_file(store: Path, version: str | None, starts: bool | None) -> None:
    (store / "index" / "99991231235959999").mkdir()
    report = verify(store, broker_version=version)
    assert (report.ok, start_of(report).starts) == (False, starts)


@pytest.mark.parametrize(("name", "gone"), [("19991231235959999", 0), ("99991231235959999", 1)])
def test_no_index_file_is_deleted_after_a_directory(tmp_path: Path, name: str, gone: int) -> None:
    """`verify` said that they were; 4.9.3 ended its loading there, and kept them beside those that it wrote anew."""
    root = case("killed-lost-493").unpack(tmp_path)
    files = index_paths(root)
    (root / "index" / name).mkdir()
    assert start_of(verify(root, **OLD)).deletes == tuple(map(str, files)) * gone


@pytest.mark.parametrize(("unclean", "starts"), [(True, None), (False, True)])
def test_a_file_in_place_of_the_index(tmp_path: Path, unclean: bool, starts: bool | None) -> None:
    """`verify` said that a broker starts; 4.9.3 ended at the first message that it indexed again."""
    root = case("killed-lost-493").unpack(tmp_path)
    shutil.rmtree(root / "index")
    (root / "index").touch()
    if not unclean:
        (root / "abort").unlink()
    start = start_of(verify(root, **OLD))
    assert start.starts is starts
    assert [one.path for one in start.obstacles] == [str(root / "index")] * unclean


@pytest.mark.parametrize("name", ["lock", "checkpoint"])
def test_a_directory_in_place_of_a_small_file(store: Path, name: str) -> None:
    (store / name).unlink()
    (store / name).mkdir()
    report = verify(store)
    assert (report.ok, start_of(report).starts) == (False, False)


@pytest.mark.parametrize(
    ("main", "backup", "starts"),
    [
        (b"{broken", b"{broken", False),
        (None, b"{broken", False),
        (b"", b"{broken", False),
        (b"{broken", b"{}", True),
        (b"{broken", None, True),
        (b"{broken", b"", True),
        (b"{}", b"{broken", True),
    ],
)
def test_a_configuration_that_cannot_be_read(
    store: Path, main: bytes | None, backup: bytes | None, starts: bool
) -> None:
    path = store / "config" / "subscriptionGroup.json"
    for each, content in ((path, main), (path.with_name(f"{path.name}.bak"), backup)):
        each.unlink(missing_ok=True)
        if content is not None:
            each.write_bytes(content)
    report = verify(store)
    assert start_of(report).starts is starts
    assert [one.path for one in start_of(report).obstacles] == ([] if starts else [str(path)])


@pytest.mark.parametrize("name", ["lock", "checkpoint", "index", "consumequeue"])
def test_a_file_that_the_owner_of_the_log_may_not_write(store: Path, name: str) -> None:
    """What root wrote a broker cannot open."""
    if os.geteuid() == 0:
        for path in store.rglob("*"):
            os.chown(path, 12345, 12345)
    shut = next(path for path in sorted((store / name).rglob("*")) or [store / name] if path.is_file())
    shut.chmod(0o444)
    report = verify(store)
    assert start_of(report).starts is False
    assert [one.path for one in told(report, "not-writable")] == [str(shut)]
    shut.chmod(0o664)
    assert start_of(verify(store)).starts is True


# ---- the lock


def test_looking_at_a_lock_that_this_process_holds_does_not_end_it(store: Path) -> None:
    """Closing any descriptor of a locked file ends the lock."""
    from mqindex.rocketmq.directories import store as stores

    with stores.hold_lock(str(store)):
        assert (start_of(verify(store)).lock, start_of(verify(store)).lock_pid) == ("held", os.getpid())
        assert not can_lock(store / "lock")


def test_a_store_without_a_lock(store: Path) -> None:
    (store / "lock").unlink()
    assert start_of(verify(store)).lock == "absent"
    assert not (store / "lock").exists()


def test_the_verdict_is_plain_data(store: Path) -> None:
    (store / "commitlog" / "lost+found").mkdir()
    said = verify(store).to_dict()["start"]
    assert said["starts"] is None
    assert said["obstacles"] == (
        {
            "path": str(store / "commitlog" / "lost+found"),
            "reason": "a directory",
            "brokers": "before 5.1",
            "option": "--broker-version",
        },
    )


# ---- tools


def left_with(root: Path, **fields: int) -> None:
    """Other fields of the checkpoint."""
    known = Checkpoint.read(root / "checkpoint")
    assert known is not None
    (root / "checkpoint").write_bytes(known._replace(**fields).to_bytes())


def log_paths(store: Path) -> list[Path]:
    return sorted((store / "commitlog").iterdir())


def next_log_file(store: Path) -> Path:
    last = log_paths(store)[-1]
    return last.with_name(f"{int(last.name) + last.stat().st_size:020d}")


def batch_queue(store: Path, topic: str) -> Path:
    """A batch queue of one file, and its topic."""
    queue = store / "batchconsumequeue" / topic / "0"
    queue.mkdir(parents=True)
    os.truncate(new_file(queue / f"{0:020d}"), 13_800_000)
    config = f'{{"topicConfigTable":{{"{topic}":{{"topicName":"{topic}","attributes":{{"queue.type":"BatchCQ"}}}}}}}}'
    (store / "config").mkdir(exist_ok=True)
    (store / "config" / "topics.json").write_text(config)
    return queue


def new_file(path: Path) -> Path:
    path.touch()
    return path


def test_a_running_broker_is_not_told_of_what_its_compaction_replaces(store: Path) -> None:
    """It renames the file, and deletes it a moment later."""
    for name in ("compactionLog/Compact/0/00000000000000000000.delete", "compactionCq/Compact/0/00000000000000000000"):
        path = store / "compaction" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\1")
    assert start_of(verify(store, broker_version="5.5.0")).starts is False
    with held(store / "lock"):
        start = start_of(verify(store, broker_version="5.5.0"))
    assert start.obstacles == ()
