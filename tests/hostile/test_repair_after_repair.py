"""Two repairs of one store at once: the one that gets the store later finds what the other has mended."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter
from tests.support.queued_store import make_queued_store, tagged

ONE = LocalEngine(1)


@pytest.mark.parametrize("lost", ["index", "queue"])
def test_of_a_store(lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"hash_slot_num": 50, "index_num": 100, "broker_version": "4.9.3", "engine": ONE}
    rocketmq.repair(make_queued_store(tmp_path, tagged(120)), **given)
    gone = next((tmp_path / ("index" if lost == "index" else "consumequeue/Topic/0")).iterdir())
    gone.unlink()
    backups = backups_in(tmp_path)
    first, second = one_after_another(monkeypatch, rocketmq.repair, tmp_path, given)
    assert first.actions
    assert second.actions == []
    assert second.ok
    assert len(backups_in(tmp_path)) <= len(backups) + 1
    assert rocketmq.verify(tmp_path, **given).ok


def test_of_a_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = PartitionWriter(tmp_path / "topic-0", 10, index_interval=60)
    for _ in range(20):
        writer.append([KafkaRecord(timestamp=FIRST_TIME + writer.next_offset)])
    writer.close()
    (tmp_path / "topic-0" / f"{10:020d}.timeindex").unlink()
    given: dict[str, Any] = {"index_interval_bytes": 60, "engine": ONE}
    first, second = one_after_another(monkeypatch, kafka.repair, tmp_path / "topic-0", given)
    assert first.actions
    assert (second.actions, second.files, second.ok) == ([], 0, True)


def one_after_another(monkeypatch: pytest.MonkeyPatch, repair: Any, path: Path, given: dict[str, Any]) -> list[Any]:
    """The reports of a repair that comes between another's look at the files and its hold of them, and of that."""
    module: Any = sys.modules[repair.__module__]
    reports: list[Any] = []

    def held(*arguments: Any) -> Any:
        monkeypatch.setattr(module, "held", really_held)
        reports.append(repair(path, **given))
        return really_held(*arguments)

    really_held = module.held
    monkeypatch.setattr(module, "held", held)
    reports.append(repair(path, **given))
    return reports


def backups_in(root: Path) -> list[Path]:
    return list(root.glob("mqindex-backup-*"))
