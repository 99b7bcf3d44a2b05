"""`optimize` of files that it wrote itself: another geometry, sidecars that were damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.errors import GeometryError
from mqindex.files.mapped_file import MappedFile
from mqindex.rocketmq import IndexFile, IndexService, key_hash, optimize, verify
from mqindex.rocketmq.sidecar.key_filter import FilterFile
from mqindex.rocketmq.sidecar.names import fence_path, filter_path
from tests.reference.sidecar import KeyFilter

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
    others = {str(one) for one in (path, *sidecars(path))} - {str(side)}
    assert not others & set(report.out_files) or which == 1  # a filter alone is made with the fence


def test_the_filter_gets_what_is_new_and_loses_what_is_gone(path: Path, tmp_path: Path) -> None:
    """A broker goes on with new files and deletes old ones; the filter is not made anew from all index files."""
    root = path.parent.parent
    optimize(root, root, overwrite=True)
    first = sidecars(path)[1].read_bytes()
    with IndexFile.create(path.parent / "20231114221320001", hash_slot_num=SLOTS, index_num=ROOM) as index:
        index.put_keys([f"T#new{n}" for n in range(300)], range(300), [T0 + 10**6] * 300)
    assert optimize(root, root, overwrite=True).files == 1
    assert FilterFile(MappedFile.open(sidecars(path)[1])).header.files == 2
    assert verify(root, hash_slot_num=SLOTS, index_num=ROOM).findings  # there is no log
    assert not [one for one in verify(root).findings if one.kind.startswith("sidecar")]
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
