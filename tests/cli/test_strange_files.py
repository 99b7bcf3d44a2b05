"""A queue's directory in which only strange files are left: found, told and mended, whichever sort of queue it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mqindex import kafka
from tests.cli.conftest import Shell
from tests.unit.test_batch_queues import CONFIG, make_store, mixed

QUEUES = ["batchconsumequeue/Batched/0", "consumequeue/Plain/0", "consumequeue_ext/Plain/0"]


@pytest.mark.parametrize("name", ["junk", "0" * 19, "0" * 21])
@pytest.mark.parametrize("place", QUEUES)
def test_every_command_says_the_same_of_a_queue_with_only_strange_files(
    place: str, name: str, tmp_path: Path, shell: Shell
) -> None:
    """Those of a batch queue ended `verify`, `info`, `repair` and `report`: no batch queue, exit code 2."""
    store, conf = make_store(tmp_path / "store", mixed()), tmp_path / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in {**CONFIG, "mappedFileSizeCommitLog": 4096}.items()))
    queue = store / place
    queue.mkdir(parents=True, exist_ok=True)
    for path in queue.iterdir():
        path.unlink()
    (queue / name).write_bytes(bytes(400))
    wrong = 0 if "_ext" in place else 1

    for looked in (store, queue, queue.parent, queue.parent.parent):
        if "_ext" not in place or looked in (store, queue):
            assert shell("info", looked).status == 0
    assert shell("dump", queue).status == 0
    for arguments in (
        ["verify"],
        ["verify", "--deep"],
        ["repair", "--dry-run"],
        ["report", "--out", tmp_path / "page"],
    ):
        done = shell(arguments[0], store, "--broker-conf", conf, *arguments[1:])
        assert (done.status, done.err) == (wrong, "")
        if wrong and arguments[0] != "report":
            assert "error: stray-queue-file" in done.out
    assert shell("rebuild", store, "--broker-conf", conf, "--out", tmp_path / "out").status == 0
    assert shell("repair", store, "--broker-conf", conf).status == 0
    assert shell("verify", store, "--broker-conf", conf).status == 0


def test_a_partition_with_only_strange_files_is_an_empty_one_of_its_log_dir(tmp_path: Path, shell: Shell) -> None:
    """It ended `query` and `offsets_for_time` of the whole log dir: not a partition's directory."""
    assert shell("sample", tmp_path / "sample").status == 0
    log_dir = (tmp_path / "sample" / "orders-0").rename(tmp_path / "orders-0").parent
    shutil.rmtree(tmp_path / "sample")
    before = shell("dump", log_dir, "--records", "--isolation-level", "read_committed")
    assert before.status == 0
    (log_dir / "orders-1").mkdir()
    (log_dir / "orders-1" / "junk").write_bytes(b"x")
    assert shell("dump", log_dir, "--records", "--isolation-level", "read_committed") == before
    found = shell("query", log_dir, "--timestamp", "-1", "--json")
    assert (found.status, found.err) == (0, "")
    rows = [json.loads(line) for line in found.out.splitlines()]
    assert [(row["partition"], row["found_offset"]) for row in rows] == [(0, 1048), (1, 0)]
    assert kafka.offsets_for_time(log_dir, -1)["offset"].tolist() == [1048, 0]
