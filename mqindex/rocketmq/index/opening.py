"""Opening one index file: with the geometry given, or inferred from its content, or from the files beside it."""

from __future__ import annotations

from mqindex.errors import GeometryError
from mqindex.files import disk
from mqindex.files.paths import absolute, parent_of, size_of
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.kinds import index_paths, require_finished
from mqindex.rocketmq.options import StoreArguments, store_options
from mqindex.rocketmq.settings import MAX_HASH_SLOT_NUM, MAX_INDEX_NUM


def open_index_file(path: str, options: StoreArguments) -> tuple[IndexFile, str]:
    """The open file, and where its geometry comes from."""
    slots, entries, source = geometry_of(path, options)
    return IndexFile.open(path, hash_slot_num=slots, index_num=entries), source


def geometry_of(path: str, options: StoreArguments) -> tuple[int | None, int | None, str]:
    """(hash_slot_num, index_num, source) of an index file or a directory of them; None: not known."""
    require_finished(path)
    chosen = store_options(path, **options)
    given = chosen.reported(MAX_HASH_SLOT_NUM) or chosen.reported(MAX_INDEX_NUM)
    paths = index_paths(path) if disk.is_directory(path) else [path]
    if given is not None and not paths:
        return chosen.hash_slot_num, chosen.index_num, given.source
    if given is not None:
        pair = geometry.resolve(chosen.hash_slot_num, chosen.index_num, max(map(size_of, paths), default=0))
        assert pair is not None
        with chosen.blaming(GeometryError, MAX_HASH_SLOT_NUM, MAX_INDEX_NUM):
            geometry.require(paths, pair, given.source)
        return *pair, given.source
    if disk.is_directory(path):
        return (*geometry.infer(paths), "inferred from the files") if paths else (None, None, "the brokers' default")
    try:
        return *geometry.infer([path]), "inferred from the file"
    except GeometryError:
        neighbours = index_paths(parent_of(absolute(path)))
        if len(neighbours) < 2:
            raise
        return *geometry.infer(neighbours), "inferred from the files beside it"
