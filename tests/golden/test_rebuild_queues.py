"""`rebuild` gives the broker's consume queues byte for byte, however the work is cut."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import rebuild
from mqindex.rocketmq.pipeline import queue_splits, queue_stages
from tests.support.golden import KILLED_CASES, STORE_CASES, StoreCase, case
from tests.support.tree import identities, index_bytes, queue_contents, scraps

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)


@each_store
@pytest.mark.parametrize(("workers", "split_size"), [(1, 4096), (4, 4096), (2, 65536), (1, None)])
def test_queue_files_are_the_broker_s(
    name: str, workers: int, split_size: int | None, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store(name)
    before = identities(root)
    options: dict[str, Any] = {} if split_size is None else {"split_size": split_size}
    report = rebuild(root, tmp_path / "out", engine=LocalEngine(workers=workers), **options)
    assert queue_contents(tmp_path / "out") == queue_contents(root)
    assert index_bytes(tmp_path / "out") == index_bytes(root)
    assert report.ok
    assert report.findings == []
    assert report.units == sum(len(queue["units"]) for queue in chosen.truth["consumeQueues"])
    assert report.messages == len(chosen.truth["messages"])
    assert report.files == len(report.out_files) == len(queue_contents(root)) + len(index_bytes(root))
    assert all(Path(path).is_file() for path in report.out_files)
    assert identities(root) == before
    assert scraps(tmp_path) == []


@each_store
def test_units_that_are_read_a_few_at_a_time_give_the_same(
    name: str, golden_store: GoldenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_stages, "_READ_AT_ONCE", 1)
    monkeypatch.setattr(queue_splits, "_SMALL_BATCH", 1)
    _, root = golden_store(name)
    report = rebuild(root, tmp_path / "out", parts=["consumequeue"], split_size=4096)
    assert (report.findings, queue_contents(tmp_path / "out")) == ([], queue_contents(root))
    names = [Path(path).parent.parts[-2:] for path in report.out_files if "consumequeue_ext" not in path]
    assert names == sorted(names, key=lambda name: (name[0], int(name[1])))  # in the order of the queues


@each_store
def test_queues_alone_are_the_same_and_no_index_is_written(
    name: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    _, root = golden_store(name)
    report = rebuild(root, tmp_path / "out", parts=["consumequeue"], split_size=4096)
    assert queue_contents(tmp_path / "out") == queue_contents(root)
    assert not (tmp_path / "out" / "index").exists()
    assert report.entries == 0


@each_store
def test_store_without_queues_needs_only_the_broker_s_config(
    name: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store(name)
    expected = queue_contents(root)
    shutil.rmtree(root / "consumequeue")
    shutil.rmtree(root / "consumequeue_ext", ignore_errors=True)
    rebuild(root, tmp_path / "out", config=chosen.truth["config"], broker_version=chosen.version)
    assert queue_contents(tmp_path / "out") == expected


@each_store
def test_report_says_the_sizes_of_queue_files_and_where_they_came_from(
    name: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store(name)
    config = chosen.truth["config"]
    report = rebuild(root, tmp_path / "out", parts=["consumequeue"])
    size = report.settings["consume_queue_file_size"]
    assert (size.value, size.source) == (config["mappedFileSizeConsumeQueue"], "the usual length of the files")
    ext = report.settings.get("consume_queue_ext_file_size")
    assert (ext is not None) == ("enableConsumeQueueExt" in config)
    assert ext is None or ext.value == int(config["mappedFileSizeConsumeQueueExt"])


@pytest.mark.parametrize("name", KILLED_CASES)
def test_crashed_store_gives_the_queues_of_the_broker_that_came_back(name: str, tmp_path: Path) -> None:
    after = case(name).unpack_after(tmp_path)
    rebuild(after, tmp_path / "out", parts=["consumequeue"], split_size=4096)
    assert queue_contents(tmp_path / "out") == queue_contents(after)


def test_delayed_messages_are_due_by_the_levels_that_the_broker_has(golden_store: GoldenStore, tmp_path: Path) -> None:
    chosen, root = golden_store("tx-delay-lmq-493")
    config = {**chosen.truth["config"], "messageDelayLevel": "7s 9s"}
    rebuild(root, tmp_path / "out", parts=["consumequeue"], config=config)
    expected, got = queue_contents(root), queue_contents(tmp_path / "out")
    other = {path.split("/")[1] for path in expected if expected[path] != got[path]}
    assert "SCHEDULE_TOPIC_XXXX" in other
    assert all(topic == "SCHEDULE_TOPIC_XXXX" or topic.startswith("%LMQ%") for topic in other)


@pytest.mark.parametrize("switch", ["enableMultiDispatch", "enableLmq"])
def test_broker_without_multi_dispatch_writes_other_queues(
    switch: str, golden_store: GoldenStore, tmp_path: Path
) -> None:
    chosen, root = golden_store("tx-delay-lmq-493")
    rebuild(root, tmp_path / "out", parts=["consumequeue"], config={**chosen.truth["config"], switch: "false"})
    expected, got = queue_contents(root), queue_contents(tmp_path / "out")
    assert got != expected
    assert {path: data for path, data in got.items() if "%LMQ%" not in path} == {
        path: data for path, data in expected.items() if "%LMQ%" not in path
    }
    assert any("%LMQ%" in path for path in got) == (switch == "enableLmq")
