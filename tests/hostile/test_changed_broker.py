"""A store whose broker was replaced by one of the other rule for TAGS, from 5.4 on or before: all it wrote is right."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import IndexService, optimize, rebuild, repair, verify
from tests.reference.commit_log import index_strings, scan_log
from tests.reference.dispatch import Rules
from tests.reference.index_service import IndexService as Twin
from tests.reference.queue_files import build_queues
from tests.reference.rebuild import log_files
from tests.support.failing_calls import FailingCall
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter
from tests.support.tree import index_bytes

COUNT = 600
ONE = LocalEngine(1)


def make(root: Path, changes: list[int], geometry: tuple[int, int], tagged: range = range(COUNT)) -> list[Path]:
    """From the messages of these numbers on TAGS are indexed, and not indexed, in turn. Returns the index files."""
    log = LogWriter(root / "commitlog", mapped_file_size=1 << 14)
    for n in range(COUNT):
        tags = "TagA" if n in tagged else None
        log.write(LogMessage("T", keys=f"k{n}", tags=tags, separator=True, store_timestamp=FIRST_TIME + n * 10, queue_offset=n))  # fmt: skip # noqa: E501
    messages = scan_log(log_files(root / "commitlog"))[0]
    service, tags_too = Twin(*geometry), False
    for n, message in enumerate(messages):
        tags_too ^= n in changes
        service.build_index(index_strings(message, tags=tags_too), message.phy_offset, message.store_timestamp)
    (root / "index").mkdir()
    paths = [root / "index" / str(20231114221320000 + n) for n in range(len(service.files))]
    for path, file in zip(paths, service.files, strict=True):
        path.write_bytes(file.flush())
    for name, data in build_queues(messages, Rules([1000]), 400).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return paths


def errors(root: Path, geometry: tuple[int, int], version: str | None) -> list[str]:
    given: dict[str, Any] = {"hash_slot_num": geometry[0], "index_num": geometry[1], "broker_version": version}
    return [
        str(one)
        for deep in (False, True)
        for one in verify(root, deep=deep, engine=ONE, **given).findings
        if one.severity == "error"
    ]


@pytest.mark.parametrize("geometry", [(50, 120), (500, 4000)], ids=["many-files", "one-file"])
@pytest.mark.parametrize("changes", [[300], [0, 300], [595], [0, 595], [120], []], ids=str)
@pytest.mark.parametrize("version", [None, "4.9.3", "5.3.0", "5.5.0"])
def test_every_entry_is_right(
    tmp_path: Path, changes: list[int], geometry: tuple[int, int], version: str | None
) -> None:
    paths = make(tmp_path, changes, geometry)
    assert errors(tmp_path, geometry, version) == []
    before = [path.read_bytes() for path in paths]
    assert repair(tmp_path, hash_slot_num=geometry[0], index_num=geometry[1], broker_version=version).actions == []
    optimize(tmp_path / "index", tmp_path, hash_slot_num=geometry[0], index_num=geometry[1], overwrite=True)
    assert errors(tmp_path, geometry, version) == []
    assert before


@pytest.mark.parametrize("lost", [0, 1, 3, -1])
def test_what_is_lost_comes_back_by_the_rule_of_its_time(tmp_path: Path, lost: int) -> None:
    geometry = (50, 120)
    paths = make(tmp_path, [310], geometry)
    with IndexService.open(tmp_path / "index", hash_slot_num=50, index_num=120) as index:
        tagged = len(index.query_offsets("T", ["T#TagA"], max_num=10_000).values)
    assert tagged == COUNT - 310
    good = {path.name: path.read_bytes() for path in paths}
    paths[lost].unlink()
    assert repair(tmp_path, hash_slot_num=50, index_num=120, broker_version="5.5.0").actions
    assert [path.read_bytes() for path in sorted((tmp_path / "index").iterdir())] == list(good.values())
    assert errors(tmp_path, geometry, None) == []
    rebuild(tmp_path, tmp_path / "out", hash_slot_num=50, index_num=120, broker_version="5.5.0")
    assert [path.read_bytes() for path in sorted((tmp_path / "out" / "index").iterdir())] == list(good.values())


@pytest.mark.parametrize("failure", ["EMFILE", "EIO"])
def test_a_file_that_cannot_be_read_for_once_decides_nothing(tmp_path: Path, failure: str) -> None:
    """A repair, or a rebuild, by the rule that the other files show would write good entries anew, and others."""
    options: dict[str, Any] = {"hash_slot_num": 50, "index_num": 120, "broker_version": "5.5.0", "engine": ONE}
    paths = make(tmp_path / "broken", [310], (50, 120))
    good = index_bytes(tmp_path / "broken")
    paths[3].unlink()
    ended = {"well": 0, "error": 0}
    for at in range(1, 10_000, 3):
        store, out = tmp_path / "store", tmp_path / "out"
        shutil.copytree(tmp_path / "broken", store)
        with FailingCall((str(store / "index"),), at, failure) as failing:
            try:
                rebuild(store, out, **options)
                repair(store, **options)
                assert index_bytes(store) == index_bytes(out) == good
                ended["well"] += 1
            except OSError:
                ended["error"] += 1
        if not failing.struck:
            break
        repair(store, **options)
        assert index_bytes(store) == good
        shutil.rmtree(store)
        shutil.rmtree(out, ignore_errors=True)
    assert ended["well"] >= 1
    assert ended["error"] > 10


def test_damage_is_no_change_of_the_broker(tmp_path: Path) -> None:
    (path,) = make(tmp_path, [], (500, 4000))
    data = bytearray(path.read_bytes())
    data[40 + 4 * 500 + 20 * 300 + 7] ^= 1
    path.write_bytes(data)
    report = verify(tmp_path, deep=True, engine=ONE)
    assert not report.ok
    assert "changes" not in str(report.settings["broker_version"])
