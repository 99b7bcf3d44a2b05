"""Look-ups by several threads give what one gives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex._native.keys import key_hash
from mqindex.rocketmq import IndexFile
from mqindex.rocketmq.index import index_file, select_parts
from tests.conftest import SeededRandom


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexFile]:
    with IndexFile.create(tmp_path / "index", hash_slot_num=50, index_num=1000) as made:
        made.put_keys([f"k{number % 60}" for number in range(900)], np.arange(900) * 100, np.arange(900), topic="T")
    with IndexFile.open(tmp_path / "index", hash_slot_num=50, index_num=1000) as opened:
        yield opened


@pytest.mark.parametrize("processors", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 19, 20, 21, 333])
def test_parts_are_put_together_in_order(
    index: IndexFile, count: int, processors: int, rng: SeededRandom, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = np.array([key_hash(f"T#k{rng.randrange(70)}") for _ in range(count)], np.int32)
    limits = np.array([rng.randrange(4) for _ in range(count)], np.int32)
    threads = set()

    class Core:
        def select_hashes(self, *arguments: Any) -> Any:
            threads.add(threading.get_ident())
            return index._core.select_hashes(*arguments)

    monkeypatch.setattr(select_parts, "_PART", 10)
    monkeypatch.setattr(select_parts, "processors", lambda: processors)
    for most in (64, 1, limits):
        wanted = index._core.select_hashes(hashes, most, 0, 10**6, None)
        got = select_parts.select_in_parts(Core(), hashes, most, 0, 10**6, None)  # type: ignore[arg-type]
        assert [part.tolist() for part in got] == [part.tolist() for part in wanted]
        assert [part.dtype for part in got] == [np.dtype(np.int64)] * 2
    assert (threading.get_ident() not in threads) == (count >= 20 and processors > 1)


def test_a_file_shares_many_look_ups(index: IndexFile, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"k{number % 70}" for number in range(100)]
    wanted = index.select_phy_offsets(keys, topic="T", max_num=3).to_pylist()
    shared: list[int] = []

    def select(core: Any, hashes: Any, *others: Any) -> Any:
        shared.append(len(hashes))
        return core.select_hashes(hashes, *others)

    monkeypatch.setattr(select_parts, "select_in_parts", select)
    monkeypatch.setattr(index_file, "_THREADED", 100)
    assert index.select_phy_offsets(keys, topic="T", max_num=3).to_pylist() == wanted
    index.select_phy_offsets(keys[1:], topic="T")
    assert shared == [100]


def test_an_error_of_a_part_is_the_callers(index: IndexFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select_parts, "_PART", 1)
    index.close()
    with pytest.raises(ValueError, match="closed"):
        select_parts.select_in_parts(index._core, np.zeros(10, np.int32), 64, 0, 1, None)
