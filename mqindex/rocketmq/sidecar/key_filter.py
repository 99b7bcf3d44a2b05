"""The key filter of a directory of index files: opened, read here or elsewhere, its files found by their fences."""

from __future__ import annotations

import contextlib
import os
from weakref import WeakValueDictionary, finalize

from mqindex._native.crc import crc32c
from mqindex._native.file_watch import FileWatch
from mqindex._native.key_filter import KeyFilter
from mqindex.errors import CorruptIndexError
from mqindex.files.places.place import Place
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.opening import map_file
from mqindex.files.reading.regular import regular
from mqindex.rocketmq.sidecar.binding import require_sealed
from mqindex.rocketmq.sidecar.layout import (
    FILTER_FILE_SIZE,
    FILTER_HEADER_SIZE,
    FILTER_MOST_FILES,
    FILTER_VERSION,
    MAGIC_FILTER,
    FenceHeader,
    FilterHeader,
)


class FilterFile:
    """A key filter. `rows`: what is searched; `numbers`: of each file that it knows, by `FenceHeader.of_filter`.

    Making one checks the header, the lengths and the files; of the rows each when it is first read.
    """

    def __init__(self, file: MappedFile, watch: FileWatch | None = None) -> None:
        """`CorruptIndexError`: it is no filter, too short, or was damaged."""
        self.header = _header(file)
        self.start = FILTER_HEADER_SIZE + FILTER_FILE_SIZE * self.header.files
        files = file.read(FILTER_HEADER_SIZE, self.start)
        if crc32c(files) != self.header.content:
            raise CorruptIndexError(
                "the checksum of the filter's files is wrong", path=file.path, field="content",
                expected=self.header.content, got=crc32c(files),
            )  # fmt: skip
        self.path = file.path
        known = [files[at : at + FILTER_FILE_SIZE] for at in range(0, len(files), FILTER_FILE_SIZE)]
        self.numbers = {one: number for number, one in enumerate(known)}
        rows = memoryview(file.window(0, self.start))[self.start :]
        try:
            self.rows = KeyFilter(
                rows, files=self.header.files, hash_slot_num=self.header.hash_slot_num,
                index_num=self.header.index_num, seed=self.header.content, watch=watch,
            )  # fmt: skip
        except ValueError as error:
            raise CorruptIndexError(str(error), path=file.path) from None

    def number_of(self, fence: FenceHeader) -> int | None:
        """Which of its files the fence is of; None: of none."""
        if (self.header.hash_slot_num, self.header.index_num) != (fence.hash_slot_num, fence.index_num):
            return None
        return self.numbers.get(fence.of_filter())

    def require_content(self) -> None:
        """Compare the rows now; `CorruptIndexError`: a checksum is wrong."""
        row = self.rows.damaged_row()
        if row is not None:
            raise CorruptIndexError("the checksum of a filter's row is wrong", path=self.path, field=f"row {row}")


_open: WeakValueDictionary[tuple[object, ...], FilterFile] = WeakValueDictionary()


def open_filter(path: str) -> FilterFile:
    """The filter at `path`, one for all that ask while it is in use: it knows which rows it has read.

    `MQIndexError` or `OSError`: it is missing, or damaged.
    """
    if isinstance(path, Place):
        file = map_file(path)
        file.populate()
        return FilterFile(file)
    fd = regular(path, os.O_RDONLY)
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, fd)
        status = os.fstat(fd)
        key = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        found = _open.get(key)
        if found is None:
            watch = FileWatch(fd)
            found = FilterFile(MappedFile.open(path), watch)
            finalize(found, opened.pop_all().close)
            _open[key] = found
    return found


def _header(file: MappedFile) -> FilterHeader:
    if file.size < FILTER_HEADER_SIZE:
        raise CorruptIndexError(
            "the filter is too short", path=file.path, expected=f"{FILTER_HEADER_SIZE} bytes", got=file.size
        )
    data = file.read(0, FILTER_HEADER_SIZE)
    header = FilterHeader.from_bytes(data)
    known = MAGIC_FILTER, FILTER_VERSION, file.size
    if (header.magic, header.version, header.size) != known:
        raise CorruptIndexError(
            "not a key filter of this length", path=file.path,
            expected=f"{known[0]!r}, version {known[1]}, {known[2]} bytes",
            got=f"{header.magic!r}, version {header.version}, {header.size} bytes",
        )  # fmt: skip
    require_sealed(data, file.path, "filter")
    if not (1 <= header.files <= FILTER_MOST_FILES and min(header.hash_slot_num, header.index_num) >= 1):
        raise CorruptIndexError("no such filter", path=file.path, got=header)
    return header
