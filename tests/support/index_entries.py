"""The entries of a store's index, to be counted before and after."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mqindex.rocketmq import IndexFile
from tests.support.tree import index_paths

__all__ = ["entries_of"]


def entries_of(root: Path, geometry: tuple[int, int]) -> Counter[tuple[int, int]]:
    """(key_hash, phy_offset) of all index entries, each as often as it is there."""
    found: Counter[tuple[int, int]] = Counter()
    for path in index_paths(root):
        with IndexFile.open(path, hash_slot_num=geometry[0], index_num=geometry[1]) as index:
            entries = index.entries()
            found.update(zip(entries["key_hash"].tolist(), entries["phy_offset"].tolist(), strict=True))
    return found
