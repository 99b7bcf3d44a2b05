"""Sidecars that were good once, of a file that is there no longer: they change no answer."""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mqindex._native.key_filter import AskedHashes
from mqindex.columns.keys import key_hashes
from mqindex.errors import ClosedFileError
from mqindex.files.reading.residency import Residency
from mqindex.rocketmq import IndexFile, hash_slots
from mqindex.rocketmq.sidecar import reading
from mqindex.rocketmq.sidecar.names import FILTER
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.sidecar import optimised
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


@pytest.mark.parametrize(("kind", "used"), [(f"{NAME}.fence", False), (FILTER, True)])
def test_one_of_the_sidecars_is_older(kind: str, used: bool, tmp_path: Path) -> None:
    """As a kill between the renames of an exchange leaves it, or a copy that was cut short."""
    keys = [f"T#{number}" for number in range(300)]
    newest = in_slot(SLOTS - 1, "newest")  # all entries before it keep their places
    put_store(tmp_path / "old", twin(keys))
    path = put_store(tmp_path / "new", twin([*keys, newest]))
    assert found(path, newest) == (True, [30_000], [30_000])
    shutil.copy(tmp_path / "old" / "mqindex-index" / kind, tmp_path / "new" / "mqindex-index")
    assert found(path, newest) == (used, [30_000], [30_000])
    if used:
        with opened(path) as index:
            assert index._sidecars is not None and index._sidecars.filter is None


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


# ---- while a reader has the file open --------------------------------------------------------------------------------


def opened(path: Path) -> IndexFile:
    os.utime(path, (1, 1))  # so that a write shows in its times, however soon it comes
    return IndexFile.open(path, hash_slot_num=SLOTS, index_num=ROOM)


def overwrite(path: Path, data: bytes | bytearray) -> None:
    """As `rsync --inplace` does: the file keeps its inode and is never shorter."""
    with path.open("r+b") as file:
        file.write(data)


def answers(index: IndexFile, keys: list[str]) -> list[tuple[list[int], list[int]]]:
    """Of each key those of the single call and of the bulk one."""
    bulk = index.select_phy_offsets(keys).to_pylist()
    return [(index.select_phy_offset(key).tolist(), hits) for key, hits in zip(keys, bulk, strict=True)]


def uses_sidecars(index: IndexFile) -> bool:
    assert index._sidecars is not None
    return index._sidecars.search.heads(index._core, AskedHashes(key_hashes(["T#1"]))) is not None


@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize("order", ["of the log", "of the slots"])
def test_another_file_is_copied_over_one_that_is_open(order: str, asked_before: bool, tmp_path: Path) -> None:
    """Of the same geometry and count: none of its keys was found, in silence."""
    mine, theirs = ([f"T#{word}{number}" for number in range(2000)] for word in ("mine", "theirs"))
    path, other = put_store(tmp_path, twin(mine)), TwinFile(SLOTS, ROOM)
    for number, key in enumerate(theirs):
        other.put(key, 7 + 100 * number, T0 + 1000 * number)
    with opened(path) as index:
        assert not asked_before or answers(index, mine[::100])[1] == ([10_000], [10_000])
        overwrite(path, (optimised(other) if order == "of the slots" else other).data)
        expected = [7 + 100 * number for number in range(0, 2000, 100)]
        assert answers(index, theirs[::100]) == [([one], [one]) for one in expected]
        assert not uses_sidecars(index)


@pytest.mark.parametrize("asked_before", [True, False])
def test_the_file_as_it_was_before_is_copied_over_one_that_is_open(asked_before: bool, tmp_path: Path) -> None:
    """The same header; only its entries show that they are not in the order of their slots."""
    keys = [f"T#{number}" for number in range(2000)]
    path = put_store(tmp_path, twin(keys))
    with opened(path) as index:
        assert not asked_before or uses_sidecars(index)
        overwrite(path, twin(keys).data)
        assert answers(index, keys[::100]) == [([at], [at]) for at in range(0, 200_000, 10_000)]
        assert not uses_sidecars(index)
        overwrite(path, optimised(twin(keys)).data)
        assert not uses_sidecars(index)  # for good: nobody says what comes next


