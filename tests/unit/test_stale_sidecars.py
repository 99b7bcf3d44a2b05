"""Sidecars that were good once, of a file that is there no longer: they change no answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.rocketmq import IndexFile, hash_slots
from tests.reference.index_file import IndexFile as TwinFile
from tests.support.optimised import NAME, never_in_memory, put_store

SLOTS, ROOM, T0 = 50, 5000, 1_700_000_000_000


@pytest.fixture(autouse=True)
def _cold(monkeypatch: pytest.MonkeyPatch) -> None:
    never_in_memory(monkeypatch)


def twin(keys: list[str]) -> TwinFile:
    made = TwinFile(SLOTS, ROOM)
    for number, key in enumerate(keys):
        made.put(key, 100 * number, T0 + 1000 * number)
    return made


def found(path: Path, key: str) -> tuple[bool, list[int], list[int]]:
    """Whether sidecars are used, and the answers of the single call and of the bulk one."""
    with IndexFile.open(path, hash_slot_num=SLOTS, index_num=ROOM) as index:
        single = index.select_phy_offset(key).tolist()
        return index._sidecars is not None, single, index.select_phy_offsets([key]).values.tolist()


def in_slot(slot: int, word: str) -> str:
    names = [f"T#{word}{number}" for number in range(2000)]
    return next(name for name, at in zip(names, hash_slots(names, SLOTS), strict=True) if at == slot)


@pytest.mark.parametrize("kind", ["filter", "fence"])
def test_a_pair_of_which_one_is_older(kind: str, tmp_path: Path) -> None:
    """As a kill between the two renames of an exchange leaves it, or a copy that was cut short."""
    keys = [f"T#{number}" for number in range(300)]
    newest = in_slot(SLOTS - 1, "newest")  # all entries before it keep their places
    put_store(tmp_path / "old", twin(keys))
    path = put_store(tmp_path / "new", twin([*keys, newest]))
    assert found(path, newest) == (True, [30_000], [30_000])
    shutil.copy(tmp_path / "old" / "mqindex-index" / f"{NAME}.{kind}", tmp_path / "new" / "mqindex-index")
    assert found(path, newest) == (False, [30_000], [30_000])


def test_another_file_of_the_same_beginning_and_count(tmp_path: Path) -> None:
    """Two stores that were one: only what they got last differs, and is not in the sample."""
    keys = [f"T#{number}" for number in range(4000)]
    mine, longer = in_slot(30, "mine"), in_slot(30, "longer")
    path = put_store(tmp_path / "one", twin([*keys, mine]))
    other = twin([*keys, longer])
    other.data[24:32] = (400_001).to_bytes(8, "big")
    theirs = put_store(tmp_path / "two", other)
    shutil.copy(theirs, path)
    assert found(path, longer) == (False, [400_000], [400_000])
