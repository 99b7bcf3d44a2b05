"""What `verify` says of a store of RocketMQ 5 with its queues in RocksDB, whole or not, and what is written then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.report import Finding, Report, Start
from mqindex.rocketmq import rebuild, repair, verify
from mqindex.wording.verdict import verdict
from tests.support.golden import BASIC, case

NEW = {"broker_version": "5.3.3"}
IN_ROCKSDB = ("consumequeue", "config/topics", "config/subscriptionGroups", "config/consumerOffsets")
ROCKSDB = pytest.mark.parametrize("config", [{}, {"storeType": "defaultRocksDB"}], ids=["not-said", "said"])


def start_of(report: Report) -> Start:
    assert report.start is not None
    return report.start


def told(report: Report, kind: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind == kind]


def database(home: Path) -> Path:
    """A RocksDB database, as far as anybody looks at it."""
    home.mkdir()
    files = {"CURRENT": b"MANIFEST-000005\n", "MANIFEST-000005": b"?", "OPTIONS-000007": b"?", "000011.sst": b"?"}
    for name, content in files.items():
        (home / name).write_bytes(content)
    return home


def in_rocksdb(home: Path) -> Path:
    """The store of a broker with storeType=defaultRocksDB."""
    store = case("basic-493").unpack(home)
    shutil.rmtree(store / "consumequeue")
    for name in ("topics.json", "consumerOffset.json", "subscriptionGroup.json"):
        (store / "config" / name).unlink(missing_ok=True)
    for name in IN_ROCKSDB:
        database(store / name)
    return store


@pytest.fixture
def rocks(tmp_path: Path) -> Path:
    return in_rocksdb(tmp_path)


@ROCKSDB
@pytest.mark.parametrize("lost", [None, "000011.sst"])
def test_whether_rocksdb_opens_its_database_is_not_known(rocks: Path, lost: str | None, config: dict[str, str]) -> None:
    """Without one of its .sst files a broker does not start: it was said to."""
    if lost is not None:
        (rocks / "consumequeue" / lost).unlink()
    report = verify(rocks, config=config, **NEW)
    start = start_of(report)
    assert (report.ok, start.starts, start.obstacles[0].path) == (True, None, str(rocks / "consumequeue"))
    assert dict(verdict(start, str(rocks)))["would a broker start"].startswith("not known: consumequeue: a RocksDB ")


@ROCKSDB
@pytest.mark.parametrize("home", IN_ROCKSDB)
def test_a_database_without_the_manifest_that_counts_is_not_opened(
    rocks: Path, home: str, config: dict[str, str]
) -> None:
    path = rocks / home / "MANIFEST-000005"
    path.rename(path.with_name("MANIFEST-000004"))
    report = verify(rocks, config=config, **NEW)
    start = start_of(report)
    assert (report.ok, start.starts, start.obstacles[0].path) == (False, False, str(path))
    assert [one.path for one in told(report, "rocksdb-incomplete")] == [str(path)]
    assert not repair(rocks, config=config, **NEW).ok
    (rocks / home / "CURRENT").write_text("MANIFEST-000004\n")
    assert verify(rocks, config=config, **NEW).ok


@ROCKSDB
@pytest.mark.parametrize("left", [True, False], ids=["without-current", "all-gone"])
def test_queues_of_rocksdb_that_are_lost_are_none_in_files(
    rocks: Path, left: bool, config: dict[str, str], tmp_path: Path
) -> None:
    """They were missed as files, which `rebuild` wrote and no broker would read; or nothing at all was said."""
    home = rocks / "consumequeue"
    (home / "CURRENT").unlink()
    if not left:
        shutil.rmtree(home)
    report = verify(rocks, config=config, **NEW)
    wrong = [(one.kind, one.path) for one in report.findings if one.severity == "error"]
    assert wrong == [("rocksdb-incomplete", str(home / "CURRENT" if left else home))]
    assert told(report, "queues-elsewhere")
    assert start_of(report).starts is None
    assert (start_of(report).obstacles[0].path == wrong[0][1]) is left, "a broker makes one that is gone"
    assert not repair(rocks, config=config, **NEW, dry_run=True).actions
    rebuild(rocks, tmp_path / "out", config=config, **NEW)
    assert not (tmp_path / "out" / "consumequeue").exists()


def test_a_broker_makes_a_database_that_is_gone(rocks: Path) -> None:
    for name in IN_ROCKSDB:
        shutil.rmtree(rocks / name)
    report = verify(rocks, config={"storeType": "defaultRocksDB"}, **NEW)
    assert (report.ok, start_of(report).starts) == (False, True)
    assert "a broker makes it anew from its whole log" in str(told(report, "rocksdb-incomplete")[0].hint)


def test_a_broker_without_rocksdb_does_not_open_what_is_left_of_it(rocks: Path, tmp_path: Path) -> None:
    shutil.rmtree(rocks / "consumequeue")
    conf = tmp_path / "broker.conf"
    conf.write_text("\n".join(BASIC))
    report = verify(rocks, config=conf, **NEW)
    assert (start_of(report).starts, told(report, "queues-elsewhere")) == (True, [])
    assert told(report, "queue-missing")
