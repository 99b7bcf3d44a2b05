"""An index file that leads into the middle of a message is wrong itself: the log is not damaged there."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import repair, verify
from tests.support.small_store import GEOMETRY, OPTIONS, make_small_store
from tests.support.tree import index_bytes, index_paths

ONE = LocalEngine(1)
ENTRIES = 40 + 4 * GEOMETRY[0]
PLACES = {"begin_phy_offset": 16, "end_phy_offset": 24, "first entry": ENTRIES + 24, "an entry": ENTRIES + 20 * 9 + 4}


@pytest.mark.parametrize("at", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("number", [0, 1])
def test_the_log_is_not_damaged_where_an_index_file_leads(tmp_path: Path, at: int, number: int) -> None:
    store = make_small_store(tmp_path / "store")
    good = index_bytes(store)
    path = index_paths(store)[number]
    data = bytearray(path.read_bytes())
    (offset,) = struct.unpack_from(">q", data, at)
    struct.pack_into(">q", data, at, offset + 9)
    path.write_bytes(data)
    for deep in (False, True):
        kinds = {one.kind for one in verify(store, deep=deep, engine=ONE, **OPTIONS).findings}
        assert not [kind for kind in kinds if kind.startswith("log-")]
        assert "index-entries-of-damaged-log" not in kinds
    assert repair(store, deep=True, engine=ONE, **OPTIONS).ok
    assert index_bytes(store) == good
    assert verify(store, deep=True, engine=ONE, **OPTIONS).ok
