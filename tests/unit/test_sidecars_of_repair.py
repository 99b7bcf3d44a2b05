"""What `repair` does with the sidecars of index files that it replaces, and `undo_repair` with those in the backup."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import optimize, repair, undo_repair, verify
from tests.support.small_store import GEOMETRY, OPTIONS, make_small_store
from tests.support.tree import contents, index_paths

SLOTS, ROOM = GEOMETRY
CONFIG = {"mappedFileSizeConsumeQueue": "240"}
ONE = LocalEngine(1)


@pytest.mark.parametrize(("bad", "left"), [("first", True), ("all", False)])
def test_the_key_filter_goes_with_the_last_fence(bad: str, left: bool, tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    optimize(root, root, overwrite=True, hash_slot_num=SLOTS, index_num=ROOM, engine=ONE)
    for path in index_paths(root)[: 1 if bad == "first" else None]:
        path.write_bytes(path.read_bytes()[:-5])
    before = contents(root)
    report = repair(root, config=CONFIG, engine=ONE, **OPTIONS)
    assert (root / "mqindex-index" / "keys.filter").exists() is left
    assert [one.kind for one in verify(root, deep=True, config=CONFIG, engine=ONE, **OPTIONS).findings] == []
    undo_repair(root, report.backup or "")
    after = contents(root)
    assert {path: after.get(path) for path in before} == before
