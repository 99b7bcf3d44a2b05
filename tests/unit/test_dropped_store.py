"""A writable `MessageStore` that is dropped without `close`: it is told, and another may open the store."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import MessageStore, NewMessage

_ROOM: dict[str, Any] = {"config": {"maxHashSlotNum": 100, "maxIndexNum": 400, "mappedFileSizeCommitLog": 1 << 16}}


@pytest.mark.filterwarnings("always::ResourceWarning")
@pytest.mark.parametrize("in_circle", [False, True])
def test_a_dropped_store_is_told_and_let_go(tmp_path: Path, in_circle: bool) -> None:
    """Its lock was held until the process ended: "this process holds this store for writing already"."""
    store = MessageStore.open(tmp_path / "store", writable=True, **_ROOM)
    phy_offset = store.put_message(NewMessage("Orders", b"body", keys="o-1")).phy_offset
    circle: list[object] = [store]
    if in_circle:
        circle.append(circle)
    with pytest.warns(ResourceWarning, match="a writable store was not closed: "):
        del store, circle
        gc.collect()
    assert (tmp_path / "store" / "abort").exists(), "as after an unclean exit"
    with MessageStore.open(tmp_path / "store", writable=True, **_ROOM) as again:
        assert [one.phy_offset for one in again.query_message("Orders", "o-1").messages] == [phy_offset]
        assert again.get_message("Orders", 0, 0).messages[0].body == b"body"
    assert not (tmp_path / "store" / "abort").exists()


def test_a_store_that_the_end_of_a_process_drops_does_not_hold_it_up(tmp_path: Path) -> None:
    made = f"MessageStore.open({str(tmp_path)!r}, writable=True, **{_ROOM!r})"
    code = f"from mqindex.rocketmq import MessageStore\nkept = {made}"
    command = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "ResourceWarning: a writable store was not closed" in done.stderr
    with MessageStore.open(tmp_path, writable=True, **_ROOM):
        pass
