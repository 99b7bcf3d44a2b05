"""A directory inside a store or a log dir that is a link: verify says it, and no repair enters it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from tests.crash.test_kafka_repair import OPTIONS as KAFKA_OPTIONS
from tests.crash.test_kafka_repair import broken as broken_partition
from tests.crash.test_repair import OPTIONS, broken, files_of
from tests.support.tree import state

Made = tuple[Any, Path, Path, dict[str, Any]]


def led_away(path: Path, outside: Path) -> Path:
    """Move a directory outside, and leave a link."""
    outside.mkdir(exist_ok=True)
    shutil.move(path, outside / path.name)
    path.symlink_to(outside / path.name)
    return path


def of_topic(tmp_path: Path) -> Made:
    root, _ = broken("queues spoilt", tmp_path)
    topic = led_away(max((root / "consumequeue").iterdir()), tmp_path / "outside")
    return rocketmq, root, topic, {"engine": LocalEngine(2), **OPTIONS}


def of_queue(tmp_path: Path) -> Made:
    root, _ = broken("newest gone", tmp_path)  # the queues are right
    queue = led_away(max((root / "consumequeue").iterdir()) / "0", tmp_path / "outside")
    return rocketmq, root, queue, {"engine": LocalEngine(2), **OPTIONS}


def of_partition(tmp_path: Path) -> Made:
    log_dir = tmp_path / "logs"
    broken_partition(log_dir / "orders-0")
    broken_partition(log_dir / "orders-1")
    (log_dir / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=a\n")
    return kafka, log_dir, led_away(log_dir / "orders-1", tmp_path / "outside"), KAFKA_OPTIONS


MADE = pytest.mark.parametrize("make", [of_topic, of_queue, of_partition])


@MADE
@pytest.mark.parametrize("deep", [False, True])
def test_verify_and_a_dry_run_say_it(make: Callable[[Path], Made], deep: bool, tmp_path: Path) -> None:
    broker, root, link, options = make(tmp_path)
    for report in (broker.verify(root, deep=deep, **options), broker.repair(root, deep=deep, dry_run=True, **options)):
        (found,) = [one for one in report.findings if one.kind == "linked-directory"]
        assert (found.severity, found.path) == ("warning", str(link))
        assert "no repair begins" in found.hint


@MADE
def test_a_repair_is_refused_before_anything_is_written(make: Callable[[Path], Made], tmp_path: Path) -> None:
    broker, root, link, options = make(tmp_path)
    before = state(tmp_path)
    with pytest.raises(FileStateError, match="a directory is a link") as caught:
        broker.repair(root, **options)
    assert f"{link}: expected a directory, got a link to {os.readlink(link)}; move" in str(caught.value)
    assert state(tmp_path) == before
    link.unlink()
    shutil.move(tmp_path / "outside" / link.name, link)
    assert broker.repair(root, **options).actions
    assert not [one for one in broker.verify(root, **options).findings if one.kind == "linked-directory"]


def test_nothing_is_put_back_behind_a_link(tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    broken_partition(log_dir / "orders-0")
    backup = str(kafka.repair(log_dir, **KAFKA_OPTIONS).backup)
    led_away(log_dir / "orders-0", tmp_path / "outside")
    before = state(tmp_path)
    with pytest.raises(FileStateError, match="a directory is a link"):
        kafka.undo_repair(log_dir, backup)
    assert state(tmp_path) == before
    place = tmp_path / "outside" / "orders-0"
    assert kafka.undo_repair(place, place / os.path.basename(backup)).actions


def test_a_volume_that_is_not_mounted_is_not_replaced(tmp_path: Path) -> None:
    """Its queue is built anew in the place of the link no more: what the log no longer holds is on the volume."""
    _, root, link, options = of_queue(tmp_path)
    (tmp_path / "outside").rename(tmp_path / "unmounted")
    before = sorted(os.listdir(root))
    assert [one.path for one in rocketmq.verify(root, **options).findings if one.kind == "linked-directory"] == [
        str(link)
    ]
    with pytest.raises(FileStateError, match="a directory is a link"):
        rocketmq.repair(root, **options)
    assert (link.is_symlink(), sorted(os.listdir(root))) == (True, before)


@pytest.mark.parametrize("name", ["", "index", "consumequeue", "commitlog"])
def test_the_root_and_the_first_level_may_be_links(name: str, tmp_path: Path) -> None:
    """Whoever runs the broker puts them on other volumes."""
    root, expected = broken("queues spoilt", tmp_path)
    led_away(root / name if name else root, tmp_path / "outside")
    report = rocketmq.repair(root, engine=LocalEngine(2), **OPTIONS)
    assert report.actions
    assert not [one for one in report.findings if one.kind == "linked-directory"]
    assert files_of(root) == expected


def test_a_partition_that_is_named_may_be_a_link(tmp_path: Path) -> None:
    _, _, link, options = of_partition(tmp_path)
    assert kafka.repair(link, **options).actions
    assert kafka.verify(link, **options).ok


@pytest.mark.skipif(os.geteuid() != 0, reason="only root works with the rights of others")
def test_root_enters_no_first_link_of_another_user(tmp_path: Path) -> None:
    root, _ = broken("newest gone", tmp_path)
    link = led_away(root / "index", tmp_path / "outside")
    os.chown(link, 12345, 12345, follow_symlinks=False)
    before = state(tmp_path)
    for report in (rocketmq.verify(root, **OPTIONS), rocketmq.repair(root, dry_run=True, **OPTIONS)):
        assert [one.path for one in report.findings if one.kind == "linked-directory"] == [str(link)]
    with pytest.raises(FileStateError, match="a directory is a link"):
        rocketmq.repair(root, **OPTIONS)
    assert state(tmp_path) == before
