"""`optimize` of files that it wrote itself: another geometry, sidecars that were damaged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqindex._native.crc import crc32c
from mqindex._native.key_filter import filter_shape
from mqindex.errors import GeometryError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import IndexFile, IndexService, hash_slots, key_hash, optimize, verify
from mqindex.rocketmq.directories import store
from mqindex.rocketmq.sidecar.key_filter import FilterFile
from mqindex.rocketmq.sidecar.names import fence_path, filter_path
from tests.reference.sidecar import KeyFilter
from tests.support.optimised import never_in_memory

SLOTS, ROOM, T0 = 100, 2000, 1_700_000_000_000
KEYS = [f"T#{number % 200}" for number in range(500)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """One index file of a store, as a broker wrote it: a message a second."""
    made = tmp_path / "store" / "index" / "20231114221320000"
    made.parent.mkdir(parents=True)
    with IndexFile.create(made, hash_slot_num=SLOTS, index_num=ROOM) as index:
        index.put_keys(KEYS, range(500), [T0 + 1000 * second for second in range(500)])
    return made


def late(path: Path, slots: int) -> list[list[int]]:
    """What was stored from the middle on, by key."""
    with IndexFile.open(path, hash_slot_num=slots, index_num=ROOM) as index:
        return index.select_phy_offsets(KEYS, begin=T0 + 250_000).to_pylist()


@pytest.mark.parametrize("slots", [7, 99, 150, 300])
def test_another_geometry_only_where_the_order_of_time_is_known(slots: int, path: Path, tmp_path: Path) -> None:
    expected = late(path, SLOTS)
    optimize(path, tmp_path / "at once", hash_slot_num=slots)
    assert late(tmp_path / "at once" / "index" / path.name, slots) == expected
    optimize(path, tmp_path / "first")
    first = tmp_path / "first" / "index" / path.name
    if slots % SLOTS:
        with pytest.raises(GeometryError, match=f"expected a multiple of {SLOTS} slots, got {slots}; rebuild"):
            optimize(first, tmp_path / "then", hash_slot_num=slots)
        assert not (tmp_path / "then").exists()
    else:
        optimize(first, tmp_path / "then", hash_slot_num=slots)
        assert late(tmp_path / "then" / "index" / path.name, slots) == expected


def sidecars(path: Path) -> tuple[Path, Path]:
    """The fence and the filter."""
    return Path(fence_path(str(path))), Path(filter_path(str(path.parent)))


@pytest.mark.parametrize("which", [0, 1], ids=["fence", "filter"])
def test_damaged_sidecars_are_written_anew(which: int, path: Path) -> None:
    root = path.parent.parent
    optimize(root, root, overwrite=True)
    side = sidecars(path)[which]
    good = side.read_bytes()
    side.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    report = optimize(root, root, overwrite=True)
    assert side.read_bytes() == good
    assert report.files == 0  # the index file stays


def test_the_filter_gets_what_is_new_and_loses_what_is_gone(path: Path, tmp_path: Path) -> None:
    """A broker goes on with new files and deletes old ones; the filter is not made anew from all index files."""
    root = path.parent.parent
    optimize(root, root, overwrite=True)
    first = sidecars(path)[1].read_bytes()
    with IndexFile.create(path.parent / "20231114221320001", hash_slot_num=SLOTS, index_num=ROOM) as index:
        index.put_keys([f"T#new{n}" for n in range(300)], range(300), [T0 + 10**6] * 300)
    assert optimize(root, root, overwrite=True).files == 1
    assert FilterFile(MappedFile.open(sidecars(path)[1])).header.files == 2
    assert sidecar_findings(root) == []
    path.unlink()
    sidecars(path)[0].unlink()
    newer = path.parent / "20231114221320002"
    with IndexFile.create(newer, hash_slot_num=SLOTS, index_num=ROOM) as index:
        index.put_keys([f"T#{n}" for n in range(50)], range(50), [T0 + 2 * 10**6] * 50)
    optimize(root, root, overwrite=True)
    files = sorted(path.parent.iterdir())
    alone = [tmp_path / f"alone{number}" for number in range(2)]
    for one, where in zip(files, alone, strict=True):
        optimize(one, where)
    for key in [f"T#new{n}" for n in range(300)] + [f"T#{n}" for n in range(400)]:
        hashed = key_hash(key)
        for number, (one, where) in enumerate(zip(files, alone, strict=True)):
            twin = KeyFilter((where / "mqindex-index" / "keys.filter").read_bytes(), 0)
            woven = KeyFilter(sidecars(path)[1].read_bytes(), number)
            assert woven.may_hold(hashed) == twin.may_hold(hashed), one
    assert first != sidecars(path)[1].read_bytes()


def sidecar_findings(root: Path) -> list[str]:
    """Of a store without a log too."""
    findings = verify(root, hash_slot_num=SLOTS, index_num=ROOM).findings
    assert findings  # there is no log
    return [one.kind for one in findings if one.kind.startswith("sidecar")]


def test_sidecars_are_verified_where_the_log_is_gone(path: Path) -> None:
    root = path.parent.parent
    optimize(root, root, overwrite=True)
    sidecars(path)[0].write_bytes(b"no fence")
    assert sidecar_findings(root) == ["sidecar-unused", "sidecar-alone"]


def twins(path: Path) -> tuple[str, str]:
    """Two keys of one slot, and a second file with the one in place of the other: nothing else in the files differs."""
    names = [f"T#twin{number}" for number in range(2000)]
    slots = hash_slots(names, SLOTS).tolist()
    one, other = [name for name, slot in zip(names, slots, strict=True) if slot == 30][:2]  # outside the sample
    for place, key in ((path, one), (path.parent / "20231114221320009", other)):
        place.unlink(missing_ok=True)
        with IndexFile.create(place, hash_slot_num=SLOTS, index_num=ROOM) as index:
            keys = [f"T#{n}" for n in range(1500)]
            keys[250] = key
            index.put_keys(keys, range(1500), [T0 + 1000 * n for n in range(1500)])
    return one, other


def cold(path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Of both files."""
    never_in_memory(monkeypatch)
    with IndexService.open(path.parent, hash_slot_num=SLOTS, index_num=ROOM) as service:
        return [file.select_phy_offset(key).tolist() for file in service.files]


