"""What a build makes in its scratch: for each file no list of those before it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mqindex import rocketmq
from mqindex.engines import LocalEngine
from mqindex.rocketmq import optimize, rebuild
from tests.support.big_log import write_big_log

GEOMETRY = {"hash_slot_num": 5, "index_num": 10}


def test_no_file_of_a_build_lists_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 2,000 index files the lists took three quarters of the time."""
    write_big_log(tmp_path / "store", messages=200, body_size=0, mapped_file_size=1 << 20)
    listed: list[str] = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path=".": listed.append(str(path)) or listdir(path))
    built = rebuild(tmp_path / "store", tmp_path / "out", parts=("index",), engine=LocalEngine(1), **GEOMETRY)
    assert built.files > 20
    assert len([path for path in listed if ".mqindex-" in path]) < 5
    listed.clear()
    assert optimize(tmp_path / "out", tmp_path / "ordered", engine=LocalEngine(1)).files == built.files
    assert len([path for path in listed if ".mqindex-" in path]) < 5


def test_each_has_owner_and_mode_of_what_the_scratch_was_made_with(tmp_path: Path) -> None:
    write_big_log(tmp_path / "store", messages=50, body_size=0, mapped_file_size=1 << 20)
    before = os.umask(0o027)
    try:
        report = rocketmq.rebuild(tmp_path / "store", tmp_path / "out", parts=("index",), **GEOMETRY)
    finally:
        os.umask(before)
    assert {os.stat(path).st_mode & 0o777 for path in report.out_files} == {0o640}