@pytest.mark.parametrize("kind", [f"{NAME}.fence", FILTER])
def test_a_sidecar_is_copied_over_one_that_was_read(kind: str, tmp_path: Path) -> None:
    """What was compared with its checksum once is not compared again: keys were not found, in silence."""
    mine, theirs = ([f"T#{word}{number}" for number in range(2000)] for word in ("mine", "theirs"))
    path, other = put_store(tmp_path / "a", twin(mine)), put_store(tmp_path / "b", twin(theirs))
    side = path.parent.parent / "mqindex-index" / kind
    os.utime(side, (1, 1))
    with opened(path) as index:
        assert uses_sidecars(index)
        assert answers(index, mine)[1] == ([100], [100])
        overwrite(side, (other.parent.parent / "mqindex-index" / kind).read_bytes())
        assert answers(index, mine[::100]) == [([at], [at]) for at in range(0, 200_000, 10_000)]
        assert uses_sidecars(index)  # a fence was read whole


def test_sidecars_of_a_file_that_was_only_touched_are_used_on(tmp_path: Path) -> None:
    path = put_store(tmp_path, twin([f"T#{number}" for number in range(300)]))
    with opened(path) as index:
        assert uses_sidecars(index)
        os.utime(path, (2, 2))
        path.chmod(0o640)
        assert uses_sidecars(index)
        assert answers(index, ["T#7", "T#none"]) == [([700], [700]), ([], [])]


def test_while_one_thread_looks_at_a_file_that_was_written_to_others_do_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one noted the new times at once: the others took the old fence for good until it was done."""
    keys = [f"T#{number}" for number in range(2000)]
    path = put_store(tmp_path, twin(keys))
    looking, go_on = threading.Event(), threading.Event()
    misfit = reading.misfit

    def slow(*arguments: Any) -> Any:
        monkeypatch.setattr(reading, "misfit", misfit)
        looking.set()
        go_on.wait(60)
        return misfit(*arguments)

    with opened(path) as index, ThreadPoolExecutor(1) as other:
        assert uses_sidecars(index)
        monkeypatch.setattr(reading, "misfit", slow)
        overwrite(path, twin(keys).data)
        first = other.submit(index.select_phy_offset, "T#7")
        assert looking.wait(60)
        found = answers(index, ["T#7"])
        go_on.set()
        assert (found, first.result().tolist()) == ([([700], [700])], [700])


@pytest.mark.parametrize("bulk", [True, False])
def test_a_file_that_is_closed_while_its_pages_are_asked_for(
    bulk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another thread does: the single call then read memory that was given back."""
    index = opened(put_store(tmp_path, twin([f"T#{number}" for number in range(300)])))

    def closed_meanwhile(residency: Residency) -> bool:
        index.close()
        return False

    monkeypatch.setattr(Residency, "__call__", closed_meanwhile)
    with pytest.raises(ClosedFileError):
        index.select_phy_offsets(["T#7"]) if bulk else index.select_phy_offset("T#7")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system shows no mappings")
def test_a_closed_file_maps_no_filter(tmp_path: Path) -> None:
    """It stayed mapped as long as the closed file, or the service that had it, was referred to."""
    path = put_store(tmp_path, twin([f"T#{number}" for number in range(300)]))
    index = IndexFile.open(path, hash_slot_num=SLOTS, index_num=ROOM)
    assert index.select_phy_offset("T#7").tolist() == [700]
    index.close()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    with pytest.raises(ClosedFileError):
        index.select_phy_offset("T#7")
    with pytest.raises(ClosedFileError):
        index.select_phy_offsets(["T#7"])
