"""Optimised index files with their sidecars, small ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqindex.files.reading.residency import Residency
from mqindex.rocketmq.sidecar.names import FILTER
from mqindex.rocketmq.sidecar.weaving import known_of, weave
from mqindex.rocketmq.sidecar.writing import write_sidecars
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.sidecar import optimised

__all__ = ["NAME", "never_in_memory", "put_sidecars", "put_store"]

NAME = "20231114221320000"


def put_store(root: Path, twin: TwinFile, name: str = NAME) -> Path:
    """`index/` and `mqindex-index/` of one optimised file; returns the index file's path."""
    path = root / "index" / name
    (root / "mqindex-index").mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(optimised(twin).data)
    put_sidecars(root, [path], (twin.hash_slot_num, twin.index_num))
    return path


def put_sidecars(root: Path, paths: Sequence[Path], geometry: tuple[int, int]) -> None:
    """The fence of each index file, and the filter of all."""
    side = root / "mqindex-index"
    side.mkdir(parents=True, exist_ok=True)
    made = [pair for path in paths if (pair := write_sidecars(os.fspath(path), os.fspath(side), geometry=geometry))]
    if made:
        known = known_of(map(os.fspath, paths))
        filters = dict(zip(known, (keys for _, keys in made), strict=True))
        weave(str(side / FILTER), filters, filters, "", geometry)
    for _, keys in made:
        os.remove(keys)


def never_in_memory(patch: pytest.MonkeyPatch) -> None:
    """Every look-up goes by fence and filter, where there are such."""
    patch.setattr(Residency, "__call__", lambda self: False)
