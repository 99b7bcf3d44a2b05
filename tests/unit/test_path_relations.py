"""`PathRelations` against the system's own answers, where links, mounts' names and `..` lead."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from mqindex.files.path_relations import PathRelations, around


@pytest.fixture
def tree(tmp_path):
    """Directories, and links to them, beside them, to nowhere and in a circle."""
    (tmp_path / "data" / "store" / "index").mkdir(parents=True)
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "file").touch()
    for name, target in (
        ("data/link", "../other/deep"),
        ("data/store/queues", tmp_path / "other"),
        ("short", "data/store"),
        ("nowhere", "missing/place"),
        ("circle", "circle"),
    ):
        (tmp_path / name).symlink_to(target)
    return tmp_path


PLACES = (
    "",
    "data",
    "data/",
    "data/store/index",
    "data/store/index/absent/more",
    "data/link",
    "data/link/..",
    "data/link/../absent",
    "data/store/queues/deep",
    "short/index",
    "short/./queues",
    "nowhere/below",
    "circle/below",
    "data/file/below",
    "data/storehouse",
    "other",
    "other/deep/absent",
)


def test_paths_are_resolved_as_by_the_system(tree, monkeypatch):
    monkeypatch.chdir(tree)
    where = PathRelations()
    for place in (*PLACES, *(str(tree / place) for place in PLACES), "/", "..", "../", "./data"):
        assert where._resolve(place) == os.path.realpath(place), place


def test_what_lies_in_what_is_as_by_the_system(tree):
    """Every pair: by the names, with links resolved or not; and by device and inode, where both are there."""
    where = PathRelations()
    found = 0
    places = [str(tree / place) for place in PLACES]
    for path, directory in itertools.product(places, repeat=2):
        expected = _lies_in(path, directory)
        assert (around(path, [directory]) is not None) == expected, (path, directory)
        assert (where.around(path, [directory]) is not None) == expected, (path, directory)
        found += expected
    assert 40 < found < len(PLACES) ** 2 - 40


def _lies_in(path: str, directory: str) -> bool:
    for way in (os.path.abspath(path), os.path.realpath(path)):
        for above in (way, *map(str, Path(way).parents)):
            if os.path.exists(directory):
                if os.path.exists(above) and os.path.samefile(above, directory):
                    return True
            elif above == os.path.realpath(directory):
                return True
    return False


def test_the_first_of_several_is_named(tree):
    inside = [str(tree / "other"), str(tree / "data"), str(tree)]
    assert around(str(tree / "short" / "index"), inside) == str(tree / "data")
    assert around(str(tree / "absent"), inside[:2]) is None
    assert around("/", inside) is None
    assert around(str(tree / "absent"), ["/"]) == "/"


def test_a_directory_that_may_not_be_looked_at_is_known_by_its_name(tree, monkeypatch):
    closed = str(tree / "data" / "store")
    looked_at = os.stat

    def stat(path, *args, **options):
        if str(path).startswith(closed):
            raise PermissionError(13, "Permission denied", path)
        return looked_at(path, *args, **options)

    monkeypatch.setattr(os, "stat", stat)
    assert around(f"{closed}/index", [closed]) == closed
    assert around(str(tree / "other"), [closed]) is None


def test_a_path_is_looked_at_once(tree, monkeypatch):
    """A store has some twenty places, and all of them the same directories above."""
    where, looked_at = PathRelations(), []
    original = os.stat
    monkeypatch.setattr(os, "stat", lambda path, *args, **options: looked_at.append(path) or original(path, *args))
    for _ in range(3):
        where.around(str(tree / "data" / "store" / "index"), [str(tree / "other"), str(tree / "data")])
    assert str(tree / "data") in looked_at
    assert len(looked_at) == len(set(looked_at))
