"""Sidecars in use: found beside an index file when it is opened, and trusted where they are bound to it."""

from __future__ import annotations

import contextlib
from functools import partial

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
    SIDECAR_HEADER_SIZE,
    IndexHeader,
    SidecarHeader,
)
from mqindex.rocketmq.sidecar.binding import misfit, unsealed
from mqindex.rocketmq.sidecar.names import sidecar_paths

__all__ = ["Sidecars", "find_sidecars", "require_pair", "sidecar_header"]


class Sidecars:
    """The fence and the filter of one index file, mapped. `search` looks keys up in them.

    Opening checks the headers, the lengths, the table of partitions and what binds them to the file. The rest is
    compared with its checksums when it is first read. What binds them is compared again where somebody has written to
    the file since: another may have been copied over it.
    """

    def __init__(self, index: MappedFile, geometry: tuple[int, int]) -> None:
        """`MQIndexError` or `OSError`: they are missing, damaged, or not of this file."""
        paths = sidecar_paths(index.path)
        with contextlib.ExitStack() as opened:
            self._files = [opened.enter_context(contextlib.closing(MappedFile.open(path))) for path in paths]
            self.headers = [
                sidecar_header(file, magic)
                for file, magic in zip(self._files, (MAGIC_FENCE, MAGIC_FILTER), strict=True)
            ]
            for file, header in zip(self._files, self.headers, strict=True):
                _require_bound(file, header, index, geometry)
            require_pair(self._files[1], *self.headers)
            fence, keys = (memoryview(file.map)[SIDECAR_HEADER_SIZE:] for file in self._files)
            self._residency = opened.enter_context(contextlib.closing(Residency(index.path)))
            self.covered = self.headers[0].covered
            try:
                self.search = ColdSearch(
                    fence, keys, covered=self.covered, checksum=self.headers[0].content,
                    partitions=self.headers[1].items, hash_slot_num=geometry[0],
                    header=index.map[:INDEX_HEADER_SIZE], fd=self._residency.fileno(),
                    fits=partial(_fits, self.headers[0], index, geometry), in_memory=self._residency,
                )  # fmt: skip
            except ValueError as error:
                raise CorruptIndexError(str(error), path=self._files[1].path) from None
            self._opened = opened.pop_all()

    def require_content(self) -> None:
        """Compare the rest now, which is usually compared when it is read; `CorruptIndexError`: a checksum is wrong."""
        fence, keys = self._files
        checksum = crc32c(memoryview(fence.map)[SIDECAR_HEADER_SIZE:])
        if checksum != self.headers[0].content:
            raise CorruptIndexError(
                "the checksum of the fence is wrong", path=fence.path, field="content",
                expected=self.headers[0].content, got=checksum,
            )  # fmt: skip
        partition = self.search.damaged_partition()
        if partition is not None:
            what = "the checksum of a partition's fingerprints is wrong"
            raise CorruptIndexError(what, path=keys.path, field=f"partition {partition}")

    def close(self) -> None:
        """Close the files; may be called twice."""
        self._opened.close()


def find_sidecars(index: MappedFile, geometry: tuple[int, int]) -> Sidecars | None:
    """The sidecars that cover a whole index file; None: there are none, and look-ups read its slots."""
    try:
        found = Sidecars(index, geometry)
    except (MQIndexError, OSError):
        return None
    if IndexHeader.from_bytes(index.map[:INDEX_HEADER_SIZE]).index_count == found.covered + 1:
        return found
    found.close()
    return None


def sidecar_header(file: MappedFile, magic: bytes) -> SidecarHeader:
    """The header of a sidecar; `CorruptIndexError` where it is none, too short, or its table was damaged."""
    header = unsealed(file.map[:SIDECAR_HEADER_SIZE], file.path, magic, file.size)
    least = SIDECAR_HEADER_SIZE + (PARTITION_SIZE if magic == MAGIC_FILTER else 4) * header.items
    if header.items < 1 or least > file.size:
        raise CorruptIndexError(
            "the sidecar is too short for its content", path=file.path, expected=least, got=file.size
        )
    if magic == MAGIC_FILTER:
        checksum = crc32c(file.map[SIDECAR_HEADER_SIZE:least])
        if checksum != header.content:
            raise CorruptIndexError(
                "the checksum of the filter's partitions is wrong", path=file.path, field="content",
                expected=header.content, got=checksum,
            )  # fmt: skip
    return header


def require_pair(keys: MappedFile, of_fence: SidecarHeader, of_keys: SidecarHeader) -> None:
    """`CorruptIndexError` where the filter is of another time than the fence."""
    if of_keys.covered != of_fence.covered:
        raise CorruptIndexError(
            "the filter is older or newer than the fence", path=keys.path, field="covered",
            expected=of_fence.covered, got=of_keys.covered,
        )  # fmt: skip


def _require_bound(file: MappedFile, header: SidecarHeader, index: MappedFile, geometry: tuple[int, int]) -> None:
    wrong = misfit(header, index, geometry)
    if wrong is not None:
        field, expected, got = wrong
        raise CorruptIndexError(
            "the sidecar is of another index file", path=file.path, field=field, expected=expected, got=got
        )


def _fits(header: SidecarHeader, index: MappedFile, geometry: tuple[int, int]) -> bool:
    try:
        return misfit(header, index, geometry) is None
    except (MQIndexError, OSError):  # cut, or closed, meanwhile: the look-up itself says so
        return False
