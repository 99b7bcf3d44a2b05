"""Kafka's partitions elsewhere: rebuilt and verified as they are on this machine, through windows of any size."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from mqindex.files.places import remote_file
from mqindex.kafka import rebuild, verify
from mqindex.kafka.log import batch_windows
from mqindex.report import Report
from tests.golden.test_kafka_rebuild import every_case, index_files, options
from tests.support.elsewhere import Ways, memory
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_damage import DAMAGE, INTERVAL, filled_log_dir
from tests.support.kafka_log_dir import ONE

__all__ = ["memory"]  # a fixture

HOW: dict[str, Any] = {"index_interval_bytes": INTERVAL, "engine": ONE}
NEEDS_A_DISK = {"files-elsewhere", "not-writable"}


def narrow(monkeypatch: pytest.MonkeyPatch, step: int, block: int = 4096) -> None:
    """Windows of so many bytes, read in blocks of so many."""
    for name, size in (("FIRST", step), ("STEP", step), ("MARGIN", step // 4)):
        monkeypatch.setattr(batch_windows, name, size)
    monkeypatch.setattr(remote_file, "_BLOCK", block)


def said(report: Report, root: Path | str) -> dict[str, Any]:
    """All of a report but what only a disk has, as if `root` was the place of the files."""
    found = dataclasses.asdict(report)
    found["findings"] = [dataclasses.asdict(one) for one in report.findings if one.kind not in NEEDS_A_DISK]
    found["start"] = None if report.start is None else {**dataclasses.asdict(report.start), "lock": None}
    del found["seconds"]
    return _placed(found, str(root))


def _placed(value: Any, root: str) -> Any:
    if isinstance(value, dict):
        return {name: _placed(one, root) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_placed(one, root) for one in value]
    return value.replace(root, "ROOT") if isinstance(value, str) else value


@pytest.mark.parametrize("step", [None, 600])
@every_case
def test_a_rebuild_from_elsewhere_is_the_same(
    name: str, step: int | None, tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    if step:
        narrow(monkeypatch, step)
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    url = f"{memory.upload(directory.parent)}/{directory.name}"
    here = rebuild(directory, tmp_path / "here", **options(case))
    there = rebuild(url, tmp_path / "there", **options(case))
    assert index_files(tmp_path / "there") == index_files(tmp_path / "here")
    assert there.path == url
    assert (there.findings, there.batches, there.entries) == (here.findings, here.batches, here.entries)


@pytest.mark.parametrize("deep", [False, True])
@every_case
def test_a_partition_elsewhere_is_verified_as_one_here(
    name: str, deep: bool, tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 600)
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    url = memory.upload(directory.parent)
    for given in (options(case), {"engine": ONE}):
        here = verify(directory, deep=deep, **given)
        there = verify(f"{url}/{directory.name}", deep=deep, **given)
        assert said(there, url) == said(here, directory.parent)
        assert there.start is not None
        assert there.start.lock == "elsewhere"
        assert [one.kind for one in there.findings].count("files-elsewhere") == 1


@pytest.mark.parametrize("check_crc", [True, False])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_elsewhere_is_that_of_one_here(
    damage: str, check_crc: bool, tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 300, 4096)
    log_dir = filled_log_dir(tmp_path / "log-dir")
    DAMAGE[damage](log_dir)
    for directory in log_dir.rglob("*"):
        if directory.is_dir():  # an empty one is nothing elsewhere
            (directory / "notes").touch()
    url = memory.upload(log_dir)
    here, there = (verify(one, check_crc=check_crc, **HOW) for one in (log_dir, url))
    assert said(there, url) == said(here, log_dir)
    made = rebuild(log_dir, tmp_path / "here", check_crc=check_crc, **HOW)
    again = rebuild(url, tmp_path / "there", check_crc=check_crc, **HOW)
    assert said_of_rebuild(again, url) == said_of_rebuild(made, log_dir)
    assert index_files(tmp_path / "there" / "topic-0") == index_files(tmp_path / "here" / "topic-0")


def said_of_rebuild(report: Any, root: Path | str) -> Any:
    return _placed([dataclasses.asdict(one) for one in report.findings], str(root))
