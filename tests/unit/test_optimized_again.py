"""`optimize` of files that it wrote itself: another geometry, sidecars that were damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.errors import GeometryError
from mqindex.rocketmq import IndexFile, optimize
from mqindex.rocketmq.sidecar.names import sidecar_paths

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


@pytest.mark.parametrize("which", [0, 1], ids=["fence", "filter"])
def test_damaged_sidecars_are_written_anew(which: int, path: Path) -> None:
    root = path.parent.parent
    optimize(root, root, overwrite=True)
    side = Path(sidecar_paths(str(path))[which])
    good = side.read_bytes()
    side.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    optimize(root, root, overwrite=True)
    assert side.read_bytes() == good


def test_side_files_have_the_mode_of_their_index_file(path: Path) -> None:
    path.chmod(0o600)
    optimize(path.parent.parent, path.parent.parent, overwrite=True)
    assert [Path(side).stat().st_mode & 0o777 for side in (path, *sidecar_paths(str(path)))] == [0o600] * 3