def test_files_that_their_fences_do_not_tell_apart(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = twins(path)
    root = path.parent.parent
    fences = set()
    for place in sorted(path.parent.iterdir()):
        optimize(place, root.parent / place.name)
        fences.add((root.parent / place.name / "mqindex-index" / f"{place.name}.fence").read_bytes())
    assert len(fences) == 1  # else this tests nothing
    optimize(root, root, overwrite=True)
    assert (cold(path, one, monkeypatch), cold(path, other, monkeypatch)) == ([[250], []], [[], [250]])


def test_each_of_two_that_their_fences_do_not_tell_apart(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other; the filter knew the first, and was asked for the second too."""
    one, other = twins(path)
    root, twin = path.parent.parent, path.parent / "20231114221320009"
    optimize(root, root, overwrite=True)
    for place in (path, twin):
        optimize(place, root, overwrite=True)
        assert (cold(path, one, monkeypatch), cold(path, other, monkeypatch)) == ([[250], []], [[], [250]])
    for place in (path, twin):
        sidecars(path)[1].unlink(missing_ok=True)
        optimize(place, root, overwrite=True)
        assert (cold(path, one, monkeypatch), cold(path, other, monkeypatch)) == ([[250], []], [[], [250]])


def test_files_that_the_filter_leaves_out_are_done_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two copies of one file, and more than a filter may have: each run made a backup."""
    monkeypatch.setattr(sys.modules["mqindex.rocketmq.optimize"], "FILTER_MOST_FILES", 3)
    root = path.parent.parent
    shutil.copy(path, path.parent / "20231114221320001")
    for number in range(2, 7):
        with IndexFile.create(path.parent / f"2023111422132000{number}", hash_slot_num=SLOTS, index_num=ROOM) as index:
            index.put_keys([f"T#{n}" for n in range(number)], range(number), [T0] * number)
    assert optimize(root, root, overwrite=True).out_files
    assert FilterFile(MappedFile.open(sidecars(path)[1])).header.files == 3
    again = optimize(root, root, overwrite=True)
    assert (again.out_files, again.backup) == ([], None)


def test_the_filter_is_for_those_who_may_read_every_file(path: Path) -> None:
    root, private = path.parent.parent, path.parent / "20231114221320000"
    public = path.parent / "20231114221320001"
    shutil.copy(path, public)
    with IndexFile.open(public, hash_slot_num=SLOTS, index_num=ROOM, writable=True) as index:
        index.put_key("T#public", 5, T0 + 10**6)
    private.chmod(0o600)
    public.chmod(0o644)
    optimize(public, root, overwrite=True)
    optimize(root, root, overwrite=True)
    modes = [one.stat().st_mode & 0o777 for one in (*sidecars(private), *sidecars(public))]
    assert modes == [0o600, 0o600, 0o644, 0o600]
    public.chmod(0o640)
    with IndexFile.open(public, hash_slot_num=SLOTS, index_num=ROOM, writable=True) as index:
        index.put_key("T#more", 5, T0 + 10**6)
    optimize(root, root, overwrite=True)
    assert sidecars(public)[0].stat().st_mode & 0o777 == 0o640


def test_a_file_that_took_the_place_of_its_twin(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the filter knew was of the other one: a key was lost, and no later run found it again."""
    one, other = twins(path)
    root, twin = path.parent.parent, path.parent / "20231114221320009"
    aside = root.parent / "aside"
    twin.rename(aside)
    optimize(root, root, overwrite=True)
    path.write_bytes(aside.read_bytes())
    optimize(root, root, overwrite=True)
    assert (cold(path, one, monkeypatch), cold(path, other, monkeypatch)) == ([[]], [[250]])
    alone = root.parent / "alone"
    optimize(twin := aside.rename(root.parent / twin.name), alone)
    path.write_bytes((alone / "index" / twin.name).read_bytes())
    optimize(root, root, overwrite=True)
    assert (cold(path, one, monkeypatch), cold(path, other, monkeypatch)) == ([[]], [[250]])


def test_what_another_run_did_before_this_one_had_the_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knew what was there before, and wrote a filter without what came since."""
    root, other = path.parent.parent, path.parent / "20231114221320001"
    shutil.copy(path, other)
    with IndexFile.open(other, hash_slot_num=SLOTS, index_num=ROOM, writable=True) as index:
        index.put_key("T#one more", 5, T0 + 10**6)
    hold = store.hold_writers

    def late(place: str) -> Any:
        monkeypatch.setattr(store, "hold_writers", hold)
        optimize(other, root, overwrite=True)
        return hold(place)

    monkeypatch.setattr(store, "hold_writers", late)
    optimize(path, root, overwrite=True)
    assert FilterFile(MappedFile.open(sidecars(path)[1])).header.files == 2


def test_a_filter_whose_rows_say_what_cannot_be_is_made_anew(path: Path) -> None:
    """Its checksums are right."""
    root, side = path.parent.parent, sidecars(path)[1]
    optimize(root, root, overwrite=True)
    good = side.read_bytes()
    found = FilterFile(MappedFile.open(side))
    rows, _ = filter_shape(SLOTS, ROOM)
    first = found.start + 8 * (rows + 1)
    length = int.from_bytes(good[found.start + 8 : found.start + 16], "big")
    row = bytearray(good[first : first + length])
    row[4:6] = (int.from_bytes(row[4:6], "big") + 40).to_bytes(2, "big")
    row[:4] = crc32c(bytes(row[4:]), found.header.content).to_bytes(4, "big")
    side.write_bytes(good[:first] + row + good[first + length :])
    optimize(root, root, overwrite=True)
    assert side.read_bytes() == good


def test_a_file_without_entries_has_no_fence(path: Path) -> None:
    root = path.parent.parent
    optimize(root, root, overwrite=True)
    path.write_bytes(bytes(path.stat().st_size))
    report = optimize(root, root, overwrite=True, hash_slot_num=SLOTS, index_num=ROOM)
    assert report.backup is not None
    assert not sidecars(path)[0].exists()


FEW_DESCRIPTORS = """
import resource, sys
from mqindex.files.reading.residency import Residency
from mqindex.rocketmq import IndexService

Residency.__call__ = lambda self: False
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
with IndexService.open(sys.argv[1]) as service:
    print(sum(file._asks_a_filter for file in service.files), service.query_offset("T", "7").phy_offsets.tolist())
"""


@pytest.mark.parametrize(("descriptors", "used"), [(200, 30), (180, 0)])
def test_where_descriptors_are_few_the_files_are_opened_without_sidecars(
    descriptors: int, used: int, path: Path
) -> None:
    root = path.parent.parent
    for number in range(1, 30):
        shutil.copy(path, path.parent / f"20231114221320{number:03}")
    optimize(root, root, overwrite=True)
    done = subprocess.run(
        [sys.executable, "-c", FEW_DESCRIPTORS, str(path.parent), str(descriptors)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{used} {([407, 207, 7] * 30)[:64]}\n", ""), done.stderr


def test_one_file_of_many_in_place_leaves_the_others_known(path: Path) -> None:
    root, paths = path.parent.parent, [path]
    for number in range(1, 4):
        paths.append(path.parent / f"2023111422132000{number}")
        with IndexFile.create(paths[-1], hash_slot_num=SLOTS, index_num=ROOM) as index:
            index.put_keys([f"T#{number}-{n}" for n in range(300)], range(300), [T0 + 10**6] * 300)
    for one in paths:
        assert optimize(one, root, overwrite=True).files == 1
    assert FilterFile(MappedFile.open(sidecars(path)[1])).header.files == 4
    with IndexService.open(path.parent) as service:
        assert all(file._sidecars is not None and file._sidecars.filter is not None for file in service.files)


def test_side_files_have_the_mode_of_their_index_file(path: Path) -> None:
    path.chmod(0o600)
    optimize(path.parent.parent, path.parent.parent, overwrite=True)
    assert [Path(side).stat().st_mode & 0o777 for side in (path, *sidecars(path))] == [0o600] * 3
