"""Side files in use: found beside an index file when it is opened, and trusted where they are bound to it."""

from __future__ import annotations

import contextlib

from mqindex._native.crc import crc32c
from mqindex._native.sidecar import ColdSearch
from mqindex.errors import CorruptIndexError, MQIndexError
from mqindex.files.mapped_file import MappedFile
from mqindex.files.residency import Residency
from mqindex.rocketmq.layout import (
    INDEX_HEADER_SIZE,
    MAGIC_FENCE,
    MAGIC_FILTER,
    PARTITION_SIZE,
    SIDE_HEADER_SIZE,
    IndexHeader,
    SideHeader,
)
from mqindex.rocketmq.sidecar.binding import misfit, unsealed
from mqindex.rocketmq.sidecar.names import side_paths

__all__ = ["Sidecars", "find_sidecars"]


class Sidecars:
    """The fence and the filter of one index file, mapped. `search` looks keys up in them.

    Both are checked as far as opening goes: headers, lengths, the table of partitions, what binds them to the file. The
    bulk is compared with its checksums when it is first read.
    """

    def __init__(self, index: MappedFile, geometry: tuple[int, int]) -> None:
        """`MQIndexError` or `OSError`: they are not there, damaged, or not of this file."""
        paths = side_paths(index.path)
        with contextlib.ExitStack() as opened:
            self._files = [opened.enter_context(contextlib.closing(MappedFile.open(path))) for path in paths]
            self.headers = [
                _header(file, magic) for file, magic in zip(self._files, (MAGIC_FENCE, MAGIC_FILTER), strict=True)
            ]
            for file, header in zip(self._files, self.headers, strict=True):
                _require_bound(file, header, index, geometry)
            fence, keys = (memoryview(file.map)[SIDE_HEADER_SIZE:] for file in self._files)
            self._residency = opened.enter_context(contextlib.closing(Residency(index.path)))
            self.covered = self.headers[0].covered
            try:
                self.search = ColdSearch(
                    fence, keys, covered=self.covered, checksum=self.headers[0].content,
                    partitions=self.headers[1].items, hash_slot_num=geometry[0], in_memory=self._residency,
                )  # fmt: skip
            except ValueError as error:
                raise CorruptIndexError(str(error), path=self._files[1].path) from None
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Let the files go; may be called twice."""
        self._opened.close()


def find_sidecars(index: MappedFile, geometry: tuple[int, int]) -> Sidecars | None:
    """Those that cover a whole index file; None: there are none such, and its slots are asked."""
    try:
        found = Sidecars(index, geometry)
    except (MQIndexError, OSError):
        return None
    if IndexHeader.from_bytes(index.map[:INDEX_HEADER_SIZE]).index_count == found.covered + 1:
        return found
    found.close()
    return None


def _header(file: MappedFile, magic: bytes) -> SideHeader:
    header = unsealed(file.map[:SIDE_HEADER_SIZE], file.path, magic, file.size)
    least = SIDE_HEADER_SIZE + (PARTITION_SIZE if magic == MAGIC_FILTER else 4) * header.items
    if header.items < 1 or least > file.size:
        raise CorruptIndexError(
            "the side file is too short for its content", path=file.path, expected=least, got=file.size
        )
    if magic == MAGIC_FILTER:
        checksum = crc32c(file.map[SIDE_HEADER_SIZE:least])
        if checksum != header.content:
            raise CorruptIndexError(
                "the checksum of the filter's partitions is wrong", path=file.path, field="content",
                expected=header.content, got=checksum,
            )  # fmt: skip
    return header


def _require_bound(file: MappedFile, header: SideHeader, index: MappedFile, geometry: tuple[int, int]) -> None:
    wrong = misfit(header, index, geometry)
    if wrong is not None:
        field, expected, got = wrong
        raise CorruptIndexError(
            "the side file is of another index file", path=file.path, field=field, expected=expected, got=got
        )
