"""The segments that a path stands for in the Kafka data sources: of a log dir, of a partition, or of one file."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from mqindex.errors import BadMagicError
from mqindex.files import disk
from mqindex.files.paths import base_name, parent_of
from mqindex.kafka.directories.partition_files import while_files_go
from mqindex.kafka.directories.survey import partitions_at
from mqindex.kafka.kinds import PartitionDirectory
from mqindex.kafka.layout import base_offset_of

_LOG = logging.getLogger(__name__)

PLACE = {"topic": "string", "partition": "int", "segment": "bigint"}  # segment: its base offset


@dataclass(frozen=True)
class SegmentOf:
    """A segment of a partition, by its files; by extension, without the dot. `root`: the path that the user gave."""

    topic: str
    partition: int
    base_offset: int
    files: tuple[tuple[str, str], ...]
    root: str

    def file(self, extension: str) -> str | None:
        """The path of one of its files; None: it is missing."""
        return dict(self.files).get(extension)


@dataclass(frozen=True)
class SegmentRange:
    """What begins in [start, stop) of a segment's file `path`: bytes of a log, entries of an index.

    `open_end`: nothing of the partition's log comes after it, so that a broker may be writing there. `border`: more of
    the file follows, from the start of a batch on. `end_offset`: one that the segment does not reach. `stretches`:
    [start, stop) of each part of the file in which what matches is; a batch begins at each start. None: in all of it.
    """

    of: SegmentOf
    path: str
    start: int
    stop: int
    open_end: bool = False
    border: bool = False
    end_offset: int = 2**63
    stretches: tuple[tuple[int, int], ...] | None = None


def homes_in(path: str) -> list[PartitionDirectory]:
    """The partitions in use; of one file its own."""
    if disk.is_file(path):
        return list(partitions_at(parent_of(path)))
    return [home for home in partitions_at(path) if home.state is None]


def segments_in(path: str, extension: str, among: Container[str] | None = None) -> Iterator[SegmentOf]:
    """The segments of each partition in use, in the order of topics, partitions and offsets.

    A path may be that of one file, which must have the ending `extension`. among : paths of partitions; None: all.
    """
    base_offset = _base_offset(path) if disk.is_file(path) else None
    homes = [home for home in homes_in(path) if among is None or home.path in among]
    if base_offset is not None:
        if not homes:
            return
        home, *_ = homes
        if base_name(path).split(".")[1:2] != [extension]:
            raise BadMagicError("not the file that is to be read", path=path, expected=f"a .{extension}")
        yield SegmentOf(home.topic, home.partition, base_offset, ((extension, path),), path)
        return
    for home in homes:
        yield from _segments(home, path)


def _segments(home: PartitionDirectory, root: str) -> Iterator[SegmentOf]:
    try:
        listed = while_files_go(home.path, lambda files: files.segments)
    except FileNotFoundError:
        if home.path == root:
            raise
        _LOG.warning("%s: a broker deleted it before it was read; it is left out", home.path)
        return
    for files in listed:
        yield SegmentOf(
            home.topic, home.partition, files.base_offset, (("log", files.log), *files.indexes.items()), root
        )


def _base_offset(path: str) -> int:
    try:
        return base_offset_of(path)
    except BadMagicError as error:
        error.hint = "name it as a broker does"  # no option gives the offset
        raise


def with_place(of: SegmentOf, table: pa.Table) -> pa.Table:
    """A table of something in the segment, with the columns of `PLACE`."""
    n = table.num_rows
    place = {
        "topic": pa.repeat(of.topic, n),
        "partition": np.full(n, of.partition, np.int32),
        "segment": np.full(n, of.base_offset, np.int64),
    }
    for name, column in place.items():
        table = table.append_column(name, pa.array(column))
    return table
